from __future__ import annotations

import subprocess
import sys

import pytest
from commands import Ilde

from ilde.cli.main import VERBS
from ilde.cli.settings import setting_names


@pytest.mark.parametrize("name", [verb.name for verb in VERBS])
def test_every_verb_has_help_with_an_example(ilde: Ilde, name: str) -> None:
    result = ilde(*name.split(), "--help")
    assert result.code == 0
    assert f"usage: ilde {name}" in result.out
    assert f"example:\n  ilde {name}" in result.out
    assert "--debug" in result.out


def test_the_overview_names_every_verb(ilde: Ilde) -> None:
    for words in ((), ("--help",)):
        result = ilde(*words)
        assert result.code == 0
        assert all(verb.name in result.out for verb in VERBS)


def test_a_group_of_verbs_has_help_of_its_own(ilde: Ilde) -> None:
    assert "demos record" in ilde("demos").out
    assert "resume" not in ilde("demos", "--help").out


def test_help_imports_neither_torch_nor_gymnasium() -> None:
    script = "import sys; from ilde.cli.main import main; main(['train', '--help']); sys.exit('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("verb", "name"), [("methods", "ilde"), ("envs", "CartPole-v1"), ("presets", "quick"), ("demos list", None)]
)
def test_lists_are_json_arrays_of_named_objects(ilde: Ilde, verb: str, name: str | None) -> None:
    document = ilde(*verb.split(), "--json").document
    assert isinstance(document, list)
    assert all(isinstance(entry["name"], str) for entry in document)
    assert name is None or name in [entry["name"] for entry in document]


def test_lists_for_people_name_the_same_things(ilde: Ilde) -> None:
    for verb in ("methods", "presets"):
        table = ilde(verb).out
        assert all(entry["name"] in table for entry in ilde(verb, "--json").document)


def test_presets_show_every_setting(ilde: Ilde) -> None:
    quick = next(entry for entry in ilde("presets", "--json").document if entry["name"] == "quick")
    assert quick["settings"]["ppo"]["learning_rate"] == 3e-4


def test_help_may_come_first(ilde: Ilde) -> None:
    assert ilde("help", "demos", "show").out == ilde("demos", "show", "--help").out
    assert ilde("help").out == ilde("--help").out


def test_settings_are_found_by_name_or_meaning_with_the_presets_values(ilde: Ilde) -> None:
    every = {entry["name"]: entry for entry in ilde("settings", "--json").document}
    assert set(every) == set(setting_names())
    assert [name for name, entry in every.items() if not entry["meaning"]] == []
    assert every["ppo.learning-rate"]["value"] == 3e-4
    assert every["rewards.generative.subsample"]["meaning"].startswith("Every how many-th transition")  # of a base
    found = ilde("settings", "rewards.entropy.num-neighbors", "PAPER", "--preset", "mujoco", "--json").document
    assert [entry["name"] for entry in found] == ["rewards.entropy.num-neighbors"]
    shown = ilde("settings", "hidden", "--preset", "atari").out
    assert "1,024" in shown
    assert "ppo.learning-rate" not in shown
    result = ilde("settings", "hiden")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "no setting has hiden in its name or meaning" in result.err


@pytest.mark.parametrize("verb", ["train", "demos show", "demos check", "demos export"])
def test_a_part_is_said_to_be_one_of_each_episode(ilde: Ilde, verb: str) -> None:
    assert "first 10 percent of each episode" in " ".join(ilde(*verb.split(), "--help").out.split())

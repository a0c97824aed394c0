from __future__ import annotations

from pathlib import Path

import pytest

from ilde.cli.settings import default_out, setting_names
from ilde.cli.verbs import split_settings
from ilde.settings import compose, parse_seeds, spelled


def test_settings_are_set_apart_with_their_values() -> None:
    words = ["ilde", "--a.b", "1", "--env", "X", "--c=-2", "--d", "-3", "--json"]
    rest, settings = split_settings(words, {"--env", "--json"})
    assert rest == ["ilde", "--env", "X", "--json"]
    assert settings == [("a.b", "1"), ("c", "-2"), ("d", "-3")]


def test_every_leaf_of_the_configuration_has_a_name() -> None:
    names = setting_names()
    assert {"steps", "num-envs", "ppo.learning-rate", "rewards.generative.epochs", "evaluation.every"} <= set(names)
    assert not {"ppo", "method", "preset"} & set(names)


@pytest.mark.parametrize("method", ["sac", "hype", "hype-ilde", "iq-learn"])
def test_a_method_that_replays_brings_its_own_preset(method: str) -> None:
    config = compose(method, "Hopper-v5", None, [])
    assert (config.preset, config.num_envs * config.rollout_steps) == ("replay", 64)
    assert compose(method, "Hopper-v5", "quick", []).preset == "quick"


def test_on_atari_iq_learn_takes_no_steps_by_default() -> None:
    config = compose("iq-learn", "qbert", None, [])
    assert (config.preset, config.iq.online) == ("atari", False)


def test_the_environment_chooses_the_preset() -> None:
    assert compose("expert", "CartPole-v1", None, []).preset == "quick"
    assert compose("expert", "qbert", None, []).preset == "atari"
    assert compose("expert", "qbert", None, []).env == "ALE/Qbert-v5"
    assert compose("expert", "CartPole-v1", "mujoco", []).rollout_steps == 2048


def test_settings_replace_those_of_the_preset_in_order() -> None:
    config = compose("gail", "CartPole-v1", None, [("steps", "1e6"), ("ppo.learning-rate", "1"), ("steps", "7")])
    assert (config.method, config.steps, config.ppo.learning_rate) == ("gail", 7, 1.0)


@pytest.mark.parametrize("preset", ["quick", "quick-plain", "atari", "mujoco", "replay"])
def test_a_configuration_is_spelled_as_the_words_that_compose_it(preset: str) -> None:
    given = [("steps", "7"), ("schedule-steps", "9"), ("sac.temperature", "0.1"), ("ppo.anneal", "false")]
    given += [("demos", "a.npz:0.1"), ("reward", "vail + 2*giril"), ("ppo.learning-rate", "0.1"), ("seed", "3")]
    config = compose("ilde", "Hopper-v4", preset, given)
    method, *words = spelled(config)
    rest, settings = split_settings(words, {"--env", "--preset"})
    assert rest == ["--env=Hopper-v4", f"--preset={preset}"]
    assert compose(method, "Hopper-v4", preset, [(name, value or "") for name, value in settings]) == config


def test_a_setting_put_back_to_nothing_is_spelled() -> None:
    config = compose("expert", "qbert", "atari-short", [("schedule-steps", "none")])
    assert spelled(config) == ["expert", "--env=ALE/Qbert-v5", "--preset=atari-short", "--schedule-steps=None"]


def test_the_default_folder_counts_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = default_out("ALE/Qbert-v5", "ilde", 0)
    assert first == Path("runs/ALE-Qbert-v5-ilde-0")
    first.mkdir(parents=True)
    second = default_out("ALE/Qbert-v5", "ilde", 0)
    assert second == Path("runs/ALE-Qbert-v5-ilde-0-2")
    second.mkdir()
    assert default_out("ALE/Qbert-v5", "ilde", 0) == Path("runs/ALE-Qbert-v5-ilde-0-3")


@pytest.mark.parametrize(("text", "seeds"), [("0..3", (0, 1, 2, 3)), ("0,2,5", (0, 2, 5)), ("7", (7,)), ("4..4", (4,))])
def test_seeds_are_a_range_with_both_ends_or_a_list(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds

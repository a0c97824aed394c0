from __future__ import annotations

import json
from pathlib import Path

import pytest

from ilde.data import UserError
from ilde.experiments.grid import Grid, Task, Variant, check_demos
from ilde.experiments.study_files import FOLDER, find_study, read_study, study_names

TOML = """
name = "mine"
description = "what it is for"
methods = ["ilde", "random"]
seeds = "0..1"

[[tasks]]
env = "Hopper-v4"
demos = "hopper-v4/one-v0:0.5"
preset = "quick"
steps = 4e3
overrides = { ppo.learning-rate = 1e-4, clip-actions = false, "evaluation.every" = 2.0 }

[[variants]]
name = "lambda-2"
methods = ["ilde"]

[variants.overrides]
reward = "vail + 2*giril + entropy"
"""

GRID = Grid(
    name="mine",
    description="what it is for",
    methods=("ilde", "random"),
    seeds=(0, 1),
    tasks=(
        Task(
            "Hopper-v4",
            demos="hopper-v4/one-v0:0.5",
            preset="quick",
            steps=4000,
            overrides=(("ppo.learning-rate", "0.0001"), ("clip-actions", "False"), ("evaluation.every", "2")),
        ),
    ),
    variants=(Variant("lambda-2", ("ilde",), (("reward", "vail + 2*giril + entropy"),)),),
)


def write(folder: Path, text: str, name: str = "study.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_toml_file_is_a_study(tmp_path: Path) -> None:
    assert read_study(write(tmp_path, TOML)) == GRID


def test_a_json_file_is_the_same_study(tmp_path: Path) -> None:
    document = {
        "name": "mine",
        "description": "what it is for",
        "methods": ["ilde", "random"],
        "seeds": [0, 1],
        "tasks": [
            {
                "env": "Hopper-v4",
                "demos": "hopper-v4/one-v0:0.5",
                "preset": "quick",
                "steps": 4000,
                "overrides": {"ppo": {"learning-rate": 1e-4}, "clip-actions": False, "evaluation.every": 2},
            }
        ],
        "variants": [
            {"name": "lambda-2", "methods": ["ilde"], "overrides": {"reward": "vail + 2*giril + entropy"}},
        ],
    }
    assert read_study(write(tmp_path, json.dumps(document), "study.json")) == GRID


def test_settings_arrive_with_their_types(tmp_path: Path) -> None:
    config = read_study(write(tmp_path, TOML)).cells()[0].config
    assert (config.ppo.learning_rate, config.clip_actions, config.evaluation.every) == (1e-4, False, 2)


def test_a_study_without_a_name_has_its_files(tmp_path: Path) -> None:
    assert read_study(write(tmp_path, TOML.replace('name = "mine"\n', "", 1), "other.toml")).name == "other"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('name = "mine"', "name = 3", "name: 3 is not a text"),
        ('name = "mine"', "nme = 3", "nme: unknown key; did you mean name?"),
        ('methods = ["ilde", "random"]', "", "methods: a study needs at least one"),
        ('methods = ["ilde", "random"]', 'methods = "ilde"', "methods: 'ilde' is not a list of texts"),
        ('["ilde", "random"]', '["ilde", "randon"]', "methods: unknown method 'randon'; did you mean random?"),
        ('seeds = "0..1"', "", "seeds: missing, expected a list of whole numbers or a text such as '0..3'"),
        ('"0..1"', '"1..0"', "seeds '1..0': the range is empty"),
        ('"0..1"', "[0, 1.5]", "seeds: [0, 1.5] is not a list of whole numbers"),
        ('"0..1"', "[0, true]", "seeds: [0, True] is not a list of whole numbers"),
        ("[[tasks]]", "[tasks]", "tasks: {"),
        ('env = "Hopper-v4"', "", "tasks[0].env: missing"),
        ('env = "Hopper-v4"', 'env = "Hoper-v4"', "tasks[0].env: unknown environment 'Hoper-v4'"),
        ("steps = 4e3", "stps = 4e3", "tasks[0].stps: unknown key; did you mean steps?"),
        ("steps = 4e3", "steps = 4.5", "tasks[0].steps: 4.5 is not a whole number"),
        ("steps = 4e3", 'steps = "many"', "tasks[0].steps: 'many' is not a whole number"),
        ("steps = 4e3", "steps = inf", "tasks[0].steps: inf is not a whole number"),
        ("clip-actions = false", "clip-actions = 3", "tasks[0]: clip-actions: '3' is not true or false"),
        ("clip-actions = false", "clip-actions = [1]", "tasks[0].overrides.clip-actions: [1] is not a text, a number"),
        ("clip-actions = false", "clip-acts = 3", "tasks[0]: unknown setting clip_acts; did you mean clip_actions?"),
        ('name = "lambda-2"', "", "variants[0].name: missing"),
        ('"vail + 2*giril + entropy"', '"vial"', "variants[0] on tasks[0]: reward expression 'vial': unknown term"),
        ('"vail + 2*giril + entropy"', "3\nenv = 3", "variants[0].overrides: env has a key of its own in a study"),
        ('name = "mine"', 'name = "mine', "cannot be read (Illegal character"),
    ],
)
def test_a_mistake_names_the_file_and_the_key(tmp_path: Path, old: str, new: str, line: str) -> None:
    assert old in TOML
    path = write(tmp_path, TOML.replace(old, new, 1))
    with pytest.raises(UserError) as refusal:
        read_study(path)
    assert str(refusal.value).startswith(f"{path}: {line}")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("study.yaml", b"a: 1", "a study is a .toml or .json file"),
        ("study.json", b"[1]", "is not a table of keys"),
        ("study.json", b'{"seeds": 1, "seeds": 2}', "cannot be read (seeds stands twice)"),
        ("study.json", b"{", "cannot be read (Expecting property name"),
        ("study.toml", b"\xff", "cannot be read ('utf-8' codec"),
    ],
)
def test_a_file_that_is_no_study_is_refused(tmp_path: Path, name: str, content: bytes, line: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError) as refusal:
        find_study(str(path))
    assert str(refusal.value).startswith(f"{path}: {line}")


def test_a_name_that_is_unknown_gets_a_hint() -> None:
    with pytest.raises(UserError, match=r"smoek: no such file or bundled study; did you mean smoke\?"):
        find_study("smoek")


@pytest.mark.parametrize("name", study_names())
def test_every_bundled_study_can_begin(name: str) -> None:
    grid = find_study(name)
    assert grid.name == name
    assert grid.description
    check_demos(grid.cells())


def test_studies_come_with_the_package() -> None:
    assert "smoke" in study_names()
    assert (FOLDER / "smoke.toml").is_file()


def test_the_baselines_stand_beside_every_control_on_each_task_at_equal_steps() -> None:
    configs = [cell.config for cell in find_study("baselines").cells()]
    for shown in {(config.env, config.demos, config.steps) for config in configs}:
        methods = {config.method for config in configs if (config.env, config.demos, config.steps) == shown}
        assert methods >= {"constant", "entropy", "shuffled", "wrong-demos"}


def test_each_fragment_stands_beside_the_controls_at_equal_steps() -> None:
    configs = [cell.config for cell in find_study("fragments").cells()]
    fragments = {(config.env, config.demos) for config in configs if config.method == "ilde"}
    for env, demos in fragments:
        beside = {config.method for config in configs if config.env == env and config.demos in (demos, None)}
        assert beside == {"ilde", "vail", "wrong-demos", "constant", "entropy", "random"}
    assert len(fragments) == 4
    assert {(config.preset, config.steps) for config in configs} == {("quick", 400_000)}


def test_iq_learn_has_its_authors_value_term_on_each_task() -> None:
    runs = [cell.config for cell in find_study("baselines").cells() if cell.config.method == "iq-learn"]
    assert {(run.env, run.iq.value_term) for run in runs} == {("Hopper-v5", "initial"), ("HalfCheetah-v5", "value")}

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import pytest

from ilde.data import UserError
from ilde.experiments.grid import Cell, Grid, Task, Variant, check_demos

DEMOS = "hopper-v4/one-v0"
HOPPER = Task("Hopper-v4", demos=DEMOS, steps=1000, overrides=(("ppo.learning-rate", "0.5"),))
CARTPOLE = Task("CartPole-v1", name="pole", methods=("expert",))
LAMBDA = Variant("lambda-2", methods=("ilde",), overrides=(("reward", "vail + 2*giril"), ("steps", "7")))
PLAIN = Variant("plain", methods=("ilde",))
STUDY = Grid("two", ("ilde", "expert"), (HOPPER, CARTPOLE), (0, 5), (PLAIN, LAMBDA))


def ids(grid: Grid) -> list[str]:
    return [cell.id for cell in grid.cells()]


def test_a_study_is_the_product_of_its_parts_first_seeds_first() -> None:
    expected = ["hopper-v4/ilde/plain", "hopper-v4/ilde/lambda-2", "hopper-v4/expert", "pole/expert"]
    assert ids(STUDY) == [f"{row}/seed-{seed}" for seed in (0, 5) for row in expected]
    assert STUDY.cells() == STUDY.cells()


def test_a_cell_knows_its_task_and_variant() -> None:
    cell = STUDY.cells()[1]
    assert (cell.task, cell.variant, cell.config.method, cell.config.seed) == ("hopper-v4", "lambda-2", "ilde", 0)
    assert STUDY.cells()[-1].config.seed == 5


def test_a_variant_overrides_its_task_which_overrides_the_preset() -> None:
    plain, changed, *_ = (cell.config for cell in STUDY.cells())
    assert (plain.preset, plain.demos, plain.steps, plain.ppo.learning_rate, plain.reward) == (
        "quick", DEMOS, 1000, 0.5, None,
    )  # fmt: skip
    assert replace(plain, steps=7, reward="vail + 2*giril") == changed


def test_without_variants_ids_have_no_part_for_them() -> None:
    assert ids(replace(STUDY, variants=(), tasks=(HOPPER,), seeds=(3,))) == [
        "hopper-v4/ilde/seed-3",
        "hopper-v4/expert/seed-3",
    ]


def test_method_and_environment_choose_the_preset_that_is_not_named() -> None:
    grid = Grid("presets", ("hype", "expert"), (Task("Hopper-v5", demos=DEMOS),), (0,))
    assert [cell.config.preset for cell in grid.cells()] == ["replay", "quick"]


@pytest.mark.parametrize(
    ("env", "label"),
    [
        ("Hopper-v4", "hopper-v4"),
        ("ALE/BeamRider-v5", "beamrider-v5"),
        ("my.module:Strange_Env-v0", "strange-env-v0"),
    ],
)
def test_a_task_without_a_name_has_its_environments(env: str, label: str) -> None:
    assert Task(env).label == label


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"name": "My Study"}, "name: 'My Study' cannot be a folder; use small letters"),
        ({"methods": ()}, "methods: a study needs at least one"),
        ({"methods": ("ilde", "expert", "ild")}, "methods: unknown method 'ild'; did you mean ilde?"),
        ({"methods": ("ilde", "expert", "ilde")}, "methods: ilde stands twice"),
        ({"seeds": (0, 0)}, "seeds: 0 stands twice"),
        ({"seeds": (0, -1)}, "seeds: -1 is negative"),
        ({"tasks": ()}, "tasks: a study needs at least one"),
        ({"tasks": (HOPPER, Task("Hopper-v4"))}, "tasks: hopper-v4 stands twice; leave one out or give it another"),
        ({"tasks": (Task("Hopper-v4", name="../a"),)}, "tasks[0].name: '../a' cannot be a folder"),
        ({"tasks": (Task("Hopper-v4", methods=("vail",)),)}, "tasks[0].methods: 'vail' is not among the study's"),
        ({"tasks": (Task("Hopper-v4", overrides=(("seed", "3"),)),)}, "tasks[0].overrides: seed has a key of its own"),
        ({"tasks": (Task("Hopper-v4", name="lock"),)}, "tasks[0].name: 'lock' is a file's name in the folder of a"),
        ({"tasks": (Task("Hopper-v4", name="config.json"),)}, "tasks[0].name: 'config.json' is a file's name in the"),
        ({"tasks": (CARTPOLE,)}, "methods: no task tries ilde; leave it out or name it in a task's methods"),
        (
            {"tasks": (Task("Hopper-v4", overrides=(("num-envs", "1"), ("num_envs", "2"))),)},
            "tasks[0].overrides: num_envs stands twice; leave one out",
        ),
        (
            {"tasks": (Task("Hopper-v4", steps=7, overrides=(("steps", "8"),)),)},
            "tasks[0].overrides: steps stands twice",
        ),
        (
            {"variants": (Variant("a", (), (("ppo.hidden", "1"), ("ppo.hidden", "2"))),)},
            "variants[0].overrides: ppo.hidden stands twice",
        ),
        ({"variants": (Variant("a/b"),)}, "variants[0].name: 'a/b' cannot be a folder"),
        ({"variants": (PLAIN, PLAIN)}, "variants: plain stands twice"),
    ],
)
def test_a_study_that_makes_no_sense_is_refused(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(UserError) as refusal:
        replace(STUDY, **changes)
    assert str(refusal.value).startswith(line)


@pytest.mark.parametrize(
    ("task", "line"),
    [
        (Task("Hoper-v4"), "tasks[0].env: unknown environment 'Hoper-v4'; did you mean"),
        (Task("Hopper-v4", preset="qick"), "tasks[0].preset: unknown preset 'qick'; did you mean quick?"),
        (Task("Hopper-v4", steps=0), "tasks[0]: steps: must be at least 1, received 0"),
        (Task("Hopper-v4", overrides=(("ppo.learning-rate", "fast"),)), "tasks[0]: ppo.learning-rate: 'fast' is not"),
        (
            Task("Hopper-v4", overrides=(("ppo.rate", "1"),)),
            "tasks[0]: unknown setting ppo.rate; there are learning_rate",
        ),
        (Task("Hopper-v4", overrides=(("reward", "valid"),)), "tasks[0]: reward expression 'valid': unknown term"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named_with_its_place(task: Task, line: str) -> None:
    with pytest.raises(UserError) as refusal:
        replace(STUDY, tasks=(task,), variants=()).cells()
    assert str(refusal.value).startswith(line)


def test_a_variants_mistake_is_the_variants() -> None:
    wrong = Variant("wrong", overrides=(("num-envs", "0"),))
    with pytest.raises(UserError, match=r"variants\[0\] on tasks\[1\]: num_envs: must be at least 1"):
        replace(STUDY, tasks=(CARTPOLE, HOPPER), variants=(replace(wrong, methods=("ilde",)),)).cells()


def test_demonstrations_are_missed_only_where_they_are_used() -> None:
    cells = Grid("bare", ("expert", "ilde"), (Task("Hopper-v4"),), (0,)).cells()
    check_demos(cells[:1])
    with pytest.raises(UserError, match="hopper-v4/ilde/seed-0: demos: missing, and ilde learns from them"):
        check_demos(cells)


def test_demonstrations_that_are_not_there_are_said_before_any_run() -> None:
    cells = Grid("bare", ("ilde",), (Task("Hopper-v4", demos="nowhere.npz"),), (0,)).cells()
    with pytest.raises(UserError, match=r"seed-0: demos: nowhere.npz: no such file"):
        check_demos(cells)


def test_a_recording_of_another_environment_is_said_before_any_run() -> None:
    tasks = (Task("Hopper-v4", demos=DEMOS), Task("Hopper-v5", demos=DEMOS))
    cells = Grid("mixed", ("ilde", "expert"), tasks, (0,)).cells()
    check_demos([cell for cell in cells if cell.task == "hopper-v4" or cell.config.method == "expert"])
    with pytest.raises(UserError, match=f"hopper-v5/ilde/seed-0: demos: {DEMOS}: recorded on Hopper-v4, this run is"):
        check_demos(cells)


def test_records_are_frozen() -> None:
    for record in (Task, Variant, Cell, Grid):
        assert record.__dataclass_params__.frozen  # type: ignore[attr-defined]
        assert dataclasses.is_dataclass(record)

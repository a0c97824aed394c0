"""The runs behind the paper's tables: every row has its runs, every budget its size, every method its controls."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from tool_modules import ROOT, load_tool

from ilde.config import RunConfig
from ilde.data import UserError
from ilde.demos import resolve
from ilde.demos.bundled import bundled_names
from ilde.experiments.grid import Cell, check_demos
from ilde.experiments.paper import PaperTable, paper_table, paper_tables
from ilde.experiments.paper.studies import BUDGETS, BudgetName, find_budget, paper_study
from ilde.experiments.paper.tables import TABLES
from ilde.methods import find_method
from ilde.reports.comparison import CONTROLS
from ilde.reports.outcomes import spelled_reward

each_table = pytest.mark.parametrize("table", paper_tables(), ids=lambda table: table.name)
each_budget = pytest.mark.parametrize("budget", BUDGETS)


@pytest.fixture(scope="session")
def recorder() -> ModuleType:
    """The tool that makes the bundled demonstrations."""
    return load_tool("make_demos")


@cache
def runs_of(table: str, budget: BudgetName) -> tuple[Cell, ...]:
    return paper_study(table, budget).cells()


def cells(table: str, budget: BudgetName) -> dict[str, RunConfig]:
    return {cell.id: cell.config for cell in runs_of(table, budget)}


@each_budget
@each_table
def test_every_row_has_a_run_on_every_task(table: PaperTable, budget: BudgetName) -> None:
    rows = set(map(table.run_of, table.rows)) if table.domain != "demonstrators" else {"expert"}
    found = {cell.id.removeprefix(f"{cell.task}/").rpartition("/")[0] for cell in runs_of(table.name, budget)}
    assert rows <= found
    assert {config.env for config in cells(table.name, budget).values()} == {task.env for task in table.tasks}


@each_budget
@each_table
def test_controls_stand_beside_every_method_at_the_same_budget(table: PaperTable, budget: BudgetName) -> None:
    runs: dict[str, dict[str, set[tuple[int, int]]]] = {}
    for cell in runs_of(table.name, budget):
        spent = runs.setdefault(cell.task, {}).setdefault(cell.config.method, set())
        spent.add((cell.config.steps, cell.config.seed))
    for methods in runs.values():
        assert set(methods) == {*table.methods, *(CONTROLS if table.domain != "demonstrators" else ())}
        assert len({frozenset(spent) for spent in methods.values()}) == 1
    assert all(find_method(name).control for name in CONTROLS)


@each_budget
def test_an_id_stands_for_one_run_in_all_studies(budget: BudgetName) -> None:
    known: dict[str, RunConfig] = {}
    for table in paper_tables():
        for name, config in cells(table.name, budget).items():
            assert known.setdefault(name, config) == config, name


@each_budget
def test_no_run_is_made_twice_under_two_names(budget: BudgetName) -> None:
    known: dict[RunConfig, str] = {}
    for name in ("atari", "lambda", "noise", "iq-learn"):
        for run, config in cells(name, budget).items():
            assert known.setdefault(replace(config, reward=_reward(config)), run) == run


def _reward(config: RunConfig) -> str:
    return spelled_reward(config.reward or find_method(config.method).reward)


def test_lambda_10_and_no_noise_are_the_run_of_the_main_table() -> None:
    assert paper_table("lambda").run_of("ilde/lambda-10") == paper_table("noise").run_of("ilde/tremble-0") == "ilde"
    assert paper_table("noise").run_of("ilde/tremble-0.3") == "ilde/tremble-0.3"
    main = cells("atari", "hours")["beam_rider/ilde/seed-0"]
    assert (
        cells("lambda", "hours")["beam_rider/ilde/seed-0"] == cells("noise", "hours")["beam_rider/ilde/seed-0"] == main
    )


def test_other_versions_of_a_task_change_no_study() -> None:
    (hopper,) = [task for task in paper_table("hype").tasks if task.name == "Hopper"]
    assert hopper.envs == ("Hopper-v4", "Hopper-v5")
    assert {config.env for name in TABLES for config in cells(name, "hours").values()}.isdisjoint(hopper.also)


def test_tables_of_the_same_runs_share_a_study() -> None:
    main = cells("atari", "paper")
    assert len(main) == 6 * (6 + 5) * 10
    for name in ("normalised", "efficiency", "efficiency-vs-giril", "atari-curves"):
        assert cells(name, "paper") == main
    assert cells("mujoco-curves", "paper") == cells("mujoco", "paper")


@each_table
def test_the_whole_paper_has_its_steps_and_seeds(table: PaperTable) -> None:
    budget = find_budget(table.domain, "paper")
    assert table.steps in (None, budget.steps)
    assert table.seeds in (None, budget.seeds)
    assert {config.preset for config in cells(table.name, "paper").values()} == (
        {"replay", "quick"} if table.domain == "hype" else {budget.preset}
    )


def test_hours_are_8_million_steps_of_a_50_million_schedule_and_2_million_in_small_rollouts() -> None:
    game = cells("atari", "hours")["beam_rider/ilde/seed-0"]
    assert (game.steps, game.schedule_steps, game.demos) == (8_000_000, 50_000_000, "beam_rider/one-life-v0:0.1")
    assert (game.num_envs, game.rollout_steps, game.evaluation.max_steps) == (32, 128, 4500)
    assert {config.seed for config in cells("atari", "hours").values()} == {0}
    robots = cells("mujoco", "hours")
    robot = robots["hopper-v4/ilde/seed-0"]
    assert (robot.steps, robot.num_envs, robot.rollout_steps, robot.demos) == (2_000_000, 16, 256, "hopper-v4/four-v0")
    assert not robot.clip_actions
    assert {config.seed for config in robots.values()} == {0, 1, 2}


@each_table
def test_a_smoke_run_is_tiny_and_has_four_points(table: PaperTable) -> None:
    for config in cells(table.name, "smoke").values():
        assert config.steps <= 4096
        assert config.num_envs * config.rollout_steps <= 512
        assert (config.seed, config.device, config.evaluation.final_max_steps) == (0, "cpu", 64)
        points = config.steps // (config.num_envs * config.rollout_steps * max(1, config.evaluation.every))
        assert points == 4 or table.domain == "demonstrators"


def test_smoke_and_hours_differ_from_the_paper_in_nothing_but_their_cost() -> None:
    whole, hours = cells("atari", "paper"), cells("atari", "hours")
    one, other = (study["qbert/ilde/seed-0"] for study in (whole, hours))
    assert (one.ppo, one.rewards, one.iq) == (other.ppo, other.rewards, other.iq)
    tiny = cells("atari", "smoke")["qbert/ilde/seed-0"]
    for config in (one, other, tiny):
        read = (
            config.rewards.curiosity_factor,
            config.rewards.scale.terms,
            config.rewards.generative.log_variance_limit,
        )
        assert read == (0.02, "all", 4.0)
    # What a budget sets goes before what the paper leaves open.
    steady = [cells("atari", budget)["krull/ilde/seed-0"].rewards.generative for budget in ("hours", "smoke")]
    assert [generative.epochs for generative in steady] == [100, 10]
    assert replace(hours["qbert/vail/seed-0"], method="ilde") == other


def test_what_depends_on_the_game_follows_from_what_was_measured() -> None:
    audits = {name: json.loads((ROOT / "results" / f"{name}-audit.json").read_text()) for name in ("points", "dying")}
    measured = {game["game"]: game["rows"]["change, nearly raw"] for game in audits["points"]["games"]}
    shown = {f"ALE/{game['game']}-v5": game["shown"] for game in audits["dying"]["games"]}
    runs = [run for name, run in cells("atari", "hours").items() if name.endswith("/ilde/seed-0")]
    assert len(runs) == len(measured) == len(shown) == 6
    kind = load_tool("points_audit").kind
    seen = set()
    for run in runs:
        curiosity, features = run.rewards.generative, run.rewards.features
        game = str(run.demos).partition("/")[0]
        seen.add(found := kind(measured[game]))
        settles = game == "demon_attack"  # ADR 16 and 17
        assert run.rewards.curiosity_factor == (0.02 if found == "bursts" else 1.0)
        assert (curiosity.predicts == "change") == (found != "bursts")
        assert (features.clip == 0) == (found == "steady" and not settles)
        assert curiosity.settled_steps == (16 if settles else 0)
        assert curiosity.surprise_limit == (5 if settles else 20 if found == "alive bonus" else 0)
        assert (curiosity.surprise_floor > 0) == (found == "alive bonus")
        # Games that show nothing have twenty all the same: not every death is a flash of the whole screen.
        assert curiosity.dying_steps == (0 if found == "bursts" or settles else max(20, shown[run.env]))
    assert seen == {"bursts", "alive bonus", "steady"}


def test_the_protocol_says_what_curiosity_is_paid_for_on_games() -> None:
    (said,) = [point.ours for point in paper_table("atari").protocol if point.point == "what curiosity pays for"]
    excess = cells("atari", "hours")["star_gunner/ilde/seed-0"].rewards.generative
    assert f"beyond {excess.surprise_floor:g} medians of the rollout, counted up to {excess.surprise_limit:g}" in said
    assert f"the {excess.dying_steps} steps before a death" in said
    settled = cells("atari", "hours")["demon_attack/ilde/seed-0"].rewards.generative
    states = settled.settled_steps
    assert f"all of the next {states} states differing from all of the last {states}" in said
    assert f"no step more than {settled.surprise_limit:g} means of the rollout" in said


def test_demonstrators_are_not_told_how_their_pupils_are_paid() -> None:
    for task in paper_study("demo-lengths", "hours").tasks:
        assert not [name for name, _ in task.overrides if name.startswith("rewards")]


def test_the_cost_of_the_whole_paper_is_counted_in_the_docs() -> None:
    said = (Path(__file__).parents[2] / "docs" / "scaling.md").read_text(encoding="utf-8")
    for budget, words in (("paper", "is {} runs that learn"), ("hours", "`--budget hours` is {} runs")):
        runs = {name: run for table in TABLES for name, run in cells(table, budget).items() if run.method != "expert"}
        learn = [run for run in runs.values() if find_method(run.method).learner != "none"]
        assert words.format(f"{len(learn):,}") in said


def test_a_variant_changes_what_its_table_is_about() -> None:
    weights = cells("lambda", "hours")
    assert weights["beam_rider/ilde/lambda-2/seed-0"].reward == "vail + 2*giril + entropy"
    assert weights["beam_rider/wrong-demos/seed-0"].reward is None
    noisy = cells("noise", "hours")
    # Controls that see demonstrations see those of each row; the others need no recording.
    for method in ("ilde", "wrong-demos", "shuffled"):
        assert noisy[f"beam_rider/{method}/tremble-0.3/seed-0"].demos == "beam_rider/one-life-tremble-0.3-v0:0.1"
        assert noisy[f"beam_rider/{method}/seed-0"].demos == "beam_rider/one-life-v0:0.1"
    assert len(noisy) == 3 * 6 + 3
    assert len(weights) == 4 + 5


def test_hype_has_one_demonstration_and_each_method_its_usual_preset() -> None:
    runs = cells("hype", "hours")
    assert runs["ant-v4-hype/hype-ilde/seed-2"].preset == "replay"
    assert runs["ant-v4-hype/wrong-demos/seed-2"].preset == "quick"
    assert {config.demos for config in runs.values()} == {"ant-v4/one-v0", "hopper-v4/one-v0"}


@each_table
def test_the_demonstrations_are_those_the_package_makes(table: PaperTable, recorder: ModuleType) -> None:
    made = {f"{task.name}/{recording.name}": task.env for task in recorder.TASKS for recording in task.recordings}
    for config in cells(table.name, "paper").values():
        if config.demos is not None:
            assert made[config.demos.partition(":")[0]] == config.env


@each_table
def test_demonstrations_that_are_here_fit(table: PaperTable) -> None:
    known = [cell for cell in runs_of(table.name, "paper") if _is_here(cell)]
    check_demos(known)
    for demos, env in {(cell.config.demos, cell.config.env) for cell in known}:
        assert resolve(demos or "").env_id == env


def _is_here(cell: Cell) -> bool:
    return (cell.config.demos or "").partition(":")[0] in bundled_names()


def test_an_unknown_budget_gets_a_hint() -> None:
    assert [control for control in CONTROLS if control in paper_table("atari").methods] == []
    with pytest.raises(UserError, match=r"unknown budget 'hour'; did you mean hours\?"):
        paper_study("atari", "hour")

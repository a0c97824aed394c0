"""What is read of the places that were named: runs, files that kept runs, and each run once."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_outcomes import outcome
from made_runs import make_run, report_on

from ilde.config import QUICK
from ilde.data import UserError
from ilde.reports.gathering import gather
from ilde.reports.outcome_files import load_outcomes, save_outcomes
from ilde.reports.outcomes import FinalScore, read_outcome
from ilde.reports.page import render
from ilde.reports.thinned import Curve
from ilde.runs import RunState


def keep(runs: Path, file: Path) -> Path:
    save_outcomes(gather([runs]).outcomes, file)
    return file


def test_a_file_of_outcomes_hides_no_run_beside_it(tmp_path: Path) -> None:
    keep(make_run(tmp_path / "elsewhere" / "a", seed=0), tmp_path / "here" / "deep" / "old.outcomes.json")
    make_run(tmp_path / "here" / "b", seed=1)
    assert [outcome.seed for outcome in gather([tmp_path / "here"]).outcomes] == [0, 1]


def test_a_run_in_a_folder_and_in_files_counts_once_under_the_folders_name(tmp_path: Path) -> None:
    for seed in (0, 1):
        make_run(tmp_path / "study" / str(seed), seed=seed)
    for name in ("one", "two"):
        keep(tmp_path / "study", tmp_path / f"{name}.outcomes.json")
    gathered = gather([tmp_path / "one.outcomes.json", tmp_path])
    assert [outcome.run for outcome in gathered.outcomes] == [f"{tmp_path.name}/study/{seed}" for seed in (0, 1)]
    assert set(gathered.folders) == {outcome.run for outcome in gathered.outcomes}


def test_a_run_in_two_files_counts_once(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    files = [keep(run, tmp_path / "kept" / f"{name}.outcomes.json") for name in ("one", "two")]
    for sources in (files, [tmp_path / "kept"]):
        assert len(gather(sources).outcomes) == 1


def test_a_run_counts_once_beside_a_file_that_was_kept_before_records_had_lows(tmp_path: Path) -> None:
    low = Curve((1,), (2.0,))
    runs = [replace(outcome("ilde", 0, 1.0), training=low, lows=lows) for lows in (low, Curve())]
    for name, run in zip(("new", "old"), runs, strict=True):
        save_outcomes([run], tmp_path / f"{name}.outcomes.json")
    assert "lows" not in (tmp_path / "old.outcomes.json").read_text()
    assert load_outcomes(tmp_path / "new.outcomes.json") == (runs[0],)
    assert load_outcomes(tmp_path / "old.outcomes.json") == (runs[1],)
    assert gather([tmp_path]).outcomes == (runs[0],)


FULL = FinalScore(950.0, 60.0, 30, truncated=3, length=100.0, kinds=4)
POINT, LOW = Curve((1,), (2.0,)), Curve((1,), (1.0,))


@pytest.mark.parametrize("names", [("1", "2"), ("2", "1")], ids=["fuller first", "fuller last"])
@pytest.mark.parametrize(
    "older",
    [
        {"lows": Curve()},
        {"greedy": replace(FULL, kinds=None)},
        {"sampled": FinalScore(950.0, 60.0, 30)},
        {"lows": Curve(), "greedy": FinalScore(950.0, 60.0, 30), "sampled": FinalScore(950.0, 60.0, 30)},
    ],
    ids=["lows", "kinds", "all of a score", "all"],
)
def test_of_two_files_the_fuller_record_of_a_run_counts_whatever_their_names(
    tmp_path: Path, names: tuple[str, str], older: dict[str, Any]
) -> None:
    full = outcome("ilde", 0, None, greedy=FULL, sampled=FULL, training=POINT, lows=LOW)
    for name, record in zip(names, (full, replace(full, **older)), strict=True):
        save_outcomes([record], tmp_path / f"{name}.outcomes.json")
    assert gather([tmp_path]).outcomes == (full,)


def test_two_records_of_a_run_that_each_know_more_than_the_other_are_one_with_both(tmp_path: Path) -> None:
    full = outcome("ilde", 0, None, greedy=FULL, training=POINT, lows=LOW)
    for name, gap in (("1", {"lows": Curve()}), ("2", {"greedy": replace(FULL, length=None)})):
        save_outcomes([replace(full, **gap)], tmp_path / f"{name}.outcomes.json")  # type: ignore[arg-type]
    assert gather([tmp_path]).outcomes == (full,)


@pytest.mark.parametrize(
    "change",
    [{"greedy": replace(FULL, kinds=5)}, {"greedy": replace(FULL, mean=9.0)}, {"lows": POINT}, {"sampled": FULL}],
    ids=["kinds", "mean", "lows", "sampled"],
)
def test_records_that_contradict_each_other_are_two(tmp_path: Path, change: dict[str, Any]) -> None:
    one = outcome("ilde", 0, None, greedy=FULL, training=POINT, lows=LOW)
    for name, record in zip("12", (one, replace(one, **change)), strict=True):
        save_outcomes([record], tmp_path / f"{name}.outcomes.json")
    assert len(gather([tmp_path]).outcomes) == 2


def test_what_an_older_file_left_out_does_not_make_a_second_run_of_one_in_a_folder(tmp_path: Path) -> None:
    run = read_outcome(make_run(tmp_path / "study" / "0"), "kept")
    assert run.greedy is not None
    # Kinds that were counted before lengths were kept are less sure than none.
    save_outcomes([replace(run, greedy=replace(run.greedy, kinds=4))], tmp_path / "study" / "old.outcomes.json")
    (told,) = gather([tmp_path / "study"]).outcomes
    assert told == replace(run, run="study/0")


@pytest.mark.parametrize("state", ["running", "interrupted", "failed"])
def test_what_a_file_kept_of_a_run_under_way_is_left_out_beside_its_folder(tmp_path: Path, state: RunState) -> None:
    run = make_run(tmp_path / "study" / "0", score=None, state=state)
    half = keep(run, tmp_path / "study" / "half.outcomes.json")
    shutil.rmtree(run)
    assert gather([half]).outcomes[0].state == state  # nothing else is known of it
    for later, score in (("interrupted", None), ("finished", 1.0)):
        make_run(run, score=score, state=later)  # type: ignore[arg-type]
        (outcome,) = gather([tmp_path / "study"]).outcomes
        assert (outcome.state, outcome.run) == (later, "study/0")
        shutil.rmtree(run)


OTHERS = [
    {"task": "Hopper-v5"},
    {"reward": "vail"},
    {"preset": "mujoco"},
    {"variant": ("a=1",)},
    {"seed": 1},
    {"demos_hash": "b" * 64},
    {"planned_steps": 10**6},
    {"env_steps": 10**6},
    {"state": "finished"},
]


@pytest.mark.parametrize("change", OTHERS, ids=lambda change: next(iter(change)))
def test_a_file_keeps_what_is_no_earlier_state_of_a_run_in_a_folder(tmp_path: Path, change: dict[str, Any]) -> None:
    run = read_outcome(make_run(tmp_path / "study" / "0"), "kept")
    earlier = replace(run, state="running", env_steps=1, greedy=None, sampled=None)
    for kept, records in ((earlier, 1), (replace(earlier, **change), 2)):
        save_outcomes([kept], tmp_path / "study" / "old.outcomes.json")
        assert len(gather([tmp_path]).outcomes) == records


SCORES = [{"greedy": FULL}, {"sampled": FULL}, {"greedy": FULL, "sampled": FULL}]


@pytest.mark.parametrize("scores", SCORES, ids=lambda scores: "+".join(scores))
def test_a_kept_score_stays_until_the_later_state_of_its_run_has_one(tmp_path: Path, scores: dict[str, Any]) -> None:
    make_run(tmp_path / "0", score=None, state="running")
    later = read_outcome(tmp_path / "0", "kept")
    kept = replace(later, state="interrupted", env_steps=5, **scores)
    save_outcomes([kept], tmp_path / "k.outcomes.json")
    assert [(o.state, o.greedy, o.sampled) for o in gather([tmp_path]).outcomes] == [
        ("interrupted", kept.greedy, kept.sampled),
        ("running", None, None),
    ]
    shutil.rmtree(tmp_path / "0")
    make_run(tmp_path / "0", score=1.0)
    assert [o.state for o in gather([tmp_path]).outcomes] == ["finished"]


@pytest.mark.parametrize("names", [("1", "2"), ("2", "1")], ids=["earlier first", "earlier last"])
@pytest.mark.parametrize(
    "later",
    [
        {"state": "finished", "env_steps": 400_000, "greedy": FULL},
        {"state": "finished"},  # at the same steps: stopped before its evaluation
        {"state": "running", "env_steps": 200_000},
        {"greedy": FULL},
    ],
    ids=["finished", "finished there", "went on", "scored"],
)
def test_an_earlier_state_of_a_run_in_another_file_gives_way_whatever_their_names(
    tmp_path: Path, names: tuple[str, str], later: dict[str, Any]
) -> None:
    half = replace(outcome("ilde", 0, None), state="interrupted", env_steps=100_000)
    for name, record in zip(names, (half, replace(half, **later)), strict=True):
        save_outcomes([record], tmp_path / f"{name}.outcomes.json")
    assert gather([tmp_path]).outcomes == (replace(half, **later),)


@pytest.mark.parametrize("names", ["12", "21"])
def test_of_two_files_that_kept_a_run_at_the_same_steps_the_one_that_knows_its_end_counts(
    tmp_path: Path, names: str
) -> None:
    running = replace(outcome("ilde", 0, None), state="running", env_steps=100_000)
    for name, state in zip(names, ("running", "interrupted"), strict=True):
        save_outcomes([replace(running, state=state)], tmp_path / f"{name}.outcomes.json")
    assert [o.state for o in gather([tmp_path]).outcomes] == ["interrupted"]


def test_a_kept_run_is_never_shown_by_the_folder_of_another_that_took_its_place(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs" / "0")
    keep(tmp_path / "runs", tmp_path / "runs" / "old.outcomes.json")
    shutil.rmtree(run)
    make_run(run, config=replace(QUICK, ppo=replace(QUICK.ppo, discount=0.5)))
    gathered = gather([tmp_path / "runs"])
    assert {o.run: o.variant for o in gathered.outcomes} == {"runs/0": ("ppo.discount=0.5",), "runs/0 (2)": ()}
    assert gathered.folders == {"runs/0": run}  # what is not in it is not filmed
    assert ">2 runs · 1 task<" in render(report_on(tmp_path / "runs"))


def test_runs_of_one_name_in_two_files_keep_apart_and_one_run_keeps_its_name(tmp_path: Path) -> None:
    runs = [outcome("ilde", 0, 1.0, run="runs/0"), outcome("ilde", 1, 1.0, run="runs/0")]
    half = replace(runs[0], state="running", env_steps=5, greedy=None, sampled=None)
    for number, records in enumerate(([half], runs, runs[:1]), start=1):
        save_outcomes(records, tmp_path / f"{number}.outcomes.json")
    found = gather([tmp_path]).outcomes
    assert [(o.run, o.seed) for o in found] == [("runs/0", 0), ("runs/0 (2)", 1)]


def test_a_kept_run_does_not_take_the_name_of_a_folder_that_holds_a_copy(tmp_path: Path) -> None:
    shutil.copytree(make_run(tmp_path / "runs" / "0"), tmp_path / "runs" / "1")
    save_outcomes([outcome("ilde", 5, 1.0, run="runs/1")], tmp_path / "runs" / "old.outcomes.json")
    gathered = gather([tmp_path / "runs"])
    assert {o.run: o.seed for o in gathered.outcomes} == {"runs/0": 0, "runs/1 (2)": 5}


def test_a_damaged_file_in_a_folder_is_skipped_and_one_that_was_named_is_a_mistake(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    damaged = tmp_path / "bad.outcomes.json"
    damaged.write_text("{")
    gathered = gather([tmp_path])
    assert len(gathered.outcomes) == 1
    assert gathered.skipped[f"{tmp_path.name}/bad.outcomes.json"].startswith("not a file of outcomes (")
    with pytest.raises(UserError, match=r"bad\.outcomes\.json: not a file of outcomes"):
        gather([damaged, tmp_path])


@pytest.mark.parametrize("name", ["metrics.jsonl", "timing.jsonl", "evaluations.jsonl"])
def test_a_run_with_a_journal_that_cannot_be_read_is_skipped(tmp_path: Path, name: str) -> None:
    make_run(tmp_path / "good")
    journal = make_run(tmp_path / "bad", seed=1) / name
    journal.unlink()
    journal.mkdir()
    gathered = gather([tmp_path])
    assert len(gathered.outcomes) == 1
    assert gathered.skipped[f"{tmp_path.name}/bad"].startswith(f"{name}: cannot be read (Is a directory)")


def test_where_nothing_can_be_read_the_reason_is_said(tmp_path: Path) -> None:
    (make_run(tmp_path / "bad") / "status.json").write_text("{")
    with pytest.raises(UserError, match=r"no run that can be read \(.*/bad: status\.json: cannot be read"):
        gather([tmp_path])

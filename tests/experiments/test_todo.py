"""The queue of runs that the paper's tables still need."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from made_outcomes import outcome
from tool_modules import load_tool

from ilde.config import to_dict
from ilde.reports.comparison import CONTROLS
from ilde.reports.outcomes import variant

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def todo() -> ModuleType:
    """The tool that writes it."""
    return load_tool("todo")


def commands(queue: dict[str, Any]) -> list[str]:
    return [run["command"] for step in queue["queue"] for run in step["runs"]]


def test_the_kept_queue_is_what_the_tool_writes(todo: ModuleType) -> None:
    assert (ROOT / "results" / "todo.json").read_text(encoding="utf-8") == todo.document(ROOT / "results")


def test_every_control_is_in_it_and_no_run_twice(todo: ModuleType) -> None:
    queue = todo.queue([])
    everything = commands(queue)
    assert len(set(everything)) == len(everything)
    for control in CONTROLS:
        assert any(command.startswith(f"ilde train {control} --env=ALE/Qbert-v5") for command in everything)
    assert [step["step"][:2] for step in queue["queue"] if step["step"][1] == ":"] == ["a:", "b:", "c:", "d:", "e:"]
    assert {command.split("--seed=")[1][0] for command in commands({"queue": queue["queue"][-1:]})} == {"1", "2"}


def test_one_run_has_the_papers_own_length(todo: ModuleType) -> None:
    (long,) = [command for command in commands(todo.queue([])) if "reproduce-paper" in command]
    assert shlex.split(long)[2:] == [
        "ilde", "--env=Hopper-v4", "--preset=mujoco", "--demos=hopper-v4/four-v0",
        "--out=runs/reproduce-paper/hopper-v4/ilde/seed-0",
    ]  # fmt: skip


def test_what_has_run_is_left_out(todo: ModuleType) -> None:
    (game,) = [cell.config for cell in todo.cells_of(todo.ILDE) if cell.task == "qbert"]
    run = outcome(
        "ilde",
        0,
        7000.0,
        task=game.env,
        preset=game.preset,
        demos="qbert/one-life-v0",
        fraction=0.1,
        planned_steps=game.steps,
        variant=variant(to_dict(game)),
    )
    everything = commands(todo.queue([]))
    assert len(commands(todo.queue([run]))) == len(everything) - 1
    assert not any("qbert/ilde/seed-0" in command for command in commands(todo.queue([run])))
    others = {"seed": 7}, {"demos": "mine.npz"}, {"planned_steps": 9}, {"state": "failed"}, {"variant": ("threads=1",)}
    for changes in (*others, {"greedy": None}):
        assert commands(todo.queue([replace(run, **changes)])) == everything
    rounded = replace(run, provenance={"source": {"commit": todo.ROUNDED[0] + "0" * 33, "dirty": False}})
    steps = {step["step"]: [r["id"] for r in step["runs"]] for step in todo.queue([rounded])["queue"]}
    assert steps["a again, features at full precision"] == ["qbert/ilde/seed-0"]
    assert commands(todo.queue([rounded, run])) == commands(todo.queue([run]))
    unseen = outcome("random", 0, 1.0, task=game.env, preset=game.preset, planned_steps=game.steps)
    assert len(commands(todo.queue([unseen]))) == len(everything) - 1


def test_nothing_is_left_of_a_step_that_has_run(todo: ModuleType) -> None:
    runs = [
        outcome(
            "ilde",
            0,
            1.0,
            task=c.env,
            preset=c.preset,
            variant=variant(to_dict(c)),
            demos=c.demos[:-4],
            fraction=0.1,
            planned_steps=c.steps,
        )
        for c in (cell.config for cell in todo.cells_of(todo.ILDE))
    ]
    assert json.dumps(todo.queue(runs)["queue"][0]["step"]).startswith('"b: ')

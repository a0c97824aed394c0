"""A run's last games are played where its policy is, as its own evaluation would have begun them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tool_modules import load_tool

from ilde.data import UserError
from ilde.launch import start
from ilde.reports.gathering import gather
from ilde.runs import RunDirectory

last_games, tiny = load_tool("last_games"), load_tool("tiny_run")
ENV = "Hopper-v5"
UPDATES = 2


def trained(folder: Path, updates: int = UPDATES) -> Path:
    """A run that took so many of its two updates and then played its last games, if it took them all."""
    demos = folder / "demos.npz"
    tiny.record_random_policy(ENV, demos, seed=0)
    config = tiny.tiny_config("ilde", ENV, demos, UPDATES, seed=0)
    config = replace(config, evaluation=replace(config.evaluation, final_episodes=3))
    run = start(config, folder / "run")
    taken = iter([False] * (updates - 1))
    run.train(lambda: next(taken, True) if updates < UPDATES else False)
    run.folder.close()
    return folder / "run"


def finals(run: Path) -> dict[bool, dict[str, Any]]:
    return {row["greedy"]: row for row in RunDirectory.read(run).evaluations.rows() if row["final"]}


def test_the_games_are_those_that_the_run_would_have_played(tmp_path: Path) -> None:
    run = trained(tmp_path)
    played = finals(run)
    (run / "evaluations.jsonl").write_text("")  # as if the clock had stopped it before them
    last_games.pack(run, tmp_path / "run.tar.gz")
    last_games.unpack(tmp_path / "run.tar.gz", tmp_path / "home")
    assert not list((tmp_path / "home").glob("checkpoints*"))
    assert last_games.play(tmp_path / "home") == ["greedy", "sampled"]
    assert finals(tmp_path / "home") == played
    home = RunDirectory.read(tmp_path / "home")
    assert home.status.state == "finished"
    assert set(home.provenance["games_played_at_home"]) == {"greedy", "sampled"}
    (outcome,) = gather([tmp_path / "home"]).outcomes
    assert (outcome.state, outcome.greedy and outcome.greedy.mean) == ("finished", played[True]["mean"])
    assert last_games.play(tmp_path / "home") == []


def test_only_what_is_missing_is_played(tmp_path: Path) -> None:
    run = trained(tmp_path)
    rows = [{**row, "mean": -1.0} for row in RunDirectory.read(run).evaluations.rows() if row["greedy"]]
    (run / "evaluations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    last_games.pack(run, tmp_path / "run.tar.gz")
    last_games.unpack(tmp_path / "run.tar.gz", tmp_path / "home")
    assert last_games.play(tmp_path / "home") == ["sampled"]
    assert finals(tmp_path / "home")[True]["mean"] == -1.0


def test_a_run_that_did_not_take_all_its_steps_is_not_finished(tmp_path: Path) -> None:
    last_games.pack(trained(tmp_path, updates=1), tmp_path / "run.tar.gz")
    last_games.unpack(tmp_path / "run.tar.gz", tmp_path / "home")
    with pytest.raises(UserError, match=r"stopped at \S+ of \S+ steps; it is not finished by games"):
        last_games.play(tmp_path / "home")


def test_what_cannot_be_unpacked_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "cut.tar.gz").write_bytes(b"\x1f\x8b cut")
    with pytest.raises(UserError, match="cannot be unpacked"):
        last_games.unpack(tmp_path / "cut.tar.gz", tmp_path / "home")
    assert [path.name for path in tmp_path.iterdir()] == ["cut.tar.gz"]
    with pytest.raises(UserError, match="exists; name a folder that does not"):
        last_games.unpack(tmp_path / "cut.tar.gz", tmp_path)

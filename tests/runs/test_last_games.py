"""A run's last games are played where its policy is, as its own evaluation would have begun them."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tool_modules import load_tool

from ilde.api import Imitator
from ilde.config import RunConfig
from ilde.data import UserError
from ilde.launch import resume, start
from ilde.policies import load_policy
from ilde.reports.gathering import find_runs, gather
from ilde.runs import RunDirectory
from ilde.watching import load_to_play

last_games, tiny = load_tool("last_games"), load_tool("tiny_run")
ENV = "Hopper-v5"
UPDATES = 2


def tiny_config(folder: Path, method: str = "ilde", **evaluation: Any) -> RunConfig:
    """Two updates, and last games that are cut: neither seed nor length is what a careless player would take."""
    tiny.record_random_policy(ENV, folder / "demos.npz", seed=0)
    config: RunConfig = tiny.tiny_config(method, ENV, folder / "demos.npz", UPDATES, seed=3)
    chosen = {"final_episodes": 3, "final_max_steps": 10} | evaluation
    return replace(config, evaluation=replace(config.evaluation, **chosen))


def trained(folder: Path, updates: int = UPDATES, method: str = "ilde", **evaluation: Any) -> Path:
    """A run that took so many of its two updates, and if both, was stopped by the clock in its last games."""
    run = start(tiny_config(folder, method, **evaluation), folder / "run")
    taken = iter([False] * (updates - 1))
    run.train(lambda: next(taken, True) if updates < UPDATES else False)
    if updates == UPDATES:
        run.folder.set_status("interrupted", run.trainer.env_steps, "stopped on request")
    run.folder.close()
    return folder / "run"


def rows(run: Path) -> list[dict[str, Any]]:
    return list(RunDirectory.read(run).evaluations.rows())


def write_rows(run: Path, kept: list[dict[str, Any]]) -> None:
    (run / "evaluations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))


def carried(run: Path, home: Path) -> Path:
    last_games.pack(run, home.with_suffix(".tar.gz"))
    last_games.unpack(home.with_suffix(".tar.gz"), home)
    return home


def test_the_games_are_those_that_the_run_would_have_played(tmp_path: Path) -> None:
    run = trained(tmp_path)
    played = rows(run)
    assert all(row["capped"] for row in played if row["final"])
    write_rows(run, [row for row in played if not row["final"]])
    home = carried(run, tmp_path / "home")
    assert not {"checkpoints", "lock", "tensorboard"} & {path.name for path in home.iterdir()}
    assert last_games.play(home) == ["greedy", "sampled"]
    assert rows(home) == played
    folder = RunDirectory.read(home)
    assert (folder.status.state, folder.status.env_steps) == ("finished", played[-1]["env_steps"])
    facts = folder.provenance["games_played_at_home"]
    assert {"greedy", "sampled"} == set(facts)
    assert facts["greedy"]["started"] <= facts["sampled"]["started"]
    (outcome,) = gather([home]).outcomes
    greedy = next(row for row in played if row["final"] and row["greedy"])
    assert (outcome.state, outcome.greedy and outcome.greedy.mean) == ("finished", greedy["mean"])
    before = (home / "status.json").read_bytes()
    assert last_games.play(home) == []
    assert (home / "status.json").read_bytes() == before


def test_only_what_is_missing_is_played_and_a_torn_row_is_missing(tmp_path: Path) -> None:
    run = trained(tmp_path)
    write_rows(run, [{**row, "mean": -1.0} for row in rows(run)])
    text = (run / "evaluations.jsonl").read_text()
    (run / "evaluations.jsonl").write_text(text[: -len(text.splitlines()[-1]) // 2])
    home = carried(run, tmp_path / "home")
    assert last_games.play(home) == ["sampled"]
    assert [row["mean"] == -1.0 for row in rows(home) if row["final"]] == [True, False]


def test_a_run_is_not_finished_by_games_where_something_else_is_missing(tmp_path: Path) -> None:
    for name in ("early", "owing"):
        (tmp_path / name).mkdir()
    early = carried(trained(tmp_path / "early", updates=1), tmp_path / "early" / "home")
    with pytest.raises(UserError, match=r"stopped at \S+ of \S+ steps; it is not finished by games"):
        last_games.play(early)
    run = trained(tmp_path / "owing", every=2)
    write_rows(run, [row for row in rows(run) if row["final"]])
    with pytest.raises(UserError, match=r"the evaluation on the way at 256 steps is missing"):
        last_games.play(carried(run, tmp_path / "owing" / "home"))


def test_cloned_behaviour_takes_no_steps_and_plays_all_the_same(tmp_path: Path) -> None:
    run = trained(tmp_path, method="bc")
    played = rows(run)
    write_rows(run, [])
    home = carried(run, tmp_path / "home")
    last_games.play(home)
    assert rows(home) == played


def test_at_home_the_policy_is_found_and_the_run_does_not_go_on(tmp_path: Path) -> None:
    home = carried(trained(tmp_path, updates=1), tmp_path / "home")
    assert load_policy(home).env_steps == 128
    metrics = (home / "metrics.jsonl").read_bytes()
    for needing in (resume, load_to_play, Imitator.load):
        with pytest.raises(UserError, match="its checkpoints, which this needs, stayed where it was trained"):
            needing(home)
    assert (home / "metrics.jsonl").read_bytes() == metrics


def test_what_cannot_be_unpacked_is_one_line(tmp_path: Path) -> None:
    run = trained(tmp_path)
    archive = tmp_path / "run.tar.gz"
    last_games.pack(run, archive)
    whole = archive.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 4
    with tarfile.open(tmp_path / "junk", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("else.txt"), io.BytesIO())
    with tarfile.open(tmp_path / "evil", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("../evil.txt"), io.BytesIO())
    (tmp_path / "flipped").write_bytes(flipped)
    (tmp_path / "cut").write_bytes(whole[:-3])
    for name, said in (("flipped", "unpacked"), ("cut", "unpacked"), ("evil", "unpacked"), ("junk", "holds no run")):
        with pytest.raises(UserError, match=said):
            last_games.unpack(tmp_path / name, tmp_path / "home")
        assert not [path for path in tmp_path.iterdir() if "home" in path.name]
    with pytest.raises(UserError, match="exists; name a folder that does not"):
        last_games.unpack(archive, run)
    with pytest.raises(UserError, match="no run with its policy beside it"):
        last_games.play(run)


def test_a_folder_that_is_half_made_is_no_run(tmp_path: Path) -> None:
    for name in ("seed-0", ".tmp-seed-1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    assert find_runs(tmp_path) == [tmp_path / "seed-0"]

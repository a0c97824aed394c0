"""The whole way on CartPole: an expert, its demonstration, an imitator."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import TINY, Ilde

from ilde.demos import load
from ilde.runs import RunDirectory


@pytest.fixture(scope="module")
def demos(ilde: Ilde, expert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demos") / "mine.npz"
    words = ("--env", "CartPole-v1", "--policy", expert, "--out", out, "--episodes", 2, "--evaluate", 3, "--json")
    result = ilde("demos", "record", *words)
    assert result.code == 0, result.err
    assert result.document["episodes"] == 2
    return out


def test_eval_repeats_the_final_evaluation(ilde: Ilde, expert: Path) -> None:
    final = ilde("resume", expert, "--json").document["evaluations"]
    assert [row["greedy"] for row in final] == [True, False]
    greedy = ilde("eval", expert, "--episodes", 2, "--json").document
    sampled = ilde("eval", expert, "--episodes", 2, "--sampled", "--json").document
    assert [greedy["mean"], sampled["mean"]] == [row["mean"] for row in final]
    assert greedy.keys() >= {"mean", "std", "interval", "episodes", "kinds", "demonstrator", "ratio"}
    assert (greedy["episodes"], greedy["demonstrator"], greedy["ratio"]) == (2, None, None)


def test_another_seed_plays_other_episodes(ilde: Ilde, expert: Path) -> None:
    one, other = (ilde("eval", expert, "--episodes", 2, "--seed", s, "--json").document["mean"] for s in (1, 2))
    assert one != other


def test_tables_tell_the_kinds_of_episodes(ilde: Ilde, expert: Path) -> None:
    for words in (("eval", expert, "--episodes", 2), ("resume", expert)):
        assert "kinds" in ilde(*words).out


def test_a_journal_from_before_kinds_were_counted_is_shown(ilde: Ilde, expert: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(expert, old)
    journal = old / "evaluations.jsonl"
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    journal.write_text("".join(json.dumps({k: v for k, v in row.items() if k != "kinds"}) + "\n" for row in rows))
    result = ilde("resume", old)
    assert (result.code, "nothing is left to do" in result.out) == (0, True)


def test_one_episode_has_no_interval(ilde: Ilde, expert: Path) -> None:
    assert ilde("eval", expert, "--episodes", 1, "--json").document["interval"] == [None, None]


def test_resuming_a_finished_run_says_so(ilde: Ilde, expert: Path) -> None:
    result = ilde("resume", expert)
    assert result.code == 0
    assert f"{expert}: finished at 2,016 steps; nothing is left to do" in result.out
    assert "greedy" in result.out


def test_a_recording_knows_its_recorder_and_demonstrator(ilde: Ilde, demos: Path) -> None:
    header = load(demos).header
    assert header.recorder.startswith("expert on CartPole-v1, seed 0, 2016 steps, weights sha256 ")
    assert header.command.startswith("ilde demos record --env CartPole-v1 --policy ")
    assert header.greedy
    assert header.demonstrator is not None
    assert header.demonstrator.episodes == 3
    shown = ilde("demos", "show", demos, "--json").document
    assert shown["demonstrator"] == header.demonstrator.mean
    assert [episode["return"] for episode in shown["by_episode"]] == list(header.returns)
    assert ilde("demos", "check", demos).out == f"{demos}: ok\n"


def test_demonstrations_are_shown_with_a_picture(ilde: Ilde, demos: Path, tmp_path: Path) -> None:
    result = ilde("demos", "show", f"{demos}:0.5", "--picture", tmp_path / "demo.png")
    assert result.code == 0
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert "the cut" in result.out


def test_an_imitator_trains_and_needs_no_demos_to_be_evaluated(ilde: Ilde, demos: Path, tmp_path: Path) -> None:
    mine, run = tmp_path / "copy.npz", tmp_path / "run"
    mine.write_bytes(demos.read_bytes())
    words = ("--env", "CartPole-v1", "--demos", mine, "--steps", 96, "--out", run)
    result = ilde("train", "ilde", *words, *TINY, "--json")
    assert result.code == 0, result.err
    demonstrator = load(mine).header.demonstrator
    assert demonstrator is not None
    assert result.document["state"] == "finished"
    assert result.document["evaluations"][0]["demonstrator"] == demonstrator.mean
    assert 0 < result.document["evaluation_share"] < 1
    assert "preset quick, chosen for ilde on CartPole-v1" in result.err
    assert "vail" in result.err
    mine.unlink()
    evaluated = ilde("eval", run, "--episodes", 2, "--json").document
    assert evaluated["ratio"] == pytest.approx(evaluated["mean"] / demonstrator.mean)


def test_a_run_goes_on_from_another_folder_where_it_is_told_its_demonstrations(
    ilde: Ilde, demos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "mine.npz").write_bytes(demos.read_bytes())
    monkeypatch.chdir(tmp_path / "here")
    run = tmp_path / "run"
    words = ("--env", "CartPole-v1", "--demos", "mine.npz:0.5", "--steps", 96, "--out", run, *TINY)
    assert ilde("train", "vail", *words, "--minutes", 1e-9).code == 124
    monkeypatch.chdir(tmp_path)
    lost = ilde("resume", run)
    assert (lost.code, lost.err.count("\n")) == (2, 1)
    assert "demonstrations mine.npz:0.5 are not found from here" in lost.err
    assert "not the demonstrations this run began with" in ilde("resume", run, "--demos", "here/mine.npz").err
    found = ilde("resume", run, "--demos", "here/mine.npz:0.5", "--json")
    assert (found.code, found.document["state"]) == (0, "finished"), found.err


def test_settings_that_a_method_does_not_read_are_named(ilde: Ilde, demos: Path, tmp_path: Path) -> None:
    words = ("--env", "CartPole-v1", "--demos", demos, "--out", tmp_path / "run", "--evaluation.final-episodes=1")
    result = ilde("train", "bc", *words, "--rewards.entropy.max-references", "7", "--cloning.epochs=1", "--json")
    assert result.code == 0, result.err
    assert "bc does not read --rewards.entropy.max-references" in result.err
    assert "does not read --cloning" not in result.err


def test_an_evaluation_can_be_cut_and_says_so(ilde: Ilde, expert: Path) -> None:
    document = ilde("eval", expert, "--episodes", 2, "--max-steps", 3, "--json").document
    assert (document["mean"], document["capped"]) == (3.0, 2)
    assert (
        "2 episodes cut after 3 steps: no score of whole ones"
        in ilde("eval", expert, "--episodes", 2, "--max-steps", 3).out
    )


def test_random_play_is_recorded_with_trembles_and_cut(ilde: Ilde, tmp_path: Path) -> None:
    out = tmp_path / "random.npz"
    options = ("--tremble", 0.5, "--fraction", 0.5, "--evaluate", 0, "--seed", 3)
    result = ilde("demos", "record", "--env", "CartPole-v1", "--policy", "random", "--out", out, *options)
    assert result.code == 0, result.err
    demos = load(out)
    assert (demos.header.recorder, demos.header.greedy, demos.header.demonstrator) == ("random", False, None)
    assert demos.header.fraction == 0.5
    assert demos.num_transitions == demos.header.returns[0] // 2
    assert 0 < np.mean(demos.episodes[0].trembled) < 1


def test_a_run_whose_fit_fails_says_so_in_its_folder(ilde: Ilde, demos: Path, tmp_path: Path) -> None:
    words = ("--env", "CartPole-v1", "--demos", demos, "--steps", 64, "--out", tmp_path / "run", *TINY)
    result = ilde("train", "giril", *words, "--rewards.generative.learning-rate", "1e30")
    assert (result.code, result.err.count("\n")) == (1, 1)
    status = RunDirectory.read(tmp_path / "run").status
    assert (status.state, status.env_steps) == ("failed", 0)
    assert "giril: the fit diverged" in status.message


def test_a_resumed_run_has_the_threads_it_began_with(
    ilde: Ilde, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, given = tmp_path / "run", []
    words = ("expert", "--env", "CartPole-v1", "--steps", 64, "--out", run, *TINY)
    assert ilde("train", *words, "--minutes", "1e-9").code == 124
    provenance = json.loads((run / "provenance.json").read_text())
    assert provenance["threads"] == 1  # of small networks
    (run / "provenance.json").write_text(json.dumps(provenance | {"threads": 2}))
    monkeypatch.setattr(torch, "set_num_threads", given.append)
    assert ilde("resume", run).code == 0
    assert given == [2]


def test_demonstrations_that_nobody_looks_at_are_named(ilde: Ilde, tmp_path: Path) -> None:
    words = ("constant", "--env", "CartPole-v1", "--demos", "halfcheetah-v5/weak-v0", "--steps", 32, *TINY)
    result = ilde("train", *words, "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert "constant learns from no demonstrations: halfcheetah-v5/weak-v0 is not looked at" in result.out

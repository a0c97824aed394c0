from __future__ import annotations

from pathlib import Path

from commands import TINY, Ilde

from ilde.runs import RunDirectory


def test_each_seed_is_a_run_of_its_own(ilde: Ilde, tmp_path: Path) -> None:
    words = ("--env", "CartPole-v1", "--steps", 32, "--seeds", "0,2", "--out", tmp_path / "sweep", "--json")
    result = ilde("train", "expert", *words, *TINY)
    assert result.code == 0, result.err
    runs = result.document["runs"]
    assert [(run["seed"], run["state"]) for run in runs] == [(0, "finished"), (2, "finished")]
    greedy = [run["evaluations"][0]["mean"] for run in runs]
    assert result.document["mean"]["greedy"]["mean"] == sum(greedy) / 2
    assert RunDirectory.read(tmp_path / "sweep" / "seed-2").config["seed"] == 2
    again = ilde("train", "expert", *words, *TINY)
    assert (again.code, again.document["mean"]) == (0, result.document["mean"])
    assert "all 2 runs are finished; nothing is left to do" in again.err
    other = ilde("train", "expert", *words, *TINY, "--ppo.discount", "0.5")
    assert (other.code, other.err.count("\n")) == (2, 1)
    assert "was begun with ppo.discount 0.99, the study now says 0.5" in other.err
    new = ("--env", "CartPole-v1", "--steps", 32, "--seeds", "4", "--out", tmp_path / "sweep", "--ppo.discount", "0.5")
    refused = ilde("train", "expert", *new, *TINY)
    assert (refused.code, refused.err) == (2, other.err)


def test_seeds_that_never_began_when_time_was_up_are_gone_on_with_by_the_same_command(
    ilde: Ilde, tmp_path: Path
) -> None:
    words = ("--env", "CartPole-v1", "--steps", 32, "--seeds", "0..1", "--out", tmp_path / "sweep", "--json")
    stopped = ilde("train", "expert", *words, *TINY, "--minutes", "0.000001")
    assert stopped.code == 124
    assert f"the same command with --out {tmp_path / 'sweep'} goes on" in stopped.err
    assert {run["state"] for run in stopped.document["runs"]} == {"not started"}
    result = ilde("train", "expert", *words, *TINY)
    assert result.code == 0, result.err
    assert {run["state"] for run in result.document["runs"]} == {"finished"}


def test_a_mistake_is_found_once_and_before_any_process(ilde: Ilde, tmp_path: Path) -> None:
    result = ilde("train", "gail", "--env", "CartPole-v1", "--seeds", "0..3", "--out", tmp_path / "sweep")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "name them with --demos" in result.err
    assert not (tmp_path / "sweep").exists()

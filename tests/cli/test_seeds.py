from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest
from commands import TINY, Ilde

from ilde.cli.seeds import Fleet, shared_out
from ilde.envs.cores import usable_cores
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
    assert (again.code, again.err.count("ilde: ")) == (2, 1)


def test_a_mistake_is_found_once_and_before_any_process(ilde: Ilde, tmp_path: Path) -> None:
    result = ilde("train", "gail", "--env", "CartPole-v1", "--seeds", "0..3", "--out", tmp_path / "sweep")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "name them with --demos" in result.err
    assert not (tmp_path / "sweep").exists()


def test_exit_codes_are_those_of_the_processes() -> None:
    lines: list[str] = []
    commands = {seed: [sys.executable, "-c", f"print({seed}); raise SystemExit({seed})"] for seed in (0, 3)}
    assert Fleet(commands, lines.append).run(at_once=1) == {0: 0, 3: 3}
    assert lines == ["seed 0: 0", "seed 3: 3"]


def test_cores_are_shared_out_evenly_and_completely() -> None:
    assert shared_out(range(16), 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]
    assert shared_out([3, 5, 9], 2) == [[3, 5], [9]]
    assert shared_out([7], 1) == [[7]]


@pytest.mark.skipif(len(usable_cores()) < 2, reason="needs two cores")
def test_runs_side_by_side_have_cores_of_their_own() -> None:
    lines: list[str] = []
    script = "import os, time; time.sleep(1); print(*os.sched_getaffinity(0))"
    Fleet({seed: [sys.executable, "-c", script] for seed in (0, 1)}, lines.append).run(at_once=2)
    one, other = (set(line.split(": ")[1].split()) for line in lines)
    assert one
    assert other
    assert not one & other


def test_a_signal_reaches_the_running_and_stops_the_waiting() -> None:
    started = threading.Event()
    script = "import signal, sys; signal.signal(15, lambda *_: sys.exit(143)); print('up', flush=True); signal.pause()"
    fleet = Fleet({seed: [sys.executable, "-c", script] for seed in (0, 1)}, lambda _: started.set())

    def terminate() -> None:
        started.wait()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=terminate).start()
    assert fleet.run(at_once=1) == {0: 143, 1: None}
    assert fleet.stop.exit_code == 143

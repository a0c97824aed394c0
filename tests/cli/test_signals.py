from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import TINY, Ilde

from ilde.cli.signals import StopRequest
from ilde.launch import resume, start
from ilde.runs import RunDirectory
from ilde.settings import compose

STEPS = 3200
"""Long enough that a run cannot end while a signal travels."""


def interrupt(words: list[str], number: int) -> tuple[int, str]:
    """Run a command in a process of its own and send a signal after its first update."""
    command = [sys.executable, "-m", "ilde", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        lines = []
        for line in child.stdout:
            lines.append(line)
            if f"of {STEPS:,} steps" in line:
                child.send_signal(number)
        return child.wait(timeout=60), "".join(lines)


def test_a_run_stopped_by_ctrl_c_can_be_resumed(ilde: Ilde, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ["train", "expert", "--env", "CartPole-v1", "--steps", str(STEPS), "--out", str(run), *TINY]
    code, output = interrupt(words, signal.SIGINT)
    assert code == 130
    assert f"ilde resume {run}" in output
    stopped = RunDirectory.read(run).status
    assert stopped.state == "interrupted"
    assert stopped.env_steps < STEPS
    result = ilde("resume", run)
    assert result.code == 0, result.err
    assert f"going on from {stopped.env_steps:,} steps" in result.out
    rows = RunDirectory.read(run).metrics.rows()
    assert [row["env_steps"] for row in rows] == list(range(0, STEPS + 1, 32))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_is_noted(number: signal.Signals, code: int) -> None:
    heard: list[str] = []
    former = signal.getsignal(number)
    with StopRequest(heard.append) as stop:
        assert not stop()
        assert stop.exit_code == 0
        os.kill(os.getpid(), number)
        assert stop()
        assert stop.exit_code == code
    assert heard == [number.name]
    assert signal.getsignal(number) is former


def test_time_that_is_up_is_noted_once_and_ctrl_c_then_ends_at_once() -> None:
    heard: list[str] = []
    with StopRequest(heard.append, minutes=1e-9) as stop:
        assert stop()
        assert stop()
        assert (heard, stop.exit_code) == (["time is up"], 124)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert stop.exit_code == 124


def test_time_that_is_left_stops_nothing() -> None:
    assert not StopRequest(lambda _: None, minutes=60)()
    assert not StopRequest(lambda _: None)()


def test_a_run_whose_time_is_up_saves_and_can_be_resumed(ilde: Ilde, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ["expert", "--env", "CartPole-v1", "--steps", 96, "--out", run, *TINY]
    result = ilde("train", *words, "--minutes", "1e-9")
    assert result.code == 124, result.err
    assert "time is up: stopping after this update" in result.out
    assert f"ilde resume {run}" in result.out
    stopped = RunDirectory.read(run).status
    assert (stopped.state, stopped.env_steps) == ("interrupted", 32)
    assert ilde("resume", run, "--minutes", "1e-9").code == 124
    result = ilde("resume", run, "--minutes", "9")
    assert result.code == 0, result.err
    rows = RunDirectory.read(run).metrics.rows()
    assert [row["env_steps"] for row in rows] == [0, 32, 64, 96]


class StopsAfter:
    """A wish to stop that comes after so many questions."""

    def __init__(self, questions: int) -> None:
        self.left = questions

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_an_evaluation_that_is_stopped_is_made_up_for_and_leaves_no_trace(tmp_path: Path) -> None:
    words = ["num_envs=4", "rollout_steps=8", "steps=96", "evaluation.every=1", "evaluation.episodes=2"]
    settings = [(name, value) for name, value in (word.split("=") for word in [*words, "evaluation.final_episodes=2"])]
    config = compose("expert", "CartPole-v1", "quick", settings)
    whole = start(config, tmp_path / "whole")
    assert whole.train()
    whole.folder.close()
    run = start(config, tmp_path / "stopped")
    stops = 0
    # Within evaluations and between them, at every place but where nothing would ever be reached.
    while not run.train(StopsAfter(25 + 7 * stops)):
        stops += 1
        assert run.folder.status.state == "interrupted"
        run.folder.close()
        run.trainer.envs.close()
        run = resume(tmp_path / "stopped")
    run.folder.close()
    assert stops > 5
    for journal in ("metrics.jsonl", "evaluations.jsonl"):
        assert (tmp_path / "stopped" / journal).read_bytes() == (tmp_path / "whole" / journal).read_bytes()


def test_time_that_is_up_in_the_last_evaluation_ends_it(ilde: Ilde, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ["random", "--env", "CartPole-v1", "--out", run, "--evaluation.final-episodes", 100_000]
    result = ilde("train", *words, "--minutes", "0.01")
    assert result.code == 124, result.err
    assert "time is up" in result.out
    assert f"ilde resume {run}" in result.out
    assert RunDirectory.read(run).status.state == "interrupted"
    assert not RunDirectory.read(run).evaluations.rows()


def test_a_time_of_nothing_is_refused_in_one_line(ilde: Ilde, tmp_path: Path) -> None:
    result = ilde("train", "expert", "--env", "CartPole-v1", "--out", tmp_path / "run", "--minutes", "0")
    assert result.code == 2
    assert "--minutes: '0': name a time above 0" in result.err
    assert not (tmp_path / "run").exists()


def test_a_second_ctrl_c_ends_at_once() -> None:
    with StopRequest(lambda _: None):
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)

"""Real processes on this machine: places, exit codes, resuming, what becomes of a run without its parent."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from studies import process, rows, wait_for, write_study

from ilde.cli.attempt import await_release
from ilde.data import UserError
from ilde.envs.cores import usable_cores
from ilde.experiments import local
from ilde.experiments.campaign import Campaign, Standing
from ilde.experiments.claims import claimed_cores
from ilde.experiments.engine import Attempt
from ilde.experiments.local import LocalEngine, Place, places, shared_out, usable_gpus
from ilde.experiments.study_files import read_study
from ilde.runs import RunDirectory
from ilde.runs.checkpoint import checkpoint_steps
from ilde.runs.durable import FolderLock


class Deaf:
    """Hears and sees nothing."""

    def noted(self, message: str) -> None:
        """Ignore."""

    def seen(self, standings: Sequence[Standing]) -> None:
        """Ignore."""


def outlast(engine: LocalEngine, count: int) -> dict[str, int]:
    """The exit codes of so many attempts, all of them ended."""
    codes: dict[str, int] = {}

    def all_ended() -> bool:
        codes.update(engine.ended())
        return len(codes) == count

    wait_for(all_ended)
    return codes


def test_cores_are_shared_out_evenly_and_completely() -> None:
    assert shared_out(range(16), 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]
    assert shared_out([3, 5, 9], 2) == [[3, 5], [9]]
    assert shared_out([7], 1) == [[7]]


def test_places_take_gpus_in_turn_and_cores_of_their_own() -> None:
    assert places([0, 1, 2, 3], ["4", "7"], 3) == [Place((0,), "4"), Place((1, 2), "7"), Place((3,), "4")]
    assert places([0], [], 2) == [Place((0,), None), Place((0,), None)]


def test_only_visible_gpus_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-8932f937")
    assert usable_gpus() == ["3", "GPU-8932f937"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert usable_gpus() == []
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(local.torch.cuda, "device_count", lambda: 2)
    assert usable_gpus() == ["0", "1"]


@pytest.mark.skipif(len(usable_cores()) < 2, reason="needs two cores")
def test_a_process_has_its_cores_and_its_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Python runs this instead of the attempt, and says what it was given.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, time; time.sleep(0.5)\n"
        "print(*os.sched_getaffinity(0), os.environ['CUDA_VISIBLE_DEVICES'], flush=True)\n"
        "os._exit(0)"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "6,7")
    engine = LocalEngine(2)
    attempts = [Attempt(name, tmp_path / name, (), tmp_path) for name in ("a", "b")]
    for attempt in attempts:
        engine.start(attempt)
    assert outlast(engine, 2) == {"a": 0, "b": 0}
    said = [attempt.log.read_text().split() for attempt in attempts]
    assert [words[-1] for words in said] == ["6", "7"]
    one, other = (set(words[:-1]) for words in said)
    assert one
    assert other
    assert not one & other


def test_a_killed_process_has_the_code_a_shell_gives(tmp_path: Path) -> None:
    engine = LocalEngine(1)
    engine.start(Attempt("a", tmp_path / "a", ("expert", "--env=CartPole-v1"), tmp_path))
    engine._running["a"][0].kill()
    assert outlast(engine, 1) == {"a": 137}


def test_a_killed_run_is_tried_again_from_its_checkpoint(tmp_path: Path) -> None:
    steps = 3200
    cells = read_study(write_study(tmp_path, steps=steps)).cells()
    engine = LocalEngine(1)
    run = tmp_path / "out" / cells[0].id

    def kill() -> None:
        wait_for(lambda: rows(run / "timing.jsonl") >= 12)
        os.kill(int((run / "lock").read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    (standing,) = Campaign(cells, tmp_path / "out", retries=1, watcher=Deaf()).run(engine)
    killer.join()
    engine.close()
    assert (standing.state, standing.attempts, standing.reached.env_steps) == ("done", 2, steps)
    resumed = re.search(r"going on from ([\d,]+) steps", run.with_name("seed-0.log").read_text())
    assert resumed
    assert int(resumed[1].replace(",", "")) in range(320, steps, 320)
    assert [row["env_steps"] for row in RunDirectory.read(run).metrics.rows()] == list(range(0, steps + 1, 32))
    command = RunDirectory.read(run).provenance["command"]
    assert command[:3] == ["ilde", "train", "expert"]


def test_a_run_saves_itself_when_its_parent_dies(tmp_path: Path) -> None:
    words = ("expert", "--env=CartPole-v1", "--steps=100000", "--num-envs=2", "--rollout-steps=16", "--device=cpu")
    script = f"""
import time
from pathlib import Path
from ilde.experiments.engine import Attempt, begin
child = begin(Attempt("a", Path("run"), {words!r}, Path({str(tmp_path)!r})))
time.sleep(60)
"""
    run = tmp_path / "run"
    with process("-c", script) as parent:
        wait_for(lambda: rows(run / "timing.jsonl") >= 2)
        parent.kill()
    wait_for(lambda: RunDirectory.read(run).status.state != "running", seconds=20)
    status = RunDirectory.read(run).status
    assert status.state == "interrupted"
    await_release(run, 20)
    assert checkpoint_steps(run / "checkpoints")[-1] == status.env_steps > 0


def test_an_attempt_that_cannot_begin_takes_no_place(tmp_path: Path) -> None:
    engine = LocalEngine(1)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        engine.start(Attempt("a", tmp_path / "file" / "a", (), tmp_path))
    engine.start(Attempt("b", tmp_path / "b", ("nothing",), tmp_path))
    assert outlast(engine, 1) == {"b": UserError.exit_code}


@pytest.mark.parametrize("found", [False, True], ids=["as ilde", "as python -m ilde"])
def test_an_attempt_finds_the_modules_that_its_planner_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: bool
) -> None:
    (tmp_path / "myenv.py").write_text("raise RuntimeError('found here')")
    if found:
        monkeypatch.syspath_prepend(tmp_path)
    else:
        (tmp_path / "random.py").write_text("raise RuntimeError('not the random of Python')")
    monkeypatch.chdir(tmp_path)
    engine = LocalEngine(1)
    attempt = Attempt("a", Path("a"), ("expert", "--env=myenv:Point-v0", "--steps=32"), tmp_path)
    engine.start(attempt)
    assert outlast(engine, 1) == {"a": UserError.exit_code}
    assert ("found here" if found else "is its folder on PYTHONPATH?") in attempt.log.read_text()


def test_an_attempt_that_cannot_have_its_cores_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    def taken_away(child: int, _: Sequence[int]) -> None:
        begun.append(child)
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "sched_setaffinity", taken_away, raising=False)
    engine = LocalEngine(1)
    with pytest.raises(OSError, match="Invalid"):
        engine.start(Attempt("a", tmp_path / "a", ("expert", "--env=CartPole-v1"), tmp_path))
    assert not engine.ended()
    with pytest.raises(ProcessLookupError):  # gone, and waited for
        os.kill(begun[0], 0)


class Begun:
    """Begins processes that end at once, but not on some cores, and remembers on which."""

    def __init__(self, refused: tuple[int, ...] | None = None) -> None:
        self.refused = refused
        self.on: list[tuple[int, ...]] = []

    def __call__(self, attempt: Attempt, cores: tuple[int, ...], environment: object) -> subprocess.Popen[bytes]:
        self.on.append(cores)
        if cores == self.refused:
            raise OSError(errno.EINVAL, "Invalid argument")
        return subprocess.Popen(["true"], stdin=subprocess.PIPE)


def test_after_an_attempt_that_cannot_begin_the_next_has_another_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = usable_cores()[0]
    begun = Begun(refused=(core,))
    monkeypatch.setattr(local, "begin", begun)
    engine = LocalEngine(2)
    engine._free = [Place((core,), "0"), Place((core, core + 1), "1")]
    attempt = Attempt("a", tmp_path / "a", (), tmp_path)
    with pytest.raises(OSError, match="Invalid argument"):
        engine.start(attempt)
    engine.start(attempt)
    assert begun.on == [(core,), (core, core + 1)]
    assert outlast(engine, 1) == {"a": 0}
    assert len(engine._free) == 2  # none is lost


def test_a_place_whose_cores_were_taken_away_makes_do_with_those_that_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = Begun()
    monkeypatch.setattr(local, "begin", begun)
    engine = LocalEngine(2)
    core, gone = usable_cores()[0], max(usable_cores()) + 1
    engine._free = [Place((gone,), "0"), Place((core, gone), "1")]
    attempts = [Attempt(name, tmp_path / name, (), tmp_path) for name in ("a", "b")]
    for attempt in attempts:
        engine.start(attempt)
    assert begun.on == [(), (core, gone)]  # of some that are left the system takes those
    assert outlast(engine, 2) == {"a": 0, "b": 0}
    assert {place.gpu for place in engine._free} == {"0", "1"}


def test_closing_leaves_no_process(tmp_path: Path) -> None:
    engine = LocalEngine(1)
    engine.start(Attempt("a", tmp_path / "a", ("expert", "--env=CartPole-v1"), tmp_path))
    child = engine._running["a"][0]
    engine.close()
    assert child.returncode == -signal.SIGKILL


def test_an_attempt_waits_for_whoever_still_holds_the_run(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    with pytest.raises(UserError):
        FolderLock(tmp_path)
    began = time.monotonic()
    threading.Timer(0.8, lock.release).start()
    await_release(tmp_path, 20)
    assert 0.8 <= time.monotonic() - began < 20
    FolderLock(tmp_path).release()  # free: it would raise otherwise


def test_claimed_cores_belong_to_one_holder(tmp_path: Path) -> None:
    cores = usable_cores()
    with claimed_cores(1, tmp_path) as first:
        assert first == cores[:1]
        with claimed_cores(len(cores), tmp_path) as too_many:
            assert too_many == []
        with claimed_cores(len(cores) - 1, tmp_path) as rest:
            assert rest == cores[1:]
    with claimed_cores(len(cores), tmp_path) as everything:
        assert everything == cores

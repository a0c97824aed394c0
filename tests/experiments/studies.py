"""Small studies, and the processes of a machine, for the tests of grids and engines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STUDY = """
methods = ["expert", "random"]
seeds = "{seeds}"

[[tasks]]
env = "CartPole-v1"
steps = {steps}

[tasks.overrides]
num-envs = 2
rollout-steps = 16
checkpoint-every = 10
device = "cpu"
ppo.num-minibatches = 2
ppo.num-epochs = 2
evaluation.final-episodes = 2
"""
"""Runs of seconds on CartPole; an update is 32 steps."""


def write_study(folder: Path, *, steps: int, seeds: str = "0..0", methods: str = '"expert"') -> Path:
    """A study file of its own folder."""
    path = folder / "toy.toml"
    path.write_text(STUDY.format(steps=steps, seeds=seeds).replace('"expert", "random"', methods))
    return path


@contextmanager
def process(*words: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A Python process that does not outlive the block, whatever happens in it."""
    with subprocess.Popen([sys.executable, *words], text=True, **options) as child:
        try:
            yield child
        finally:
            child.kill()


def wait_for(happened: Callable[[], bool], seconds: float = 240.0) -> None:
    """Wait until something happened; fail if it does not."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def rows(path: Path) -> int:
    """How many whole rows a journal has."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def descendants(pid: int) -> list[int]:
    """A process, its children, theirs, and so on."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in brackets may hold anything; the parent is the second field after it.
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
    found = [pid]
    for ancestor in found:
        found += [child for child, parent in parents.items() if parent == ancestor]
    return found


def command(pid: int) -> str:
    """The command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def kill_all(pid: int) -> None:
    """Kill a process and all that came of it, at once, as if their machine had lost its power."""
    for victim in descendants(pid):
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue

"""What carries out runs: an attempt at one, and the contract of every engine.

An attempt is a process of its own: `ilde train`, or `ilde resume` where the folder already holds a run. It lives on
whichever machine the engine chooses; how far it is can be read from the run's folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


def searches_here() -> bool:
    """Whether this process finds modules in the current folder: under `python -m ilde`, but not as `ilde`."""
    return os.getcwd() in map(os.path.realpath, sys.path)


@dataclass(frozen=True)
class Attempt:
    """One try at carrying a run to its end."""

    id: str
    folder: Path
    words: tuple[str, ...]
    """What follows `ilde train`, the folder apart."""
    workplace: Path
    """The folder that relative paths start from, on every machine."""
    searches_workplace: bool = field(default_factory=searches_here)
    """Whether it finds modules there too, as whoever planned it does; on another machine nobody could tell."""

    @property
    def log(self) -> Path:
        """Where everything the process says is kept, beside the run's folder."""
        return self.workplace / self.folder.with_name(f"{self.folder.name}.log")


class Engine(Protocol):
    """Carries out attempts, several at once."""

    at_once: int
    """How many attempts it takes at a time."""

    def start(self, attempt: Attempt) -> None:
        """Begin an attempt as soon as there is room."""

    def ended(self) -> dict[str, int]:
        """The exit codes, by id, of the attempts that have ended since the last call."""

    def stop(self) -> None:
        """Have every attempt save a checkpoint and end; those that have not begun never do."""

    def close(self) -> None:
        """End at once whatever still runs, and give back what the engine took."""


def begin(
    attempt: Attempt, cores: Sequence[int] = (), environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start the process of an attempt on some cores; it ends by itself, saved, when this process dies."""
    attempt.log.parent.mkdir(parents=True, exist_ok=True)
    # Unasked, Python would look there first, where a `random.py` of the user's is not Python's.
    safe = [] if attempt.searches_workplace else ["-P"]
    command = [sys.executable, *safe, "-m", "ilde.cli.attempt", str(attempt.folder), *attempt.words]
    with attempt.log.open("ab") as log:
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # its lifeline: closed by the kernel however this process ends
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=attempt.workplace,
            env={**os.environ, **(environment or {})},
            start_new_session=True,  # Ctrl-C reaches it through its engine alone, not from the terminal too
        )
    if cores and hasattr(os, "sched_setaffinity"):
        try:
            os.sched_setaffinity(child.pid, cores)  # before it has started a thread: all of them inherit it
        except ProcessLookupError:  # it may be over already
            pass
        except OSError:  # cores that were taken away since they were counted: nobody would know of this child
            child.kill()
            child.communicate()
            raise
    return child


def exit_code(child: subprocess.Popen[bytes]) -> int | None:
    """How a process ended, as a shell would say it; None while it runs."""
    code = child.poll()
    # A process that died of a signal has its number, negative; a shell says 128 more than it.
    return code if code is None or code >= 0 else 128 - code

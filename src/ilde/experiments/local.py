"""The engine of one machine: processes that share its cores and GPUs fairly."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch

from ilde.envs.cores import usable_cores
from ilde.experiments.engine import Attempt, begin, exit_code

GPUS = "CUDA_VISIBLE_DEVICES"


def shared_out(cores: Sequence[int], shares: int) -> list[list[int]]:
    """The cores in neighbouring shares of about equal size, none of them empty; at most one share per core."""
    bounds = [round(len(cores) * k / shares) for k in range(shares + 1)]
    return [list(cores[first:last]) for first, last in pairwise(bounds)]


def usable_gpus() -> list[str]:
    """The GPUs this process may use, as CUDA names them."""
    named = os.environ.get(GPUS)
    return [str(k) for k in range(torch.cuda.device_count())] if named is None else [n for n in named.split(",") if n]


@dataclass(frozen=True)
class Place:
    """What one run has of the machine."""

    cores: tuple[int, ...]
    gpu: str | None


def places(cores: Sequence[int], gpus: Sequence[str], count: int) -> list[Place]:
    """So many places; simulators that take all cores for granted slow each other down, so each has cores to itself."""
    shares = shared_out(cores, min(count, len(cores)))
    return [Place(tuple(shares[k % len(shares)]), gpus[k % len(gpus)] if gpus else None) for k in range(count)]


def _with_cores_left(place: Place) -> Place:
    """The place; without cores of its own, on any that are left, where all of its own have been taken away."""
    return place if set(place.cores) & set(usable_cores()) else replace(place, cores=())


class LocalEngine:
    """A process for each attempt, on a place of its own."""

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self._free = places(usable_cores(), usable_gpus(), at_once)
        self._running: dict[str, tuple[subprocess.Popen[bytes], Place]] = {}

    def start(self, attempt: Attempt) -> None:
        """Begin at once: there is room for `at_once` of them."""
        place = _with_cores_left(self._free[0])
        environment = {} if place.gpu is None else {GPUS: place.gpu}
        try:
            child = begin(attempt, place.cores, environment)
        except OSError:  # an attempt that cannot begin takes no place; the next one tries another where there is one
            self._free.append(self._free.pop(0))
            raise
        self._running[attempt.id] = child, place
        self._free.pop(0)

    def ended(self) -> dict[str, int]:
        """The exit codes since the last call."""
        codes = {name: exit_code(child) for name, (child, _) in self._running.items()}
        over = {name: code for name, code in codes.items() if code is not None}
        for name in over:
            child, place = self._running.pop(name)
            _forget(child)
            self._free.append(place)
        return over

    def stop(self) -> None:
        """Ask every process to save and end."""
        for child, _ in self._running.values():
            child.terminate()

    def close(self) -> None:
        """Kill what still runs: a run survives it, at its last checkpoint."""
        for child, _ in self._running.values():
            child.kill()
            _forget(child)
        self._running.clear()


def _forget(child: subprocess.Popen[bytes]) -> None:
    child.wait()
    assert child.stdin is not None
    child.stdin.close()


def default_jobs() -> int:
    """How many runs suit this machine: one for every two cores."""
    return max(1, len(usable_cores()) // 2)

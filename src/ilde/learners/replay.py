"""A replay buffer: the latest transitions, drawn uniformly.

Only `terminated` is kept of an ending: a time limit is no end of the decision process, and since `next_obs` is the true
successor, a truncated step is a step like any other. Left out: priorities, n-step returns, frames shared between rows.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import gymnasium as gym
import torch

from ilde.data import Transitions


def row_bytes(obs_space: gym.spaces.Box) -> int:
    """About what one transition takes: two observations, and little else."""
    return 2 * math.prod(obs_space.shape) * int(obs_space.dtype.itemsize) + 64


def joined(first: Transitions, second: Transitions) -> Transitions:
    """Both along their last batch dimension, the first's transitions first."""
    dim = first.terminated.ndim - 1
    names = [field.name for field in fields(Transitions)]
    return Transitions(**{name: torch.cat([getattr(first, name), getattr(second, name)], dim) for name in names})


class Replay:
    """A ring of `capacity` transitions on one device, allocated with the first that are added; images stay uint8."""

    def __init__(self, capacity: int, device: torch.device) -> None:
        self.capacity, self.device = capacity, device
        self.added = 0
        self._rows: Transitions | None = None

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(self, transitions: Transitions) -> None:
        """Keep these (any batch shape), in place of the oldest where there is no room."""
        rows = transitions.flatten()
        surplus = max(0, len(rows) - self.capacity)
        self.added += surplus
        self._write(rows.map(lambda x: x[surplus:]))

    def _write(self, rows: Transitions) -> None:
        held = self._rows or self._allocate(rows)
        start = self.added % self.capacity
        before_the_seam = min(len(rows), self.capacity - start)
        for field in fields(Transitions):
            ring, new = getattr(held, field.name), getattr(rows, field.name)
            ring[start : start + before_the_seam] = new[:before_the_seam]
            ring[: len(rows) - before_the_seam] = new[before_the_seam:]
        self.added += len(rows)

    def _allocate(self, like: Transitions) -> Transitions:
        # Empty memory costs nothing on a CPU until it is written to.
        self._rows = like.map(lambda x: x.new_empty((self.capacity, *x.shape[1:]), device=self.device))
        return self._rows

    def sample(self, shape: tuple[int, ...], generator: torch.Generator) -> Transitions:
        """Transitions of this batch shape, drawn with replacement; the generator lives on the CPU."""
        if self._rows is None:
            raise RuntimeError("nothing was added yet")
        index = torch.randint(len(self), shape, generator=generator).to(self.device)
        return self._rows[index]

    def state_dict(self) -> dict[str, Any]:
        """The filled part in its order, and where the next row goes."""
        held, size = self._rows, len(self)
        rows = None if held is None else {field.name: getattr(held, field.name)[:size] for field in fields(held)}
        return {"capacity": self.capacity, "added": self.added, "rows": rows}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state, with its capacity."""
        self.capacity, self.added, self._rows = state["capacity"], 0, None
        if state["rows"] is not None:
            self._write(Transitions(**state["rows"]))
        self.added = state["added"]

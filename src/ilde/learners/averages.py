"""Means of what many small steps report, summed on the device and read once."""

from __future__ import annotations

import torch
from torch import Tensor

from ilde.data import Metrics
from ilde.learners.guard import FiniteGuard


class Averages:
    """Sums that stay where they are, so that a captured step can add to them."""

    def __init__(self) -> None:
        self._totals: dict[str, Tensor] = {}

    def restart(self) -> None:
        """Forget what was added."""
        for total in self._totals.values():
            total.zero_()

    def add(self, parts: dict[str, Tensor]) -> None:
        """Add one step's numbers."""
        for name, value in parts.items():
            self._totals.setdefault(name, torch.zeros_like(value)).add_(value)

    def read(self, steps: int, prefix: str) -> Metrics:
        """The means over so many steps; raises, naming them, if any is not finite."""
        guard = FiniteGuard()
        for name, total in self._totals.items():
            guard.watch(name, total)
        guard.check()
        return {f"{prefix}/{name}": float(total) / steps for name, total in self._totals.items()}

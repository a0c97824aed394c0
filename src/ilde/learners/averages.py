"""Means of what many small steps report, summed on the device and read once."""

from __future__ import annotations

import torch
from torch import Tensor

from ilde.data import Metrics
from ilde.learners.guard import FiniteGuard


class Averages:
    """Sums that stay where they are, all in one place, so that a captured step adds to them in one go.

    Every step reports the same names in the same order.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._sums = torch.zeros(0)

    def restart(self) -> None:
        """Forget what was added."""
        self._sums.zero_()

    def add(self, parts: dict[str, Tensor]) -> None:
        """Add one step's numbers."""
        numbers = torch.stack(list(parts.values()))
        if not self._names:
            self._names, self._sums = tuple(parts), torch.zeros_like(numbers)
        self._sums.add_(numbers)

    def read(self, steps: int, prefix: str) -> Metrics:
        """The means over so many steps; raises, naming them, if any is not finite."""
        totals, guard = self._sums.cpu(), FiniteGuard()
        for name, total in zip(self._names, totals, strict=True):
            guard.watch(name, total)
        guard.check()
        means = (totals / steps).tolist()
        return {f"{prefix}/{name}": mean for name, mean in zip(self._names, means, strict=True)}

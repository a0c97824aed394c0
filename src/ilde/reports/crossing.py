"""When a method passes its demonstrator for good, and how closely that can be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

import numpy as np

from ilde.reports.outcomes import Outcome
from ilde.reports.thinned import POINTS, Curve

ENOUGH = 4
"""Evaluations along the way that make a curve; with fewer, training scores are read."""
Read: TypeAlias = Literal["evaluations", "lowest training scores", "training scores"]
"""Lowest: at each point that was kept of a training curve the lowest since the one before, so that no dip is missed."""


@dataclass(frozen=True)
class Crossing:
    """From where on a curve stays at or above its demonstrator."""

    env_steps: int
    spacing: int = 0
    """How many steps before it the curve was last read: nobody knows better than that."""


def crossing(outcomes: Sequence[Outcome], demonstrator: float | None, read: Read | None = None) -> Crossing | None:
    """Where the mean curve over seeds stays at or above the demonstrator from; None where it never does.

    Args:
        read: which curve; by default the one that these seeds have. Two rows that are compared are read alike.
    """
    curves = [_curve(outcome, read or curve_read(outcomes)) for outcome in outcomes]
    if demonstrator is None or not all(curve.values for curve in curves):
        return None
    steps = np.array(min(curves, key=lambda curve: curve.env_steps[-1]).env_steps)
    mean = np.mean([np.interp(steps, curve.env_steps, curve.values) for curve in curves], axis=0)
    below = np.flatnonzero(mean < demonstrator)
    first = int(below[-1]) + 1 if len(below) else 0
    if first == len(steps):
        return None
    return Crossing(int(steps[first]), int(steps[first] - (steps[first - 1] if first else 0)))


def curve_read(*rows: Sequence[Outcome]) -> Read:
    """Which curve of the seeds of some rows is read, the same of all: a mean of greedy and sampled scores is neither.

    The lowest scores of several seeds need not fall together, so that their mean is no mean curve's lowest: they are
    read of rows of one seed, and only where all of these have them.
    """
    outcomes = [outcome for row in rows for outcome in row]
    if all(len(outcome.evaluations.values) >= ENOUGH for outcome in outcomes):
        return "evaluations"
    return training_read(*outcomes) if all(len(row) == 1 for row in rows) else "training scores"


def training_read(*outcomes: Outcome) -> Read:
    """Which curve of training is read of seeds that each stand alone."""
    kept = all(outcome.lows.values or len(outcome.training.values) < POINTS for outcome in outcomes)
    thinned = any(outcome.lows.values for outcome in outcomes)
    return "lowest training scores" if kept and thinned else "training scores"


def _curve(outcome: Outcome, read: Read) -> Curve:
    match read:
        case "evaluations":
            return outcome.evaluations
        case "lowest training scores":  # of a curve that was not thinned it is the curve itself
            return outcome.lows if outcome.lows.values else outcome.training
        case "training scores":
            return outcome.training
        case _:
            assert_never(read)

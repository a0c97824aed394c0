"""When a method passes its demonstrator for good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from ilde.reports.outcomes import Outcome

ENOUGH = 4
"""Evaluations along the way that make a curve; with fewer, training scores are read."""
Read: TypeAlias = Literal["evaluations", "training scores"]


def crossing(outcomes: Sequence[Outcome], demonstrator: float | None) -> int | None:
    """The steps from which the mean curve over seeds stays at or above the demonstrator; None where it never does."""
    evaluated = curve_read(outcomes) == "evaluations"
    curves = [outcome.evaluations if evaluated else outcome.training for outcome in outcomes]
    if demonstrator is None or not all(curve.values for curve in curves):
        return None
    steps = np.array(min(curves, key=lambda curve: curve.env_steps[-1]).env_steps)
    mean = np.mean([np.interp(steps, curve.env_steps, curve.values) for curve in curves], axis=0)
    below = np.flatnonzero(mean < demonstrator)
    first = int(below[-1]) + 1 if len(below) else 0
    return int(steps[first]) if first < len(steps) else None


def curve_read(outcomes: Sequence[Outcome]) -> Read:
    """Which curve of a row's seeds is read, the same of all: a mean of greedy and sampled scores would be neither."""
    whole = all(len(outcome.evaluations.values) >= ENOUGH for outcome in outcomes)
    return "evaluations" if whole else "training scores"

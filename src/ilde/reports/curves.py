"""Curves of several seeds as one: their mean, and a 95% interval where there is more than one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ilde.reports.outcomes import Outcome
from ilde.reports.statistics import LEVEL, Scores
from ilde.reports.thinned import Curve

GRID = 80
"""Points at which seeds are compared."""


@dataclass(frozen=True)
class Band:
    """A mean over seeds, and how sure it is."""

    env_steps: Scores
    mean: Scores
    spread: Scores | None
    """Half of the 95% interval; None for one seed."""
    extent: tuple[float, float]
    """The lowest and the highest value of any seed."""


def band(curves: Sequence[Curve]) -> Band | None:
    """The seeds' mean where all of them have values; None where they never have."""
    known = [curve for curve in curves if curve.values]
    if not known or len(known) < len(curves):
        return None
    first, last = max(curve.env_steps[0] for curve in known), min(curve.env_steps[-1] for curve in known)
    if last <= first:
        return None
    grid = np.linspace(first, last, GRID)
    values = np.stack([np.interp(grid, curve.env_steps, curve.values) for curve in known])
    spread = None
    if len(values) > 1:
        spread = stats.t.ppf(0.5 + LEVEL / 2, len(values) - 1) * values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return Band(grid, values.mean(axis=0), spread, (float(values.min()), float(values.max())))


def shares(outcomes: Sequence[Outcome]) -> tuple[Scores, dict[str, Scores]] | None:
    """Each reward term's part of the whole over training, from 0 to 1, by the size of its weighted mean over seeds."""
    found = {name: band([outcome.terms.get(name, Curve()) for outcome in outcomes]) for name in outcomes[0].terms}
    known = {name: entry for name, entry in found.items() if entry is not None}
    if len(known) < 2:
        return None
    sizes = {name: np.abs(entry.mean) for name, entry in known.items()}
    total = np.maximum(np.sum(list(sizes.values()), axis=0), np.finfo(float).tiny)
    return next(iter(known.values())).env_steps, {name: size / total for name, size in sizes.items()}

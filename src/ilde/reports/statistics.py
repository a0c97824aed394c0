"""What a few seeds say: means, interquartile means, and intervals that do not claim more than the seeds allow.

Scores of several tasks come as strata, one array of seeds for each task; a resample draws seeds within their task, so
that no task is ever left out of one. Where the same runs stand in several tasks, as those of a control that saw no
demonstrations do for every recording, they are drawn together: they are no further evidence. Nothing is known about the
spread of a single seed, and none is invented; a bootstrap of fewer than five would claim to know more than they do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Scores: TypeAlias = NDArray[np.float64]
Strata: TypeAlias = Sequence[Scores]
"""For each task its seeds' scores, along the last axis."""
Interval: TypeAlias = tuple[float, float]

RESAMPLES = 2000
FEWEST = 5
"""Seeds of a task that are resampled: 95% intervals of three hold the truth about three times in four."""
LEVEL = 0.95


def scores_of(values: Sequence[float] | NDArray[Any]) -> Scores:
    """Values as an array of float64."""
    return np.asarray(values, dtype=np.float64)


def mean_and_std(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation, as the paper prints them; one seed has no deviation."""
    scores = scores_of(values)
    return float(scores.mean()), float(scores.std(ddof=1)) if len(scores) > 1 else None


def iqm(scores: Scores) -> Scores:
    """The interquartile mean over the last axis: without the lowest and the highest quarter, rounded down."""
    size = scores.shape[-1]
    cut = size // 4
    return np.asarray(np.sort(scores, axis=-1)[..., cut : size - cut].mean(axis=-1))


def pooled_iqm(strata: Strata) -> Scores:
    """The interquartile mean of all tasks' scores together, which must share a scale."""
    return iqm(np.concatenate(strata, axis=-1))


def mean_of_tasks(strata: Strata) -> Scores:
    """The mean over tasks of each task's mean, as the paper averages ratios."""
    return np.asarray(np.mean([stratum.mean(axis=-1) for stratum in strata], axis=0))


def improvement(ours: Strata, theirs: Strata) -> Scores:
    """The probability that a run of ours beats one of theirs on the same task, averaged over tasks; ties count half."""
    tasks = [_wins(mine, other) for mine, other in zip(ours, theirs, strict=True)]
    return np.asarray(np.mean(tasks, axis=0))


def _wins(ours: Scores, theirs: Scores) -> Scores:
    gap = np.sign(ours[..., :, None] - theirs[..., None, :])
    return np.asarray((gap.mean(axis=(-2, -1)) + 1) / 2)


def bootstrap_interval(
    statistic: Callable[[Strata], Scores],
    strata: Strata,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    *,
    runs: Sequence[Hashable] | None = None,
) -> Interval | None:
    """The 95% percentile interval of a statistic, seeds resampled within tasks; None if a task has too few of them.

    Args:
        runs: what tells the runs of one task from another's; all are distinct if not given
    """
    if not _can_resample(strata):
        return None
    return _percentiles(statistic(_resampled(strata, generator, resamples, runs)))


def improvement_interval(
    ours: Strata,
    theirs: Strata,
    generator: np.random.Generator,
    resamples: int = RESAMPLES,
    *,
    our_runs: Sequence[Hashable] | None = None,
    their_runs: Sequence[Hashable] | None = None,
) -> Interval | None:
    """The 95% bootstrap interval of the probability of improvement; None if a side has too few seeds on a task."""
    if not (_can_resample(ours) and _can_resample(theirs)):
        return None
    mine = _resampled(ours, generator, resamples, our_runs)
    other = _resampled(theirs, generator, resamples, their_runs)
    return _percentiles(improvement(mine, other))


def difference_interval(ours: Sequence[float] | Scores, theirs: Sequence[float] | Scores) -> Interval:
    """Welch's 95% interval of the difference of means over seeds.

    Infinite where a side has a single seed, or neither any spread: a few equal scores do not make certain.
    """
    mine, other = scores_of(ours), scores_of(theirs)
    if min(len(mine), len(other)) < 2:
        return (-math.inf, math.inf)
    difference = float(mine.mean() - other.mean())
    unit = float(max(np.ptp(mine), np.ptp(other)))
    if not unit:
        return (-math.inf, math.inf)
    # In units of the larger range, so that fourth powers neither overflow nor vanish.
    parts = [float((side / unit).var(ddof=1)) / len(side) if np.ptp(side) else 0.0 for side in (mine, other)]
    freedom = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (mine, other), strict=True))
    spread = unit * math.sqrt(sum(parts)) * float(stats.t.ppf(0.5 + LEVEL / 2, freedom))
    return (difference - spread, difference + spread)


def _can_resample(strata: Strata) -> bool:
    return all(len(stratum) >= FEWEST for stratum in strata)


def _resampled(
    strata: Strata, generator: np.random.Generator, resamples: int, runs: Sequence[Hashable] | None
) -> list[Scores]:
    """For each task (resamples, seeds), the same runs drawn alike."""
    drawn: dict[Hashable, NDArray[np.int64]] = {}
    found = []
    for name, stratum in zip(range(len(strata)) if runs is None else runs, strata, strict=True):
        if name not in drawn:
            drawn[name] = generator.integers(len(stratum), size=(resamples, len(stratum)))
        found.append(stratum[drawn[name]])
    return found


def _percentiles(values: Scores) -> Interval | None:
    """None where no resample differs from another: that disjoint samples stay disjoint does not make certain."""
    low, high = np.percentile(values, (50 - 50 * LEVEL, 50 + 50 * LEVEL))
    return (float(low), float(high)) if low < high else None

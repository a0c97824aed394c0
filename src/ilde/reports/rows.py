"""A row of a comparison: the seeds of one method, their statistics, and what they show against the controls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from ilde.evaluation import mean_interval, return_ratio
from ilde.randomness import numpy_generator
from ilde.reports import statistics
from ilde.reports.outcomes import Outcome
from ilde.reports.statistics import Interval

Kind: TypeAlias = Literal["method", "unguided", "control", "reference"]
"""Learns from demonstrations; learns from none; is a control; learns from the true reward."""


@dataclass(frozen=True)
class Difference:
    """A row's score minus a control's."""

    control: str
    alike: bool
    """Whether both ran with the same settings."""
    mean: float
    interval: Interval
    """Welch's, 95%; infinite where a side has one seed, or neither any spread."""
    apart: bool
    """Whether the row's own interval lies above the control's: one may overlap where the difference is above 0."""
    seeds: int
    """Of the control."""
    probability: float
    """That a run of the row beats one of the control."""
    probability_interval: Interval | None
    """None for fewer seeds than can be resampled."""

    @property
    def bounded(self) -> bool:
        """Whether there is an interval at all."""
        return math.isfinite(self.interval[0])

    @property
    def shown(self) -> bool:
        """Whether the row is above the control beyond chance."""
        return self.interval[0] > 0 and self.apart

    @property
    def overlaps(self) -> bool:
        """Whether only the overlap of the two intervals stands in the way."""
        return self.interval[0] > 0 and not self.apart

    @property
    def doubt(self) -> str:
        """What is wrong with the control where there is no interval."""
        if self.bounded:
            return ""
        return "with one seed" if self.seeds == 1 else "without any spread"


@dataclass(frozen=True)
class Verdict:
    """Whether a row was shown to imitate, and what stands in the way."""

    overlapping: tuple[str, ...] = ()
    """Controls whose interval the row's overlaps, or from which the difference may be 0."""
    missing: tuple[str, ...] = ()
    """Controls that did not run."""
    elsewhere: tuple[str, ...] = ()
    """Controls that ran for more or fewer steps only."""
    single: bool = False
    """The row has one seed, so it has no interval."""
    cut: bool = False
    """Its episodes, or a control's, were cut short."""

    @property
    def imitates(self) -> bool:
        """Whether nothing stands in the way."""
        return not (self.overlapping or self.missing or self.elsewhere or self.single or self.cut)

    @property
    def absent(self) -> str:
        """The controls that cannot be compared with."""
        missing = f"no {_quoted(self.missing)} run" if self.missing else ""
        elsewhere = f"{_quoted(self.elsewhere)} with other steps only" if self.elsewhere else ""
        return "; ".join(part for part in (missing, elsewhere) if part)

    @property
    def reason(self) -> str:
        """What stands in the way, in a few words."""
        if self.cut:
            return "episodes cut short"
        if self.single:
            return "one seed has no interval"
        return "; ".join(part for part in (", ".join(self.overlapping), self.absent) if part)

    def __str__(self) -> str:
        if self.imitates:
            return "imitates"
        if self.cut or self.single or not self.overlapping:
            return f"{self.reason}: not shown to imitate"
        return "; ".join(
            part for part in (f"not shown to imitate ({', '.join(self.overlapping)})", self.absent) if part
        )


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


@dataclass(frozen=True)
class Row:
    """The seeds of one method under one set of settings."""

    outcomes: tuple[Outcome, ...]
    scores: tuple[float, ...]
    """Final mean return of each seed."""
    kind: Kind
    details: str
    """What tells it from other rows of the same method."""
    demonstrator: float | None
    other: float | None = None
    """Mean score of the other kind of actions: sampled beside greedy ones, and the other way round."""
    differences: tuple[Difference, ...] = ()
    verdict: Verdict | None = None
    """None for a row that is not there to imitate."""

    @property
    def method(self) -> str:
        """The row of the table of methods."""
        return self.outcomes[0].method

    @property
    def label(self) -> str:
        """The method, and what tells it from others of its name."""
        return f"{self.method} ({self.details})" if self.details else self.method

    @property
    def env_steps(self) -> int:
        """The budget."""
        return self.outcomes[0].env_steps

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of the runs."""
        return tuple(outcome.seed for outcome in self.outcomes)

    @property
    def mean(self) -> float:
        """Over seeds."""
        return statistics.mean_and_std(self.scores)[0]

    @property
    def std(self) -> float | None:
        """Over seeds; None for one."""
        return statistics.mean_and_std(self.scores)[1]

    @property
    def interval(self) -> Interval | None:
        """Student's 95% interval of the mean; None for one seed or without any spread: equal scores are not certain."""
        return mean_interval(self.scores) if len(set(self.scores)) > 1 else None

    @property
    def doubt(self) -> str:
        """Why there is no interval."""
        if self.interval is not None:
            return ""
        return "one seed" if len(self.scores) == 1 else "seeds without any spread"

    @property
    def iqm(self) -> float:
        """The interquartile mean over seeds."""
        return float(statistics.iqm(statistics.scores_of(self.scores)))

    @cached_property
    def iqm_interval(self) -> Interval | None:
        """Its 95% bootstrap interval; None for fewer seeds than can be resampled."""
        strata = [statistics.scores_of(self.scores)]
        return statistics.bootstrap_interval(statistics.pooled_iqm, strata, numpy_generator(0, self.label))

    @property
    def cut(self) -> bool:
        """Whether any of its episodes was cut short, so that its score is not one of whole episodes."""
        return any(final.capped for o in self.outcomes for final in (o.greedy, o.sampled) if final)

    @property
    def ratio(self) -> float | None:
        """Mean score over the demonstrator's whole episodes; None where ours were cut short."""
        return None if self.cut else return_ratio(self.mean, self.demonstrator)

    @property
    def beat_demonstrator(self) -> int | None:
        """How many seeds scored more than the demonstrator."""
        if self.demonstrator is None or self.cut:
            return None
        return sum(score > self.demonstrator for score in self.scores)

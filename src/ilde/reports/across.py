"""Several tasks together: scores over the demonstrator's, because only ratios share a scale.

Rows are pooled where method, reward, preset and all settings are the same and budgets are alike; a random policy has no
settings. Their labels in the tables of tasks do not tell: what all rows of a table share is not in them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from ilde.config import usual_preset
from ilde.envs.names import is_atari
from ilde.methods import find_method
from ilde.randomness import numpy_generator
from ilde.reports import statistics
from ilde.reports.comparison import CONTROLS, Comparison, alike, alike_steps, control_of
from ilde.reports.rows import Kind, Row
from ilde.reports.statistics import Interval, Scores

Pool: TypeAlias = list[tuple[Comparison, Row]]
"""Rows that differ in nothing but their task, each with the table it stands in."""


@dataclass(frozen=True)
class Chance:
    """The probability that a run beats a control's on the same task."""

    control: str
    value: float
    interval: Interval | None


@dataclass(frozen=True)
class Aggregate:
    """One method, in one way of running it, over several tasks."""

    label: str
    kind: Kind
    tasks: tuple[str, ...]
    seeds: int
    """Runs in all; those that saw no demonstrations stand in several tasks and count once."""
    env_steps: tuple[int, ...]
    """The budget on each task."""
    mean: float
    """Of the tasks' mean ratios, as the paper averages them."""
    iqm: float
    """The interquartile mean of all runs' ratios."""
    interval: Interval | None
    """Of the interquartile mean: 95%, by resampling seeds within tasks; None if a task has too few."""
    chances: tuple[Chance, ...]


def aggregate(comparisons: Sequence[Comparison]) -> tuple[Aggregate, ...]:
    """Every row that stands in at least two tasks with a ratio; each over the tasks it has."""
    pools = [pool for pool in _pools(comparisons) if len(pool) > 1]
    return tuple(_aggregate(_label(pool, pools), pool) for pool in pools)


def left_out(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Rows that stand in one task only though their method stands in others: there it ran in another way."""
    pools = _pools(comparisons)
    tasks: dict[str, set[str]] = {}
    for comparison, row in (place for pool in pools for place in pool):
        tasks.setdefault(row.method, set()).add(comparison.title)
    alone = [pool[0] for pool in pools if len(pool) == 1]
    named = (f"{row.label} on {comparison.task}" for comparison, row in alone if len(tasks[row.method]) > 1)
    return tuple(dict.fromkeys(named))


def _pools(comparisons: Sequence[Comparison]) -> list[Pool]:
    """All rows with a ratio, together where only the task differs."""
    pools: list[Pool] = []
    for comparison in comparisons:
        # What was cut short has no ratio.
        rows = [row for row in comparison.rows if not row.cut] if (comparison.demonstrator or 0) > 0 else []
        before = list(pools)
        # The nearest budgets first, so that a row does not take the place of one that fits exactly.
        for row in sorted(rows, key=lambda row: min((_distance(row, pool) for pool in before), default=math.inf)):
            near = [pool for pool in pools if _belongs(comparison, row, pool)]
            if near:
                min(near, key=partial(_distance, row)).append((comparison, row))
            else:
                pools.append([(comparison, row)])
    return pools


def _belongs(comparison: Comparison, row: Row, pool: Pool) -> bool:
    """Whether a row is of a pool's treatment and budget; a task stands once in a pool."""
    return math.isfinite(_distance(row, pool)) and all(task is not comparison for task, _ in pool)


def _distance(row: Row, pool: Pool) -> float:
    """How far a row's budget is from a pool's; infinite for another treatment, or beyond the rounding to rollouts."""
    same = all(_treatment(other) == _treatment(row) for _, other in pool)
    if same and find_method(row.method).learner == "none":  # steps are nothing to a random policy
        return 0
    if not same or not all(alike_steps(other.env_steps, row.env_steps) for _, other in pool):
        return math.inf
    return max(abs(other.env_steps - row.env_steps) for _, other in pool)


def _label(pool: Pool, pools: Sequence[Pool]) -> str:
    """The method and all of its settings: those that a task's table tells above its rows are told nowhere else here."""
    first = pool[0][1].outcomes[0]
    if len({row.outcomes[0].treatment for _, row in pool}) > 1:  # of a random policy, to which they are nothing
        return first.method
    usual = {usual_preset(first.method, atari=is_atari(comparison.task)) for comparison, _ in pool}
    others = [other[0][1].outcomes[0] for other in pools]
    twins = [o for o in others if (o.method, o.reward, o.variant) == (first.method, first.reward, first.variant)]
    details = [first.reward] if first.reward != find_method(first.method).reward else []
    if usual != {first.preset} or any(twin.preset != first.preset for twin in twins):
        details.append(f"preset {first.preset}")
    details += first.variant
    if any(twin.preset == first.preset and twin.env_steps != first.env_steps for twin in twins):
        details.append(f"{first.env_steps:,} steps")
    return f"{first.method} ({', '.join(details)})" if details else first.method


def _aggregate(label: str, pool: Pool) -> Aggregate:
    rows = [row for _, row in pool]
    titles = tuple(comparison.title for comparison, _ in pool)
    strata = [_ratios(row) for row in rows]
    generator = numpy_generator(0, f"{label} over {', '.join(titles)}")
    return Aggregate(
        label=label,
        kind=rows[0].kind,
        tasks=titles,
        seeds=len({run for row in rows for run in _runs(row)}),
        env_steps=tuple(row.env_steps for row in rows),
        mean=float(sum(ratios.mean() for ratios in strata)) / len(strata),
        iqm=float(statistics.pooled_iqm(strata)),
        interval=statistics.bootstrap_interval(
            statistics.pooled_iqm, strata, generator, runs=[_runs(row) for row in rows]
        ),
        chances=_chances(label, pool) if rows[0].kind == "method" else (),
    )


def _chances(label: str, pool: Pool) -> tuple[Chance, ...]:
    """Against each control that stands in all of the tasks at the row's own budget, with the same settings on all."""
    chances = []
    for control in CONTROLS:
        if held_against := _held_against(control, pool):
            ours, theirs = [_ratios(row) for _, row in pool], [_ratios(row) for row in held_against]
            generator = numpy_generator(0, f"{label} against {control} over {len(pool)} tasks")
            our_runs, their_runs = [_runs(row) for _, row in pool], [_runs(row) for row in held_against]
            interval = statistics.improvement_interval(
                ours, theirs, generator, our_runs=our_runs, their_runs=their_runs
            )
            chances.append(Chance(control, float(statistics.improvement(ours, theirs)), interval))
    return tuple(chances)


def _held_against(control: str, pool: Pool) -> list[Row]:
    """A control's rows for all of a pool's tasks, run in one way on all: the likest one, of those the strongest."""
    ways = dict.fromkeys(_treatment(row) for comparison, _ in pool for row in comparison.rows if row.method == control)
    found = []
    for way in ways:
        same = [[o for o in comparison.rows if not o.cut and _treatment(o) == way] for comparison, _ in pool]
        rows = [control_of(control, row, others) for (_, row), others in zip(pool, same, strict=True)]
        found.append([row for row in rows if row is not None])

    def rank(rows: list[Row]) -> tuple[int, float]:
        unlike = sum(not alike(row, other) for (_, row), other in zip(pool, rows, strict=True))
        return unlike, -sum(float(_ratios(row).mean()) for row in rows)

    return min((rows for rows in found if len(rows) == len(pool)), key=rank, default=[])


def _treatment(row: Row) -> Hashable:
    """How a row ran; a random policy has no settings in which it could have run otherwise."""
    return row.method if find_method(row.method).learner == "none" else row.outcomes[0].treatment


def _runs(row: Row) -> tuple[tuple[str, str, str | None], ...]:
    """What tells a row's runs from others: names alone do not, where records come from two places."""
    return tuple((outcome.task, outcome.run, outcome.demos_hash) for outcome in row.outcomes)


def _ratios(row: Row) -> Scores:
    assert row.demonstrator is not None
    return statistics.scores_of(row.scores) / row.demonstrator

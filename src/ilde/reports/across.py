"""Several tasks together: scores over the demonstrator's, because only ratios share a scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ilde.randomness import numpy_generator
from ilde.reports import statistics
from ilde.reports.comparison import CONTROLS, Comparison, control_of
from ilde.reports.rows import Kind, Row
from ilde.reports.statistics import Interval, Scores


@dataclass(frozen=True)
class Chance:
    """The probability that a run beats a control's on the same task."""

    control: str
    value: float
    interval: Interval | None


@dataclass(frozen=True)
class Aggregate:
    """One method over several tasks."""

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
    # What was cut short has no ratio.
    tasks = [
        (c.title, {row.label: row for row in c.rows if not row.cut}) for c in comparisons if (c.demonstrator or 0) > 0
    ]
    labels = dict.fromkeys(label for _, rows in tasks for label in rows)
    shared = {label: [(title, rows) for title, rows in tasks if label in rows] for label in labels}
    return tuple(_aggregate(label, found) for label, found in shared.items() if len(found) > 1)


def _aggregate(label: str, tasks: Sequence[tuple[str, dict[str, Row]]]) -> Aggregate:
    rows = [task[label] for _, task in tasks]
    titles = tuple(title for title, _ in tasks)
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
        chances=_chances(rows, [task for _, task in tasks]) if rows[0].kind == "method" else (),
    )


def _chances(rows: Sequence[Row], tasks: Sequence[dict[str, Row]]) -> tuple[Chance, ...]:
    """Against each control that stands in all of the tasks at the row's own budget."""
    chances = []
    for control in CONTROLS:
        found = [control_of(control, row, list(task.values())) for row, task in zip(rows, tasks, strict=True)]
        held_against = [row for row in found if row is not None]
        if len(held_against) == len(tasks):
            ours, theirs = [_ratios(row) for row in rows], [_ratios(row) for row in held_against]
            generator = numpy_generator(0, f"{rows[0].label} against {control} over {len(tasks)} tasks")
            our_runs, their_runs = ([_runs(row) for row in side] for side in (rows, held_against))
            interval = statistics.improvement_interval(
                ours, theirs, generator, our_runs=our_runs, their_runs=their_runs
            )
            chances.append(Chance(control, float(statistics.improvement(ours, theirs)), interval))
    return tuple(chances)


def _runs(row: Row) -> tuple[tuple[str, str, str | None], ...]:
    """What tells a row's runs from others: names alone do not, where records come from two places."""
    return tuple((outcome.task, outcome.run, outcome.demos_hash) for outcome in row.outcomes)


def _ratios(row: Row) -> Scores:
    assert row.demonstrator is not None
    return statistics.scores_of(row.scores) / row.demonstrator

"""A figure of the paper as a table: our training scores at some parts of training, since it has no numbers itself."""

from __future__ import annotations

from collections.abc import Sequence

from ilde.experiments.answers import Answer, answers, asked
from ilde.experiments.paper.tables import PaperTable
from ilde.reports.comparison import Comparison
from ilde.reports.numbers import NOTHING, plus_minus
from ilde.reports.rows import Row
from ilde.reports.statistics import mean_and_std
from ilde.reports.thinned import Curve

MARKS = (0.1, 0.25, 0.5, 0.75, 1.0)
"""Parts of training at which a curve is read."""
COLUMNS = ("row", "task", "seeds", "steps", *(f"at {mark:.0%}" for mark in MARKS), "remarks")
NOTE = "Ours: scores of the training episodes, whose actions are sampled; mean ± std over seeds."


def curve_rows(table: PaperTable, comparisons: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """Every method of the figure and every control on each task."""
    return [
        cells
        for task in table.tasks
        for name, config in asked(table, task).items()
        for cells in _rows(name, task.name, answers(table, task, config, comparisons))
    ]


def _rows(name: str, task: str, found: Sequence[Answer]) -> list[tuple[str, ...]]:
    if not found:
        return [(name, task, *[NOTHING] * (2 + len(MARKS)), "not run")]
    return [(f"{name}{answer.origin}", task, *_read(answer.row), "; ".join(answer.remarks)) for answer in found]


def _read(row: Row) -> tuple[str, ...]:
    """Seeds, steps, and the scores at the marks, where every seed has a curve."""
    spent = (str(len(row.scores)), f"{row.env_steps:,}")
    curves = [outcome.training for outcome in row.outcomes]
    if not all(curve.values for curve in curves):
        return (*spent, *[NOTHING] * len(MARKS))
    scores = [[_nearest(curve, mark * row.env_steps) for curve in curves] for mark in MARKS]
    return (*spent, *(plus_minus(*mean_and_std(seeds)) for seeds in scores))


def _nearest(curve: Curve, steps: float) -> float:
    return min(zip(curve.env_steps, curve.values, strict=True), key=lambda point: abs(point[0] - steps))[1]

"""Comparisons as tables of words: what terminals and Markdown show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ilde.reports.across import Aggregate, left_out
from ilde.reports.comparison import Comparison
from ilde.reports.numbers import NOTHING, plus_minus, score, share, span
from ilde.reports.rows import Row
from ilde.reports.statistics import FEWEST

ROLES = {"control": "control", "reference": "true reward", "unguided": "no demonstrations"}
"""What is said of rows that are not there to imitate."""


@dataclass(frozen=True)
class WordTable:
    """Rows of words under their columns."""

    title: str
    columns: tuple[str, ...]
    """Empty where there is nothing but notes."""
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def score_table(comparison: Comparison) -> WordTable:
    """Every row's score, and its verdict."""
    head = ("demonstrator", NOTHING, NOTHING, score(comparison.demonstrator), *[NOTHING] * 4, "")
    rows = [head] if comparison.demonstrator is not None else []
    beside = (comparison.other_actions, "verdict")
    columns = ("method", "steps", "seeds", "mean ± std", "95% interval", "ratio", "above it", *beside)
    return WordTable(headline(comparison), columns, (*rows, *map(_score_cells, comparison.rows)), comparison.notes)


def headline(comparison: Comparison) -> str:
    """What a table is about, in one line."""
    settings = f"; {', '.join(comparison.settings)}" if comparison.settings else ""
    return f"{comparison.title}: final return of {comparison.actions} actions{settings}"


def _score_cells(row: Row) -> tuple[str, ...]:
    beat = NOTHING if row.beat_demonstrator is None else f"{row.beat_demonstrator} of {len(row.scores)}"
    return (
        row.label,
        f"{row.env_steps:,}",
        str(len(row.scores)),
        plus_minus(row.mean, row.std),
        span(row.interval),
        ratio(row.ratio),
        beat,
        score(row.other),
        verdict(row),
    )


def ratio(value: float | None) -> str:
    """A score over the demonstrator's."""
    return NOTHING if value is None else f"{value:.2f}"


def verdict(row: Row) -> str:
    """What is said of a row."""
    return ROLES.get(row.kind, "") if row.verdict is None else str(row.verdict)


def difference_table(comparison: Comparison) -> WordTable | None:
    """Each method minus each control; None without either."""
    rows = comparison.compared
    names = tuple(dict.fromkeys(d.control for row in rows for d in row.differences))
    cells = [(row.label, *(_difference_cell(row, name) for name in names)) for row in rows]
    title = f"{comparison.title}: the method minus the control, 95% interval"
    return WordTable(title, ("method", *names), tuple(cells), _overlaps(rows)) if rows else None


def _overlaps(rows: Sequence[Row]) -> tuple[str, ...]:
    """Rows that a table of differences alone would show to be above a control."""
    found = [(row.label, [d.control for d in row.differences if d.overlaps]) for row in rows]
    named = [f"{label} ({', '.join(controls)})" for label, controls in found if controls]
    return (f"above 0, but the two intervals overlap, so nothing is shown: {', '.join(named)}",) if named else ()


def _difference_cell(row: Row, control: str) -> str:
    return next((span(d.interval) for d in row.differences if d.control == control), NOTHING)


def across_table(aggregates: Sequence[Aggregate], comparisons: Sequence[Comparison]) -> WordTable | None:
    """Methods over several tasks, or why none is; None where no method stands in two of them."""
    controls = tuple(dict.fromkeys(chance.control for entry in aggregates for chance in entry.chances))
    beats = (f"beats {control}" for control in controls)
    columns = ("method", "steps", "tasks", "runs", "mean ratio", "IQM ratio", "95% interval", *beats)
    rows = tuple(_across_cells(entry, controls) for entry in aggregates)
    notes = (*_uneven(aggregates), *_left_out(comparisons))
    title = "all tasks: scores over the demonstrator's"
    return WordTable(title, columns if rows else (), rows, notes) if rows or notes else None


def _left_out(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Rows that a reader would look for."""
    if names := left_out(comparisons):
        yield f"not pooled, as reward, preset, settings and steps are the same on no other task: {', '.join(names)}"


def _uneven(aggregates: Sequence[Aggregate]) -> Iterator[str]:
    """What keeps rows over several tasks from being compared, and where an interval is."""
    if len({entry.tasks for entry in aggregates}) > 1:
        yield "rows over different tasks do not compare"
    if len({entry.env_steps for entry in aggregates if any(entry.env_steps)}) > 1:
        yield "rows of different steps do not compare"
    if any(entry.interval is None for entry in aggregates):
        yield f"an interval takes {FEWEST} seeds on each task that are not all alike"


def _across_cells(entry: Aggregate, controls: Sequence[str]) -> tuple[str, ...]:
    chances = {chance.control: share(chance.value) for chance in entry.chances}
    steps = " to ".join(f"{steps:,}" for steps in sorted({min(entry.env_steps), max(entry.env_steps)}))
    own = (entry.label, steps, str(len(entry.tasks)), str(entry.seeds), ratio(entry.mean), ratio(entry.iqm))
    interval = NOTHING if entry.interval is None else " to ".join(map(ratio, entry.interval))
    return (*own, interval, *(chances.get(control, NOTHING) for control in controls))


def all_tables(comparisons: Sequence[Comparison], aggregates: Sequence[Aggregate]) -> list[WordTable]:
    """Everything there is to print."""
    found = [across_table(aggregates, comparisons)]
    for comparison in comparisons:
        found += [score_table(comparison), difference_table(comparison)]
    return [table for table in found if table is not None]


def markdown(title: str, tables: Sequence[WordTable]) -> str:
    """The tables as Markdown."""
    return "\n\n".join([f"# {_cell(title)}", *map(_markdown, tables)]) + "\n"


def _markdown(table: WordTable) -> str:
    rule = ["---" if index in (0, len(table.columns) - 1) else "---:" for index in range(len(table.columns))]
    lines = [f"| {' | '.join(map(_cell, cells))} |" for cells in (table.columns, rule, *table.rows) if cells]
    notes = [f"- {_cell(note)}" for note in table.notes]
    parts = [f"## {_cell(table.title)}", *("\n".join(part) for part in (lines, notes) if part)]
    return "\n\n".join(parts)


def _cell(text: str) -> str:
    """Text that can break neither out of its cell nor into HTML."""
    return re.sub(r"([\\|*\[\]])", r"\\\1", " ".join(text.split())).replace("<", "&lt;")

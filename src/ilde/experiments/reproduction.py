"""A table of the paper beside ours: its number, ours with an interval, the seeds, and what that shows.

Whatever budget a run had is shown with it; nothing is scaled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilde.experiments.answers import answers, asked, reported, tuned
from ilde.experiments.figures import COLUMNS as FIGURE_COLUMNS
from ilde.experiments.figures import NOTE, curve_rows
from ilde.experiments.paper.tables import PaperTable, PaperTask, PaperValue
from ilde.experiments.quantities import NOT_PRINTED, Line, columns, measured, reference
from ilde.experiments.recordings import LENGTH_COLUMNS, demonstrator_lines, length_rows
from ilde.experiments.totals import recomputed, total_lines
from ilde.reports.comparison import Comparison, compare
from ilde.reports.numbers import counted
from ilde.reports.outcomes import Outcome
from ilde.reports.tables import WordTable


def reproduce(table: PaperTable, outcomes: Sequence[Outcome]) -> WordTable:
    """The paper's table with ours beside it; what was not run is said to be missing."""
    title, notes = f"{table.title} ({table.where})", tuple(_notes(table))
    if table.domain == "demonstrators":
        return WordTable(title, LENGTH_COLUMNS, tuple(length_rows(table)), notes)
    counted_in = reported(outcomes)
    comparisons = compare(counted_in)
    ours = (*tuned(len(outcomes) - len(counted_in)), *_ours(table, comparisons))
    if not table.rows:
        return WordTable(title, FIGURE_COLUMNS, tuple(curve_rows(table, comparisons)), (NOTE, *ours, *notes))
    rows = tuple(line.cells(table) for line in _lines(table, comparisons))
    return WordTable(f"{title}: {table.quantity}", columns(table), rows, (*ours, *notes))


def _lines(table: PaperTable, comparisons: Sequence[Comparison]) -> Iterator[Line]:
    found = {}
    for task in table.tasks:
        runs = asked(table, task)
        found[task.name] = {row: answers(table, task, config, comparisons) for row, config in runs.items()}
        here = found[task.name]
        if table.holds_returns or table.demonstrators:
            shown = [answer for row in here.values() for answer in row]
            yield from demonstrator_lines(table, task, runs.values(), shown)
        for row, answered in here.items():
            label, printed = table.labels.get(row, row), _printed(table, row, task)
            for answer in answered:
                giril = reference(answer, here.get("giril", []))
                yield measured(table, (label, task.name), printed, answer, giril)
            if not answered:
                yield Line(label, task.name, printed[0], verdict="not run")
    by_row = {row: {task: here[row] for task, here in found.items()} for row in table.rows}
    yield from total_lines(table, by_row)


def _printed(table: PaperTable, row: str, task: PaperTask) -> tuple[str, PaperValue | None]:
    """The paper's number, in words and as such."""
    if row not in table.rows:
        return NOT_PRINTED, None
    value = table.rows[row][task.name]
    return recomputed(table, row, task.name, value), value


def _ours(table: PaperTable, comparisons: Sequence[Comparison]) -> Iterator[str]:
    """What must be known of our runs: shared settings, episodes of a score, what stands in the way of a comparison."""
    envs = [env for task in table.tasks for env in task.envs]
    for comparison in (c for c in comparisons if c.task in envs):
        if comparison.settings:
            yield f"{comparison.title}: {', '.join(comparison.settings)}"
        scores = {outcome.greedy.episodes for row in comparison.rows for outcome in row.outcomes if outcome.greedy}
        episodes = " or ".join(counted(number, "episode") for number in sorted(scores))
        if episodes and table.rows:
            yield f"{comparison.title}: a score of ours is {episodes}, greedy"
        yield from (f"{comparison.title}: {note}" for note in comparison.notes)


def _notes(table: PaperTable) -> Iterator[str]:
    yield from table.notes
    yield from (f"{point.point}: the paper: {point.paper}; ours: {point.ours}" for point in table.protocol)

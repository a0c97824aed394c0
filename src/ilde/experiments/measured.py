"""Tables of the paper as far as some runs fill them: what a report shows beside its own tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ilde.experiments.paper import PaperTable, paper_table
from ilde.experiments.quantities import NOT_PRINTED
from ilde.experiments.reproduction import reproduce
from ilde.reports.numbers import NOTHING
from ilde.reports.outcomes import Outcome
from ilde.reports.tables import WordTable

RETURNS = ("atari", "lambda", "noise", "iq-learn", "hype", "mujoco")
"""Tables of final returns; the others follow from the same runs."""


def measured_tables(outcomes: Sequence[Outcome]) -> tuple[WordTable, ...]:
    """The tables of returns with the rows we measured, where there is one that the paper printed."""
    ran = {outcome.task for outcome in outcomes}
    sought = [table for table in map(paper_table, RETURNS) if any(ran & set(task.envs) for task in table.tasks)]
    found = (_measured(table, outcomes) for table in sought)
    return tuple(words for words in found if words is not None)


def _measured(table: PaperTable, outcomes: Sequence[Outcome]) -> WordTable | None:
    words = reproduce(table, outcomes)
    label, name, paper, ours = (words.columns.index(column) for column in ("row", "task", "paper", "ours"))
    known = [cells for cells in words.rows if cells[ours] != NOTHING]
    rows = [cells for cells in known if not cells[label].startswith("demonstrator")]
    # Demonstrators are known of all tasks, and totals of few games say little: a task is shown with its runs.
    tasks = {task.name for task in table.tasks} & {cells[name] for cells in rows if cells[paper] != NOT_PRINTED}
    return replace(words, rows=tuple(cells for cells in known if cells[name] in tasks)) if tasks else None

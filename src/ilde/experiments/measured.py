"""Tables of the paper as far as some runs fill them: what a report shows beside its own tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ilde.experiments.paper import PaperTable, paper_table
from ilde.experiments.reproduction import NOT_PRINTED, reproduce
from ilde.reports.numbers import NOTHING
from ilde.reports.outcomes import Outcome
from ilde.reports.tables import WordTable

RETURNS = ("atari", "lambda", "noise", "iq-learn", "hype", "mujoco")
"""Tables of final returns; the others follow from the same runs."""


def measured_tables(outcomes: Sequence[Outcome]) -> tuple[WordTable, ...]:
    """The tables of returns with the rows we measured, where there is one that the paper printed."""
    tasks = {outcome.task for outcome in outcomes}
    sought = [table for table in map(paper_table, RETURNS) if tasks & {task.env for task in table.tasks}]
    found = (_measured(table, outcomes) for table in sought)
    return tuple(words for words in found if words is not None)


def _measured(table: PaperTable, outcomes: Sequence[Outcome]) -> WordTable | None:
    words = reproduce(table, outcomes)
    label, paper, ours = (words.columns.index(name) for name in ("row", "paper", "ours"))
    rows = tuple(cells for cells in words.rows if cells[ours] != NOTHING)
    answers = any(cells[paper] != NOT_PRINTED and cells[label] != "demonstrator" for cells in rows)
    return replace(words, rows=rows) if answers else None

"""Tables of the paper on a page: its numbers beside ours, folded up, because each is long and the paper has many."""

from __future__ import annotations

from collections.abc import Sequence

from ilde.reports.markup import Html, element
from ilde.reports.score_section import table, table_row
from ilde.reports.tables import WordTable


def paper_section(tables: Sequence[WordTable]) -> Html:
    """Each table under its title; nothing where no run is on a task of the paper."""
    if not tables:
        return Html()
    return element(
        "section",
        element("h2", "Beside the paper"),
        element("p", "The paper's numbers and ours, at the steps we ran; greedy actions.", class_="hint"),
        *map(_folded, tables),
        class_="paper",
    )


def _folded(words: WordTable) -> Html:
    rows = [table_row(list(zip(words.columns, cells, strict=True))) for cells in words.rows]
    notes = element("ul", *(element("li", note) for note in words.notes), class_="notes") if words.notes else Html()
    return element("details", element("summary", words.title), table(words.columns, rows, "beside"), notes)

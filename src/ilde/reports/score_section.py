"""The tables of a page: scores with their strips, differences to the controls, all tasks together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ilde.reports.across import Aggregate
from ilde.reports.charts import Scale, scale_over, score_axis, score_strip
from ilde.reports.comparison import Comparison
from ilde.reports.markup import Html, element, join
from ilde.reports.numbers import NOTHING, plus_minus, score, span
from ilde.reports.rows import Difference, Row
from ilde.reports.tables import ROLES, across_table, ratio

Cell = tuple[str, str]
"""Its column and what stands in it."""
NONE = (NOTHING, "")
"""Cells that cards leave out."""


def table(columns: Iterable[str], rows: Iterable[Html], kind: str) -> Html:
    """A table; narrow screens show each row as a card with the columns as labels."""
    head = element("thead", element("tr", *(element("th", column, scope="col") for column in columns)))
    # Whatever stands in the cells, the page itself never scrolls sideways.
    return element("div", element("table", head, element("tbody", *rows), class_=kind), class_="scroll")


def table_row(cells: Sequence[Cell], kind: str = "") -> Html:
    """A row whose first cell names it."""
    first, *others = cells
    return element(
        "tr",
        element("th", first[1], scope="row"),
        *(element("td", text, data_label=label, class_="none" if text in NONE else None) for label, text in others),
        class_=kind or None,
    )


def score_section(comparison: Comparison, styles: Mapping[str, str]) -> Html:
    """Every row's score, and its verdict."""
    if not comparison.rows:
        return Html()
    goal = comparison.demonstrator
    ends = [score for row in comparison.rows for score in row.scores] + ([] if goal is None else [goal])
    scale = scale_over(ends)
    strip = f"final return, {comparison.actions}"
    beside = (comparison.other_actions, "steps")
    columns = ("method", strip, "mean ± std", "95% interval", "ratio", "seeds above it", *beside)
    rows = [_score_row(row, columns, scale, styles[row.label]) for row in comparison.rows]
    if goal is not None:
        rows.insert(0, _demonstrator_row(goal, columns, scale))
    titled = [join(column, score_axis(scale)) if column == strip else column for column in columns]
    return table((*titled, "verdict"), rows, "scores")


def _demonstrator_row(goal: float, columns: Sequence[str], scale: Scale) -> Html:
    strip = element(
        "div", element("i", class_="goal", style=f"left:{scale(goal):.2%}"), class_="strip", aria_hidden="true"
    )
    cells = ("demonstrator", strip, score(goal), *[NOTHING] * 5)
    return table_row([*zip(columns, cells, strict=True), ("verdict", "")], "demonstrator")


def _score_row(row: Row, columns: Sequence[str], scale: Scale, style: str) -> Html:
    seeds = str(len(row.scores))
    cells = (
        _name(row),
        score_strip(row.scores, row.interval, row.demonstrator, scale),
        plus_minus(row.mean, row.std),
        span(row.interval),
        ratio(row.ratio),
        seeds if row.beat_demonstrator is None else f"{row.beat_demonstrator} of {seeds}",
        score(row.other),
        f"{row.env_steps:,}",
    )
    return table_row(
        [*zip(columns, cells, strict=True), ("verdict", _verdict(row))], " ".join(dict.fromkeys((row.kind, style)))
    )


def _name(row: Row) -> Html:
    details = element("small", row.details) if row.details else Html()
    return join(element("span", row.method, class_="name"), details)


def _verdict(row: Row) -> Html:
    if row.verdict is None:
        return element("span", ROLES[row.kind], class_="pill role")
    if row.verdict.imitates:
        return element("span", "imitates", class_="pill yes")
    return join(
        element("span", "not shown to imitate", class_="pill no"), element("small", row.verdict.reason.replace("`", ""))
    )


def difference_section(comparison: Comparison) -> Html:
    """Each method minus each control."""
    rows = comparison.compared
    if not rows:
        return Html()
    names = list(dict.fromkeys(d.control for row in rows for d in row.differences))
    return join(
        element("h3", "Difference to the controls"),
        element(
            "p",
            "The method minus the control: 95% interval, and how often a run of the one beats a run of the other.",
            class_="hint",
        ),
        table(["method", *names], [_difference_row(row, names) for row in rows], "differences"),
    )


def _difference_row(row: Row, names: Sequence[str]) -> Html:
    found = {d.control: d for d in row.differences}
    return table_row([("method", _name(row)), *((name, _difference(found.get(name))) for name in names)])


def _difference(difference: Difference | None) -> Html:
    if difference is None:
        return Html(NOTHING)
    words = span(difference.interval) if difference.bounded else f"{difference.doubt}: no interval"
    sign = "yes" if difference.shown else "no"
    overlap = element("small", "their own intervals overlap") if difference.overlaps else Html()
    chance = element("small", f"wins {difference.probability:.0%} of pairs")
    return join(element("span", words, class_=f"gap {sign}"), overlap, chance)


def across_section(aggregates: Sequence[Aggregate], comparisons: Sequence[Comparison]) -> Html:
    """All tasks together, where a method stands in several."""
    words = across_table(aggregates, comparisons)
    if words is None:
        return Html()
    named = zip(aggregates, words.rows, strict=True)
    rows = [table_row(list(zip(words.columns, cells, strict=True)), entry.kind) for entry, cells in named]
    notes = element("ul", *(element("li", note) for note in words.notes), class_="notes") if words.notes else Html()
    return element(
        "section",
        element("h2", "All tasks"),
        element(
            "p",
            "Scores over the demonstrator's, pooled where reward, preset, settings and steps (within 2%) are the same; "
            "IQM is the mean of the middle half of all runs.",
            class_="hint",
        ),
        table(words.columns, rows, "across") if rows else "",
        notes,
    )

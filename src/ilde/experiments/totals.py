"""What a table says of all games together: the paper's number, its arithmetic checked, and ours over what ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ilde.experiments.answers import Answer, foremost
from ilde.experiments.paper.derived import disagreements
from ilde.experiments.paper.tables import PaperTable, PaperValue
from ilde.experiments.quantities import Line, improvement, reference
from ilde.randomness import numpy_generator
from ilde.reports.numbers import NOTHING, counted, span
from ilde.reports.statistics import bootstrap_interval, mean_of_tasks, pooled_iqm, scores_of

EXPERT = "expert"
MEAN_RATIO = "mean ratio to the expert"


def total_lines(table: PaperTable, answered: Mapping[str, Mapping[str, Sequence[Answer]]]) -> Iterator[Line]:
    """The totals of every row; `answered` has our answers by row and task."""
    for total, entries in table.totals.items():
        for row, value in entries.items():
            if row == EXPERT:  # what a ratio to itself comes to is no measurement
                yield Line("demonstrator", total, value.printed, value.printed)
                continue
            games = answered.get(row, {})
            found = _values(table, total, games, answered.get("giril", {}))
            missing = "no game to compare" if any(games.values()) else "not run"
            yield Line(
                table.labels[row],
                total,
                paper=recomputed(table, row, total, value),
                ours=_ours(total, found),
                **(_spread(row, found) if total == MEAN_RATIO and found else {}),
                seeds=_span_of(len(answer.row.scores) for answer, _ in found),
                steps=_span_of(answer.row.env_steps for answer, _ in found),
                verdict="" if found else missing,
            )


def recomputed(table: PaperTable, row: str, column: str, value: PaperValue) -> str:
    """A number as the paper prints it, with what its own tables give where that is another."""
    sign = "%" if value.printed.endswith("%") else ""
    for found in disagreements():
        if (found.table, found.row, found.column) == (table.name, row, column):
            return f"{value.printed} (recomputed {found.recomputed:.{value.decimals}f}{sign})"
    return value.printed


def _values(
    table: PaperTable, total: str, games: Mapping[str, Sequence[Answer]], giril: Mapping[str, Sequence[Answer]]
) -> list[tuple[Answer, float]]:
    """One answer and its number for each game that ran: of those that have a number."""
    found = []
    for task, answers in games.items():
        values = [_value(table, total, answer, giril.get(task, [])) for answer in answers]
        known = [(a, value) for a, value in zip(answers, values, strict=True) if isinstance(value, float)]
        first = foremost([answer for answer, _ in known])
        found += [(answer, value) for answer, value in known if answer is first]
    return found


def _value(table: PaperTable, total: str, answer: Answer, giril: Sequence[Answer]) -> float | str | None:
    if total == "average":
        return improvement(table, answer.row, reference(answer, giril))
    return answer.row.ratio


def _ours(total: str, found: Sequence[tuple[Answer, float]]) -> str:
    """Of the games that ran, and how many of those with other settings than the table asks for today."""
    if not found:
        return NOTHING
    values, unlike = [value for _, value in found], sum(not answer.as_read for answer, _ in found)
    ran = f"{counted(len(values), 'game')} run{f', {unlike} by another reading' if unlike else ''}"
    above = sum(value > 1 for value in values)
    match total:
        case "games above the expert":
            return f"{above} of {ran}"
        case "share of games above the expert":
            return f"{100 * above / len(values):.1f}% of {ran}"
    sign = "%" if total == "average" else ""
    return f"{sum(values) / len(values):.2f}{sign} over {ran}"


def _spread(row: str, found: Sequence[tuple[Answer, float]]) -> dict[str, str]:
    """Stratified bootstrap: the interval of the mean ratio, the interquartile mean of all runs' and its interval."""
    strata = [scores_of(answer.row.scores) / (answer.row.demonstrator or 1.0) for answer, _ in found]
    generator = numpy_generator(0, f"{row} over {counted(len(found), 'game')}")
    mean, middle = (bootstrap_interval(statistic, strata, generator) for statistic in (mean_of_tasks, pooled_iqm))
    within = "" if middle is None else f" [{span(middle)}]"
    return {"interval": span(mean), "iqm": f"{float(pooled_iqm(strata)):.2f}{within}"}


def _span_of(numbers: Iterable[int]) -> str:
    """What the games of a total differ in."""
    ends = sorted(set(numbers))
    return " to ".join(f"{end:,}" for end in dict.fromkeys((ends[0], ends[-1]))) if ends else NOTHING

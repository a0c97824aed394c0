"""A line of a table of the paper with ours beside it: our value in the table's own quantity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from ilde.experiments.answers import Answer
from ilde.experiments.paper.tables import PaperTable
from ilde.reports.comparison import SAME_BUDGET, same_budget
from ilde.reports.crossing import crossing, curve_read
from ilde.reports.numbers import NOTHING, plus_minus, score, span
from ilde.reports.rows import Row
from ilde.reports.statistics import mean_and_std
from ilde.reports.tables import ratio, verdict

IQM = "IQM [95% bootstrap]"
SAMPLED = "sampled"
COLUMNS = ("row", "task", "paper", "ours", "95% interval", IQM, SAMPLED, "ratio", "seeds", "steps", "verdict")
NOT_PRINTED = "not in the paper"
NO_CURVE = "no curve"


@dataclass(frozen=True)
class Line:
    """One line; what is not known is a dash."""

    row: str
    task: str
    paper: str = NOT_PRINTED
    ours: str = NOTHING
    interval: str = NOTHING
    iqm: str = NOTHING
    sampled: str = NOTHING
    ratio: str = NOTHING
    seeds: str = NOTHING
    steps: str = NOTHING
    verdict: str = ""

    def cells(self, table: PaperTable) -> tuple[str, ...]:
        """As the table shows it: without other returns beside ours where it does not hold returns."""
        return _shown(table, astuple(self))


def columns(table: PaperTable) -> tuple[str, ...]:
    """What a table of lines shows."""
    return _shown(table, COLUMNS)


def _shown(table: PaperTable, cells: tuple[str, ...]) -> tuple[str, ...]:
    hidden = () if table.holds_returns else (IQM, SAMPLED)
    return tuple(cell for name, cell in zip(COLUMNS, cells, strict=True) if name not in hidden)


def measured(table: PaperTable, label: str, task: str, paper: str, answer: Answer, giril: Sequence[Answer]) -> Line:
    """The line of a row of ours."""
    row = answer.row
    ours, interval = _value(table, row, reference(answer, giril))
    return Line(
        row=f"{label}{answer.origin}",
        task=task,
        paper=paper,
        ours=ours,
        interval=interval,
        iqm=_iqm(row),
        sampled=score(row.other),
        ratio=ratio(row.ratio),
        seeds=str(len(row.scores)),
        steps=f"{row.env_steps:,}",
        verdict="; ".join(part for part in (*answer.remarks, _against_demonstrator(answer), verdict(row)) if part),
    )


def _iqm(row: Row) -> str:
    """The interquartile mean, with its interval where there are seeds enough to resample."""
    if len(row.scores) == 1:
        return NOTHING
    return score(row.iqm) if row.iqm_interval is None else f"{score(row.iqm)} [{span(row.iqm_interval)}]"


def _against_demonstrator(answer: Answer) -> str:
    if answer.row.ratio is None:
        return ""
    return f"{'above' if answer.row.ratio > 1 else 'not above'} the demonstrator{answer.measure}"


def reference(answer: Answer, giril: Sequence[Answer]) -> Row | None:
    """GIRIL on the same recording with the same steps."""
    near = (other.row for other in giril if other.comparison is answer.comparison)
    return next((row for row in near if same_budget(answer.row, row)), None)


def _value(table: PaperTable, row: Row, giril: Row | None) -> tuple[str, str]:
    """Our value, and its interval."""
    match table.name:
        case "normalised":
            return _normalised(row)
        case "efficiency":
            return _share_of_training(row, table), NOTHING
        case "efficiency-vs-giril":
            found = improvement(table, row, giril)
            return found if isinstance(found, str) else f"{found:.2f}%", NOTHING
        case "mujoco":
            return f"{plus_minus(row.mean, row.std)}{_last_points(row)}", span(row.interval)
    return plus_minus(row.mean, row.std), span(row.interval)


def _normalised(row: Row) -> tuple[str, str]:
    expert = row.demonstrator
    if row.ratio is None or not expert:
        return NOTHING, NOTHING
    interval = None if row.interval is None else (row.interval[0] / expert, row.interval[1] / expert)
    return plus_minus(row.ratio, None if row.std is None else row.std / expert), span(interval)


def _last_points(row: Row) -> str:
    """The paper's own figure beside ours, where every seed has it."""
    points = [outcome.last_points for outcome in row.outcomes if outcome.last_points is not None]
    if len(points) < len(row.outcomes):
        return ""
    return f" (last four evaluations: {plus_minus(*mean_and_std(points))})"


def _share_of_training(row: Row, table: PaperTable) -> str:
    """t/T as the paper counts it: of its own 50 million steps."""
    steps = _crossed(row)
    if steps == NO_CURVE:
        return NO_CURVE
    share = (
        steps if isinstance(steps, str) else f"{100 * steps / (table.steps or row.env_steps):.2f}% ({steps:,} steps)"
    )
    return f"{share}, by {curve_read(row.outcomes)}"


def improvement(table: PaperTable, row: Row, giril: Row | None) -> float | str:
    """How much earlier than GIRIL a row passes the demonstrator, in percent; in words where that cannot be said."""
    if giril is None:
        return "no GIRIL at these steps"
    ours, theirs = (_crossed(side, never=table.steps) for side in (row, giril))
    if isinstance(ours, str):
        return ours
    if isinstance(theirs, str):
        return f"GIRIL {theirs}"
    return 100 * (theirs - ours) / theirs if theirs else NOTHING


def _crossed(row: Row, never: int | None = None) -> int | str:
    """The steps from which a row stays above its demonstrator, or that it does not, in words.

    Args:
        never: the paper's T, for which a training of that length counts that does not pass the demonstrator.
    """
    curves = all(outcome.training.values or outcome.evaluations.values for outcome in row.outcomes)
    if row.demonstrator is None or not curves:
        return NO_CURVE
    steps = crossing(row.outcomes, row.demonstrator)
    if steps is None and never is not None and row.env_steps >= (1 - SAME_BUDGET) * never:
        return never
    return f"not within {row.env_steps:,} steps" if steps is None else steps

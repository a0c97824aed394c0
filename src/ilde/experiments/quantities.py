"""A line of a table of the paper with ours beside it: our value in the table's own quantity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from scipy import stats

from ilde.envs.names import is_atari
from ilde.experiments.answers import Answer
from ilde.experiments.paper.tables import PaperTable, PaperValue
from ilde.methods import find_method
from ilde.reports.comparison import SAME_BUDGET, same_budget
from ilde.reports.crossing import Crossing, Read, crossing, curve_read, training_read
from ilde.reports.numbers import NOTHING, counted, magnitude, plus_minus, score, span
from ilde.reports.rows import Row
from ilde.reports.statistics import LEVEL, Interval, mean_and_std
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


def measured(
    table: PaperTable, names: tuple[str, str], printed: tuple[str, PaperValue | None], answer: Answer, giril: Row | None
) -> Line:
    """The line of a row of ours.

    Args:
        names: the paper's, of the row and of the task.
        printed: the paper's number in words, and as such; None where it has none.
        giril: the row that an improvement over GIRIL is measured from.
    """
    row, (label, task), (paper, value) = answer.row, names, printed
    ours, interval = _value(table, row, giril)
    said = (
        *answer.remarks,
        against_demonstrator(answer),
        _against_paper(table, value, None if row.cut else interval),
        verdict(row),
    )
    return Line(
        row=f"{label}{answer.origin}",
        task=task,
        paper=paper,
        ours=ours,
        interval=_episodes(table, row) if interval is None else span(interval),
        iqm=_iqm(row),
        sampled=score(row.other),
        ratio=ratio(row.ratio),
        seeds=str(len(row.scores)),
        steps=f"{row.env_steps:,}",
        verdict="; ".join(part for part in said if part),
    )


def _iqm(row: Row) -> str:
    """The interquartile mean, with its interval where there are seeds enough to resample."""
    if len(row.scores) == 1:
        return NOTHING
    return score(row.iqm) if row.iqm_interval is None else f"{score(row.iqm)} [{span(row.iqm_interval)}]"


def against_demonstrator(answer: Answer) -> str:
    """On which side of its demonstrator a row lies, if its interval tells: over seeds, or over one seed's games."""
    row = answer.row
    if row.cut or row.demonstrator is None:
        return ""
    interval = row.interval or games_interval(row)
    if interval is None or _repeats_unknown(row):
        doubt = "one seed, kinds of its games not kept" if interval else row.doubt
        return f"not told apart from the demonstrator{answer.measure}: {doubt}"
    low, high = interval
    side = "above" if low > row.demonstrator else "below" if high < row.demonstrator else "not apart from"
    return f"{side} the demonstrator{answer.measure}{'' if row.interval else ' by one seed'}"


def _repeats_unknown(row: Row) -> bool:
    """Whether a policy without chance played one seed's games, and nobody kept how many of them were alike."""
    final, learner = row.outcomes[0].greedy, find_method(row.method).learner
    repeats = is_atari(row.outcomes[0].task) and learner != "none"
    return row.interval is None and repeats and final is not None and final.kinds is None


def games_interval(row: Row) -> Interval | None:
    """Student's 95% interval of one seed's own score: how sure it is of its policy, which says nothing of other seeds.

    Games that are alike in return and length count once: a greedy policy without chance plays few again and again.
    """
    final = row.outcomes[0].greedy
    if len(row.scores) > 1 or final is None or row.cut:
        return None
    games = final.episodes if final.kinds is None else final.kinds
    if games < 2 or not final.std:
        return None
    spread = float(stats.t.ppf(0.5 + LEVEL / 2, games - 1)) * final.std / math.sqrt(games)
    return final.mean - spread, final.mean + spread


def _against_paper(table: PaperTable, value: PaperValue | None, interval: Interval | None) -> str:
    """Where the paper's number lies, if our seeds are enough to tell; what it took is said with it."""
    if value is None or value.mean is None or interval is None:
        return ""
    place = "above" if value.mean > interval[1] else "below" if value.mean < interval[0] else "within"
    steps = f", at {magnitude(table.steps)} steps," if table.steps else ""
    return f"the paper's number{steps} lies {place} our interval"


def reference(answer: Answer, giril: Sequence[Answer]) -> Row | None:
    """GIRIL on the same recording with the same steps."""
    near = (other.row for other in giril if other.comparison is answer.comparison)
    return next((row for row in near if same_budget(answer.row, row)), None)


def _value(table: PaperTable, row: Row, giril: Row | None) -> tuple[str, Interval | None]:
    """Our value, and its interval over seeds."""
    match table.name:
        case "normalised":
            return _normalised(row)
        case "efficiency":
            return _share_of_training(row, table), None
        case "efficiency-vs-giril":
            return _improvement(table, row, giril), None
        case "mujoco":
            return f"{plus_minus(row.mean, row.std)}{_last_points(row)}", row.interval
    return plus_minus(row.mean, row.std), row.interval


def _episodes(table: PaperTable, row: Row) -> str:
    interval, final = games_interval(row), row.outcomes[0].greedy
    if interval is None or final is None or not table.holds_returns:
        return NOTHING
    kinds = "kinds not kept" if final.kinds is None else f"{counted(final.kinds, 'kind')}"
    return f"{span(interval)} (its {final.episodes} episodes, {kinds})"


def _normalised(row: Row) -> tuple[str, Interval | None]:
    expert = row.demonstrator
    if row.ratio is None or not expert:
        return NOTHING, None
    interval = None if row.interval is None else (row.interval[0] / expert, row.interval[1] / expert)
    return plus_minus(row.ratio, None if row.std is None else row.std / expert), interval


def _last_points(row: Row) -> str:
    """The paper's own figure beside ours, where every seed has it."""
    points = [outcome.last_points for outcome in row.outcomes if outcome.last_points is not None]
    if len(points) < len(row.outcomes):
        return ""
    return f" (last four evaluations: {plus_minus(*mean_and_std(points))})"


def _share_of_training(row: Row, table: PaperTable) -> str:
    """t/T as the paper counts it: of its own 50 million steps."""
    read = curve_read(row.outcomes)
    found = _crossed(row, read)
    if isinstance(found, str):
        return found if found == NO_CURVE else f"{found}, by {read}"
    share = 100 * found.env_steps / (table.steps or row.env_steps)
    return f"{share:.2f}% ({found.env_steps:,} steps), by {read} every {found.spacing:,} steps{_each(row, read)}"


def _each(row: Row, read: Read) -> str:
    """The same of every seed alone, where there are several: their mean may cross where few of them do."""
    if len(row.outcomes) == 1:
        return ""
    alone = [crossing([o], row.demonstrator, read if read == "evaluations" else training_read(o)) for o in row.outcomes]
    steps = sorted(found.env_steps for found in alone if found)
    passed = f"; {len(steps)} of {counted(len(alone), 'seed')} alone"
    return f"{passed}, at {steps[0]:,} to {steps[-1]:,}" if steps else passed


def improvement(table: PaperTable, row: Row, giril: Row | None) -> float | str:
    """How much earlier than GIRIL a row passes the demonstrator, in percent; in words where that cannot be said."""
    if giril is None:
        return "no GIRIL at these steps"
    read = read_alike(row, giril)
    ours, theirs = (_crossed(side, read, never=table.steps) for side in (row, giril))
    if isinstance(ours, str):
        return ours
    if isinstance(theirs, str):
        return f"GIRIL {theirs}"
    return 100 * (theirs.env_steps - ours.env_steps) / theirs.env_steps if theirs.env_steps else NOTHING


def _improvement(table: PaperTable, row: Row, giril: Row | None) -> str:
    found = improvement(table, row, giril)
    if isinstance(found, str) or giril is None:
        return str(found)
    return f"{found:.2f}%, both by {read_alike(row, giril)}"


def read_alike(row: Row, giril: Row) -> Read:
    """The curve that both have: greedy scores of the one say nothing beside sampled ones of the other."""
    return curve_read(row.outcomes, giril.outcomes)


def _crossed(row: Row, read: Read, never: int | None = None) -> Crossing | str:
    """Where a row stays above its demonstrator from, or that it does not, in words.

    Args:
        never: the paper's T, for which a training of that length counts that does not pass the demonstrator.
    """
    curves = all((o.evaluations if read == "evaluations" else o.training).values for o in row.outcomes)
    if row.demonstrator is None or not curves:
        return NO_CURVE
    found = crossing(row.outcomes, row.demonstrator, read)
    if found is None and never is not None and row.env_steps >= (1 - SAME_BUDGET) * never:
        return Crossing(never)
    return f"not within {row.env_steps:,} steps" if found is None else found

"""A table of the paper beside ours: its number, ours with an interval, the seeds, and what that shows.

Every entry of the paper is looked for among the outcomes of our runs by environment, method and reward expression, and
by recording where the table is about recordings; elsewhere a run on another recording says so. Whatever budget a run
had is shown with it; nothing is scaled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ilde.config import RunConfig
from ilde.demos import resolve
from ilde.experiments.paper.studies import paper_study
from ilde.experiments.paper.tables import PaperTable, PaperTask
from ilde.methods import find_method
from ilde.reports.comparison import Comparison, compare, same_budget
from ilde.reports.crossing import crossing
from ilde.reports.numbers import NOTHING, counted, plus_minus, span
from ilde.reports.outcomes import Outcome, spelled_reward, split_demos
from ilde.reports.rows import Row
from ilde.reports.statistics import mean_and_std
from ilde.reports.tables import WordTable, ratio, verdict

COLUMNS = ("row", "task", "paper", "ours", "95% interval", "ratio", "seeds", "steps", "verdict")
NOT_PRINTED = "not in the paper"
MARKS = (0.1, 0.25, 0.5, 0.75, 1.0)
"""Parts of training at which a curve is read."""


@dataclass(frozen=True)
class Found:
    """A row of ours that answers an entry of the paper."""

    comparison: Comparison
    row: Row


def reproduce(table: PaperTable, outcomes: Sequence[Outcome]) -> WordTable:
    """The paper's table with ours beside it; what was not run is said to be missing."""
    if table.domain == "demonstrators":
        return _demonstrations(table)
    comparisons = compare(outcomes)
    if not table.rows:
        return _curves(table, comparisons)
    rows = [cells for task in table.tasks for cells in _task_rows(table, task, comparisons)]
    notes = (*_ours(table, comparisons), *_notes(table))
    return WordTable(f"{table.title} ({table.where}): {table.quantity}", COLUMNS, tuple(rows), notes)


def _ours(table: PaperTable, comparisons: Sequence[Comparison]) -> Iterator[str]:
    """What must be known of our runs: how many episodes a score is, and what stands in the way of a comparison."""
    envs = [task.env for task in table.tasks]
    for comparison in (c for c in comparisons if c.task in envs):
        scores = {outcome.greedy.episodes for row in comparison.rows for outcome in row.outcomes if outcome.greedy}
        episodes = " or ".join(counted(number, "episode") for number in sorted(scores))
        yield f"{comparison.title}: a score of ours is {episodes}, greedy"
        yield from (f"{comparison.title}: {note}" for note in comparison.notes)


def _notes(table: PaperTable) -> tuple[str, ...]:
    apart = (f"{point.point}: the paper: {point.paper}; ours: {point.ours}" for point in table.protocol)
    return (*table.notes, *apart)


def _task_rows(table: PaperTable, task: PaperTask, comparisons: Sequence[Comparison]) -> Iterator[tuple[str, ...]]:
    sought = _sought(table, task)
    references = _matching(sought["giril"], comparisons, table) if "giril" in sought else []
    demonstrator = table.demonstrators.get(task.name)
    if demonstrator is not None:
        yield ("demonstrator", task.name, demonstrator.printed, _demonstrators(task, comparisons), *[NOTHING] * 4, "")
    for name, config in sought.items():
        printed = table.rows[name][task.name].printed if name in table.rows else NOT_PRINTED
        label = table.labels.get(name, name)
        matches = _matching(config, comparisons, table)
        for found in matches:
            elsewhere = "" if _same_recording(config, found.row.outcomes[0]) else f", from {found.comparison.shown}"
            measured = _measured(table, found, _reference(found, references))
            yield (f"{label}{elsewhere}", task.name, printed, *measured, *_told(found.row))
        if not matches:
            yield (label, task.name, printed, *[NOTHING] * 5, "not run")


def _sought(table: PaperTable, task: PaperTask) -> dict[str, RunConfig]:
    """The configurations behind a task's rows, controls last; the budget does not matter."""
    cells = [cell for cell in paper_study(table.name, "paper").cells() if cell.config.env == task.env]
    return {"/".join(cell.id.split("/")[1:-1]): cell.config for cell in cells if cell.config.seed == 0}


def _matching(config: RunConfig, comparisons: Sequence[Comparison], table: PaperTable) -> list[Found]:
    reward = spelled_reward(config.reward or find_method(config.method).reward)
    about_recordings = any("demos" in settings for settings in table.variants.values())

    def answers(outcome: Outcome) -> bool:
        same = (outcome.task, outcome.method, outcome.reward) == (config.env, config.method, reward)
        return same and (not about_recordings or _same_recording(config, outcome))

    return [Found(c, row) for c in comparisons for row in c.rows if answers(row.outcomes[0])]


def _same_recording(config: RunConfig, outcome: Outcome) -> bool:
    """Whether a run saw what the table asks for; one that saw no demonstrations fits everywhere."""
    return outcome.demos is None or (outcome.demos, outcome.fraction) == split_demos(config.demos)


def _reference(found: Found, references: Sequence[Found]) -> Row | None:
    """GIRIL on the same recording with the same steps."""
    return next((r.row for r in references if r.comparison is found.comparison and same_budget(found.row, r.row)), None)


def _measured(table: PaperTable, found: Found, reference: Row | None) -> tuple[str, str, str]:
    """Our value in the table's own quantity, its interval, and the ratio to our demonstrator."""
    row, own = found.row, ratio(found.row.ratio)
    match table.name:
        case "normalised":
            return *_normalised(row), own
        case "efficiency":
            return _share_of_training(row, table), NOTHING, own
        case "efficiency-vs-giril":
            return _earlier(row, reference), NOTHING, own
        case "mujoco":
            return f"{plus_minus(row.mean, row.std)}{_last_points(row)}", span(row.interval), own
    return plus_minus(row.mean, row.std), span(row.interval), own


def _normalised(row: Row) -> tuple[str, str]:
    expert = row.demonstrator
    if row.ratio is None or not expert:
        return NOTHING, NOTHING
    interval = None if row.interval is None else (row.interval[0] / expert, row.interval[1] / expert)
    return plus_minus(row.ratio, None if row.std is None else row.std / expert), span(interval)


def _share_of_training(row: Row, table: PaperTable) -> str:
    """t/T as the paper counts it: of its own 50 million steps."""
    steps = crossing(row.outcomes, row.demonstrator)
    return "never" if steps is None else f"{100 * steps / (table.steps or row.env_steps):.2f}% ({steps:,} steps)"


def _last_points(row: Row) -> str:
    """The paper's own figure beside ours, where every seed has it."""
    points = [outcome.last_points for outcome in row.outcomes if outcome.last_points is not None]
    if len(points) < len(row.outcomes):
        return ""
    return f" (last four evaluations: {plus_minus(*mean_and_std(points))})"


def _earlier(row: Row, reference: Row | None) -> str:
    if reference is None:
        return "no GIRIL at these steps"
    ours, theirs = (crossing(side.outcomes, side.demonstrator) for side in (row, reference))
    if ours is None or not theirs:
        return "never" if ours is None else "GIRIL never" if theirs is None else NOTHING
    return f"{100 * (theirs - ours) / theirs:.2f}%"


def _told(row: Row) -> tuple[str, str, str]:
    beat = ""
    if row.ratio is not None:
        beat = "above the demonstrator" if row.ratio > 1 else "not above the demonstrator"
    said = "; ".join(part for part in (row.details, beat, verdict(row)) if part)
    return str(len(row.scores)), f"{row.env_steps:,}", said


def _demonstrators(task: PaperTask, comparisons: Sequence[Comparison]) -> str:
    known = dict.fromkeys(c.demonstrator for c in comparisons if c.task == task.env and c.demonstrator is not None)
    return ", ".join(f"{value:,.0f}" for value in known) or NOTHING


def _demonstrations(table: PaperTable) -> WordTable:
    """Lengths of the bundled recordings beside the paper's."""
    rows = []
    for task in table.tasks:
        for kind in ("one-life", "full"):
            name, printed = f"{task.folder}/{kind}-v0", table.rows[f"expert/{kind}"][task.name].printed
            ours = len(resolve(name).episodes[0])
            rows.append((table.labels[f"expert/{kind}"], task.name, printed, f"{ours:,}"))
    return WordTable(f"{table.title} ({table.where})", ("row", "task", "paper", "ours"), tuple(rows), _notes(table))


def _curves(table: PaperTable, comparisons: Sequence[Comparison]) -> WordTable:
    """Training scores at some parts of training: the paper's figure has no numbers to put beside them."""
    envs = [task.env for task in table.tasks]
    rows = [
        (f"{row.label}, seed {outcome.seed}", outcome.task, f"{outcome.env_steps:,}", *_read(outcome))
        for comparison in comparisons
        if comparison.task in envs
        for row in comparison.rows
        for outcome in row.outcomes
    ]
    columns = ("row", "task", "steps", *(f"at {mark:.0%}" for mark in MARKS))
    return WordTable(f"{table.title} ({table.where})", columns, tuple(rows), _notes(table))


def _read(outcome: Outcome) -> tuple[str, ...]:
    points = list(zip(outcome.training.env_steps, outcome.training.values, strict=True))
    if not points:
        return (NOTHING,) * len(MARKS)
    nearest = [min(points, key=lambda point: abs(point[0] - mark * outcome.env_steps))[1] for mark in MARKS]
    return tuple(f"{value:,.0f}" for value in nearest)

"""One table for each task: methods beside the controls, at equal budget, and what their difference shows.

"imitates" is said of a row only where its 95% interval lies above that of every control, and the interval of their
difference above 0. A control that is missing, that had another budget, or that has a single seed, is named, and nothing
is claimed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from ilde.config import usual_preset
from ilde.envs.names import is_atari
from ilde.methods import METHODS, find_method
from ilde.randomness import numpy_generator
from ilde.reports import statistics
from ilde.reports.notes import notes_on
from ilde.reports.outcomes import Outcome, canonical
from ilde.reports.rows import Difference, Kind, Row, Verdict
from ilde.rewards.expression import needs_demos, parse_expression

CONTROLS = tuple(method.name for method in METHODS if method.control)
KINDS = get_args(Kind)
SAME_BUDGET = 0.02
"""Budgets differ by less where only the rounding to whole rollouts differs."""


@dataclass(frozen=True)
class Comparison:
    """One task: an environment and what was demonstrated in it."""

    task: str
    demos: str | None
    fraction: float
    demonstrator: float | None
    greedy: bool
    settings: tuple[str, ...]
    """What all rows share."""
    rows: tuple[Row, ...]
    unfinished: tuple[Outcome, ...]
    """Runs without a final score."""
    notes: tuple[str, ...]

    @property
    def compared(self) -> tuple[Row, ...]:
        """Rows with seeds enough to be held against a control."""
        return tuple(row for row in self.rows if row.differences and len(row.scores) > 1)

    @property
    def actions(self) -> str:
        """What is compared."""
        return "greedy" if self.greedy else "sampled"

    @property
    def other_actions(self) -> str:
        """What stands beside it."""
        return "sampled" if self.greedy else "greedy"

    @property
    def title(self) -> str:
        """Environment and demonstrations."""
        return f"{self.task} from {self.shown}" if self.demos else self.task

    @property
    def shown(self) -> str:
        """How much of which demonstrations was shown."""
        return shown(self.demos, self.fraction)


def shown(demos: str | None, fraction: float) -> str:
    """So much of some demonstrations."""
    return f"{'' if fraction == 1 else f'{100 * fraction:.3g}% of '}{demos}"


def compare(
    outcomes: Iterable[Outcome], *, greedy: bool = True, controls: Sequence[str] = CONTROLS
) -> tuple[Comparison, ...]:
    """One comparison for each environment and recording; `controls` are those without which nothing is claimed."""
    return tuple(_compare(group, greedy, controls) for group in _groups(canonical(outcomes)))


def _groups(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """Runs on one recording, with those in the same environment that used none; or the latter alone."""
    recordings = dict.fromkeys((o.task, o.demos_hash) for o in outcomes if o.demos_hash)
    shown = {task for task, _ in recordings}
    alone = dict.fromkeys((o.task, None) for o in outcomes if o.task not in shown)
    return [
        [o for o in outcomes if o.task == task and o.demos_hash in (None, recording)]
        for task, recording in (*recordings, *alone)
    ]


def _compare(group: Sequence[Outcome], greedy: bool, controls: Sequence[str]) -> Comparison:
    scored = [o for o in group if o.final(greedy=greedy) is not None]
    seeds, repeated = _by_row(scored)
    shared = _shared_settings([runs[0] for runs in seeds])
    origin = next((o for o in group if o.demos_hash), group[0])
    rows = [_row(runs, greedy, shared, origin.demonstrator) for runs in seeds]
    rows = [replace(row, details=_with_budget(row, rows)) for row in rows]
    rows = [_judged(row, rows, controls) for row in sorted(rows, key=lambda row: KINDS.index(row.kind))]
    unfinished = tuple(o for o in group if o not in scored)
    return Comparison(
        task=origin.task,
        demos=origin.demos,
        fraction=origin.fraction,
        demonstrator=origin.demonstrator,
        greedy=greedy,
        settings=shared,
        rows=tuple(rows),
        unfinished=unfinished,
        notes=notes_on(rows, unfinished, repeated, greedy=greedy),
    )


def _by_row(outcomes: Iterable[Outcome]) -> tuple[list[tuple[Outcome, ...]], list[Outcome]]:
    """The runs of each row, every seed once, and those that repeat a seed."""
    rows: dict[Hashable, dict[int, Outcome]] = {}
    repeated = []
    for outcome in outcomes:
        key = (outcome.treatment, outcome.env_steps)
        if rows.setdefault(key, {}).setdefault(outcome.seed, outcome) is not outcome:
            repeated.append(outcome)
    return [tuple(seeds.values()) for seeds in rows.values()], repeated


def _settings(outcome: Outcome) -> tuple[str, ...]:
    return (f"preset {outcome.preset}", *outcome.variant)


def _shared_settings(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """What all rows have in common."""
    first, others = outcomes[:1], [set(_settings(outcome)) for outcome in outcomes]
    return tuple(setting for o in first for setting in _settings(o) if all(setting in other for other in others))


def _row(runs: tuple[Outcome, ...], greedy: bool, shared: Sequence[str], demonstrator: float | None) -> Row:
    first, method = runs[0], find_method(runs[0].method)
    own = [first.reward] if first.reward != method.reward else []
    usual = f"preset {usual_preset(first.method, atari=is_atari(first.task))}"
    own += [setting for setting in _settings(first) if setting not in (usual, *shared)]
    scores, others = _final_means(runs, greedy), _final_means(runs, not greedy)
    other = sum(others) / len(others) if others and len(others) == len(scores) else None
    return Row(runs, scores, kind_of(first), ", ".join(own), demonstrator, other)


def _final_means(runs: Iterable[Outcome], greedy: bool) -> tuple[float, ...]:
    finals = [outcome.final(greedy=greedy) for outcome in runs]
    return tuple(final.mean for final in finals if final is not None)


def kind_of(outcome: Outcome) -> Kind:
    """What a run is there for."""
    method, terms = find_method(outcome.method), parse_expression(outcome.reward)
    if any(term.name == "env" for term in terms):
        return "reference"
    # With a reward of its own, a control that uses no demonstrations is no longer that control.
    if method.control and (method.demos != "unused" or outcome.reward == method.reward):
        return "control"
    return "unguided" if method.demos == "unused" and not needs_demos(terms) else "method"


def _with_budget(row: Row, rows: Sequence[Row]) -> str:
    """A row's details, with its budget where another row differs in nothing else."""
    twins = [other for other in rows if other.label == row.label]
    return ", ".join(part for part in (row.details, f"{row.env_steps:,} steps" if len(twins) > 1 else "") if part)


def _judged(row: Row, rows: Sequence[Row], controls: Sequence[str]) -> Row:
    """The row with its differences to the controls, and what they show."""
    if row.kind != "method":
        return row
    found = {name: control_of(name, row, rows) for name in controls}
    present = [control for control in found.values() if control is not None]
    differences = tuple(_difference(row, control) for control in present)
    absent = [name for name, control in found.items() if control is None]
    ran = [name for name in absent if any(_is_control(other, name) for other in rows)]
    verdict = Verdict(
        overlapping=tuple(f"{d.control} {d.doubt}".rstrip() for d in differences if not d.shown),
        missing=tuple(name for name in absent if name not in ran),
        elsewhere=tuple(ran),
        single=len(row.scores) == 1,
        cut=row.cut or any(control.cut for control in present),
    )
    return replace(row, differences=differences, verdict=verdict)


def control_of(name: str, row: Row, rows: Sequence[Row]) -> Row | None:
    """The control a row is held against: at its budget, as like it as there is, and of those the strongest."""

    def rank(control: Row) -> tuple[bool, bool, float, str]:
        reward = row.outcomes[0].reward
        return control.outcomes[0].reward != reward, not alike(row, control), -control.mean, control.label

    fair = [control for control in rows if _is_control(control, name) and same_budget(row, control)]
    return min(fair, key=rank, default=None)


def _is_control(row: Row, name: str) -> bool:
    return row.kind == "control" and row.method == name


def alike(row: Row, control: Row) -> bool:
    """Whether both ran with the same settings; a random policy has none."""
    ours, theirs = row.outcomes[0], control.outcomes[0]
    return find_method(control.method).learner == "none" or _settings(ours) == _settings(theirs)


def same_budget(row: Row, control: Row) -> bool:
    """Whether a control had the row's steps; a random policy, and a row that takes none, compare with any number."""
    if row.env_steps == 0 or find_method(control.method).learner == "none":
        return True
    return alike_steps(row.env_steps, control.env_steps)


def alike_steps(steps: int, others: int) -> bool:
    """Whether two budgets differ by no more than the rounding to whole rollouts."""
    return steps == others or abs(others - steps) < SAME_BUDGET * min(steps, others)


def _difference(row: Row, control: Row) -> Difference:
    ours, theirs = [statistics.scores_of(row.scores)], [statistics.scores_of(control.scores)]
    generator = numpy_generator(0, f"{row.label} against {control.label}")
    return Difference(
        control=control.method,
        alike=alike(row, control),
        mean=row.mean - control.mean,
        interval=statistics.difference_interval(row.scores, control.scores),
        apart=_apart(row, control),
        seeds=len(control.scores),
        probability=float(statistics.improvement(ours, theirs)),
        probability_interval=statistics.improvement_interval(ours, theirs, generator),
    )


def _apart(row: Row, control: Row) -> bool:
    # Where only one side has no spread, the other's is what the difference is judged by.
    (low, _), (_, high) = (
        (side.mean, side.mean) if side.interval is None else side.interval for side in (row, control)
    )
    return min(len(row.scores), len(control.scores)) > 1 and low > high

"""The paper's four hypotheses, judged by our runs: what each predicts of final scores, and what the scores say.

A prediction is borne out where the 95% interval of the difference lies on its side of 0, contradicted where it lies on
the other, and otherwise undecided. A method is held against another one at equal steps on the same demonstrations, and
where their settings differ nothing is decided: nobody knows then what made the difference.
The paper's games are shown from a fragment of one life: what whole episodes decide is counted apart from that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias, get_args

from ilde.experiments.answers import asked, reported, tuned
from ilde.experiments.paper import Hypothesis, Trial, hypotheses, paper_table
from ilde.experiments.paper.claims import Expected
from ilde.methods import find_method
from ilde.reports.comparison import Comparison, alike, compare, same_budget, shown
from ilde.reports.numbers import NOTHING, span
from ilde.reports.outcomes import Outcome, spelled_reward, split_demos
from ilde.reports.rows import Row
from ilde.reports.statistics import Interval, difference_interval
from ilde.reports.tables import WordTable

NAME = "hypotheses"
TITLE = "The paper's four hypotheses (Section 6), judged by our runs"
COLUMNS = ("hypothesis", "task", "prediction", "difference, 95% interval", "seeds", "steps", "verdict")
DEMONSTRATOR = "demonstrator"
ALONE = "each interval is one of 95% by itself: of twenty rows without any difference one is decided by chance"

Verdict: TypeAlias = Literal["borne out", "contradicted", "undecided", "not run"]
Shown: TypeAlias = tuple[str, str | None, float]
"""A task, and how much of which recording was shown of it."""
FATES: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Judgement:
    """One prediction on one task."""

    hypothesis: int
    trial: Trial
    task: str
    fraction: float
    """How much of the demonstrations was shown."""
    verdict: Verdict
    interval: Interval | None = None
    row: Row | None = None
    remark: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """As a row of the table."""
        seeds, steps = (NOTHING, NOTHING) if self.row is None else (len(self.row.scores), f"{self.row.env_steps:,}")
        verdict = f"{self.verdict} ({self.remark})" if self.remark else self.verdict
        return (
            f"H{self.hypothesis}",
            self.task,
            predicted(self.trial),
            span(self.interval),
            str(seeds),
            steps,
            verdict,
        )


def predicted(trial: Trial) -> str:
    """A prediction in words."""
    measure = f"{trial.share:.0%} of the {DEMONSTRATOR}" if trial.share != 1 else trial.against
    return f"{trial.method} {trial.expected} {measure}"


def judge(outcomes: Sequence[Outcome]) -> WordTable:
    """Every prediction on every task whose runs can decide it."""
    counted_in = reported(outcomes)
    comparisons = compare(counted_in)
    found = [
        judgement
        for hypothesis in hypotheses()
        for trial in hypothesis.trials
        for judgement in _judgements(hypothesis, trial, comparisons)
    ]
    notes = (_summary(hypothesis, trial, found) for hypothesis in hypotheses() for trial in hypothesis.trials)
    cells = tuple(judgement.cells for judgement in found)
    return WordTable(TITLE, COLUMNS, cells, (*tuned(len(outcomes) - len(counted_in)), ALONE, *notes))


def _judgements(hypothesis: Hypothesis, trial: Trial, comparisons: Sequence[Comparison]) -> Iterator[Judgement]:
    tried = [(comparison, row) for comparison in comparisons for row in comparison.rows if row.method == trial.method]
    for comparison, row in tried:
        verdict, interval, judged, remark = _decide(trial, row, comparison)
        yield Judgement(
            hypothesis.number, trial, comparison.title, comparison.fraction, verdict, interval, judged, remark
        )
    ran = {(comparison.task, comparison.demos, comparison.fraction) for comparison, _ in tried}
    for env, demos, fraction in papers_own():
        if (env, demos, fraction) not in ran:
            title = f"{env} from {shown(demos, fraction)}"
            yield Judgement(hypothesis.number, trial, title, fraction, "not run")


@cache
def papers_own() -> tuple[Shown, ...]:
    """What the paper's own main tables are of, so that what was left out of them is seen."""
    return tuple(
        (task.env, *split_demos(next(config.demos for config in asked(table, task).values() if config.demos)))
        for table in map(paper_table, ("atari", "mujoco"))
        for task in table.tasks
    )


def _decide(trial: Trial, row: Row, comparison: Comparison) -> tuple[Verdict, Interval | None, Row, str]:
    if row.cut:
        return "undecided", None, row, "episodes cut short"
    if trial.against == DEMONSTRATOR:
        if row.demonstrator is None:
            return "undecided", None, row, "no score of the demonstrator is known"
        if row.demonstrator <= 0 and trial.share != 1:
            return "undecided", None, row, "a part of a score that is not positive is no measure"
        interval = difference_interval_to(row, trial.share * row.demonstrator)
        return verdict_on(interval, trial.expected), interval, row, _remarks(row.details, _doubt(row))
    other = _opponent(trial.against, row, comparison.rows)
    if other is None:
        return "not run", None, row, _remarks(row.details, f"no {trial.against} with these steps")
    if other.cut:
        return "undecided", None, row, _remarks(row.details, f"episodes of {trial.against} cut short")
    interval = difference_interval(row.scores, other.scores)
    if not (alike(row, other) and _as_named(row)):
        return "undecided", interval, row, _remarks(row.details, _doubt(row, other), "settings differ")
    return verdict_on(interval, trial.expected), interval, row, _remarks(row.details, _doubt(row, other))


def difference_interval_to(row: Row, number: float) -> Interval | None:
    """Student's 95% interval of a row's mean score less a number; None where it has none."""
    return None if row.interval is None else (row.interval[0] - number, row.interval[1] - number)


def verdict_on(interval: Interval | None, expected: Expected) -> Verdict:
    """What an interval of a difference says of a prediction; that two are equal can only be contradicted."""
    if interval is None:
        return "undecided"
    low, high = interval
    above, below = low > 0, high < 0
    if expected == "equal":
        return "contradicted" if above or below else "undecided"
    if not (above or below):
        return "undecided"
    return "borne out" if above == (expected == "above") else "contradicted"


def _opponent(method: str, row: Row, rows: Sequence[Row]) -> Row | None:
    fair = [other for other in rows if other.method == method and _as_named(other) and same_budget(row, other)]
    return min(fair, key=lambda other: (other.cut, not alike(row, other), other.label), default=None)


def _as_named(row: Row) -> bool:
    """Whether a row was trained on its method's own reward: λ in it is the paper's, and no term is missing."""
    return row.outcomes[0].reward == spelled_reward(find_method(row.method).reward)


def _remarks(*parts: str) -> str:
    """What must be known beside a verdict: a row's own settings first."""
    return "; ".join(part for part in parts if part)


def _doubt(*rows: Row) -> str:
    doubts = [row.doubt for row in rows]
    single = [doubt for doubt, row in zip(doubts, rows, strict=True) if len(row.scores) == 1]
    # Welch's interval needs the spread of one side only.
    return next(iter(single), doubts[0] if all(doubts) else "")


def _summary(hypothesis: Hypothesis, trial: Trial, judgements: Sequence[Judgement]) -> str:
    """A hypothesis, how one of its predictions fared, and what that comes to."""
    own = [judged for judged in judgements if (judged.hypothesis, judged.trial) == (hypothesis.number, trial)]
    parts = {
        "from fragments": by_task([judged for judged in own if judged.fraction < 1]),
        "from whole episodes": by_task([judged for judged in own if judged.fraction == 1]),
    }
    said = "; ".join(f"{name} {in_all(verdicts)} ({_counted(verdicts)})" for name, verdicts in parts.items())
    return f"H{hypothesis.number}: {hypothesis.says}. {predicted(trial)}: {said}"


def by_task(judgements: Sequence[Judgement]) -> list[Verdict]:
    """Each task's verdicts, however many rows it has: those that decide, each once, or what it comes to without."""
    tasks: dict[str, list[Verdict]] = {}
    for judged in judgements:
        tasks.setdefault(judged.task, []).append(judged.verdict)
    return [
        verdict
        for found in tasks.values()
        for verdict in [fate for fate in FATES[:2] if fate in found] or [min(found, key=FATES.index)]
    ]


def in_all(verdicts: Sequence[Verdict]) -> str:
    """One verdict over several: what decides outweighs what does not, and contradictions are not outvoted."""
    decided = [verdict for verdict in FATES[:2] if verdict in verdicts]
    return " and ".join(decided) or ("undecided" if "undecided" in verdicts else "not run")


def _counted(verdicts: Sequence[Verdict]) -> str:
    fates = Counter(verdicts)
    return ", ".join(f"{fates[fate]} {fate}" for fate in FATES if fates[fate])

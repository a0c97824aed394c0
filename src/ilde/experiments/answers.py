"""Which of our runs answer a row of a table of the paper, and in what they are not the run that was asked for.

Rows are told apart by environment, method and reward expression; by recording where the table is about recordings, and
by the weights that count in the end where it is about weights. Elsewhere a run on another recording, or on another
version of the task, stands in until there is one of the table's own, and says so. A run with other settings of the
reward's terms than the table asks for today stands beside, and says so too; in a total it counts only alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ilde.config import RunConfig, find_preset, to_dict
from ilde.data import UserError
from ilde.experiments.paper.studies import paper_study
from ilde.experiments.paper.tables import PaperTable, PaperTask
from ilde.fields import leaves
from ilde.methods import find_method
from ilde.reports.comparison import Comparison
from ilde.reports.numbers import counted
from ilde.reports.outcomes import NOT_A_VARIANT, Outcome, spelled_reward, split_demos, variant
from ilde.reports.rows import Row
from ilde.rewards.expression import TermName, parse_expression

FACTOR = "rewards.curiosity_factor"
CURIOSITY = "giril"
TUNING = 100
"""The first of the seeds on which settings are tried; those below are for results."""
ANOTHER_READING = "another reading than this table's"
SCALED = "rewards.scale.terms"
SPENT = ("steps", "schedule_steps", "num_envs", "rollout_steps")
"""Settings that a budget decides."""
EVERY = ("background_steps", "scale.discount", "scale.window", "scale.total")
ADVERSARIAL = ("discriminator.", "features.", "hidden")
READ_BY: Mapping[TermName, tuple[str, ...]] = {
    "env": ("env.",),
    "constant": (),
    "gail": ADVERSARIAL,
    "vail": ADVERSARIAL,
    "giril": ("generative.", "features.", "hidden", "curiosity_factor"),
    "icm": ("dynamics.", "features.", "hidden"),
    "entropy": ("entropy.", "features."),
    "e3b": ("elliptical.", "features.", "hidden"),
}
"""How the names of settings begin, after `rewards.`, that a term reads beside what every reward does."""


@dataclass(frozen=True)
class Answer:
    """A row of ours that answers one of the paper's."""

    config: RunConfig
    """What was asked for; its budget does not matter."""
    comparison: Comparison
    row: Row

    @property
    def outcome(self) -> Outcome:
        """The first seed: all have the same settings."""
        return self.row.outcomes[0]

    @property
    def on_its_own(self) -> bool:
        """Whether it ran on the table's own task and recording."""
        return self.outcome.task == self.config.env and saw(self.config, self.outcome)

    @property
    def as_read(self) -> bool:
        """Whether it was trained with the settings that the table asks for, whatever it cost."""
        ours, asked = self.outcome, self.config
        if find_method(ours.method).learner == "none":
            return True
        return _reading(ours, ours.preset, ours.variant) == _reading(ours, asked.preset, variant(to_dict(asked)))

    @property
    def origin(self) -> str:
        """Where it ran, if that is not where the table asks for it."""
        if self.outcome.task != self.config.env:
            return f", {self.comparison.title if self.outcome.demos else self.outcome.task}"
        return "" if self.on_its_own else f", from {self.comparison.shown}"

    @property
    def measure(self) -> str:
        """Whose demonstrator it is held against, where neither its own recording nor the table's says so."""
        there = (self.comparison.task, self.comparison.demos, self.comparison.fraction)
        told = (
            self.outcome.demos
            or not self.comparison.demos
            or there == (self.config.env, *split_demos(self.config.demos))
        )
        return "" if told else f" of {self.comparison.shown}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Settings that the table and its notes do not say."""
        preset = f"preset {self.outcome.preset}"
        known = (*self.comparison.settings, *self.row.details.split(", "))
        told = self.outcome.preset == self.config.preset or preset in known
        unlike = "" if self.as_read else ANOTHER_READING
        found = (unlike if told else preset, self.row.details, _effective_weight(self.outcome))
        return tuple(part for part in found if part)


def asked(table: PaperTable, task: PaperTask) -> dict[str, RunConfig]:
    """The runs behind a task's rows: the paper's, then those only we have, controls last."""
    cells = replace(paper_study(table.name, "paper"), seeds=(0,)).cells()
    runs = {"/".join(cell.id.split("/")[1:-1]): cell.config for cell in cells if cell.config.env == task.env}
    rows = {row: table.run_of(row) for row in table.rows}
    rows |= {name: name for name in runs if name not in rows.values()}
    return {row: runs[name] for row, name in rows.items()}


def answers(table: PaperTable, task: PaperTask, config: RunConfig, comparisons: Sequence[Comparison]) -> list[Answer]:
    """The rows of ours that answer one of a table on a task; those on its own recording first, and then alone."""
    own = split_demos(config.demos)
    near = sorted((c for c in comparisons if c.task in task.envs), key=lambda c: (c.demos, c.fraction) != own)
    found = [Answer(config, c, row) for c in near for row in c.rows if _fits(table, config, row.outcomes[0])]
    return list(_once([answer for answer in found if answer.on_its_own] or found))


def _reading(outcome: Outcome, preset: str, changed: Iterable[str]) -> Mapping[str, str]:
    """Every setting that the outcome's method and terms read, of a preset and what is changed of it."""
    settings = {name: str(value) for name, value in leaves(to_dict(find_preset(preset)))}
    settings |= dict(setting.partition("=")[::2] for setting in changed)
    terms = [term.name for term in parse_expression(outcome.reward)]
    settings[SCALED] = _scaled(settings[SCALED], terms)
    read = [f"rewards.{prefix}" for prefix in (*EVERY, *(prefix for name in terms for prefix in READ_BY[name]))]
    foreign = ("evaluation.", *find_method(outcome.method).foreign_settings)
    return {
        name: value
        for name, value in settings.items()
        if name not in (*SPENT, *NOT_A_VARIANT)
        and not name.startswith(foreign)
        and (not name.startswith("rewards.") or name.startswith((SCALED, *read)))
    }


def _scaled(which: str, terms: Sequence[TermName]) -> str:
    """What the setting comes to for some terms: all but one of its values scale a term that explores."""
    if set(terms) <= {"constant"}:
        return ""
    return which if {"gail", "vail", "env"}.intersection(terms) else str(which != "none")


def reported(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Runs that a table may hold: on a seed for tuning, settings were chosen by the score."""
    return tuple(outcome for outcome in outcomes if outcome.seed < TUNING)


def tuned(count: int) -> Iterator[str]:
    """A note on so many runs that were left out."""
    if count:
        yield f"left out: {counted(count, 'run')} on seeds from {TUNING} up, which are for tuning"


def foremost(found: Sequence[Answer]) -> Answer | None:
    """The answer that counts in a total: as the table asks, then of the most seeds, then of the most steps."""

    def rank(answer: Answer) -> tuple[bool, bool, int, int]:
        return answer.on_its_own, answer.as_read, len(answer.row.scores), answer.row.env_steps

    return max(found, key=rank, default=None)


def _once(found: Sequence[Answer]) -> Iterator[Answer]:
    """Rows without demonstrations stand in the comparisons of all recordings."""
    for index, answer in enumerate(found):
        if not any(answer.row.outcomes == other.row.outcomes for other in found[:index]):
            yield answer


def _fits(table: PaperTable, config: RunConfig, outcome: Outcome) -> bool:
    reward = config.reward or find_method(config.method).reward
    if table.about_rewards and config.method in table.methods:
        same = weights(outcome.reward, curiosity_factor(outcome)) == weights(reward, config.rewards.curiosity_factor)
    else:
        same = outcome.reward == spelled_reward(reward)
    return outcome.method == config.method and same and (not table.about_recordings or saw(config, outcome))


def saw(config: RunConfig, outcome: Outcome) -> bool:
    """Whether a run saw what the table asks for; one that saw no demonstrations fits everywhere."""
    return outcome.demos is None or (outcome.demos, outcome.fraction) == split_demos(config.demos)


def curiosity_factor(outcome: Outcome) -> float:
    """What the weight of the curiosity was multiplied by: the run's own factor, or its preset's."""
    own = dict(setting.partition("=")[::2] for setting in outcome.variant)
    try:
        return float(own[FACTOR]) if FACTOR in own else find_preset(outcome.preset).rewards.curiosity_factor
    except ValueError:
        raise UserError(f"{outcome.run}: {FACTOR} is {own[FACTOR]!r}, which is no number; leave that run out") from None


def weights(reward: str, factor: float) -> Mapping[str, float]:
    """The weight each term has in the end."""
    terms = parse_expression(reward)
    return {term.name: round(term.weight * (factor if term.name == CURIOSITY else 1.0), 9) for term in terms}


def _effective_weight(outcome: Outcome) -> str:
    """λ in words, where it is not the one of the expression; curiosity alone has none."""
    factor = curiosity_factor(outcome)
    found = weights(outcome.reward, factor)
    return f"effective λ = {found[CURIOSITY]:g}" if factor != 1 and CURIOSITY in found and len(found) > 1 else ""

"""What came of a run, as one small record: everything a table or a curve needs, and nothing else of its folder.

Curves are thinned and rounded on reading, so that a record and its JSON form say exactly the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ilde.config import find_preset, to_dict
from ilde.data import UserError
from ilde.fields import leaves
from ilde.methods import METHODS, find_method
from ilde.reports.thinned import LARGEST, Curve, Row, curve, lows, require_finite, rounded
from ilde.rewards.expression import parse_expression
from ilde.runs import RunDirectory

LEAST_DEMONSTRATOR = 1e-50
"""Of a demonstrator's return that is not 0, in size: so do ratios to it."""
LAST_POINTS = 4
NOT_A_VARIANT = {"method", "env", "demos", "reward", "steps", "seed", "preset", "device", "threads", "checkpoint_every"}
"""Settings with a place of their own in the record, and those that do not move a result."""
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""What JSON of an unexpected shape leads to."""


@dataclass(frozen=True)
class FinalScore:
    """True returns at the end of a run."""

    mean: float
    std: float
    episodes: int
    capped: int = 0
    """Episodes among them that were cut short: their returns are not those of whole episodes."""
    truncated: int | None = None
    """Episodes that the environment's own time limit ended; None where that was not kept."""
    length: float | None = None
    """Mean length of an episode; None where it was not kept."""
    kinds: int | None = None
    """Kinds of episodes, by return and length; None where that was not kept."""

    def __post_init__(self) -> None:
        require_finite((self.mean, self.std, self.length or 0.0, self.episodes, self.capped, self.truncated or 0))


@dataclass(frozen=True)
class Outcome:
    """One run."""

    run: str
    """Where it was found: the folder it was searched in, and the way from there."""
    task: str
    """The environment's id."""
    method: str
    reward: str
    """The expression it was trained on."""
    preset: str
    variant: tuple[str, ...]
    """Settings that differ from the preset's, as `ppo.learning_rate=0.001`."""
    seed: int
    env_steps: int
    planned_steps: int
    state: str
    """As in `status.json`: finished, interrupted, failed, or running, which a killed run says as well."""
    demos: str | None
    """The demonstrations' name without their place on a disk; None where the run used none."""
    fraction: float
    """How much of each demonstrated episode was used."""
    demos_hash: str | None
    demonstrator: float | None
    """The demonstrator's return."""
    greedy: FinalScore | None
    sampled: FinalScore | None
    last_points: float | None
    """The paper's figure: the mean of the last four evaluations along the way; None where theirs were cut short."""
    training: Curve
    """True scores of the training episodes, of sampled actions."""
    evaluations: Curve
    """Mean returns of the evaluations along the way; empty where episodes were cut short."""
    terms: Mapping[str, Curve]
    """Of each reward term its weighted mean per step."""
    steps_per_second: float | None
    provenance: Mapping[str, Any]
    lows: Curve = field(default_factory=Curve)
    """The lowest training score since the point of `training` before; empty where no point was left out."""

    def __post_init__(self) -> None:
        for names, kinds in _KINDS.items():
            for name in names:
                value = getattr(self, name)
                if not isinstance(value, kinds) or isinstance(value, bool):
                    raise TypeError(f"{name} is {str(value)[:40]!r}")
        maybe = (self.demonstrator, self.last_points, self.steps_per_second)
        require_finite(
            (self.seed, self.env_steps, self.planned_steps, self.fraction, *(v for v in maybe if v is not None))
        )
        if 0 < abs(self.demonstrator or 0) < LEAST_DEMONSTRATOR:
            raise ValueError(f"demonstrator is {self.demonstrator}, too small for ratios to it")
        find_preset(self.preset)
        find_method(self.method)
        parse_expression(self.reward)

    @property
    def treatment(self) -> tuple[str, str, str, tuple[str, ...]]:
        """How it was run, but for how long: runs that differ in it are never averaged."""
        return self.method, self.reward, self.preset, self.variant

    def final(self, *, greedy: bool) -> FinalScore | None:
        """The score at the end, of the most likely actions or of sampled ones."""
        return self.greedy if greedy else self.sampled


_KINDS: dict[tuple[str, ...], Any] = {
    ("run", "task", "method", "reward", "preset", "state"): str,
    ("seed", "env_steps", "planned_steps"): int,
    ("demos", "demos_hash"): str | None,
    ("fraction",): float | int,
    ("demonstrator", "last_points", "steps_per_second"): float | int | None,
    ("terms", "provenance"): Mapping,
}
"""The laws of a record, which may come out of a stranger's file."""


def read_outcome(path: Path, name: str) -> Outcome:
    """What came of the run in a folder; raises `UserError` where it is damaged or not a run of this program."""
    try:
        return _read(RunDirectory.read(path), name)
    except MALFORMED as error:
        raise UserError(f"{path}: not a run that can be read ({type(error).__name__}: {error})") from None


def _read(folder: RunDirectory, name: str) -> Outcome:
    config, status, provenance = folder.config, folder.status, folder.provenance
    method = find_method(config["method"])
    reward = spelled_reward(config.get("reward") or method.reward)
    metrics, evaluations = folder.metrics.rows(), folder.evaluations.rows()
    last = [row for row in evaluations if row.get("final")]
    require_comparable(folder.path, last)
    finals = {row["greedy"]: final_score(with_sure_kinds(row)) for row in last}
    timing = folder.timing.rows()
    demos, fraction = split_demos(config.get("demos")) if provenance.get("demos_hash") else (None, 1.0)
    return Outcome(
        run=name,
        task=config["env"],
        method=method.name,
        reward=reward,
        preset=config["preset"],
        variant=variant(config),
        seed=config["seed"],
        # The status of a run that is under way says where it began.
        env_steps=max([status.env_steps, *(row["env_steps"] for row in metrics[-1:])]),
        planned_steps=config["steps"],
        state=status.state,
        demos=demos,
        fraction=fraction,
        demos_hash=provenance.get("demos_hash"),
        demonstrator=provenance.get("demonstrator"),
        greedy=finals.get(True),
        sampled=finals.get(False),
        last_points=last_points(evaluations),
        training=curve(metrics, "score/raw"),
        lows=lows(metrics, "score/raw"),
        evaluations=curve(_whole([row for row in evaluations if not row.get("final")]), "mean"),
        terms={term.name: curve(metrics, f"reward/{term.name}") for term in parse_expression(reward)},
        steps_per_second=rounded(timing[-1]["time/steps_per_second"]) if timing else None,
        provenance=_without_places({key: value for key, value in provenance.items() if key != "demonstrator"}),
    )


def require_comparable(run: Path, evaluations: Sequence[Row]) -> None:
    """Raise where returns are so large that a mean or a spread of them is no number any more: a journal has null."""
    if any(value is None or abs(value) > LARGEST for row in evaluations for value in (row["mean"], row["std"])):
        raise UserError(
            f"{run}: its returns are too large to be compared; let the environment pay less, and train anew"
        )


def with_sure_kinds(row: Row) -> Row:
    """Before journals kept lengths, games that differed in nothing but a late start were counted as of many kinds."""
    return row if "lengths" in row else {**row, "kinds": None}


def final_score(row: Row) -> FinalScore:
    """The score in a row of a journal, or of a file of outcomes."""
    truncated, length, kinds = row.get("truncated"), row.get("length"), row.get("kinds")
    return FinalScore(
        mean=float(row["mean"]),
        std=float(row["std"]),
        episodes=int(row["episodes"]),
        capped=int(row.get("capped", 0)),
        truncated=None if truncated is None else int(truncated),
        length=None if length is None else rounded(length),
        kinds=None if kinds is None else int(kinds),
    )


def last_points(rows: Sequence[Row]) -> float | None:
    """The paper's figure for a run: the mean of the last four evaluations along the way; None with fewer whole ones."""
    last = _whole([row for row in rows if not row.get("final")][-LAST_POINTS:])
    means = [row["mean"] for row in last if row["mean"] is not None]  # null is what became of an infinite one
    return sum(map(float, means)) / LAST_POINTS if len(means) == LAST_POINTS else None


def _whole(rows: Sequence[Row]) -> Sequence[Row]:
    """Evaluations, or none if one was cut short: it would pull the mean down just where a policy survives."""
    return [] if any(row.get("capped") for row in rows) else rows


def spelled_reward(expression: str) -> str:
    """A reward expression in the one spelling that records have, so that equal ones compare as equal."""
    terms = parse_expression(expression)
    return " + ".join(term.name if term.weight == 1 else f"{term.weight:g}*{term.name}" for term in terms)


def variant(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The settings of a run that differ from its preset's; left out: what it does not read, and how it was measured."""
    foreign = find_method(config["method"]).foreign_settings
    preset = dict(leaves(to_dict(find_preset(config["preset"]))))
    # A setting that has come since the run is not in its configuration, and one that has gone is not in the preset.
    found = [(name, value) for name, value in leaves(config) if preset.get(name, value) != value]
    return tuple(
        f"{name}={value}"
        for name, value in sorted(found)
        if name not in NOT_A_VARIANT and not name.startswith(("evaluation.", *foreign))
    )


def split_demos(argument: str | None) -> tuple[str, float]:
    """Name and fraction of a DEMOS argument."""
    if argument is None:
        return "own recording", 1.0
    name, colon, suffix = argument.rpartition(":")
    part = colon and re.fullmatch(r"[0-9.]+(e-?[0-9]+)?", suffix)
    return (_without_place(name), float(suffix)) if part else (_without_place(argument), 1.0)


def _without_place(text: str) -> str:
    """The text with every absolute path as its last name: a report travels, the folders of a machine do not."""
    return re.sub(r"(?<![\w.~])/(?:[^/\s=]+/)+", "", text)


def _without_places(value: Any) -> Any:
    match value:
        case str():
            return _without_place(value)
        case list():
            return [_without_places(item) for item in value]
        case dict():
            return {name: _without_places(item) for name, item in value.items()}
    return value


def canonical(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Outcomes in the one order that tables and files have."""
    ranks = {method.name: rank for rank, method in enumerate(METHODS)}

    def key(outcome: Outcome) -> tuple[Any, ...]:
        recording = (outcome.task, outcome.demos or "", outcome.fraction, outcome.demos_hash or "")
        row = (ranks[outcome.method], outcome.reward, outcome.preset, outcome.variant, outcome.env_steps)
        return (*recording, *row, outcome.seed, outcome.run)

    return tuple(sorted(outcomes, key=key))

"""What the paper says of its numbers: sentences that they bear out or not, its hypotheses, its table of motives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ilde.experiments.paper.tables import read_toml


@dataclass(frozen=True)
class PaperClaim:
    """A sentence about a table."""

    says: str
    table: str
    where: str
    because: str
    """The numbers that decide it."""
    holds: bool | None = None
    """Whether the paper's own numbers bear it out; None where they cannot tell."""


Expected: TypeAlias = Literal["above", "below", "equal"]


@dataclass(frozen=True)
class Trial:
    """A comparison of final scores that a hypothesis makes a prediction for."""

    method: str
    against: str
    """Another method on the same demonstrations with the same steps, or `demonstrator`."""
    expected: Expected
    share: float = 1.0
    """Of the demonstrator's score, where it is the measure."""


@dataclass(frozen=True)
class Hypothesis:
    """One of the four that the experiments are to test."""

    number: int
    says: str
    trials: tuple[Trial, ...]
    """What of it final scores can decide; how far policies explore is in the table of motives."""


def paper_claims() -> tuple[PaperClaim, ...]:
    """All sentences, in the paper's order of tables."""
    return tuple(PaperClaim(**claim) for claim in read_toml("claims.toml")["claims"])


def hypotheses() -> tuple[Hypothesis, ...]:
    """All four."""
    entries = read_toml("claims.toml")["hypotheses"]
    return tuple(
        Hypothesis(entry["number"], entry["says"], tuple(Trial(**trial) for trial in entry["trials"]))
        for entry in entries
    )


def motivation() -> Mapping[str, Mapping[str, str]]:
    """The paper's marks, from `-` to `++`, for each reward term's stability, exploration and imitation."""
    marks: Mapping[str, Mapping[str, str]] = read_toml("claims.toml")["motivation"]
    return marks

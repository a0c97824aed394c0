"""What the paper says of its numbers: sentences that they bear out or not, its hypotheses, its table of motives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Hypothesis:
    """One of the four that the experiments are to test."""

    number: int
    says: str
    methods: tuple[str, ...]
    """Ours whose runs, with the controls, can tell."""


def paper_claims() -> tuple[PaperClaim, ...]:
    """All sentences, in the paper's order of tables."""
    return tuple(PaperClaim(**claim) for claim in read_toml("claims.toml")["claims"])


def hypotheses() -> tuple[Hypothesis, ...]:
    """All four."""
    entries = read_toml("claims.toml")["hypotheses"]
    return tuple(Hypothesis(entry["number"], entry["says"], tuple(entry["methods"])) for entry in entries)


def motivation() -> Mapping[str, Mapping[str, str]]:
    """The paper's marks, from `-` to `++`, for each reward term's stability, exploration and imitation."""
    marks: Mapping[str, Mapping[str, str]] = read_toml("claims.toml")["motivation"]
    return marks

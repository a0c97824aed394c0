"""Reward expressions: `vail + 10*giril + entropy` as a value."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypeAlias, get_args

from ilde.data import UserError

TermName: TypeAlias = Literal["env", "constant", "gail", "vail", "giril", "icm", "entropy", "e3b"]
TERMS: tuple[TermName, ...] = get_args(TermName)

_TERM = re.compile(r"(?:(?P<weight>[0-9.]+(?:e[-+]?[0-9]+)?)\s*\*\s*)?(?P<name>[a-z][a-z0-9-]*)")


@dataclass(frozen=True)
class WeightedTerm:
    """One summand of an expression."""

    name: TermName
    weight: float


def parse_expression(text: str) -> tuple[WeightedTerm, ...]:
    """Read a sum of weighted terms; each term at most once, weights positive."""
    terms = tuple(_parse_term(part.strip(), text) for part in re.split(r"(?<!\de)\+", text))
    names = [term.name for term in terms]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"reward expression {text!r}: {name} stands twice; add the weights up")
    return terms


def _parse_term(part: str, text: str) -> WeightedTerm:
    match = _TERM.fullmatch(part)
    if match is None:
        raise UserError(f"reward expression {text!r}: cannot read {part!r}; write for example 'vail + 10*giril'")
    name = match["name"]
    if name not in TERMS:
        close = get_close_matches(name, TERMS, 1)
        hint = f"did you mean {close[0]}?" if close else f"terms are {', '.join(TERMS)}"
        raise UserError(f"reward expression {text!r}: unknown term {name!r}; {hint}")
    weight = _parse_weight(match["weight"], text)
    return WeightedTerm(next(term for term in TERMS if term == name), weight)


def _parse_weight(weight: str | None, text: str) -> float:
    try:
        value = 1.0 if weight is None else float(weight)
    except ValueError:
        raise UserError(f"reward expression {text!r}: {weight!r} is not a number") from None
    if not 0.0 < value < float("inf"):
        raise UserError(f"reward expression {text!r}: a weight must be positive and finite, received {weight}")
    return value


def needs_demos(terms: tuple[WeightedTerm, ...]) -> bool:
    """Whether any term learns from demonstrations."""
    return any(term.name in ("gail", "vail", "giril", "icm") for term in terms)


def needs_features(terms: tuple[WeightedTerm, ...]) -> bool:
    """Whether any term looks at states."""
    return any(term.name not in ("env", "constant") for term in terms)

"""Curves of a run as a record keeps them: a hundred points, rounded, and what was lowest between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

POINTS = 100
"""At most so many of a curve are kept."""
FIGURES = 5
LARGEST = 1e100
"""Of any number in a record: sums and squares of such ones stay finite."""
Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Curve:
    """A value over training."""

    env_steps: tuple[int, ...] = ()
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.env_steps) != len(self.values):
            raise ValueError(f"a curve of {len(self.env_steps)} steps and {len(self.values)} values")
        require_finite((*self.env_steps, *self.values))


def curve(rows: Iterable[Row], name: str) -> Curve:
    """A value of a journal where it was finite, thinned to evenly spaced rows with the first and the last."""
    known = _known(rows, name)
    return _as_curve([known[index] for index in _kept(len(known))])


def lows(rows: Iterable[Row], name: str) -> Curve:
    """At each point of the thinned curve the lowest value since the point before; empty where nothing was thinned."""
    known = _known(rows, name)
    kept = _kept(len(known))
    if len(kept) == len(known):
        return Curve()
    begins = [0, *(index + 1 for index in kept[:-1])]
    bins = [known[begin : end + 1] for begin, end in zip(begins, kept, strict=True)]
    return _as_curve([(points[-1][0], min(value for _, value in points)) for points in bins])


def _known(rows: Iterable[Row], name: str) -> list[tuple[int, float]]:
    return [(int(row["env_steps"]), float(row[name])) for row in rows if row.get(name) is not None]


def _kept(count: int) -> list[int]:
    """Which of so many rows a curve keeps."""
    return list(range(count)) if count <= POINTS else [round(k * (count - 1) / (POINTS - 1)) for k in range(POINTS)]


def _as_curve(points: Sequence[tuple[int, float]]) -> Curve:
    return Curve(tuple(steps for steps, _ in points), tuple(rounded(value) for _, value in points))


def require_finite(values: Iterable[float]) -> None:
    """Raise `ValueError` for a number that nobody can draw."""
    if not all(abs(value) <= LARGEST for value in values):  # which no NaN is
        raise ValueError("a number that is not finite, or that nobody can draw")


def rounded(value: float) -> float:
    """To the figures that a record keeps."""
    return float(f"{value:.{FIGURES}g}")

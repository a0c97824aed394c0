"""Numbers in few characters, for every table."""

from __future__ import annotations

import math
from collections.abc import Sequence

NOTHING = "-"


def number(value: float) -> str:
    """A score or a ratio: four figures, and whole numbers from a thousand on."""
    if not math.isfinite(value):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def score(value: float | None) -> str:
    """A return as the paper prints it: whole from a hundred on."""
    return NOTHING if value is None else _alike((value,))[0]


def plus_minus(mean: float, std: float | None) -> str:
    """Mean and deviation with as many decimals as the larger needs; a single seed has no deviation."""
    return score(mean) if std is None else " ± ".join(_alike((mean, std)))


def span(interval: tuple[float, float] | None) -> str:
    """An interval in words; nothing is said where it has no ends."""
    if interval is None or not all(math.isfinite(end) for end in interval):
        return NOTHING
    return " to ".join(_alike(interval))


def share(value: float) -> str:
    """A probability."""
    return f"{value:.2f}"


def counted(count: int, noun: str) -> str:
    """So many of something: 1 run, 2 runs."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def magnitude(value: float) -> str:
    """A tick of an axis: 2M, 400k, 0.5."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{letter}"
    return f"{value:.4g}"


def _alike(values: Sequence[float]) -> list[str]:
    """Values with the same number of decimals: none from a hundred on, three figures below."""
    largest = max(abs(value) for value in values)
    decimals = 0 if largest >= 100 else 2 if largest == 0 else min(max(0, 2 - math.floor(math.log10(largest))), 6)
    return [f"{value:z,.{decimals}f}" for value in values]

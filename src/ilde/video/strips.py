"""What the strips under a picture say: the terms of a reward, their sum, and the true score."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ilde.video.canvas import Colour, Strip

Series: TypeAlias = NDArray[Any]

COLOURS: dict[str, Colour] = {
    "gail": (92, 164, 240),
    "vail": (92, 164, 240),
    "giril": (245, 166, 66),
    "icm": (214, 120, 160),
    "entropy": (98, 204, 142),
    "e3b": (150, 200, 80),
    "env": (190, 140, 240),
    "constant": (160, 168, 180),
}
OTHER, TOTAL, SCORE = (120, 205, 210), (225, 229, 235), (240, 112, 150)


def reward_strips(shares: Mapping[str, Series], weights: Mapping[str, float]) -> list[Strip]:
    """One strip for each term's weighted share (T,), and one for their sum where there are several."""
    shown = dict(shares)
    if len(shares) > 1:
        shown["total"] = np.sum(list(shares.values()), axis=0)
    spans = {name: _usual_span(values) for name, values in shown.items()}
    # One span for all bars, so that the eye can compare the terms.
    shared = (min(low for low, _ in spans.values()), max(high for _, high in spans.values()))
    return [
        Strip(
            label=name,
            note=f"weight {weights[name]:g}" if name in weights else "sum of the terms",
            values=values,
            colour=COLOURS.get(name, OTHER) if name in weights else TOTAL,
            reading=_readings(values),
            span=spans[name],
            bar_span=shared,
        )
        for name, values in shown.items()
    ]


def score_strip(rewards: Series, demonstrator: float | None) -> Strip:
    """The true return so far, from the true rewards (T,), beside the demonstrator's."""
    score = np.cumsum(rewards)
    levels = [0.0, float(score.min()), float(score.max()), *([] if demonstrator is None else [demonstrator])]
    span = (min(levels), max(max(levels), min(levels) + 1e-9))
    readings = _readings(score)
    if demonstrator is not None and demonstrator > 0:
        readings = [f"{text} ({value / demonstrator:.0%})" for text, value in zip(readings, score, strict=True)]
    return Strip(
        label="score",
        note="true return" if demonstrator is None else f"demonstrator {_compact(demonstrator)}",
        values=score,
        colour=SCORE,
        reading=readings,
        span=span,
        bar_span=span,
        whole=True,
        goal=demonstrator,
    )


def _usual_span(values: Series) -> tuple[float, float]:
    """From the lowest level to the highest, zero included; rare extremes, such as a first step's, are left out."""
    low, high = (float(level) for level in np.percentile(values, (2, 98)))
    return min(low, 0.0), max(high, 0.0, min(low, 0.0) + 1e-9)


def _compact(number: float) -> str:
    """A number in at most six characters."""
    if abs(number) >= 10_000:
        return f"{number / 1000:,.0f}k"
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _readings(values: Series) -> list[str]:
    """All values with as many decimals as give the largest three digits, so that the text does not dance."""
    largest = float(np.abs(values).max())
    decimals = 2 if largest == 0 else min(max(0, 2 - math.floor(math.log10(largest))), 6)
    return [f"{value:,.{decimals}f}" for value in values]

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
    "entropy": (98, 204, 142),
    "env": (190, 140, 240),
    "constant": (160, 168, 180),
}
OTHER, TOTAL, SCORE = (120, 205, 210), (225, 229, 235), (240, 112, 150)


def reward_strips(shares: Mapping[str, Series], weights: Mapping[str, float]) -> list[Strip]:
    """One strip for each term's weighted share (T,), and one for their sum where there are several."""
    shown = dict(shares)
    if len(shares) > 1:
        shown["total"] = np.sum(list(shares.values()), axis=0)
    levels = np.concatenate([*shown.values(), [0.0]])
    # One span for all bars, so that the eye can compare the terms.
    span = (float(levels.min()), max(float(levels.max()), float(levels.min()) + 1e-9))
    return [
        Strip(
            label=name,
            note=f"weight {weights[name]:g}" if name in weights else "sum of the terms",
            values=values,
            colour=COLOURS.get(name, OTHER) if name in weights else TOTAL,
            reading=_readings(values),
            bar_span=span,
        )
        for name, values in shown.items()
    ]


def score_strip(rewards: Series, demonstrator: float | None) -> Strip:
    """The true return so far, from the true rewards (T,), beside the demonstrator's."""
    score = np.cumsum(rewards)
    levels = [0.0, float(score.min()), float(score.max()), *([] if demonstrator is None else [demonstrator])]
    readings = _readings(score)
    if demonstrator is not None and demonstrator > 0:
        readings = [f"{text} ({value / demonstrator:.0%})" for text, value in zip(readings, score, strict=True)]
    return Strip(
        label="score",
        note="true return" if demonstrator is None else f"expert {demonstrator:,.0f}",
        values=score,
        colour=SCORE,
        reading=readings,
        bar_span=(min(levels), max(max(levels), min(levels) + 1e-9)),
        whole=True,
        goal=demonstrator,
    )


def _readings(values: Series) -> list[str]:
    """All values with as many decimals as give the largest three digits, so that the text does not dance."""
    largest = float(np.abs(values).max())
    decimals = 2 if largest == 0 else min(max(0, 2 - math.floor(math.log10(largest))), 6)
    return [f"{value:,.{decimals}f}" for value in values]

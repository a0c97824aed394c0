"""One frame of a film: the picture, and under it a strip for everything that changes with time.

A strip's curve has a scale of its own, so that small terms can be read too; the bars of all terms share one, so that
one sees which term leads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ilde.data import UserError

try:
    from PIL import Image, ImageDraw, ImageFont
except ImportError as error:
    raise UserError("pictures need Pillow: pip install ilde[video]") from error

Picture: TypeAlias = NDArray[np.uint8]
"""(height, width, 3), red, green, blue."""
Colour: TypeAlias = tuple[int, int, int]

WIDTH = 504
"""Six times an Atari frame's 84, so that its pixels stay square."""
HEADER, ROW, MARGIN = 36, 54, 12
CHART = (118, 372)
BAR = (388, WIDTH - MARGIN)
WINDOW = 200
"""Steps a curve shows at a time."""
OVERSAMPLING = 2

BACKGROUND, WELL, RULE = (20, 23, 28), (29, 33, 40), (62, 69, 80)
TEXT, MUTED = (233, 236, 240), (139, 147, 160)


@dataclass(frozen=True)
class Strip:
    """A value over the steps of an episode, and how it is shown."""

    label: str
    note: str
    values: NDArray[np.float64]
    colour: Colour
    reading: Sequence[str]
    """The present value in words, one for each step."""
    span: tuple[float, float]
    """The values at the curve's lower and upper end; it is cut off beyond."""
    bar_span: tuple[float, float]
    """The values at the bar's ends."""
    whole: bool = False
    """Show the episode from its start, not the last steps alone."""
    goal: float | None = None
    """A level to compare with."""

    def __post_init__(self) -> None:
        if not len(self.values) == len(self.reading) > 0:
            raise ValueError(f"{self.label}: {len(self.values)} values and {len(self.reading)} readings")


def draw_frame(picture: Picture, title: str, strips: Sequence[Strip], step: int) -> Picture:
    """The frame of one step: title, picture, strips."""
    upper = fit(picture)
    lower = _blank(ROW * len(strips))
    for row, strip in enumerate(strips):
        _draw_strip(ImageDraw.Draw(lower), strip, step, row * ROW)
    header = _blank(HEADER)
    draw = ImageDraw.Draw(header)
    _write(draw, (MARGIN, HEADER / 2), title, 15, TEXT, "lm")
    _write(draw, (WIDTH - MARGIN, HEADER / 2), f"step {step:,}", 15, MUTED, "rm")
    parts = [header.reduce(OVERSAMPLING), upper, *([lower.reduce(OVERSAMPLING)] if strips else [])]
    return np.concatenate([np.asarray(part) for part in parts])


def caption(frame: Picture, label: str) -> Picture:
    """A frame of any width with a line of text above it."""
    band = Image.new("RGB", (OVERSAMPLING * frame.shape[1], OVERSAMPLING * HEADER), RULE)
    _write(ImageDraw.Draw(band), (frame.shape[1] / 2, HEADER / 2), label, 17, TEXT, "mm")
    return np.concatenate([np.asarray(band.reduce(OVERSAMPLING)), frame])


def fit(picture: Picture, width: int = WIDTH) -> Image.Image:
    """The picture at a frame's width: small ones by whole pixels, as a game shows them."""
    image = Image.fromarray(picture)
    size = (width, round(width * image.height / image.width))
    return image.resize(size, Image.Resampling.NEAREST if image.width * 2 <= width else Image.Resampling.LANCZOS)


def _blank(height: int) -> Image.Image:
    return Image.new("RGB", (OVERSAMPLING * WIDTH, OVERSAMPLING * height), BACKGROUND)


def _draw_strip(draw: ImageDraw.ImageDraw, strip: Strip, step: int, top: float) -> None:
    _write(draw, (MARGIN, top + 19), strip.label, 16, strip.colour, "lm")
    _write(draw, (MARGIN, top + 38), strip.note, 11, MUTED, "lm")
    _draw_curve(draw, strip, step, (CHART[0], top + 4, CHART[1], top + ROW - 4))
    _write(draw, (BAR[1], top + 18), strip.reading[step], 15, TEXT, "rm")
    _draw_bar(draw, strip, step, (BAR[0], top + 32, BAR[1], top + 42))


def _draw_curve(draw: ImageDraw.ImageDraw, strip: Strip, step: int, box: tuple[float, float, float, float]) -> None:
    left, top, right, bottom = (OVERSAMPLING * side for side in box)
    draw.rectangle((left, top, right, bottom), fill=WELL)
    low, high = strip.span
    total = len(strip.values)
    shown = total if strip.whole else min(total, WINDOW)
    start = 0 if strip.whole else max(0, step + 1 - shown)
    inset = 6

    def place(level: float) -> float:
        share = float(np.clip((level - low) / (high - low), 0.0, 1.0))
        return bottom - inset - share * (bottom - top - 2 * inset)

    past = strip.values[start : step + 1]
    across = left + (np.arange(len(past)) + 1) / shown * (right - left)
    points = [(float(x), place(float(level))) for x, level in zip(across, past, strict=True)]
    points.insert(0, (left + (points[0][0] - left) * (start > 0 or strip.whole), points[0][1]))
    ground = place(0.0)
    draw.polygon([(points[0][0], ground), *points, (points[-1][0], ground)], fill=_faded(strip.colour))
    draw.line((left, ground, right, ground), fill=RULE, width=2)
    if strip.goal is not None:
        for dash in range(int(left), int(right), 16):
            draw.line((dash, place(strip.goal), min(dash + 8, right), place(strip.goal)), fill=MUTED, width=2)
    draw.line(points, fill=strip.colour, width=3, joint="curve")
    x, y = points[-1]
    draw.ellipse((x - 5, y - 5, x + 5, y + 5), fill=strip.colour)


def _draw_bar(draw: ImageDraw.ImageDraw, strip: Strip, step: int, box: tuple[float, float, float, float]) -> None:
    left, top, right, bottom = (OVERSAMPLING * side for side in box)
    low, high = strip.bar_span

    def place(level: float) -> float:
        return left + float(np.clip((level - low) / (high - low), 0.0, 1.0)) * (right - left)

    draw.rectangle((left, top, right, bottom), fill=WELL)
    ends = sorted((place(0.0), place(float(strip.values[step]))))
    draw.rectangle((ends[0], top, ends[1], bottom), fill=strip.colour)
    for mark in [0.0] if strip.goal is None else [0.0, strip.goal]:
        draw.line((place(mark), top - 4, place(mark), bottom + 4), fill=MUTED, width=2)


def _faded(colour: Colour) -> Colour:
    red, green, blue = ((part + 3 * well) // 4 for part, well in zip(colour, WELL, strict=True))
    return red, green, blue


@cache
def _font(size: int) -> Any:
    return ImageFont.load_default(size * OVERSAMPLING)


def _write(
    draw: ImageDraw.ImageDraw, place: tuple[float, float], text: str, size: int, colour: Colour, anchor: str
) -> None:
    scaled = (place[0] * OVERSAMPLING, place[1] * OVERSAMPLING)
    draw.text(scaled, text, fill=colour, font=_font(size), anchor=anchor)

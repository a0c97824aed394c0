"""Charts as small pieces of HTML: lines in a stretched SVG, every word beside it, so that no width makes it unreadable.

Each says in a sentence what it shows, for whoever has it read aloud; axes are left out of that.
Colours are classes; the style sheet gives them values for light and for dark.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ilde.reports.curves import Band
from ilde.reports.markup import Html, element, join
from ilde.reports.numbers import magnitude, score
from ilde.reports.statistics import Interval, Scores

SIDE = 1000
"""Of a drawing's own units, each way."""
TICKS = 5
FEW = 6
"""Lines whose bands can still be told apart."""
SIDES = ("beyond-low", "beyond-high")
"""Classes of an interval that goes on beyond an end of its strip."""


@dataclass(frozen=True)
class Line:
    """One curve of a chart."""

    label: str
    style: str
    """A class of the style sheet."""
    band: Band


@dataclass(frozen=True)
class Scale:
    """From values to places between 0 and 1."""

    low: float
    high: float

    def __call__(self, value: float) -> float:
        """The place of a value, cut off at the ends."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def holds(self, value: float) -> bool:
        """Whether a value lies within the ends."""
        return self.low <= value <= self.high

    def ticks(self, count: int = TICKS) -> list[float]:
        """About so many round values within it."""
        rough = (self.high - self.low) / count
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= rough)
        return [step * k for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def scale_over(values: Sequence[float], margin: float = 0.05) -> Scale:
    """A scale that holds all values, with a margin on either side."""
    low, high = min(values), max(values)
    room = (high - low) * margin or max(abs(high), 1.0) * margin
    return Scale(low - room, high + room)


def line_chart(title: str, lines: Sequence[Line], demonstrator: float | None) -> Html:
    """Curves over training with their intervals, and the demonstrator's level."""
    across = scale_over([float(end) for line in lines for end in line.band.env_steps[[0, -1]]] + [0.0], margin=0.0)
    levels = [end for line in lines for end in line.band.extent] + ([] if demonstrator is None else [demonstrator])
    up = scale_over(levels)
    drawing = [_grid(across, up), *(_interval(line, across, up) for line in lines)]
    drawing += [_curve(line, across, up) for line in lines]
    goal = () if demonstrator is None else (_goal(demonstrator, up),)
    return element(
        "figure",
        element("figcaption", title),
        _plot(_svg(_told(title, lines, demonstrator), *drawing), across, up, *goal),
        keys([(line.label, f"line {line.style}") for line in lines]),
        class_="chart many" if len(lines) > FEW else "chart",
    )


def _told(title: str, lines: Sequence[Line], demonstrator: float | None) -> str:
    """Where every curve ends, in a sentence."""
    ends = ", ".join(f"{line.label} at {score(float(line.band.mean[-1]))}" for line in lines)
    level = "" if demonstrator is None else f"; the demonstrator is at {score(demonstrator)}"
    return f"{title}, ending with {ends}{level}."


def keys(entries: Sequence[tuple[str, str]]) -> Html:
    """A legend: labels and the classes they are drawn with."""
    items = []
    for label, style in entries:
        shape = element("path", d="M0 5H26V9H0Z" if style.startswith("share") else "M0 7H26", class_=style)
        drawing = element("svg", shape, viewBox="0 0 26 14", aria_hidden="true")
        items.append(element("li", drawing, label, class_=f"key {style.partition(' ')[2]}"))
    return element("ul", *items, class_="keys")


def score_axis(scale: Scale) -> Html:
    """The values under the strips of a table."""
    ticks = [tick for tick in scale.ticks(4) if 0.04 < scale(tick) < 0.96]
    return element("div", *(element("span", magnitude(t), style=f"left:{scale(t):.2%}") for t in ticks), class_="axis")


def share_chart(label: str, env_steps: Scores, shares: Mapping[str, Scores], styles: Mapping[str, str]) -> Html:
    """Parts of a whole over training, one above the other."""
    across, up = Scale(0.0, float(env_steps[-1])), Scale(0.0, 1.0)
    base, areas = np.zeros_like(env_steps), []
    for name, values in shares.items():
        top = base + values
        points = _points(env_steps, top, across, up) + _points(env_steps[::-1], base[::-1], across, up)
        areas.append(element("polygon", points=" ".join(points), class_=f"share {styles[name]}"))
        base = top
    ends = ", ".join(f"{name} {values[-1]:.0%}" for name, values in shares.items())
    told = f"Each term's part of the reward of {label} over agent steps, ending with {ends}."
    return element(
        "figure",
        element("figcaption", label),
        _plot(_svg(told, *areas), across, up, percent=True),
        class_="small chart",
    )


def score_strip(scores: Sequence[float], interval: Interval | None, goal: float | None, scale: Scale) -> Html:
    """One row's seeds as dots on a line, its 95% interval and the demonstrator."""
    marks = []
    if interval is not None:
        left, right = scale(interval[0]), scale(interval[1])
        beyond = "".join(f" {side}" for side, end in zip(SIDES, interval, strict=True) if not scale.holds(end))
        marks.append(element("i", class_=f"bar{beyond}", style=f"left:{left:.2%};width:{right - left:.2%}"))
    if goal is not None:
        marks.append(element("i", class_="goal", style=f"left:{scale(goal):.2%}"))
    marks += [element("i", class_="dot", style=f"left:{scale(value):.2%}") for value in scores]
    mean = sum(scores) / len(scores)
    marks.append(element("i", class_="mean", style=f"left:{scale(mean):.2%}"))
    level = "" if goal is None else f", the demonstrator at {score(goal)}"
    told = f"Seeds at {', '.join(map(score, scores))}, their mean at {score(mean)}{level}."
    return element("div", *marks, class_="strip", role="img", aria_label=told)


def _plot(drawing: Html, across: Scale, up: Scale, *over: Html, percent: bool = False) -> Html:
    levels = [
        element("span", f"{tick:.0%}" if percent else magnitude(tick), style=f"bottom:{up(tick):.2%}")
        for tick in up.ticks(2 if percent else TICKS)
    ]
    steps = [element("span", magnitude(tick), style=f"left:{across(tick):.2%}") for tick in across.ticks()]
    return element(
        "div",
        element("div", *levels, class_="y", aria_hidden="true"),
        element("div", drawing, *over, class_="area"),
        element("div", *steps, class_="x", aria_hidden="true"),
        class_="plot",
    )


def _svg(told: str, *drawing: Html) -> Html:
    box = f"0 0 {SIDE} {SIDE}"
    return element("svg", *drawing, viewBox=box, preserveAspectRatio="none", role="img", aria_label=told)


def _points(xs: Scores, ys: Scores, across: Scale, up: Scale) -> list[str]:
    return [f"{SIDE * across(float(x)):.0f},{SIDE * (1 - up(float(y))):.0f}" for x, y in zip(xs, ys, strict=True)]


def _grid(across: Scale, up: Scale) -> Html:
    rows = [SIDE * (1 - up(tick)) for tick in up.ticks()]
    columns = [SIDE * across(tick) for tick in across.ticks()]
    lines = [element("line", x1=0, x2=SIDE, y1=f"{y:.0f}", y2=f"{y:.0f}") for y in rows]
    lines += [element("line", x1=f"{x:.0f}", x2=f"{x:.0f}", y1=0, y2=SIDE) for x in columns]
    return element("g", *lines, class_="grid")


def _interval(line: Line, across: Scale, up: Scale) -> Html:
    spread = line.band.spread
    if spread is None:
        return Html()
    steps, mean = line.band.env_steps, line.band.mean
    points = _points(steps, mean + spread, across, up)
    points += _points(steps[::-1], (mean - spread)[::-1], across, up)
    above, below = mean + spread > up.high, mean - spread < up.low
    edges = _runs(above, steps, across, 0) + _runs(below, steps, across, SIDE)
    beyond = element("path", d=edges, class_=f"beyond {line.style}") if edges else Html()
    return join(element("polygon", points=" ".join(points), class_=f"band {line.style}"), beyond)


def _runs(out: NDArray[np.bool_], steps: Scores, across: Scale, height: int) -> str:
    """Along an edge of the chart, the stretches on which a band goes on beyond it."""
    ends = np.flatnonzero(np.diff(np.concatenate([[False], out, [False]]).astype(int))).reshape(-1, 2)
    places = [[SIDE * across(float(steps[k])) for k in (first, last - 1)] for first, last in ends]
    return "".join(f"M{left:.0f} {height}H{right:.0f}" for left, right in places)


def _curve(line: Line, across: Scale, up: Scale) -> Html:
    points = _points(line.band.env_steps, line.band.mean, across, up)
    return element("path", d=f"M{' '.join(points)}", class_=f"line {line.style}")


def _goal(demonstrator: float, up: Scale) -> Html:
    words = join("demonstrator ", score(demonstrator))
    return element("div", element("span", words), class_="goal", style=f"bottom:{up(demonstrator):.2%}")

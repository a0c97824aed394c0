"""What a chart marks where its data go on beyond it, and what it says to those who do not see it."""

from __future__ import annotations

import numpy as np
from page_tags import Tags, drawings

from ilde.reports.charts import Line, Scale, line_chart, scale_over, score_strip, share_chart
from ilde.reports.curves import Band


def test_an_interval_that_goes_on_beyond_its_strip_is_marked() -> None:
    scale = Scale(0, 10)
    bars = {(-1.0, 11.0): "bar beyond-low beyond-high", (-1.0, 5.0): "bar beyond-low", (1.0, 5.0): "bar"}
    for interval, style in bars.items():
        strip = score_strip((2.0, 3.0), interval, None, scale)
        assert Tags(strip).seen[1][1]["class"] == style


def test_a_band_that_goes_on_beyond_the_chart_has_a_marked_edge() -> None:
    steps, mean = np.array([0.0, 10.0, 20.0, 30.0]), np.array([0.0, 5.0, 5.0, 10.0])
    for spread, edges in ((np.array([0.0, 99.0, 99.0, 0.0]), ["M333 0H667M333 1000H667"]), (np.zeros(4), [])):
        chart = line_chart("a", [Line("x", "c0", Band(steps, mean, spread, (0.0, 10.0)))], None)
        found = [a["d"] for _, a in Tags(chart).seen if (a.get("class") or "").startswith("beyond")]
        assert found == edges


def test_a_chart_says_where_its_curves_and_the_demonstrator_are() -> None:
    lines = [
        Line(label, "c0", Band(np.array([0.0, 9.0]), np.array([5.0, end]), None, (0.0, end)))
        for label, end in (("a", 7.0), ("<b>", 1234.0))
    ]
    for goal, level in ((900.0, "; the demonstrator is at 900."), (None, ".")):
        (drawing,) = drawings(line_chart("Scores over steps", lines, goal))
        assert drawing["aria-label"] == f"Scores over steps, ending with a at 7.00, <b> at 1,234{level}"


def test_a_chart_of_parts_and_a_strip_say_their_numbers() -> None:
    parts = {"vail": np.array([0.5, 0.25]), "giril": np.array([0.5, 0.75])}
    (drawing,) = drawings(share_chart("ilde", np.array([0.0, 9.0]), parts, dict.fromkeys(parts, "t-other")))
    assert drawing["aria-label"] == (
        "Each term's part of the reward of ilde over agent steps, ending with vail 25%, giril 75%."
    )
    (strip,) = drawings(score_strip((200.0, 400.0), None, 900.0, Scale(0, 1000)))
    assert strip["aria-label"] == "Seeds at 200, 400, their mean at 300, the demonstrator at 900."


def test_ticks_are_round_and_within() -> None:
    assert Scale(-520, 1040).ticks() == [-500, 0, 500, 1000]
    assert Scale(0, 1).ticks(2) == [0, 0.5, 1]
    assert scale_over([3.0, 3.0]) == Scale(2.85, 3.15)
    assert (Scale(0, 10)(-5), Scale(0, 10)(2.5), Scale(0, 10)(99)) == (0, 0.25, 1)

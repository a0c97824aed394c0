from __future__ import annotations

import math

from ilde.reports.numbers import magnitude, number, plus_minus, score, span


def test_numbers_have_as_many_figures_as_they_need() -> None:
    assert [score(v) for v in (None, 0.0, 1146.3, 99.96, -4.05, 0.0123)] == [
        "-",
        "0.00",
        "1,146",
        "100.0",
        "-4.05",
        "0.0123",
    ]
    assert number(953.28) == "953.3"
    assert [magnitude(v) for v in (0, 0.5, 400_000, 2e6, -1500)] == ["0", "0.5", "400k", "2M", "-1.5k"]


def test_mean_and_deviation_share_their_decimals() -> None:
    assert plus_minus(1146.3, 79.2) == "1,146 ± 79"
    assert plus_minus(-4.051, 1.6435) == "-4.05 ± 1.64"
    assert plus_minus(7.5, None) == "7.50"


def test_an_interval_without_ends_is_not_written_down() -> None:
    assert span((-0.2, 855.4)) == "0 to 855"
    assert span(None) == span((-math.inf, math.inf)) == "-"

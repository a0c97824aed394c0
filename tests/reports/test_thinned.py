"""Which rows of a long journal a record keeps, and what it knows of those between them."""

from __future__ import annotations

from ilde.reports.thinned import POINTS, curve, lows


def test_a_low_is_of_the_rows_after_the_point_before_and_stands_at_its_own_point() -> None:
    rows = [{"env_steps": 10 * row, "x": float(row)} for row in range(250)]
    kept, lowest = curve(rows, "x"), lows(rows, "x")
    # Every 249 / 99 rows, rounded: 0, 2.52, 5.03, 7.55, 10.06.
    assert kept.values[:5] == (0, 3, 5, 8, 10)
    # Values rise, so that the lowest of a few rows is the first: the one after the point before.
    assert lowest.values[:5] == (0, 1, 4, 6, 9)
    assert lowest.env_steps == kept.env_steps
    assert len(lowest.values) == POINTS

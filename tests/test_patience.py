"""Long loops say how far they are, to whoever listens."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from ilde.patience import counted, heard_by, now_and_then


def seconds(each: float) -> Callable[[], float]:
    ticks = count()
    return lambda: each * next(ticks)


def test_a_loop_counts_whether_or_not_anybody_listens() -> None:
    assert list(counted(3, "fit", "passes")) == [0, 1, 2]
    assert list(counted(7, "fit", "steps", stride=3)) == [0, 3, 6]
    with heard_by(lambda line: pytest.fail(line)):  # it is over before there is anything to tell
        assert list(counted(3, "fit", "passes")) == [0, 1, 2]


def test_every_few_seconds_it_tells_what_is_done_and_what_is_left() -> None:
    heard: list[str] = []
    with heard_by(heard.append):
        # The clock is read when the loop begins, then once in each turn, four seconds apart.
        list(counted(8, "giril", "passes", clock=seconds(4.0)))
    assert heard == ["giril: 2 of 8 passes, about 36 s left", "giril: 5 of 8 passes, about 14 s left"]


def test_nobody_hears_it_afterwards() -> None:
    heard: list[str] = []
    with heard_by(heard.append):
        pass
    list(counted(8, "giril", "passes", clock=seconds(20.0)))
    assert heard == []


def test_a_loop_without_a_known_end_tells_every_few_seconds() -> None:
    heard: list[str] = []
    with heard_by(heard.append):
        say = now_and_then(clock=seconds(4.0))
    for turn in range(6):  # the clock is read once in each turn, and once more where something is told
        say(lambda turn=turn: f"turn {turn}")  # type: ignore[misc]
    assert heard == ["turn 2", "turn 5"]


def test_it_asks_for_no_words_where_nobody_listens() -> None:
    say = now_and_then(clock=seconds(20.0))
    say(lambda: pytest.fail("nobody listens"))

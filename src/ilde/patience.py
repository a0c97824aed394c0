"""Long loops beside training say how far they are, to whoever listens: people, never a learner.

    with heard_by(print):
        for epoch in counted(1000, "giril", "passes"):
            ...

Who listens is no argument of the loops: what they compute does not depend on it, and they are deep inside.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SECONDS = 10.0
"""Between two lines."""

_tell: ContextVar[Callable[[str], None] | None] = ContextVar("tell", default=None)


@contextmanager
def heard_by(tell: Callable[[str], None]) -> Iterator[None]:
    """Within this, long loops tell how far they are."""
    before = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(before)


def now_and_then(clock: Callable[[], float] = time.monotonic) -> Callable[[Callable[[], str]], None]:
    """For a loop without a known end: call what this gives in every round, with how to say how far it is."""
    tell, due = _tell.get(), clock() + SECONDS

    def say(words: Callable[[], str]) -> None:
        nonlocal due
        if tell is not None and clock() >= due:
            due = clock() + SECONDS
            tell(words())

    return say


def counted(
    total: int, what: str, unit: str, *, stride: int = 1, clock: Callable[[], float] = time.monotonic
) -> Iterator[int]:
    """range(0, total, stride); every few seconds whoever listens hears how far it is and how long the rest may take."""
    tell, began = _tell.get(), clock()
    due = began + SECONDS
    for done in range(0, total, stride):
        now = clock()
        if tell is not None and done and now >= due:
            due = now + SECONDS
            left = (now - began) / done * (total - done)
            tell(f"{what}: {done:,} of {total:,} {unit}, about {left:,.0f} s left")
        yield done

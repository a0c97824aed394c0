"""Ctrl-C while learning in memory: the update in progress is finished before `KeyboardInterrupt` is raised.

A rollout that breaks off leaves simulators in the middle of a step. In a notebook Ctrl-C is the usual way to stop, and
`learn` is often called again, so that the first one waits; a second one breaks off at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Within, the first Ctrl-C waits for the end; where somebody else handles it, or in another thread, none does."""
    in_charge = threading.current_thread() is threading.main_thread()
    if not in_charge or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    heard = False

    def hear(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        if heard:
            raise KeyboardInterrupt
        heard = True

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if heard:
        raise KeyboardInterrupt

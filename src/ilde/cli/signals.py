"""What ends training early: Ctrl-C, SIGTERM, time that is up; the update in progress is finished before that."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)
TIME_IS_UP = 124
"""The exit code of a command that used up its time, as `timeout` has it."""


class StopRequest:
    """While entered, notes the first signal instead of dying of it; Ctrl-C after that raises `KeyboardInterrupt`."""

    def __init__(self, heard: Callable[[str], None], minutes: float | None = None) -> None:
        """Call `heard` with each reason to stop; the time given, if any, counts from now."""
        self._heard = heard
        self._deadline = math.inf if minutes is None else time.monotonic() + 60.0 * minutes
        self._former: dict[int, Any] = {}
        self.exit_code = 0
        """What a shell reports of a process that died of the signal, 130 or 143, or of time that is up; 0 at first."""

    def __call__(self) -> bool:
        """Whether to stop."""
        if not self.exit_code and time.monotonic() >= self._deadline:
            self.exit_code = TIME_IS_UP
            self._heard("time is up")
        return bool(self.exit_code)

    def __enter__(self) -> Self:
        self._former = {number: signal.signal(number, self._receive) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        again = bool(self.exit_code)
        self.exit_code = self.exit_code or 128 + number
        self._heard(signal.Signals(number).name)
        if again and number == signal.SIGINT:
            raise KeyboardInterrupt

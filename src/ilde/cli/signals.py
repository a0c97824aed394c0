"""Ctrl-C and SIGTERM while training: the update in progress is finished, then the run stops."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """While entered, notes the first signal instead of dying of it; a second Ctrl-C raises `KeyboardInterrupt`."""

    def __init__(self, heard: Callable[[int], None]) -> None:
        """Call `heard` with the number of each signal."""
        self._heard = heard
        self._former: dict[int, Any] = {}
        self.signal: int | None = None

    def __call__(self) -> bool:
        """Whether to stop."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """What a shell reports of a process that died of the signal: 130 or 143; 0 without one."""
        return 0 if self.signal is None else 128 + self.signal

    def __enter__(self) -> Self:
        self._former = {number: signal.signal(number, self._receive) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        again = self.signal is not None
        self.signal = self.signal or number
        self._heard(number)
        if again and number == signal.SIGINT:
            raise KeyboardInterrupt

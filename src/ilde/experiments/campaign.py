"""A study on its way: which runs begin when, which are tried again, and where each one stands."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from ilde.data import HindranceError, UserError
from ilde.experiments.engine import Attempt, Engine
from ilde.experiments.folders import Reached, reached, survey
from ilde.experiments.grid import Cell
from ilde.runs.durable import FolderLock, probe
from ilde.settings import spelled

CellState: TypeAlias = Literal["waiting", "running", "done", "failed", "stopped", "refused"]

PERIOD_SECONDS = 0.25
LOOK_SECONDS = 1.0
"""Between two looks at the folders, which may lie on storage that many share."""
BREATH_SECONDS = 5.0
"""Before anything begins after a hindrance: room, or storage that is out of reach, needs time to come back."""


@dataclass(frozen=True)
class Standing:
    """Where one run of a study stands."""

    cell: Cell
    state: CellState
    reached: Reached
    attempts: int
    """Since this start of the study."""
    exit_code: int | None
    """Of the last attempt; None where there was none."""
    message: str
    """Why it failed, in one line."""

    @property
    def seconds_left(self) -> float | None:
        """Time to the end at the present speed; None where there is no speed yet."""
        speed = self.reached.steps_per_second
        return self.steps_left / speed if speed else None

    @property
    def steps_left(self) -> int:
        """Agent steps to the end."""
        return 0 if self.state == "done" else max(0, self.cell.config.steps - self.reached.env_steps)


class Watcher(Protocol):
    """Whoever wants to hear how a study goes."""

    def noted(self, message: str) -> None:
        """Something worth a line happened."""

    def seen(self, standings: Sequence[Standing]) -> None:
        """This is where all runs stand now."""


@dataclass
class _Entry:
    cell: Cell
    attempt: Attempt
    state: CellState = "waiting"
    attempts: int = 0
    exit_code: int | None = None
    message: str = ""
    log_size: int = 0
    """Of the log when the attempt was handed to the engine: it has begun when the log grows."""
    reached: Reached = field(default_factory=Reached)

    def look(self) -> None:
        """See how far the run has come; a file that is just being replaced can wait for the next look."""
        with suppress(UserError, OSError):
            if self.state == "running" or _size(self.attempt.log) > self.log_size:
                self.state, self.reached = "running", reached(self.attempt.folder)


class Campaign:
    """The runs of a study, an engine, and the rules between them.

    Finished runs are left alone, others go on from their checkpoints. A failed attempt is repeated `retries` times,
    unless it was a mistake of the user's, which would fail in the same way; what is damaged, or was begun with other
    settings, is refused from the start. Nothing that happens to one run stops another.
    """

    def __init__(self, cells: Sequence[Cell], out: Path, *, retries: int, watcher: Watcher) -> None:
        found = survey(cells, out)
        self._out, self._retries, self._watcher = out, retries, watcher
        workplace = Path.cwd()
        attempts = [Attempt(cell.id, out / cell.id, tuple(spelled(cell.config)), workplace) for cell in cells]
        self._entries = {a.id: _Entry(cell, a) for cell, a in zip(cells, attempts, strict=True)}
        for name, entry in self._entries.items():
            if why := found.refused.get(name):
                entry.state, entry.exit_code, entry.message = "refused", why.exit_code, str(why)
                self._note(entry, f"refused: {entry.message}")
            else:
                entry.reached = found.reached[name]
                entry.state = "done" if entry.reached.state == "finished" else "waiting"
        self._queue = deque(entry for entry in self._entries.values() if entry.state == "waiting")
        self._running: dict[str, _Entry] = {}
        self._due = self._resting_until = float("-inf")

    @property
    def complete(self) -> bool:
        """Whether every run is finished."""
        return all(entry.state == "done" for entry in self._entries.values())

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be carried out: every run is finished or refused."""
        return not self._queue

    def standings(self) -> list[Standing]:
        """Where each run stands, in the study's order."""
        return [
            Standing(e.cell, e.state, e.reached, e.attempts, e.exit_code, e.message) for e in self._entries.values()
        ]

    def run(self, engine: Engine, stop: Callable[[], bool] = lambda: False) -> list[Standing]:
        """Carry out what is left, until all is done or `stop` says so and every run is saved."""
        lock = self._take()
        try:
            stopping = False
            while self._running or (self._queue and not stopping):
                for name, code in engine.ended().items():
                    self._settle(self._running.pop(name), code, stopping=stopping)
                if stop() and not stopping:
                    stopping = True
                    engine.stop()
                if not stopping:
                    self._fill(engine)
                self._look()
                time.sleep(PERIOD_SECONDS if self._running or self._queue else 0)
        finally:
            lock.release()
        self._watcher.seen(self.standings())
        return self.standings()

    def _take(self) -> FolderLock:
        try:
            self._out.mkdir(parents=True, exist_ok=True)
            probe(self._out)
            return FolderLock(self._out)
        except OSError as error:
            raise UserError(f"{self._out}: cannot be written ({error.strerror}); choose another --out") from error

    def _fill(self, engine: Engine) -> None:
        while self._queue and len(self._running) < engine.at_once and time.monotonic() >= self._resting_until:
            entry = self._queue.popleft()
            entry.log_size = _size(entry.attempt.log)
            entry.attempts += 1
            try:
                engine.start(entry.attempt)
            except OSError as error:  # no room, no more processes: of this attempt alone
                entry.exit_code = HindranceError.exit_code
                self._missed(entry, f"cannot begin ({error.strerror})", again=True)
            else:
                self._running[entry.cell.id] = entry

    def _settle(self, entry: _Entry, code: int, *, stopping: bool) -> None:
        entry.exit_code = code
        entry.look()
        if code == 0:
            entry.state, entry.message = "done", ""
            self._note(entry, f"finished at {entry.reached.env_steps:,} steps")
        elif stopping:
            entry.state = "stopped"
        else:
            self._missed(entry, _last_words(entry.attempt.log, code), again=code != UserError.exit_code)

    def _missed(self, entry: _Entry, why: str, *, again: bool) -> None:
        """An attempt failed; another one may help as long as there are retries."""
        again = again and entry.attempts <= self._retries
        if entry.exit_code == HindranceError.exit_code:
            self._resting_until = time.monotonic() + BREATH_SECONDS
        entry.message, entry.state = why, "waiting" if again else "failed"
        if again:
            self._queue.append(entry)
        log = entry.attempt.log
        how = f"; trying again ({entry.attempts} of {self._retries})" if again else f"; see {log}" * log.exists()
        self._note(entry, f"failed: {why}{how}")

    def _look(self) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + LOOK_SECONDS
            for entry in self._running.values():
                entry.look()
            self._watcher.seen(self.standings())

    def _note(self, entry: _Entry, message: str) -> None:
        self._watcher.noted(f"{entry.cell.id}: {message}")


def _size(log: Path) -> int:
    with suppress(OSError):
        return log.stat().st_size
    return 0


def _last_words(log: Path, code: int) -> str:
    """What an attempt said last, which is its error; of an exception the line that names it, and not those after."""
    if code > 128:
        return f"ended by signal {code - 128}"
    said, in_stack, named = "it said nothing", False, False
    for line in filter(str.strip, _text(log).split("\n")):
        if line.startswith("Traceback (most recent call last)"):
            in_stack, named = True, False
        elif line.startswith("ilde") or not (in_stack or named):  # our own words: an error, or the next attempt
            said, in_stack, named = line, False, False
        elif in_stack and not line[0].isspace():
            said, in_stack, named = line, False, True
    return f"{said.strip().removeprefix('ilde: ')} (exit code {code})"


def _text(log: Path) -> str:
    with suppress(OSError):
        return log.read_text(encoding="utf-8", errors="replace")
    return ""

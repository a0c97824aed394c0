"""How a study looks while it runs: one live table on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ilde.cli.printing import cell_text, duration

if TYPE_CHECKING:
    from ilde.experiments.campaign import Standing

LINE_SECONDS = 30.0
COLUMNS = ("running", "steps", "of", "steps/s", "left", "score")
STATES = ("running", "done", "failed", "waiting", "stopped", "refused")


def counts(standings: Sequence[Standing]) -> str:
    """How many runs are in which state, how fast they are together, and when they will be done."""
    tally: Counter[str] = Counter(standing.state for standing in standings)
    parts = [f"{tally[state]} {state}" for state in STATES if tally[state] or state in STATES[:2]]
    speed = sum(s.reached.steps_per_second or 0.0 for s in standings if s.state == "running")
    if speed:
        left = sum(s.steps_left for s in standings if s.state in ("running", "waiting")) / speed
        parts += [f"{speed:,.0f} steps/s", f"about {duration(left)} left"]
    return ", ".join(parts)


def live_table(title: str, standings: Sequence[Standing]) -> RenderableType:
    """The runs under way and those that failed, under the counts of all."""
    table = Table(box=None, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "running" else "right", no_wrap=True)
    for standing in standings:
        if standing.state == "running":
            left = None if standing.seconds_left is None else duration(standing.seconds_left)
            reached = standing.reached
            speed = None if reached.steps_per_second is None else round(reached.steps_per_second)
            values = (reached.env_steps, standing.cell.config.steps, speed, left, reached.score)
            table.add_row(standing.cell.id, *(cell_text(value) for value in values))
    missed = [standing for standing in standings if standing.state in ("failed", "refused")]
    reasons = [Text(f"{s.cell.id}: {s.state}: {s.message}", no_wrap=True, overflow="ellipsis") for s in missed]
    return Group(Text(f"{title}: {counts(standings)}"), table, *reasons)


class PlainGridDisplay:
    """What happens, as it happens, and the counts every half minute."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._due = clock() + LINE_SECONDS

    @contextmanager
    def running(self, title: str) -> Iterator[None]:
        """Show a study from here to the end of the block."""
        self.noted(title)
        yield

    def noted(self, message: str) -> None:
        """Print a line."""
        print(message, file=self._stream, flush=True)

    def seen(self, standings: Sequence[Standing]) -> None:
        """Print the counts, unless that was done a moment ago."""
        if self._clock() >= self._due:
            self._due = self._clock() + LINE_SECONDS
            self.noted(counts(standings))


class RichGridDisplay:
    """A table that lives while the study runs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._title = ""

    @contextmanager
    def running(self, title: str) -> Iterator[None]:
        """Show a study from here to the end of the block."""
        self._title = title
        with Live(console=self._console, auto_refresh=False) as self._live:
            yield
        self._live = None

    def noted(self, message: str) -> None:
        """Print a line above the table."""
        self._console.print(message, markup=False, highlight=False)

    def seen(self, standings: Sequence[Standing]) -> None:
        """Draw the table anew."""
        if self._live is not None:
            self._live.update(live_table(self._title, standings), refresh=True)


def choose_grid_display(stream: TextIO) -> PlainGridDisplay | RichGridDisplay:
    """The table where somebody can watch it, lines otherwise."""
    return RichGridDisplay(Console(file=stream)) if stream.isatty() else PlainGridDisplay(stream)

"""How a run looks while it trains: a live panel on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ilde.cli.printing import cell_text, duration, number
from ilde.reports.numbers import counted

if TYPE_CHECKING:
    from ilde.evaluation import Evaluation
    from ilde.launch import Progress

LINE_SECONDS = 5.0
FRAME_SECONDS = 0.25
BAR = 24
HISTORY = 40
LEVELS = "▁▂▃▄▅▆▇█"


def term_shares(metrics: Mapping[str, float]) -> dict[str, float]:
    """Each reward term's part of the whole, from 0 to 1, by the size of its weighted mean."""
    # Only a term's own metric has a raw counterpart.
    terms = [name for name in metrics if name.startswith("reward/") and f"{name}_raw" in metrics]
    means = {name.removeprefix("reward/"): abs(metrics[name]) for name in terms}
    total = sum(means.values())
    return {term: mean / total if total > 0 else 0.0 for term, mean in means.items()}


def sparkline(values: Sequence[float]) -> str:
    """Values as a row of little bars, from the least to the greatest."""
    if not values:
        return ""
    low, span = min(values), max(values) - min(values)
    top = len(LEVELS) - 1
    return "".join(LEVELS[round(top * (value - low) / span) if span else 0] for value in values)


def score_text(metrics: Mapping[str, float], demonstrator: float | None) -> str:
    """The true training score beside the demonstrator's."""
    score = metrics.get("score/raw")
    own = "no whole episode yet" if score is None else number(score)
    return own if demonstrator is None else f"{own} (demonstrator {number(demonstrator)})"


def evaluation_text(env_steps: int, evaluation: Evaluation) -> str:
    """An evaluation in one line."""
    how = "greedy" if evaluation.greedy else "sampled"
    interval, episodes = cell_text(list(evaluation.interval)), len(evaluation.returns)
    kinds = f" of {counted(evaluation.kinds, 'kind')}" if evaluation.kinds < episodes else ""
    return f"{number(evaluation.mean)} {interval}, {episodes} episodes{kinds}, {how}, at {env_steps:,} steps"


class PlainDisplay:
    """One line every few seconds, for files, pipes and grids."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._demonstrator: float | None = None
        self._due = float("-inf")

    @contextmanager
    def training(self, title: str, demonstrator: float | None) -> Iterator[None]:
        """Show a run from here to the end of the block."""
        self._demonstrator = demonstrator
        self.noted(title)
        yield

    def noted(self, message: str) -> None:
        """Print a line."""
        print(message, file=self._stream, flush=True)

    def progressed(self, progress: Progress) -> None:
        """Print how far the run is, unless that was said a moment ago."""
        if self._clock() < self._due:
            return
        self._due = self._clock() + LINE_SECONDS
        shares = ", ".join(f"{term} {share:.0%}" for term, share in term_shares(progress.metrics).items())
        score = score_text(progress.metrics, self._demonstrator)
        self.noted(
            f"{progress.env_steps:,} of {progress.total_steps:,} steps, {progress.steps_per_second:,.0f} steps/s, "
            f"{duration(progress.seconds_left)} left, score {score}, {shares}"
        )

    def evaluated(self, env_steps: int, evaluation: Evaluation) -> None:
        """Print the outcome."""
        self.noted(f"evaluated: {evaluation_text(env_steps, evaluation)}")


class RichDisplay:
    """A panel that lives while the run trains."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._live: Live | None = None
        self._title = ""
        self._demonstrator: float | None = None
        self._progress: Progress | None = None
        self._evaluation = "none yet"
        self._scores: deque[float] = deque(maxlen=HISTORY)
        self._due = float("-inf")

    @contextmanager
    def training(self, title: str, demonstrator: float | None) -> Iterator[None]:
        """Show a run from here to the end of the block."""
        self._title, self._demonstrator = title, demonstrator
        # Drawn from the training loop itself, a few times a second: a thread of its own would compete with it.
        with Live(console=self._console, auto_refresh=False) as self._live:
            try:
                yield
            finally:
                self._draw()
        self._live = None

    def noted(self, message: str) -> None:
        """Print a line above the panel."""
        self._console.print(message, markup=False, highlight=False)

    def progressed(self, progress: Progress) -> None:
        """Redraw, unless that was done a moment ago."""
        self._progress = progress
        if "score/raw" in progress.metrics:
            self._scores.append(progress.metrics["score/raw"])
        if self._clock() >= self._due:
            self._due = self._clock() + FRAME_SECONDS
            self._draw()

    def evaluated(self, env_steps: int, evaluation: Evaluation) -> None:
        """Redraw with the outcome."""
        self._evaluation = evaluation_text(env_steps, evaluation)
        self._draw()

    def _draw(self) -> None:
        if self._live is not None and self._progress is not None:
            self._live.update(self.panel(self._progress), refresh=True)

    def panel(self, progress: Progress) -> RenderableType:
        """The picture of one moment."""
        body = Table.grid(padding=(0, 2))
        for row, (term, share) in enumerate(term_shares(progress.metrics).items()):
            bar = ProgressBar(total=1.0, completed=share, width=BAR)
            body.add_row("" if row else "reward", term, f"{share:4.0%}", bar)
        facts = Table.grid(padding=(0, 2))
        score = score_text(progress.metrics, self._demonstrator)
        facts.add_row("score", Text(f"{score}  {sparkline(self._scores)}"))
        facts.add_row("evaluated", Text(f"{self._evaluation}; {progress.evaluation_share:.0%} of the time"))
        return Panel(Group(self._headline(progress), body, facts), title=self._title, title_align="left")

    def _headline(self, progress: Progress) -> RenderableType:
        done = min(progress.env_steps / progress.total_steps, 1.0)
        line = Table.grid(padding=(0, 2))
        line.add_row(
            ProgressBar(total=1.0, completed=done, width=BAR),
            f"{done:.0%}",
            f"{progress.env_steps:,} of {progress.total_steps:,} steps",
            f"{progress.steps_per_second:,.0f} steps/s",
            f"{duration(progress.seconds_left)} left",
        )
        return line


def choose_display(stream: TextIO) -> PlainDisplay | RichDisplay:
    """The panel where somebody can watch it, lines otherwise."""
    return RichDisplay(Console(file=stream)) if stream.isatty() else PlainDisplay(stream)

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from ilde.cli.grid_display import PlainGridDisplay, RichGridDisplay, choose_grid_display, counts
from ilde.config import RunConfig
from ilde.experiments.campaign import CellState, Standing
from ilde.experiments.folders import Reached
from ilde.experiments.grid import Cell


def standing(name: str, state: CellState, reached: Reached | None = None, message: str = "") -> Standing:
    cell = Cell(name, replace(RunConfig(), steps=10_000))
    return Standing(cell, state, reached or Reached(), 1, None, message)


STANDINGS = [
    standing("a", "done", Reached("finished", 10_000, 50.0, 3.0)),
    standing("b", "running", Reached("running", 4_000, 100.0, 12.5)),
    standing("c", "running"),
    standing("d", "failed", Reached("failed", 2_000), "not finite: reward"),
    standing("e", "waiting"),
]
# b has 6,000 steps left, c and e 10,000 each: 260 s at the 100 steps/s of those that run.
COUNTS = "2 running, 1 done, 1 failed, 1 waiting, 100 steps/s, about 4 min 20 s left"


def test_the_counts_say_how_many_how_fast_and_how_long() -> None:
    assert counts(STANDINGS) == COUNTS
    assert counts([STANDINGS[0]]) == "0 running, 1 done"
    assert counts([standing("f", "refused")]) == "0 running, 0 done, 1 refused"


def test_plain_lines_come_every_half_minute() -> None:
    stream, now = io.StringIO(), [0.0]
    display = PlainGridDisplay(stream, clock=lambda: now[0])
    with display.running("study"):
        for second in (0.0, 29.9, 30.0, 59.0, 60.0):
            now[0] = second
            display.seen(STANDINGS)
    assert stream.getvalue().splitlines() == ["study", COUNTS, COUNTS]


def test_the_table_shows_what_runs_and_what_failed() -> None:
    stream = io.StringIO()
    display = RichGridDisplay(Console(file=stream, force_terminal=True, width=120, color_system=None))
    with display.running("study"):
        display.seen(STANDINGS)
        display.noted("d: failed")
        display.seen([standing("f", "refused", message="begun with others")])
    lines = [" ".join(line.split()) for line in stream.getvalue().splitlines()]
    for line in (
        f"study: {COUNTS}",
        "running steps of steps/s left score",
        "b 4,000 10,000 100 1 min 0 s 12.5",
        "c 0 10,000 - - -",
        "d: failed: not finite: reward",
        "f: refused: begun with others",
    ):
        assert any(line in shown for shown in lines), line
    assert not any(shown.startswith(("a ", "e ")) for shown in lines)


def test_a_pipe_gets_lines() -> None:
    assert isinstance(choose_grid_display(io.StringIO()), PlainGridDisplay)

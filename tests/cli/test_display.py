from __future__ import annotations

import io

import pytest
from rich.console import Console

from ilde.cli.display import PlainDisplay, RichDisplay, choose_display, sparkline, term_shares
from ilde.cli.printing import cell_text, duration
from ilde.evaluation import Evaluation
from ilde.launch import Progress

METRICS = {
    "reward/vail": -0.5,
    "reward/vail_raw": -0.5,
    "reward/vail_std": 9.0,
    "reward/giril": 1.5,
    "reward/giril_raw": 0.1,
    "reward/total": 3.0,
    "score/raw": 50.0,
}


def progress(env_steps: int, **metrics: float) -> Progress:
    return Progress(env_steps, 10_000, {**METRICS, **metrics}, 100.0, 0.25)


def test_shares_are_the_sizes_of_the_terms_alone() -> None:
    assert term_shares(METRICS) == {"vail": 0.25, "giril": 0.75}
    assert term_shares({"reward/env": 0.0, "reward/env_raw": 0.0}) == {"env": 0.0}


def test_a_sparkline_runs_from_least_to_greatest() -> None:
    assert sparkline([3.0, 10.0, 6.5]) == "▁█▅"
    assert sparkline([2.0, 2.0]) == "▁▁"
    assert sparkline([]) == ""


def test_plain_lines_come_every_five_seconds() -> None:
    stream, now = io.StringIO(), [0.0]
    display = PlainDisplay(stream, clock=lambda: now[0])
    with display.training("title", 200.0):
        for second in (0.0, 1.0, 4.9, 5.0, 9.0):
            now[0] = second
            display.progressed(progress(int(1000 * second)))
    assert stream.getvalue().splitlines() == [
        "title",
        "0 of 10,000 steps, 100 steps/s, 1 min 40 s left, score 50 (demonstrator 200), vail 25%, giril 75%",
        "5,000 of 10,000 steps, 100 steps/s, 50 s left, score 50 (demonstrator 200), vail 25%, giril 75%",
    ]


def test_evaluations_are_always_said() -> None:
    stream = io.StringIO()
    PlainDisplay(stream).evaluated(1000, Evaluation((1.0, 3.0), (5, 5), greedy=True))
    # Student's 97.5% quantile with one degree of freedom is 12.706, the standard error is 1.
    assert stream.getvalue() == "evaluated: 2 [-10.71, 14.71], 2 episodes, greedy, at 1,000 steps\n"


def test_the_panel_shows_progress_terms_scores_and_evaluation() -> None:
    stream = io.StringIO()
    display = RichDisplay(Console(file=stream, force_terminal=True, width=100, color_system=None))
    with display.training("ilde on Toy-v0", 200.0):
        display.progressed(progress(2_500))
        display.progressed(progress(5_000, **{"score/raw": 70.0}))
        display.evaluated(5_000, Evaluation((1.0, 3.0), (5, 5), greedy=False))
    shown = stream.getvalue()
    for part in (
        "ilde on Toy-v0",
        "50%",
        "5,000 of 10,000 steps",
        "100 steps/s",
        "50 s left",
        "vail",
        "75%",
        "70 (demonstrator 200)  ▁█",
        "2 [-10.71, 14.71], 2 episodes, sampled, at 5,000 steps; 25% of the time",
    ):
        assert part in shown


def test_a_pipe_gets_lines() -> None:
    assert isinstance(choose_display(io.StringIO()), PlainDisplay)


@pytest.mark.parametrize(("seconds", "text"), [(3.2, "3 s"), (100, "1 min 40 s"), (7320, "2 h 2 min")])
def test_durations_have_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (True, "yes"),
        (1234567, "1,234,567"),
        (0.12345, "0.1235"),
        (12345.6, "12,346"),
        ([1.0, 2.5], "[1, 2.5]"),
    ],
)
def test_cells_are_short(value: object, text: str) -> None:
    assert cell_text(value) == text

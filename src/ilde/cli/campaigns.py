"""Many runs from beginning to end, as the command line sees them: display, signals, outcomes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import closing, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ilde.cli.driving import outcome
from ilde.cli.grid_display import choose_grid_display
from ilde.cli.printing import print_table
from ilde.cli.signals import StopRequest
from ilde.experiments.campaign import Campaign, Standing

if TYPE_CHECKING:
    from ilde.experiments.engine import Engine
    from ilde.experiments.grid import Cell

COLUMNS = ("run", "state", "steps", "greedy", "95% interval", "ratio", "sampled")


def carry_out(
    cells: Sequence[Cell],
    out: Path,
    make_engine: Callable[[], Engine],
    *,
    title: str,
    how_to_go_on: str,
    retries: int,
    minutes: float | None,
    as_json: bool,
) -> tuple[list[Standing], int]:
    """Run what is left of some cells; returns where each stands and the exit code: 0 if all are finished."""
    stream = sys.stderr if as_json else sys.stdout
    display = choose_grid_display(stream)
    campaign = Campaign(cells, out, retries=retries, watcher=display)
    if campaign.complete:
        display.noted(f"{out}: all {len(cells)} runs are finished; nothing is left to do")
        return campaign.standings(), 0
    if campaign.idle:
        display.noted(f"{out}: all runs but those refused are finished; nothing is left to do")
        return campaign.standings(), _missed(campaign.standings())
    stop = StopRequest(
        lambda why: display.noted(f"{why}: every run finishes its update and saves; Ctrl-C ends at once"), minutes
    )
    # Ray prints of lost machines what it likes, and takes SIGTERM for itself: the engine comes before our own handlers.
    with redirect_stdout(stream), closing(make_engine()) as engine, stop, display.running(title):
        standings = campaign.run(engine, stop)
    if campaign.complete:
        return standings, 0
    if stop.exit_code:
        display.noted(f"stopped; {how_to_go_on}")
    return standings, stop.exit_code or _missed(standings)


def _missed(standings: Sequence[Standing]) -> int:
    """The exit code of the first run that failed or was refused; 0 where none did."""
    missed = (standing.exit_code for standing in standings if standing.state in ("failed", "refused"))
    return next((code for code in missed if code), 0)


def outcomes(standings: Sequence[Standing], out: Path) -> dict[str, dict[str, Any]]:
    """What became of each cell, by its id."""
    return {standing.cell.id: _outcome(standing, out / standing.cell.id) for standing in standings}


def _outcome(standing: Standing, folder: Path) -> dict[str, Any]:
    if standing.state != "refused" and (folder / "config.json").exists():
        found = outcome(folder)
    else:  # what a refused folder holds, if it can be read, is not of this study
        state = "refused" if standing.state == "refused" else "not started"
        found = {"run": str(folder), "state": state, "env_steps": 0, "evaluations": []}
    return found | {"attempts": standing.attempts, "exit_code": standing.exit_code, "message": standing.message}


def final_scores(results: dict[str, dict[str, Any]], *, greedy: bool) -> dict[str, dict[str, Any]]:
    """The final evaluation of each run that has one."""
    return {name: row for name, found in results.items() for row in found["evaluations"] if row["greedy"] is greedy}


def print_outcomes(results: dict[str, dict[str, Any]], means: Sequence[Sequence[object]] = ()) -> None:
    """Print a row for each run, and others after them."""
    greedy, sampled = (final_scores(results, greedy=flag) for flag in (True, False))
    rows: list[Sequence[object]] = [
        [name, found["state"], found["env_steps"], *_scores(greedy.get(name)), sampled.get(name, {}).get("mean")]
        for name, found in results.items()
    ]
    print_table(COLUMNS, [*rows, *means])


def _scores(row: dict[str, Any] | None) -> list[object]:
    return [None, None, None] if row is None else [row["mean"], row["interval"], row["ratio"]]

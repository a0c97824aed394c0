"""One run from beginning to end, as the command line sees it: display, signals, outcome."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ilde.cli.display import PlainDisplay, RichDisplay, choose_display
from ilde.cli.printing import print_json, print_table
from ilde.cli.signals import StopRequest
from ilde.reports.outcomes import LAST_POINTS, last_points, with_sure_kinds
from ilde.runs import RunDirectory

if TYPE_CHECKING:
    from ilde.launch import Run

COLUMNS = ("actions", "mean", "95% interval", "episodes", "kinds", "demonstrator", "ratio")


def make_display(*, as_json: bool) -> PlainDisplay | RichDisplay:
    """A display that leaves standard output to the JSON document."""
    return choose_display(sys.stderr if as_json else sys.stdout)


def drive(
    out: Path,
    begin: Callable[[], Run],
    display: PlainDisplay | RichDisplay,
    *,
    minutes: float | None,
    as_json: bool,
) -> int:
    """Begin a run and train it to its end, to a signal or for so many minutes; returns the exit code."""
    stop = StopRequest(lambda why: display.noted(f"{why}: stopping after this update; Ctrl-C ends at once"), minutes)
    try:
        run = begin()
        complete = _train(run, stop, display)
    except KeyboardInterrupt:
        if (out / "config.json").exists():
            display.noted(_resume_hint(out))
        raise
    if not complete:
        display.noted(f"stopped at {run.trainer.env_steps:,} steps; {_resume_hint(out)}")
    if complete or as_json:
        print_outcome(out, run.evaluation_share, as_json=as_json)
    return 0 if complete else stop.exit_code


def _train(run: Run, stop: StopRequest, display: PlainDisplay | RichDisplay) -> bool:
    from ilde.launch import failures_noted

    config = run.trainer.config
    title = f"{config.method} on {config.env}, seed {config.seed}, {run.trainer.device}"
    try:
        with stop, display.training(title, run.demonstrator), failures_noted(run):
            return run.train(stop)
    finally:
        run.folder.close()
        run.trainer.envs.close()


def _resume_hint(out: Path) -> str:
    return f"go on with: ilde resume {shlex.quote(str(out))}"


def outcome(path: Path) -> dict[str, Any]:
    """How a run ended: its final evaluations, greedy and sampled."""
    folder = RunDirectory.read(path)
    config, status = folder.config, folder.status
    return {
        "run": str(path),
        **{name: config.get(name) for name in ("method", "env", "seed")},
        "state": status.state,
        "env_steps": status.env_steps,
        "evaluations": [row for row in folder.evaluations.rows() if row.get("final")],
        "last_points": last_points(folder.evaluations.rows()),
    }


def print_outcome(path: Path, evaluation_share: float | None = None, *, as_json: bool) -> None:
    """Print the final evaluations."""
    document = outcome(path) | {"evaluation_share": evaluation_share}
    if as_json:
        print_json(document)
        return
    keys = ("mean", "interval", "episodes", "kinds", "demonstrator", "ratio")
    # A run that was evaluated before kinds were counted as they are now has none.
    finals = [with_sure_kinds(row) for row in document["evaluations"]]
    rows = [("greedy" if row["greedy"] else "sampled", *(row.get(key) for key in keys)) for row in finals]
    print_table(COLUMNS, rows)
    if document["last_points"] is not None:
        print(f"mean of the last {LAST_POINTS} evaluations along the way: {document['last_points']:,.1f}")
    if evaluation_share is not None:
        print(f"{evaluation_share:.0%} of the time was spent on evaluation")

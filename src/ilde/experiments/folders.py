"""What the folders of a study tell from outside: how far each run is, and whether it is still the same run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from ilde.config import RunConfig, from_dict, to_dict
from ilde.data import UserError
from ilde.experiments.grid import Cell
from ilde.fields import leaves
from ilde.methods import find_method
from ilde.runs import RunDirectory, RunState

FolderState: TypeAlias = RunState | Literal["new"]


@dataclass(frozen=True)
class Reached:
    """How far a run has come, as its folder says."""

    state: FolderState = "new"
    env_steps: int = 0
    steps_per_second: float | None = None
    score: float | None = None
    """The final greedy mean; before that, the mean return of recent training episodes."""


def reached(folder: Path) -> Reached:
    """Look at a run, which another process, here or elsewhere, may be writing."""
    if not (folder / "config.json").is_file():
        return Reached()
    run = RunDirectory.read(folder)
    status, timing = run.status, run.timing.last() or {}
    steps = status.env_steps if status.state == "finished" else timing.get("env_steps", status.env_steps)
    return Reached(status.state, steps, timing.get("time/steps_per_second"), _score(run))


def _score(run: RunDirectory) -> float | None:
    final = [row["mean"] for row in run.evaluations.rows() if row["final"] and row["greedy"]]
    return final[-1] if final else (run.metrics.last() or {}).get("score/raw")


def refuse_changes(cells: Sequence[Cell], out: Path) -> None:
    """Refuse to go on with runs that were begun with other settings; those that a method does not read do not count."""
    if (out / "config.json").exists():
        raise UserError(f"{out}: holds a single run; choose another --out for a study")
    for cell in cells:
        folder = out / cell.id
        if (folder / "config.json").is_file():
            begun = dict(leaves(to_dict(from_dict(RunConfig, RunDirectory.read(folder).config))))
            foreign = find_method(cell.config.method).foreign_settings
            for name, value in leaves(to_dict(cell.config)):
                if begun[name] != value and not name.startswith(foreign):
                    change = f"was begun with {name} {begun[name]}, the study now says {value}"
                    raise UserError(f"{folder}: {change}; choose another --out or put the setting back")

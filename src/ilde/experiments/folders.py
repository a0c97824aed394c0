"""What the folders of a study tell from outside: how far each run is, and whether it is still the same run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ilde.config import RunConfig, from_dict, to_dict
from ilde.data import HindranceError, UserError
from ilde.experiments.grid import Cell
from ilde.fields import leaves
from ilde.methods import find_method
from ilde.reports.outcomes import MALFORMED
from ilde.reports.thinned import require_finite
from ilde.runs import RunDirectory, RunState
from ilde.runs.directory import CONFIG, holds_run
from ilde.runs.durable import reading
from ilde.runs.journal import Journal

FolderState: TypeAlias = RunState | Literal["new"]
_SEED = re.compile(r"seed-[0-9]+")


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
    if not holds_run(folder):
        return Reached()
    run = RunDirectory.read(folder)
    status, timing = run.status, run.timing.last() or {}
    steps = status.env_steps if status.state == "finished" else timing.get("env_steps", status.env_steps)
    if status.state == "finished" and run.owes_evaluation:
        remedy = f"`ilde resume {folder}` measures it again" if run.resumable else "restore it from a copy"
        raise UserError(f"{run.evaluations.path}: a finished run without its last evaluation; {remedy}")
    with _sound(run.timing):
        speed = _number(timing.get("time/steps_per_second"))
    return Reached(status.state, steps, speed, _score(run))


def _score(run: RunDirectory) -> float | None:
    with _sound(run.evaluations):
        final = [_number(row["mean"]) for row in run.evaluations.rows() if row["final"] and row["greedy"]]
    if final:
        return final[-1]
    with _sound(run.metrics):
        return _number((run.metrics.last() or {}).get("score/raw"))


@contextmanager
def _sound(journal: Journal) -> Iterator[None]:
    """Name the journal whose rows are not those of a run."""
    try:
        yield
    except MALFORMED as error:
        why = f"cannot be read ({type(error).__name__}: {error})"
        raise UserError(f"{journal.path}: {why}; restore it from a copy") from None


def _number(value: object) -> float | None:
    """A number of a journal; one that was not finite is None there."""
    if not isinstance(value, int | float | None):
        raise TypeError(f"{str(value)[:40]!r} is no number")
    if value is not None:
        require_finite((value,))
    return value


@dataclass(frozen=True)
class Survey:
    """What the folders of a study tell before anything goes on."""

    reached: Mapping[str, Reached]
    """How far each run is, by id; not of those that are refused."""
    refused: Mapping[str, UserError]
    """Why the others cannot be gone on with, and what helps; a hindrance may be over soon."""


def survey(cells: Sequence[Cell], out: Path) -> Survey:
    """Look at every run of a study; raises where none of them can be gone on with."""
    if holds_run(out):
        raise UserError(f"{out}: holds a single run; choose another --out for a study")
    found: dict[str, Reached] = {}
    refused: dict[str, UserError] = {}
    changes: dict[str, UserError] = {}
    for cell in cells:
        folder = out / cell.id
        try:
            if change := _change(cell, folder):
                refused[cell.id] = changes[_row(cell)] = UserError(change)
            else:
                found[cell.id] = reached(folder)
        except HindranceError as error:
            refused[cell.id] = error
        except UserError as error:
            refused[cell.id] = UserError(f"{error}, or move {folder} away to begin it anew")
    new = [cell for cell in cells if cell.id in found and found[cell.id].state == "new"]
    for row, cell in {_row(cell): cell for cell in new if _row(cell) not in changes}.items():
        if why := _change_beside(cell, out / row):
            changes[row] = why
    # Seeds with other settings than those of their row would be no part of it.
    refused |= {cell.id: changes[_row(cell)] for cell in new if _row(cell) in changes}
    if len(refused) == len(cells):
        raise refused[cells[0].id]
    return Survey({name: run for name, run in found.items() if name not in refused}, refused)


def _row(cell: Cell) -> str:
    """What the seeds of a study share of their ids."""
    return cell.id.rpartition("/")[0]


def _change_beside(cell: Cell, row: Path) -> UserError | None:
    """What a seed of a row was begun with otherwise: those count too that a part of the study leaves out."""
    try:
        with reading(row):
            seeds = sorted(folder for folder in row.glob("seed-*") if _SEED.fullmatch(folder.name))
    except UserError as error:
        return error
    for folder in seeds:
        config = replace(cell.config, seed=int(folder.name.removeprefix("seed-")))
        with suppress(UserError):  # what is damaged tells nothing of the others
            if change := _change(replace(cell, config=config), folder):
                return UserError(change)
    return None


def _change(cell: Cell, folder: Path) -> str | None:
    """The setting that a run was begun with otherwise; those that its method does not read do not count."""
    if not holds_run(folder):
        return None
    begun, foreign = _begun(folder), find_method(cell.config.method).foreign_settings
    for name, value in leaves(to_dict(cell.config)):
        if begun[name] != value and not name.startswith(foreign):
            change = f"was begun with {name} {begun[name]}, the study now says {value}"
            return f"{folder}: {change}; choose another --out or put the setting back"
    return None


def _begun(folder: Path) -> dict[str, Any]:
    """The settings of a run, by their dotted names, with today's defaults for what has come since."""
    config = RunDirectory.read(folder).config
    try:
        return dict(leaves(to_dict(from_dict(RunConfig, config))))
    except UserError as error:
        raise UserError(f"{folder / CONFIG}: not the settings of a run ({error}); restore it from a copy") from None

"""Outcomes from wherever they are: folders with runs in them, at any depth, and files of outcomes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ilde.data import UserError
from ilde.reports.outcome_files import load_outcomes
from ilde.reports.outcomes import Outcome, canonical, read_outcome
from ilde.runs.directory import CONFIG, STATUS


@dataclass(frozen=True)
class Gathered:
    """All outcomes that could be read."""

    outcomes: tuple[Outcome, ...]
    folders: Mapping[str, Path]
    """Where the run of an outcome lies; one out of a file has no folder."""
    skipped: Mapping[str, str]
    """Folders that could not be read, and why."""


def gather(sources: Sequence[Path], looked: Callable[[str], None] = lambda name: None) -> Gathered:
    """The outcomes of folders and files, in canonical order; `looked` hears the name of each run that was read."""
    outcomes: list[Outcome] = []
    folders: dict[str, Path] = {}
    skipped: dict[str, str] = {}
    for source in sources:
        if source.is_file():
            outcomes += load_outcomes(source)
    for name, folder in _named_runs(source for source in sources if not source.is_file()).items():
        looked(name)
        try:
            outcome = read_outcome(folder, name)
            folders[name] = folder
            if outcome not in outcomes:  # a file may have kept this very run: twice it would pass for two seeds
                outcomes.append(outcome)
        except UserError as error:
            skipped[name] = str(error).removeprefix(f"{folder}: ").removeprefix(f"{folder}/")
    if not outcomes:
        where = ", ".join(map(str, sources))
        raise UserError(f"{where}: no run that can be read; name folders that `ilde train` wrote, or their parent")
    return Gathered(canonical(outcomes), folders, skipped)


def _named_runs(sources: Iterable[Path]) -> dict[str, Path]:
    """Each run once, under a name that tells nothing of the machine."""
    named: dict[str, Path] = {}
    seen: set[Path] = set()
    for source in sources:
        if not source.is_dir():
            raise UserError(f"{source}: no such folder or file of outcomes")
        root = source.resolve()
        for folder in find_runs(root):
            if folder not in seen:
                seen.add(folder)
                named[_unused((root.name / folder.relative_to(root)).as_posix(), named)] = folder
    return named


def _unused(name: str, taken: Mapping[str, Path]) -> str:
    names = (name if number == 1 else f"{name} ({number})" for number in range(1, len(taken) + 2))
    return next(candidate for candidate in names if candidate not in taken)


def find_runs(folder: Path) -> list[Path]:
    """Every folder with a configuration, in order; nothing is looked for inside a run."""
    found = []
    for place, inner, files in os.walk(folder):
        if CONFIG in files:
            found.append(Path(place))
            if STATUS in files:
                inner.clear()
    return sorted(found)

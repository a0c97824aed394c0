"""Outcomes from wherever they are: folders with runs in them, at any depth, and files of outcomes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ilde.data import UserError
from ilde.reports.once import add_latest, add_new, merge_kept, unused
from ilde.reports.outcome_files import load_outcomes
from ilde.reports.outcomes import Outcome, canonical, read_outcome
from ilde.runs.directory import CONFIG, STATUS

KEPT = "*.outcomes.json"
"""Names of files of outcomes in a folder; one of another name is read where it is named itself."""


@dataclass(frozen=True)
class Gathered:
    """All outcomes that could be read."""

    outcomes: tuple[Outcome, ...]
    folders: Mapping[str, Path]
    """Where the run of an outcome lies; one out of a file has no folder."""
    skipped: Mapping[str, str]
    """Folders, and files of outcomes within folders, that could not be read, and why."""


def gather(sources: Sequence[Path], looked: Callable[[str], None] = lambda name: None) -> Gathered:
    """The outcomes of folders and files, in canonical order; `looked` hears the name of each run that was read."""
    outcomes: list[Outcome] = []
    folders: dict[str, Path] = {}
    skipped: dict[str, str] = {}
    for name, folder in _named_runs(source for source in sources if not source.is_file()).items():
        looked(name)
        try:
            outcome = read_outcome(folder, name)
            folders[name] = folder
            add_new(outcome, outcomes)
        except UserError as error:
            skipped[name] = _reason(error, folder)
    # After the folders: of a run in both, the one that can be filmed is told.
    kept: list[Outcome] = []
    for name, file in _kept_files(sources):
        try:
            merge_kept(load_outcomes(file), kept)
        except UserError as error:
            if file in sources:
                raise
            skipped[name] = _reason(error, file)
    add_latest(kept, outcomes, folders)
    if not outcomes:
        why = next((f" ({name}: {reason})" for name, reason in skipped.items()), "")
        where = ", ".join(map(str, sources))
        raise UserError(f"{where}: no run that can be read{why}; name folders that `ilde train` wrote, or their parent")
    return Gathered(canonical(outcomes), folders, skipped)


def _reason(error: UserError, place: Path) -> str:
    return str(error).removeprefix(f"{place}: ").removeprefix(f"{place}/")


def _kept_files(sources: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Files of outcomes that were named, then those below folders, under names that tell nothing of the machine."""
    yield from ((source.name, source) for source in sources if source.is_file())
    for root in (source.resolve() for source in sources if source.is_dir()):
        for file in sorted(root.rglob(KEPT)):
            if file.is_file():
                yield (root.name / file.relative_to(root)).as_posix(), file


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
                named[unused((root.name / folder.relative_to(root)).as_posix(), named)] = folder
    return named


def find_runs(folder: Path) -> list[Path]:
    """Every folder with a configuration, in order; nothing is looked for inside a run."""
    found = []
    for place, inner, files in os.walk(folder):
        inner[:] = [name for name in inner if not name.startswith(".")]  # what is half made is hidden
        if CONFIG in files:
            found.append(Path(place))
            if STATUS in files:
                inner.clear()
    return sorted(found)

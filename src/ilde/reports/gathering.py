"""Outcomes from wherever they are: folders with runs in them, at any depth, and files of outcomes."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from ilde.data import UserError
from ilde.reports.outcome_files import FINALS, load_outcomes
from ilde.reports.outcomes import FinalScore, Outcome, canonical, read_outcome
from ilde.runs.directory import CONFIG, STATUS

KEPT = "*.outcomes.json"
"""Names of files of outcomes in a folder; one of another name is read where it is named itself."""
_OF_THE_RUN = tuple(field.name for field in fields(Outcome) if field.name not in ("run", "lows", *FINALS))
"""What is equal in two records of one run; older files have no `lows`, and know less of a score."""
_OF_ITS_PLAN = ("task", "treatment", "seed", "demos_hash", "planned_steps")
"""What is equal in two records of one run that were made at different times."""


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
            _add([outcome], outcomes)
        except UserError as error:
            skipped[name] = _reason(error, folder)
    # After the folders: of a run in both, the one that can be filmed is told.
    kept: list[Outcome] = []
    for name, file in _kept_files(sources):
        try:
            _add_kept(load_outcomes(file), kept)
        except UserError as error:
            if file in sources:
                raise
            skipped[name] = _reason(error, file)
    _add_latest(kept, outcomes, folders)
    if not outcomes:
        why = next((f" ({name}: {reason})" for name, reason in skipped.items()), "")
        where = ", ".join(map(str, sources))
        raise UserError(f"{where}: no run that can be read{why}; name folders that `ilde train` wrote, or their parent")
    return Gathered(canonical(outcomes), folders, skipped)


def _add(found: Iterable[Outcome], outcomes: list[Outcome]) -> None:
    """Take what is not there yet: a run in a file and in a folder, or in two files, would pass for two seeds."""
    for outcome in found:
        if not any(_same_run(outcome, other) for other in outcomes):
            outcomes.append(outcome)


def _add_kept(found: Iterable[Outcome], kept: list[Outcome]) -> None:
    """The same for records out of files, each with what another file knows more of its run."""
    for outcome in found:
        number = next((number for number, other in enumerate(kept) if _same_run(outcome, other)), None)
        if number is None:
            kept.append(outcome)
        else:  # which of the two is read first is decided by the names of their files
            kept[number] = _filled(kept[number], outcome)


def _same_run(one: Outcome, two: Outcome) -> bool:
    """Whether two records are equal but for where they were found, and for what one of them leaves out."""
    if any(getattr(one, name) != getattr(two, name) for name in _OF_THE_RUN):
        return False
    return _filled(one, two) == replace(_filled(two, one), run=one.run)


def _filled(outcome: Outcome, other: Outcome) -> Outcome:
    """A record with what only another one of its run knows."""
    greedy, sampled = (_filled_score(getattr(outcome, name), getattr(other, name)) for name in FINALS)
    return replace(outcome, lows=outcome.lows if outcome.lows.values else other.lows, greedy=greedy, sampled=sampled)


def _filled_score(score: FinalScore | None, other: FinalScore | None) -> FinalScore | None:
    if score is None or other is None:  # whether there is a score at all is no matter of a file's age
        return score
    unknown = [field.name for field in fields(FinalScore) if getattr(score, field.name) is None]
    return replace(score, **{name: getattr(other, name) for name in unknown})


def _add_latest(kept: Iterable[Outcome], outcomes: list[Outcome], folders: Mapping[str, Path]) -> None:
    """Take what files kept, but for earlier states of runs that went on, under names that nothing else has."""
    for outcome in sorted(kept, key=_stage, reverse=True):
        if not any(_same_run(outcome, other) or _went_on(outcome, other) for other in outcomes):
            # The folder that a run once had may hold another one by now, which would be shown for it.
            taken = {*folders, *(other.run for other in outcomes)}
            outcomes.append(replace(outcome, run=_unused(outcome.run, taken)))


def _stage(outcome: Outcome) -> tuple[int, bool, int, bool]:
    """What grows from one state of a run to its next; a killed run says that it is running."""
    return outcome.env_steps, outcome.state == "finished", len(_scores(outcome)), outcome.state != "running"


def _scores(outcome: Outcome) -> set[str]:
    return {name for name in FINALS if getattr(outcome, name) is not None}


def _went_on(kept: Outcome, run: Outcome) -> bool:
    """Whether a run that a file kept before its end has come as far in another record, or further since."""
    # One that is at its end stays, however short it was: runs of another length are no later state of it.
    if kept.state == "finished" or any(getattr(kept, name) != getattr(run, name) for name in _OF_ITS_PLAN):
        return False
    # A score that nothing newer stands for stays as well.
    return kept.env_steps <= run.env_steps and _scores(kept) <= _scores(run)


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
                named[_unused((root.name / folder.relative_to(root)).as_posix(), named)] = folder
    return named


def _unused(name: str, taken: Collection[str]) -> str:
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

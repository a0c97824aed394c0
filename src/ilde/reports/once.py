"""Each run once: which records are of one run, and which of them counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import fields, replace

from ilde.reports.outcome_files import FINALS
from ilde.reports.outcomes import FinalScore, Outcome

_OF_THE_RUN = tuple(field.name for field in fields(Outcome) if field.name not in ("run", "lows", *FINALS))
"""What is equal in two records of one run; older files have no `lows`, and know less of a score."""
_OF_ITS_PLAN = ("task", "treatment", "seed", "demos_hash", "planned_steps")
"""What is equal in two records of one run that were made at different times."""


def add_new(outcome: Outcome, outcomes: list[Outcome]) -> None:
    """Take what is not there yet: a run in two places would pass for two seeds."""
    if not any(_same_run(outcome, other) for other in outcomes):
        outcomes.append(outcome)


def merge_kept(found: Iterable[Outcome], kept: list[Outcome]) -> None:
    """Take records out of files, each once, with what another file knows more of its run."""
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


def add_latest(kept: Iterable[Outcome], outcomes: list[Outcome], folders: Collection[str]) -> None:
    """Take what files kept, but for earlier states of runs that went on, under names that no run or folder has."""
    for outcome in sorted(kept, key=_stage, reverse=True):
        if not any(_same_run(outcome, other) or _went_on(outcome, other) for other in outcomes):
            # The folder that a run once had may hold another one by now, which would be shown for it.
            taken = {*folders, *(other.run for other in outcomes)}
            outcomes.append(replace(outcome, run=unused(outcome.run, taken)))


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


def unused(name: str, taken: Collection[str]) -> str:
    """A name that is not taken, and as near as can be."""
    names = (name if number == 1 else f"{name} ({number})" for number in range(1, len(taken) + 2))
    return next(candidate for candidate in names if candidate not in taken)

"""Films for a report: who demonstrated, and what each method made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ilde.data import UserError
from ilde.demos import resolve
from ilde.reports.comparison import Comparison
from ilde.reports.films import Film, newest_video
from ilde.reports.rows import Row
from ilde.runs import RunDirectory
from ilde.video.stills import webp
from ilde.watching import demonstration_stills, run_stills

Note = Callable[[str], None]


def film_tasks(
    comparisons: Sequence[Comparison], folders: Mapping[str, Path], note: Note
) -> dict[int, tuple[Film, ...]]:
    """For each task its demonstration, then every method but the controls; `note` hears what cannot be filmed."""
    return {number: tuple(_film(comparison, folders, note)) for number, comparison in enumerate(comparisons)}


def middle_run(row: Row) -> str:
    """The run whose score is in the middle: the best one would flatter the method."""
    ordered = sorted(zip(row.scores, row.outcomes, strict=True), key=lambda pair: pair[0])
    return ordered[(len(ordered) - 1) // 2][1].run


def _film(comparison: Comparison, folders: Mapping[str, Path], note: Note) -> Iterable[Film]:
    chosen = [(row, folders.get(middle_run(row))) for row in comparison.rows if row.kind != "control"]
    for row, folder in chosen:
        if folder is None:
            note(f"{row.label}: not filmed, because its runs are not here, only their outcomes")
    here = [(row, folder) for row, folder in chosen if folder is not None]
    teacher = next((folder for row, folder in here if row.kind == "method"), None)
    if teacher is not None:
        yield from _shot(f"demonstrated: {comparison.shown}", teacher, _demonstrated, note)
    for row, folder in here:
        seed = next(o.seed for o in row.outcomes if o.run == middle_run(row))
        label = row.label if len(row.scores) == 1 else f"{row.label}, seed {seed}: the one in the middle"
        yield from _shot(label, folder, _played, note)


def _shot(label: str, folder: Path, shoot: Callable[[Path], Film], note: Note) -> Iterable[Film]:
    note(f"filming {label}")
    try:
        yield replace(shoot(folder), label=label)
    except UserError as error:
        note(f"not filmed: {error}")


def _demonstrated(run: Path) -> Film:
    demos = resolve(RunDirectory.read(run).config["demos"])
    return Film(stills=tuple(map(webp, demonstration_stills(demos))))


def _played(run: Path) -> Film:
    return Film(stills=tuple(map(webp, run_stills(run))), video=newest_video(run))

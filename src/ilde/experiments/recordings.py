"""The demonstrators behind a table: what their recordings say of them, and how long those are."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from ilde.config import RunConfig
from ilde.demos import Header, resolve
from ilde.demos.bundled import bundled_names
from ilde.experiments.answers import Answer
from ilde.experiments.paper.tables import PaperTable, PaperTask
from ilde.experiments.quantities import NOT_PRINTED, Line
from ilde.prepare import uses_demos
from ilde.reports.comparison import Comparison, shown
from ilde.reports.numbers import NOTHING, counted, plus_minus
from ilde.reports.outcomes import split_demos

LENGTH_COLUMNS = ("row", "task", "paper", "ours", "our demonstrator")


@dataclass(frozen=True)
class _Recording:
    """What was demonstrated, by name and part, and the demonstrator's score that its runs saw."""

    name: str
    fraction: float
    score: float | None = None

    @property
    def shown(self) -> str:
        """How much of which."""
        return shown(self.name, self.fraction)


def demonstrator_lines(
    table: PaperTable, task: PaperTask, configs: Iterable[RunConfig], answered: Iterable[Answer]
) -> Iterator[Line]:
    """Those of the table's own recordings, then those our runs saw instead."""
    comparisons = [answer.comparison for answer in answered]
    own = dict.fromkeys(split_demos(config.demos) for config in configs if uses_demos(config))
    printed = table.demonstrators[task.name].printed if task.name in table.demonstrators else NOT_PRINTED
    for index, (name, fraction) in enumerate(own):
        seen = (c.demonstrator for c in comparisons if _recorded(c) == (task.env, name, fraction))
        recording = _Recording(name, fraction, next(seen, None))
        label = f"demonstrator, from {recording.shown}" if index else "demonstrator"
        yield _line(table, label, task, NOT_PRINTED if index else printed, recording)
    others = {c.title: c for c in comparisons if c.demos and _recorded(c) not in {(task.env, *o) for o in own}}
    for title, comparison in others.items():
        recording = _Recording(str(comparison.demos), comparison.fraction, comparison.demonstrator)
        where = title if comparison.task != task.env else f"from {comparison.shown}"
        yield _line(table, f"demonstrator, {where}", task, NOT_PRINTED, recording)


def _recorded(comparison: Comparison) -> tuple[str, str | None, float]:
    return comparison.task, comparison.demos, comparison.fraction


def _line(table: PaperTable, label: str, task: PaperTask, paper: str, recording: _Recording) -> Line:
    known = header(recording.name)
    said = known.demonstrator if known else None
    mean = recording.score if recording.score is not None or said is None else said.mean
    if mean is None:
        return Line(label, task.name, paper)
    # A recording may have been made again since it was used: then its deviation is another policy's.
    same = said is not None and math.isclose(mean, said.mean)
    ours = "1.0" if table.name == "normalised" else plus_minus(mean, said.std if said is not None and same else None)
    return Line(label, task.name, paper, ours, verdict=counted(said.episodes, "episode") if said and same else "")


@cache
def header(name: str) -> Header | None:
    """Of a bundled recording; None for anybody else's."""
    return resolve(name).header if name in bundled_names() else None


def length_rows(table: PaperTable) -> list[tuple[str, ...]]:
    """Lengths and lives of the bundled recordings beside the paper's."""
    rows: list[tuple[str, ...]] = []
    for task in table.tasks:
        for kind in ("one-life", "full"):
            recording = resolve(f"{task.folder}/{kind}-v0")
            found = {kind: len(recording.episodes[0]), f"{kind}-lives": recording.header.lives[0]}
            for name, ours in found.items():
                row = f"expert/{name}"
                told = demonstrator_in_words(recording.header)
                rows.append((table.labels[row], task.name, table.rows[row][task.name].printed, f"{ours:,}", told))
    return rows


def demonstrator_in_words(known: Header) -> str:
    """Steps and score of the policy that was recorded, as far as its recording says."""
    steps, said = trained_steps(known), known.demonstrator
    parts = [f"{steps:,} steps"] if steps is not None else []
    parts += [f"{plus_minus(said.mean, said.std)} in {counted(said.episodes, 'episode')}"] if said else []
    return ", ".join(parts) or NOTHING


def trained_steps(known: Header) -> int | None:
    """How long the recorded policy was trained; None where its recording does not say."""
    match = re.search(r"\b(\d+) steps\b", known.recorder)
    return int(match[1]) if match else None

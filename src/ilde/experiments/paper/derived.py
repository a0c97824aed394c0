"""What follows from the paper's numbers, computed again, and where the paper prints something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ilde.experiments.paper.tables import Entries, PaperTable, PaperValue, paper_table

Numbers: TypeAlias = Mapping[str, Mapping[str, float]]
"""Row, then task; or total, then row."""

WHOLE = 100.0
"""t/T, in percent, of a method that never stays above the expert, as the paper counts it."""
ROLLOUT_STEPS, UPDATES_BETWEEN = 32 * 128, 200
"""Of the paper's Atari runs: steps in a rollout, and updates from one evaluation to the next."""


@dataclass(frozen=True)
class Disagreement:
    """A printed number that the numbers it is derived from do not give."""

    table: str
    row: str
    column: str
    """A task, or the name of a total."""
    printed: str
    recomputed: float


def ratios(table: PaperTable) -> Numbers:
    """Every return as a multiple of the expert's."""
    return {
        row: {task: _mean(value) / _mean(table.demonstrators[task]) for task, value in entries.items()}
        for row, entries in table.rows.items()
    }


def ratio_totals(table: PaperTable) -> Numbers:
    """Games above the expert and the mean ratio, for the expert too."""
    found = {"expert": dict.fromkeys(table.demonstrators, 1.0), **ratios(table)}
    above = {row: float(sum(ratio > 1 for ratio in games.values())) for row, games in found.items()}
    return {
        "games above the expert": above,
        "share of games above the expert": {row: 100 * games / len(table.tasks) for row, games in above.items()},
        "mean ratio to the expert": {row: _average(list(games.values())) for row, games in found.items()},
    }


def improvements(efficiency: PaperTable, reference: str = "giril") -> Numbers:
    """How much earlier than the reference each method passes the expert, in percent of the reference's time."""
    times = {row: {task: _time(value) for task, value in entries.items()} for row, entries in efficiency.rows.items()}
    first = times[reference]
    return {
        row: {task: 100 * (first[task] - t) / first[task] for task, t in games.items()} for row, games in times.items()
    }


def crossing_steps(efficiency: PaperTable) -> Mapping[str, Mapping[str, int | None]]:
    """The agent steps after which each method stays above the expert: the evaluation its percentage stands for."""
    assert efficiency.steps is not None
    points = evaluation_steps(efficiency.steps)
    return {
        row: {task: _nearest(points, value, efficiency.steps) for task, value in entries.items()}
        for row, entries in efficiency.rows.items()
    }


def evaluation_steps(total: int) -> tuple[int, ...]:
    """Agent steps at the evaluations of an Atari run: after its first update and every 200 from there."""
    return tuple(range(ROLLOUT_STEPS, total + 1, UPDATES_BETWEEN * ROLLOUT_STEPS))


def disagreements() -> tuple[Disagreement, ...]:
    """Every derived number of the paper that is not what its own tables give, to the digits it prints."""
    main, normalised = paper_table("atari"), paper_table("normalised")
    efficiency, versus = paper_table("efficiency"), paper_table("efficiency-vs-giril")
    earlier = improvements(efficiency)
    average = {"average": {row: _average(list(games.values())) for row, games in earlier.items()}}
    found = [
        *_totals(main, ratio_totals(main)),
        *_differing(normalised.name, normalised.rows, ratios(main)),
        *_totals(normalised, ratio_totals(main)),
        *_differing(versus.name, versus.rows, earlier),
        *_totals(versus, average),
    ]
    return tuple(found)


def _totals(table: PaperTable, recomputed: Numbers) -> list[Disagreement]:
    by_row = {
        row: {total: entries[row] for total, entries in table.totals.items() if row in entries}
        for row in ("expert", *table.rows)
    }
    again = {row: {total: recomputed[total][row] for total in entries} for row, entries in by_row.items()}
    return _differing(table.name, by_row, again)


def _differing(table: str, printed: Mapping[str, Entries], recomputed: Numbers) -> list[Disagreement]:
    return [
        Disagreement(table, row, column, value.printed, recomputed[row][column])
        for row, entries in printed.items()
        for column, value in entries.items()
        if not value.agrees_with(recomputed[row][column])
    ]


def _mean(value: PaperValue) -> float:
    assert value.mean is not None
    return value.mean


def _time(value: PaperValue) -> float:
    return WHOLE if value.mean is None else value.mean


def _nearest(points: Sequence[int], value: PaperValue, total: int) -> int | None:
    return None if value.mean is None else min(points, key=lambda steps: abs(steps - _mean(value) / 100 * total))


def _average(values: Sequence[float]) -> float:
    return sum(values) / len(values)

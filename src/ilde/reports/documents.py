"""Comparisons as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ilde.reports.across import Aggregate
from ilde.reports.comparison import Comparison
from ilde.reports.rows import Row
from ilde.reports.tables import verdict


def document(comparisons: Sequence[Comparison], aggregates: Sequence[Aggregate]) -> dict[str, Any]:
    """Everything as JSON values; numbers that are not finite mean that there is no interval."""
    return {
        "tasks": [_task_document(comparison) for comparison in comparisons],
        "all_tasks": [_aggregate_document(entry) for entry in aggregates],
    }


def _task_document(comparison: Comparison) -> dict[str, Any]:
    names = ("task", "demos", "fraction", "demonstrator", "greedy", "settings", "notes")
    rows = [_row_document(row) | {comparison.other_actions: row.other} for row in comparison.rows]
    return {name: getattr(comparison, name) for name in names} | {"rows": rows}


def _row_document(row: Row) -> dict[str, Any]:
    names = ("method", "details", "kind", "env_steps", "seeds", "scores", "mean", "std", "interval", "iqm")
    more = ("iqm_interval", "ratio", "beat_demonstrator")
    differences = {
        d.control: {
            "mean": d.mean,
            "interval": d.interval,
            "intervals_apart": d.apart,
            "probability_of_improvement": d.probability,
            "probability_interval": d.probability_interval,
        }
        for d in row.differences
    }
    told = {"differences": differences, "imitates": row.verdict and row.verdict.imitates, "verdict": verdict(row)}
    return {name: getattr(row, name) for name in (*names, *more)} | told


def _aggregate_document(entry: Aggregate) -> dict[str, Any]:
    chances = {chance.control: {"value": chance.value, "interval": chance.interval} for chance in entry.chances}
    names = ("label", "kind", "tasks", "seeds", "env_steps", "mean", "iqm", "interval")
    return {name: getattr(entry, name) for name in names} | {"probability_of_improvement": chances}

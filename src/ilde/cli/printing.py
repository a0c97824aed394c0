"""Results on standard output: one JSON document, or a table for people."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from ilde.reports.numbers import number as number

WIDTH = 100_000
"""Columns where there is no terminal to ask: a file or a pipe has room for every line."""


def print_json(document: Any) -> None:
    """Print one JSON document; numbers that are not finite become null, because JSON has none."""
    print(json.dumps(_finite(document), indent=2, allow_nan=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> None:
    """Print rows under their columns; numbers stand right."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    cells = [list(row) for row in rows]
    for index, column in enumerate(columns):
        numeric = any(isinstance(row[index], int | float) for row in cells)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        table.add_row(*(cell_text(cell) for cell in row))
    print_rich(table)


def print_rich(renderable: object) -> None:
    """Print anything rich can draw."""
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else WIDTH, markup=False, highlight=False).print(renderable)


def printable(text: str) -> str:
    """A stranger's words without what would command the terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def cell_text(value: object) -> str:
    """A value in few characters: four figures of a number, an interval in brackets, nothing for None."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return number(value)
        case int():
            return f"{value:,}"
        case [float() as low, float() as high]:
            return f"[{number(low)}, {number(high)}]"
        case [None, None]:
            return "-"
        case dict():
            return ", ".join(f"{name} {cell_text(inner)}" for name, inner in value.items()) or "-"
    return printable(str(value))


def duration(seconds: float) -> str:
    """A time in its two largest units."""
    minutes, hours = seconds / 60, seconds / 3600
    if hours >= 1:
        return f"{int(hours)} h {int(minutes) % 60} min"
    return f"{int(minutes)} min {int(seconds) % 60} s" if minutes >= 1 else f"{seconds:.0f} s"


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case list() | tuple():
            return [_finite(item) for item in value]
        case dict():
            return {name: _finite(item) for name, item in value.items()}
    return value

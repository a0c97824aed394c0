"""Files that are written whole or not at all, and findings that are kept, tabled and printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ilde.data import UserError
from ilde.reports.tables import WordTable, markdown
from ilde.runs.durable import write_atomically


def write_text(path: Path, text: str) -> None:
    """Write a file and the folders on the way to it; one that was there is replaced."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); choose another file") from None


def publish(
    document: dict[str, Any], title: str, tables: Sequence[WordTable], *, kept: Path | None, words: Path | None
) -> None:
    """Keep a document as JSON and its tables as Markdown, where asked to, and print the tables."""
    if kept:
        write_text(kept, json.dumps(document, indent=1) + "\n")
    text = markdown(title, tables)
    if words:
        write_text(words, text)
    print(text)


def read_kept(kept: Path, table: Callable[[dict[str, Any]], WordTable]) -> dict[str, Any]:
    """A document that `publish` kept, if its table can be made of it."""
    try:
        document: dict[str, Any] = json.loads(kept.read_text())
        table(document)
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{kept}: not what --json wrote") from None
    except OSError as error:
        raise UserError(f"{kept}: {error.strerror}") from None
    return document

"""Files that are written whole or not at all, and findings that are kept, tabled and printed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ilde.data import UserError
from ilde.reports.tables import WordTable, markdown
from ilde.runs.durable import probe, write_atomically


def check_file(path: Path) -> None:
    """Refuse a file that could not be written, before the work that it is to keep."""
    with _writing(path):
        if path.exists() and not path.is_file():  # `.` too, which is also what an empty name stands for
            raise UserError(f"{path}: is a folder or a device; name a file")
        probe(path.parent)


def check_apart(places: Mapping[str, Path | None]) -> None:
    """Refuse two options that name one place, where the one would replace the other."""
    known: dict[str, str] = {}
    for option, path in places.items():
        first = option if path is None else known.setdefault(os.path.realpath(path), option)
        if first != option:
            raise UserError(f"{first} and {option}: both are {path}; give each a name of its own")


def write_text(path: Path, text: str) -> None:
    """Write a file and the folders on the way to it; one that was there is replaced."""
    check_file(path)
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Where the locale is not of UTF-8, Python brings names of files in half letters: they are put together again.
        write_atomically(path, text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode())


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); choose another file") from None


def publish(
    document: dict[str, Any], title: str, tables: Sequence[WordTable], *, kept: Path | None, words: Path | None
) -> None:
    """Keep a document as JSON and its tables as Markdown, where asked to, and print the tables."""
    text = markdown(title, tables)
    try:
        if kept:
            write_text(kept, json.dumps(document, indent=1) + "\n")
        if words:
            write_text(words, text)
    finally:  # whatever became of the files, what was measured is not lost
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

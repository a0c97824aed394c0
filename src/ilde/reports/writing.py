"""Files that are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from ilde.data import UserError
from ilde.runs.durable import write_atomically


def write_text(path: Path, text: str) -> None:
    """Write a file and the folders on the way to it; one that was there is replaced."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); choose another file") from None

"""An append-only file of JSON rows, each with the `env_steps` it belongs to."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ilde.data import UserError
from ilde.runs.durable import reading, sync, write_atomically

TAIL_BYTES = 1 << 16
"""Where the last row is looked for; rows are far shorter."""


class Journal:
    """Rows in the order written; the last line may be torn by a kill and then counts as not written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, env_steps: int, row: Mapping[str, Any]) -> None:
        """Add one row; numbers that are not finite become null, because JSON has none."""
        if "env_steps" in row:
            raise ValueError(f"{self.path.name}: a row must not hold a value named env_steps")
        line = json.dumps({"env_steps": env_steps} | {name: _finite(value) for name, value in row.items()})
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def rows(self) -> list[dict[str, Any]]:
        """All whole rows."""
        return [self._parse(f"line {number}", line) for number, line in enumerate(self._lines(), start=1)]

    def last(self) -> dict[str, Any] | None:
        """The last whole row, found from the file's end: a long file is not read for it; None without one."""
        with reading(self.path):
            if not self.path.exists():
                return None
            with self.path.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
                lines = file.read().split(b"\n")[:-1]
        return self._parse("the last line", lines[-1]) if lines else None

    def rewind(self, env_steps: int) -> None:
        """Forget, atomically, every row beyond `env_steps` and a torn last line; the bytes of the others stay."""
        lines = enumerate(self._lines(), start=1)
        kept = b"".join(
            line + b"\n" for number, line in lines if self._parse(f"line {number}", line)["env_steps"] <= env_steps
        )
        if kept != self._content():
            write_atomically(self.path, kept)

    def sync(self) -> None:
        """Force the rows to disk."""
        if self.path.exists():
            sync(self.path)

    def _lines(self) -> list[bytes]:
        # What follows the last line break is nothing, or torn.
        return self._content().split(b"\n")[:-1]

    def _content(self) -> bytes:
        with reading(self.path):
            return self.path.read_bytes() if self.path.exists() else b""

    def _parse(self, where: str, line: bytes) -> dict[str, Any]:
        try:
            row: dict[str, Any] = json.loads(line)
            whole = isinstance(row["env_steps"], int)
        except (ValueError, LookupError, TypeError):
            whole = False
        if not whole:
            raise UserError(f"{self.path}: {where} is damaged; restore the file from a copy")
        return row


def _finite(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return None
        case list() | tuple():
            return [_finite(item) for item in value]
        case dict():
            return {name: _finite(item) for name, item in value.items()}
    return value

"""What `Imitator` is given, checked before any work: a mistake is answered by one line."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import numpy as np

from ilde.config import RunConfig
from ilde.data import UserError
from ilde.demos import Demonstrations

DemosLike: TypeAlias = str | Path | Demonstrations
"""A bundled name or a path, with an optional `:0.1` for the first tenth, or demonstrations in memory."""


def require_kinds(env: object, demos: object, config: object) -> None:
    """Refuse what is of another kind than is asked for."""
    if env is None:
        raise UserError("env is None; pass an id, a function that builds one environment, or a vector environment")
    if not isinstance(config, RunConfig | None):
        raise UserError(f"config is a {type(config).__name__}; a preset's name goes to preset")
    if not isinstance(demos, DemosLike | None):
        raise UserError(f"demos is a {type(demos).__name__}; for arrays there is ilde.demos.from_arrays(env, ...)")


def whole_number(name: str, value: float, *, least: int = 1) -> int:
    """A whole number, also where it is written 1e6."""
    if not isinstance(value, int | float | np.integer | np.floating) or value != value // 1 or value < least:
        raise UserError(f"{name} is {value!r}; need a whole number of at least {least}")
    return int(value)

"""The settings a command line may name, and the folder of a run that names none."""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path

NAMED = ("env", "demos", "reward", "steps", "seed", "device")
"""Settings that `ilde train --help` lists; the rest are named by their dots."""


def setting_names() -> list[str]:
    """Every setting a user may name, as typed: `ppo.learning-rate`."""
    from ilde.config import RunConfig

    return [name for name in _walk(RunConfig, "") if name not in ("method", "preset")]


def _walk(cls: type[object], prefix: str) -> list[str]:
    names: list[str] = []
    for field, hint in typing.get_type_hints(cls).items():
        name = prefix + field.replace("_", "-")
        names += _walk(hint, f"{name}.") if isinstance(hint, type) and dataclasses.is_dataclass(hint) else [name]
    return names


def default_out(*parts: object) -> Path:
    """A new folder under `runs/`, with a counter where its name is taken."""
    name = "-".join(str(part) for part in parts).replace("/", "-").replace(":", "-")
    candidate, count = Path("runs") / name, 1
    while candidate.exists():
        count += 1
        candidate = Path("runs") / f"{name}-{count}"
    return candidate

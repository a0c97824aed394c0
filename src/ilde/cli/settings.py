"""The settings a command line may name, and the folder of a run that names none."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import typing
from dataclasses import dataclass
from itertools import pairwise
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


@dataclass(frozen=True)
class Setting:
    """One setting as a user sees it."""

    name: str
    """As typed: `ppo.learning-rate`."""
    value: object
    meaning: str
    """The sentence beside it in the source."""


def described(config: object, prefix: str = "") -> list[Setting]:
    """Every setting of nested records with its value there and its meaning."""
    assert dataclasses.is_dataclass(config)
    found, meanings = [], _meanings(type(config))
    for entry in dataclasses.fields(config):
        name, value = prefix + entry.name.replace("_", "-"), getattr(config, entry.name)
        nested = dataclasses.is_dataclass(value)
        found += described(value, f"{name}.") if nested else [Setting(name, value, meanings.get(entry.name, ""))]
    return found


def _meanings(cls: type[object]) -> dict[str, str]:
    """What the source says right below each field of a record, and of those it is made from."""
    found: dict[str, str] = {}
    for part in reversed([base for base in cls.__mro__ if dataclasses.is_dataclass(base)]):
        (body,) = ast.parse(inspect.cleandoc(inspect.getsource(part))).body
        assert isinstance(body, ast.ClassDef)
        for entry, after in pairwise(body.body):
            if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name):
                said = after.value if isinstance(after, ast.Expr) else None
                words = said.value if isinstance(said, ast.Constant) else ""
                found[entry.target.id] = " ".join(str(words).split())
    return found


def default_out(*parts: object) -> Path:
    """A new folder under `runs/`, with a counter where its name is taken."""
    name = "-".join(str(part) for part in parts).replace("/", "-").replace(":", "-")
    candidate, count = Path("runs") / name, 1
    while candidate.exists():
        count += 1
        candidate = Path("runs") / f"{name}-{count}"
    return candidate

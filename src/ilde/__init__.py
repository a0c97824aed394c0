"""Imitation Learning with Double Exploration: beat a demonstrator from a fragment of its demonstration.

The public names come from their modules when first used, so that `import ilde` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ilde.api import Imitator
    from ilde.config import PRESETS, RunConfig
    from ilde.data import UserError
    from ilde.demos import Demonstrations
    from ilde.evaluation import Evaluation
    from ilde.methods import METHODS

    __version__: str

__all__ = ["METHODS", "PRESETS", "Demonstrations", "Evaluation", "Imitator", "RunConfig", "UserError", "__version__"]

_HOMES = {
    "METHODS": "ilde.methods",
    "PRESETS": "ilde.config",
    "Demonstrations": "ilde.demos",
    "Evaluation": "ilde.evaluation",
    "Imitator": "ilde.api",
    "RunConfig": "ilde.config",
    "UserError": "ilde.data",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("ilde")
    if name not in _HOMES:
        raise AttributeError(f"module 'ilde' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

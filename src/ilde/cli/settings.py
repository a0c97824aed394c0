"""From words to a configuration: a preset, then each setting by its dotted name."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ilde.config import RunConfig

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


def compose(method: str, env: str, preset: str | None, settings: Sequence[tuple[str, str]]) -> RunConfig:
    """The configuration of a command line; where no preset is named, method and environment choose it."""
    from ilde.config import find_preset, override, usual_preset, validated
    from ilde.data import UserError
    from ilde.envs import canonical_env_id
    from ilde.envs.names import is_atari
    from ilde.methods import find_method

    find_method(method)
    env_id = canonical_env_id(env)
    config = find_preset(preset or usual_preset(method, atari=is_atari(env_id)))
    for name, text in settings:
        try:
            config = override(config, name, text)
        except UserError as error:
            # Named as it was typed, with all its dots.
            raise UserError(f"--{name}: {str(error).partition(': ')[2]}") from error
    return validated(dataclasses.replace(config, method=method, env=env_id))


def default_out(*parts: object) -> Path:
    """A new folder under `runs/`, with a counter where its name is taken."""
    name = "-".join(str(part) for part in parts).replace("/", "-").replace(":", "-")
    candidate, count = Path("runs") / name, 1
    while candidate.exists():
        count += 1
        candidate = Path("runs") / f"{name}-{count}"
    return candidate


def parse_seeds(text: str) -> tuple[int, ...]:
    """`0..3` is 0, 1, 2 and 3; `0,2,5` is what it says."""
    from ilde.data import UserError

    low, dots, high = text.partition("..")
    words = [low, high] if dots else text.split(",")
    if not all(word.isdecimal() for word in words):
        raise UserError(f"--seeds {text!r}: write a range such as 0..3, or a list such as 0,2,5")
    numbers = [int(word) for word in words]
    seeds = tuple(range(numbers[0], numbers[1] + 1)) if dots else tuple(numbers)
    if not seeds or len(set(seeds)) < len(seeds):
        raise UserError(f"--seeds {text!r}: {'a seed stands twice' if seeds else 'the range is empty'}")
    return seeds

"""From words to a configuration, and back: a preset, then each setting by its dotted name."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

from ilde.config import RunConfig, find_preset, override, to_dict, usual_preset, validated
from ilde.data import UserError
from ilde.envs import canonical_env_id
from ilde.envs.names import is_atari
from ilde.fields import leaves
from ilde.methods import find_method

Setting: TypeAlias = tuple[str, str]
"""A dotted name and the text of its value."""

SPELLED_APART = ("method", "env", "preset")


def compose(method: str, env: str, preset: str | None, settings: Sequence[Setting], *, mark: str = "") -> RunConfig:
    """The configuration of some words; where no preset is named, method and environment choose it.

    Args:
        mark: what stands before a setting's name where the user wrote it, for the error that names it.
    """
    find_method(method)
    env_id = canonical_env_id(env)
    config = find_preset(preset or usual_preset(method, atari=is_atari(env_id)))
    for name, text in settings:
        try:
            config = override(config, name, text)
        except UserError as error:
            # Named as it was typed, with all its dots.
            _, colon, reason = str(error).partition(": ")
            raise UserError(f"{mark}{name}: {reason}" if colon else str(error)) from error
    return validated(dataclasses.replace(config, method=method, env=env_id))


def spelled(config: RunConfig) -> list[str]:
    """The words after `ilde train` that compose to this configuration."""
    preset = dict(leaves(to_dict(find_preset(config.preset))))
    changed = [(name, value) for name, value in leaves(to_dict(config)) if value != preset[name]]
    options = [f"--{name.replace('_', '-')}={value}" for name, value in changed if name not in SPELLED_APART]
    return [config.method, f"--env={config.env}", f"--preset={config.preset}", *options]


def parse_seeds(text: str, *, mark: str = "") -> tuple[int, ...]:
    """`0..3` is 0, 1, 2 and 3; `0,2,5` is what it says."""
    low, dots, high = text.partition("..")
    words = [low, high] if dots else text.split(",")
    if not all(word.isdecimal() for word in words):
        raise UserError(f"{mark}seeds {text!r}: write a range such as 0..3, or a list such as 0,2,5")
    numbers = [int(word) for word in words]
    seeds = tuple(range(numbers[0], numbers[1] + 1)) if dots else tuple(numbers)
    if not seeds or len(set(seeds)) < len(seeds):
        raise UserError(f"{mark}seeds {text!r}: {'a seed stands twice' if seeds else 'the range is empty'}")
    return seeds

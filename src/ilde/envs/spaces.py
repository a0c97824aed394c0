"""Which spaces a policy can be built for, and the gates every observation and action passes.

A vector or a channel-first image in, one choice or a vector of numbers out; everything else is refused in one line,
before any work. Structured spaces are left to Gymnasium's own wrappers.
"""

from __future__ import annotations

from textwrap import shorten
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

from ilde.data import UserError
from ilde.envs.base import Array

ActionSpace: TypeAlias = gym.spaces.Discrete | gym.spaces.Box


def _describe(space: gym.Space[Any]) -> str:
    """A space in one short line; the bounds of a large Box alone would fill a page."""
    if isinstance(space, gym.spaces.Box):
        return f"Box{space.shape} {space.dtype}"
    return shorten(str(space), 80)


def policy_obs_space(space: gym.Space[Any], env_id: str) -> gym.spaces.Box:
    """The observations as the policy sees them: uint8 images as they are, every vector in float32."""
    if not isinstance(space, gym.spaces.Box) or len(space.shape) not in (1, 3) or 0 in space.shape:
        raise UserError(
            f"{env_id}: observations are {_describe(space)}; need a vector or a channel-first uint8 image "
            "(gymnasium.wrappers.FlattenObservation makes a vector of anything)"
        )
    if len(space.shape) == 1:
        with np.errstate(over="ignore"):  # a bound beyond float32 is no bound
            return gym.spaces.Box(space.low.astype(np.float32), space.high.astype(np.float32), dtype=np.float32)
    channels, height, width = space.shape
    if space.dtype != np.uint8 or channels > min(height, width):
        raise UserError(
            f"{env_id}: observations are {_describe(space)}; images must be uint8 (channels, height, width): "
            "transpose them with gymnasium.wrappers.TransformObservation"
        )
    return space


def policy_action_space(space: gym.Space[Any], env_id: str) -> ActionSpace:
    """The actions a policy can give: one of n, or a vector of real numbers."""
    if isinstance(space, gym.spaces.Discrete):
        if space.start == 0:
            return space
        raise UserError(
            f"{env_id}: actions start at {space.start}; they must start at 0 "
            "(shift them with gymnasium.wrappers.TransformAction)"
        )
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 1 and np.issubdtype(space.dtype, np.floating):
        return space
    raise UserError(f"{env_id}: actions are {_describe(space)}; need Discrete or a real-valued Box vector")


def policy_obs(native: Any, space: gym.spaces.Box, env_id: str, steps: Array) -> Array:
    """A fresh copy of a simulator's observations (N, ...) in the policy's precision, checked to be finite.

    Args:
        native: what the simulator gave.
        space: made by `policy_obs_space`.
        env_id: for the error.
        steps: (N,) how far each episode has come, for the error.
    """
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is reported as such
        obs = np.array(native, dtype=space.dtype)
    require_finite(obs, "observation", env_id, steps)
    return obs


def require_finite(values: Array, name: str, env_id: str, steps: Array) -> None:
    """Raise `FloatingPointError`, naming environment and step, where a batch (N, ...) holds NaN or infinity."""
    finite = np.isfinite(values)
    if not finite.all():
        env = int((~finite).reshape(len(steps), -1).any(axis=1).argmax())
        raise FloatingPointError(f"{env_id}: environment {env} gave a non-finite {name} at step {steps[env]}")


def checked_action(action: Array, space: ActionSpace, num_envs: int, clip: bool) -> Array:
    """A fresh, contiguous copy of a batch of actions in the space's own type; wrong ones raise before the simulator.

    Args:
        action: (num_envs,) integers for Discrete, (num_envs, dims) numbers for Box.
        space: the action space of one environment.
        num_envs: how many environments are stepped together.
        clip: move Box actions into the space's bounds; otherwise they pass as given.
    """
    action = np.asarray(action)
    expected = (num_envs, *(space.shape or ()))
    if action.shape != expected:
        raise ValueError(f"actions have shape {action.shape}; expected {expected}")
    if isinstance(space, gym.spaces.Discrete):
        return _checked_choice(action, int(space.n))
    given = np.array(action, dtype=space.dtype, order="C")
    wrong = ~np.isfinite(given).all(axis=1)
    if wrong.any():
        env = int(wrong.argmax())
        raise FloatingPointError(f"the action of environment {env} is not finite: {given[env]}")
    return np.clip(given, space.low, space.high) if clip else given


def _checked_choice(action: Array, count: int) -> Array:
    if action.dtype.kind not in "iu":
        raise ValueError(f"discrete actions must be integers; received {action.dtype}")
    wrong = (action < 0) | (action >= count)
    if wrong.any():
        env = int(wrong.argmax())
        raise ValueError(f"action {action[env]} of environment {env} is not in Discrete({count})")
    return np.array(action, dtype=np.int64, order="C")

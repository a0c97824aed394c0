"""A stage: one environment, and a camera on it.

Images are filmed as the policy sees them; MuJoCo bodies are drawn without OpenGL, unless the rendered picture is asked
for; everything else draws itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

from ilde.data import UserError
from ilde.envs import EnvBatch, canonical_env_id, make_envs, single_env
from ilde.envs.base import Array
from ilde.envs.gym_batch import GymBatch
from ilde.envs.gymnasium_make import make_gym
from ilde.envs.names import is_atari, kind_of
from ilde.video.canvas import Picture

Filmable: TypeAlias = str | Callable[[], gym.Env[Any, Any]]
"""An id, or a function that builds one environment."""

ATARI_FPS = 15
"""60 frames a second, four to an agent step."""
DEFAULT_FPS = 30


@dataclass(frozen=True)
class Stage:
    """A batch of one environment that can be filmed."""

    envs: EnvBatch
    shoot: Callable[[Array], Picture]
    """The picture of the present state, given the observation of it."""
    fps: int
    single: gym.Env[Any, Any] | None = None
    """The environment within the batch, where it can be reached."""


def open_stage(env: Filmable, seed: int, *, clip_actions: bool, rendered: bool = False) -> Stage:
    """Set up an environment for filming; with `rendered`, MuJoCo draws through OpenGL where the machine has it."""
    if isinstance(env, str) and is_atari(canonical_env_id(env)):
        return Stage(make_envs(env, 1, seed), _newest_frame, ATARI_FPS)
    if not callable(env) and not isinstance(env, str):
        raise UserError(f"env is a {type(env).__name__}; to film it, pass an id or a function that builds one")
    single = _build(env, rendered) if isinstance(env, str) else env()
    name = canonical_env_id(env) if isinstance(env, str) else None
    envs = GymBatch(name, lambda: single, 1, seed, clip_actions=clip_actions)
    fps = int(single.metadata.get("render_fps", DEFAULT_FPS))
    shoot = _newest_frame if len(envs.obs_space.shape) == 3 else _camera(single, envs.env_id)
    return Stage(envs, shoot, fps, single)


def _build(env_id: str, rendered: bool) -> gym.Env[Any, Any]:
    env_id = canonical_env_id(env_id)
    drawn = kind_of(env_id) == "mujoco" and not rendered
    return make_gym(env_id) if drawn else single_env(env_id, render=True)


def _newest_frame(obs: Array) -> Picture:
    """The last channel of a channel-first image; three channels are colours."""
    image = obs[0]
    return np.moveaxis(image, 0, -1) if len(image) == 3 else np.repeat(image[-1][..., None], 3, axis=2)


def _camera(env: gym.Env[Any, Any], env_id: str) -> Callable[[Array], Picture]:
    if env.render_mode == "rgb_array":
        return lambda obs: np.asarray(env.render(), dtype=np.uint8)
    model, data = (getattr(env.unwrapped, name, None) for name in ("model", "data"))
    if not hasattr(model, "geom_type"):
        raise UserError(f"{env_id}: shows no picture; build it with render_mode='rgb_array'")
    # Here, because mujoco is an optional extra.
    from ilde.video.schematic import BodyDrawing

    drawing: list[BodyDrawing] = []

    def shoot(obs: Array) -> Picture:
        # The camera is set up at the first picture: before the first reset nothing has a place.
        if not drawing:
            drawing.append(BodyDrawing(model, data))
        return drawing[0]()

    return shoot

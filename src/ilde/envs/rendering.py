"""A single environment that can be filmed.

Atari is left out: its picture is the newest frame of the stack a policy sees. MuJoCo draws through OpenGL, on a machine
without a screen by way of EGL or OSMesa, whichever library is there.
"""

from __future__ import annotations

import os
import sys
from ctypes.util import find_library
from typing import Any

import gymnasium as gym

from ilde.data import UserError
from ilde.envs.gymnasium_make import DRAWN, make_gym
from ilde.envs.names import canonical_env_id, is_atari, kind_of

_OFFSCREEN_LIBRARIES = {"egl": "EGL", "osmesa": "OSMesa"}


def single_env(env_id: str, render: bool) -> gym.Env[Any, Any]:
    """One environment for watching; with `render`, its `render()` gives RGB pictures (height, width, 3)."""
    env_id = canonical_env_id(env_id)
    if is_atari(env_id):
        raise UserError(f"{env_id}: Atari has no separate picture; film the newest frame of its observations")
    if not render:
        return make_gym(env_id)
    if kind_of(env_id) == "mujoco":
        _choose_offscreen_backend(env_id)
    env = make_gym(env_id, render_mode="rgb_array")
    _require_picture(env, env_id)
    return env


def _choose_offscreen_backend(env_id: str) -> None:
    """Name MuJoCo an OpenGL backend where there is no screen; a choice the user made stands."""
    has_screen = sys.platform != "linux" or "DISPLAY" in os.environ
    if os.environ.get("MUJOCO_GL") or has_screen:
        return
    for backend, library in _OFFSCREEN_LIBRARIES.items():
        if find_library(library):
            os.environ["MUJOCO_GL"] = backend
            return
    raise UserError(
        f"{env_id}: no OpenGL library to draw without a screen: apt-get install libegl1 libgl1 libegl-mesa0"
    )


def _require_picture(env: gym.Env[Any, Any], env_id: str) -> None:
    """Draw once: what is missing on a machine shows only then, and in as many ways as there are drawing libraries."""
    try:
        env.reset(seed=0)
        picture = env.render()
    except NotImplementedError:
        picture = None
    except Exception as error:
        raise UserError(f"{env_id}: cannot be drawn here: {_first_line(error)}") from error
    if getattr(picture, "ndim", 0) != 3:
        raise UserError(f"{env_id}: its render() gives no picture; {DRAWN}")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)

"""From what a user calls an environment to a batch of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import gymnasium as gym

from ilde.data import UserError
from ilde.envs.base import EnvBatch
from ilde.envs.gym_batch import GymBatch
from ilde.envs.gymnasium_make import make_gym
from ilde.envs.mujoco_tasks import has_task
from ilde.envs.names import canonical_env_id, installed, is_atari
from ilde.envs.seeded_batch import SeededBatch
from ilde.envs.user_vector import UserVectorBatch, VectorEnv

EnvLike: TypeAlias = str | Callable[[], gym.Env[Any, Any]] | VectorEnv
"""An id, a function that builds one environment, or a vector environment of the user's own."""


def make_envs(
    env: EnvLike,
    num_envs: int,
    seed: int,
    *,
    clip_actions: bool = False,
    num_threads: int | None = None,
    num_groups: int = 1,
) -> EnvBatch:
    """N copies of an environment, stepped together and reset by themselves.

    An Atari id names the game only: `ALE/Qbert-v5`, `Qbert` and `qbert` all give the raw-reward game without sticky
    actions, with frame skip 4 and four stacked 84x84 grey frames.

    Args:
        env: an id, an environment factory, or a vector environment of num_envs copies.
        num_envs: how many copies.
        seed: of the run; all randomness of the environments follows from it.
        clip_actions: move continuous actions into the space's bounds.
        num_threads: simulator threads for Atari (of each group) and MuJoCo; None takes what suits the cores. It changes
            no result.
        num_groups: parts that step in the background one after another, where the simulator can (Atari).
    """
    if num_envs < 1:
        raise UserError(f"num_envs is {num_envs}; need at least 1")
    if isinstance(env, str):
        return _make_named(canonical_env_id(env), num_envs, seed, clip_actions, num_threads, num_groups)
    if isinstance(env, gym.vector.VectorEnv):
        if env.num_envs != num_envs:
            raise UserError(
                f"the vector environment has {env.num_envs} copies, num_envs is {num_envs}: make them equal"
            )
        return UserVectorBatch(env, seed, clip_actions=clip_actions)
    if callable(env):
        return GymBatch(None, env, num_envs, seed, clip_actions=clip_actions)
    raise UserError(
        f"env is a {type(env).__name__}; pass an id, a function that builds one environment, or a vector environment"
    )


def _make_named(
    env_id: str, num_envs: int, seed: int, clip_actions: bool, num_threads: int | None, num_groups: int
) -> EnvBatch:
    if is_atari(env_id):
        # Here, because ale-py is an optional extra.
        from ilde.envs.atari import AtariBatch

        return AtariBatch(env_id, num_envs, seed, num_threads=num_threads, num_groups=num_groups)
    if has_task(env_id) and installed("mujoco"):
        # Here, because mujoco is an optional extra.
        from ilde.envs.mujoco_pool import MujocoPool

        return SeededBatch(env_id, MujocoPool(env_id, num_envs, num_threads), seed, clip_actions=clip_actions)
    return GymBatch(env_id, partial(make_gym, env_id), num_envs, seed, clip_actions=clip_actions)

"""A user's own Gymnasium vector environment as a batch: any implementation that shows the true successor."""

from __future__ import annotations

from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from ilde.data import UserError
from ilde.envs.base import Array, State, Step, episode_seed
from ilde.envs.spaces import checked_action, policy_action_space, policy_obs, policy_obs_space, require_finite
from ilde.envs.tally import EpisodeTally

VectorEnv: TypeAlias = gym.vector.VectorEnv[Any, Any, Any]


def _name(env: VectorEnv) -> str:
    """The id of the copied environment where it is known: Gymnasium's own vector classes carry none themselves."""
    copies = getattr(env.unwrapped, "envs", ())
    spec = env.spec or (copies[0].spec if copies else None)
    return spec.id if spec else type(env.unwrapped).__name__


def _autoreset_mode(env: VectorEnv, env_id: str) -> AutoresetMode:
    declared = env.metadata.get("autoreset_mode")
    for mode in (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED):
        if declared in (mode, mode.value):
            return mode
    raise UserError(
        f"{env_id}: autoreset mode {declared} mixes reset steps into the data; "
        "make it with autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP"
    )


class UserVectorBatch:
    """Adapts a `gymnasium.vector.VectorEnv` that resets within the step (SAME_STEP) or when told to (DISABLED).

    Its simulators are out of reach, so a restored run starts new episodes.

    Args:
        env: the vector environment; this batch owns and closes it.
        seed: of the run.
        clip_actions: move Box actions into the space's bounds before stepping.
    """

    def __init__(self, env: VectorEnv, seed: int, *, clip_actions: bool = False) -> None:
        self.env_id = _name(env)
        self.num_envs = env.num_envs
        self.resume_mode = "fresh-episodes"
        self.obs_space = policy_obs_space(env.single_observation_space, self.env_id)
        self.action_space = policy_action_space(env.single_action_space, self.env_id)
        self._env = env
        self._mode = _autoreset_mode(env, self.env_id)
        self._seed = seed
        self._clip_actions = clip_actions
        self._restores = 0
        self._tally = EpisodeTally(self.num_envs)

    def reset(self) -> Array:
        """Start all episodes anew from this batch's seed; returns the first observations (N, ...)."""
        self._restores = 0
        return self._start()

    def step(self, action: Array) -> Step:
        """Take one action (N, ...) in each environment; ended episodes start again within the same step."""
        action = checked_action(action, self.action_space, self.num_envs, self._clip_actions)
        raw_obs, raw_reward, raw_terminated, raw_truncated, info = self._env.step(action)
        # Copies: a vector environment may hand out its own buffers again and again.
        reward = np.array(raw_reward, dtype=np.float64)
        terminated, truncated = np.array(raw_terminated, dtype=bool), np.array(raw_truncated, dtype=bool)
        self._tally.add(reward)
        require_finite(reward, "reward", self.env_id, self._tally.lengths)
        ended = terminated | truncated
        obs, next_obs = self._both_obs(raw_obs, ended, info)
        scores = self._tally.finish(ended)
        return Step(obs, next_obs, reward.astype(np.float32), terminated, truncated & ~terminated, scores)

    def state(self) -> State:
        """How often this run was restored: each time, the new episodes get another seed."""
        return {"seed": self._seed, "restores": self._restores}

    def restore(self, state: State) -> Array:
        """Start new episodes: the open ones cannot be brought back."""
        self._seed = int(state["seed"])
        self._restores = int(state["restores"]) + 1
        return self._start()

    def close(self) -> None:
        """Free the simulators."""
        self._env.close()

    def _start(self) -> Array:
        self._tally.clear()
        obs, _ = self._env.reset(seed=episode_seed(self._seed, 0, self._restores))
        return self._outgoing_obs(obs)

    def _both_obs(self, raw_obs: Any, ended: Array, info: dict[str, Any]) -> tuple[Array, Array]:
        """What the policy acts on next, and the true successors; they differ where an episode ended."""
        obs = self._outgoing_obs(raw_obs)
        if not ended.any():
            return obs, obs.copy()
        if self._mode is AutoresetMode.DISABLED:
            first_obs, _ = self._env.reset(options={"reset_mask": ended})
            return self._outgoing_obs(first_obs), obs
        if "final_obs" not in info:
            raise UserError(
                f"{self.env_id}: resets within the step but gives no info['final_obs']; use DISABLED instead"
            )
        next_obs = obs.copy()
        for env in np.flatnonzero(ended):
            next_obs[env] = info["final_obs"][env]
        return obs, self._outgoing_obs(next_obs)

    def _outgoing_obs(self, obs: Any) -> Array:
        return policy_obs(obs, self.obs_space, self.env_id, self._tally.lengths)

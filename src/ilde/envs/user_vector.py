"""A user's own Gymnasium vector environment as a batch: any implementation that shows the true successor."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from ilde.data import UserError
from ilde.envs.base import Array, State, Step, episode_seed
from ilde.envs.spaces import checked_action, policy_action_space, policy_obs_space
from ilde.envs.tally import EpisodeTally


def _autoreset_mode(env: gym.vector.VectorEnv[Any, Any, Any], env_id: str) -> AutoresetMode:
    declared = env.metadata.get("autoreset_mode")
    mode = AutoresetMode(declared) if declared is not None else None
    if mode in (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED):
        return mode
    raise UserError(
        f"{env_id}: autoreset mode {mode.name if mode else 'unknown'} hides the end of episodes; "
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

    def __init__(self, env: gym.vector.VectorEnv[Any, Any, Any], seed: int, *, clip_actions: bool = False) -> None:
        self.env_id = env.spec.id if env.spec else type(env.unwrapped).__name__
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
        raw_obs, reward, terminated, truncated, info = self._env.step(action)
        # Copies: a vector environment may hand out its own buffers again and again.
        obs, reward = self._outgoing_obs(raw_obs), np.array(reward, dtype=np.float64)
        terminated, truncated = np.array(terminated, dtype=bool), np.array(truncated, dtype=bool)
        self._tally.add(reward)
        next_obs = obs.copy()
        ended = terminated | truncated
        if ended.any():
            if self._mode is AutoresetMode.DISABLED:
                obs = self._outgoing_obs(self._env.reset(options={"reset_mask": ended})[0])
            else:
                self._put_final_obs(next_obs, ended, info)
        self._require_finite(next_obs, "observation")
        self._require_finite(reward, "reward")
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

    def _put_final_obs(self, next_obs: Array, ended: Array, info: dict[str, Any]) -> None:
        if "final_obs" not in info:
            raise UserError(f"{self.env_id}: SAME_STEP autoreset without info['final_obs']; use DISABLED instead")
        for env in np.flatnonzero(ended):
            next_obs[env] = info["final_obs"][env]

    def _outgoing_obs(self, obs: Any) -> Array:
        with np.errstate(over="ignore"):
            return np.array(obs, dtype=self.obs_space.dtype)

    def _require_finite(self, values: Array, name: str) -> None:
        finite = np.isfinite(values)
        if not finite.all():
            env = int((~finite).reshape(self.num_envs, -1).any(axis=1).argmax())
            step = int(self._tally.lengths[env])
            raise FloatingPointError(f"{self.env_id}: environment {env} gave a non-finite {name} at step {step}")

"""N Gymnasium environments in a plain loop, restorable exactly without any help from the simulator.

Every episode is reset with its own seed, so an open episode is a function of that seed and of the actions since:
restoring replays it. Worker processes were left out: on few cores they are slower than this loop on every MuJoCo task.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from ilde.envs.base import Array, State, Step
from ilde.envs.course import Course
from ilde.envs.replay import NotReproducible, same_bits
from ilde.envs.spaces import checked_action, policy_action_space, policy_obs, policy_obs_space, require_finite

_logger = logging.getLogger(__name__)


class GymBatch:
    """N copies of one Gymnasium environment; observations come out in float32, images in uint8.

    Args:
        env_id: the name errors, demonstrations and run directories give this environment; None takes the id, or else
            the class name, of what `make_one` builds.
        make_one: builds one copy.
        num_envs: how many copies.
        seed: of the run; episode k of copy i is reset with `episode_seed(seed, i, k)`.
        clip_actions: move Box actions into the space's bounds before stepping.
    """

    def __init__(
        self,
        env_id: str | None,
        make_one: Callable[[], gym.Env[Any, Any]],
        num_envs: int,
        seed: int,
        *,
        clip_actions: bool = False,
    ) -> None:
        first = make_one()
        self.env_id = env_id or (first.spec.id if first.spec else type(first.unwrapped).__name__)
        self.num_envs = num_envs
        self.resume_mode = "exact"
        self.obs_space = policy_obs_space(first.observation_space, self.env_id)
        self.action_space = policy_action_space(first.action_space, self.env_id)
        self._envs = [first, *(make_one() for _ in range(num_envs - 1))]
        self._clip_actions = clip_actions
        # The simulator's own precision is kept to compare a restored state with; casting happens once, on the way out.
        self._native_obs = np.zeros((num_envs, *self.obs_space.shape), dtype=first.observation_space.dtype)
        self._course = Course(num_envs, seed, self.action_space.shape or (), self.action_space.dtype)

    def reset(self) -> Array:
        """Start all episodes anew from this batch's seed; returns the first observations (N, ...)."""
        return self._start_from(np.zeros_like(self._course.seedings))

    def step(self, action: Array) -> Step:
        """Take one action (N, ...) in each environment; ended episodes start again within the same step."""
        action = checked_action(action, self.action_space, self.num_envs, self._clip_actions)
        self._course.log.append(action)
        reward, terminated, truncated = self._act(action)
        self._course.tally.add(reward)
        require_finite(reward, "reward", self.env_id, self._course.tally.lengths)
        next_obs = self._outgoing_obs()
        ended = terminated | truncated
        scores = self._course.tally.finish(ended)
        self._course.next_seeding(ended)
        for env in np.flatnonzero(ended):
            self._open_episode(int(env))
        obs = self._outgoing_obs() if scores else next_obs.copy()
        return Step(obs, next_obs, reward.astype(np.float32), terminated, truncated & ~terminated, scores)

    def state(self) -> State:
        """The open episodes: their numbers, actions and sums, and the observations they have led to."""
        return {"course": self._course.state(), "obs": self._native_obs.copy()}

    def restore(self, state: State) -> Array:
        """Replay the saved open episodes; where that leads elsewhere, drop them and start the next ones."""
        self._course.restore(state["course"])
        try:
            for env in range(self.num_envs):
                self._replay(env, np.asarray(state["obs"])[env])
        except NotReproducible as reason:
            _logger.warning("%s; open episodes are dropped, new ones start", reason)
            self.resume_mode = "fresh-episodes"
            return self._start_from(self._course.seedings + 1)
        return self._outgoing_obs()

    def close(self) -> None:
        """Free the simulators."""
        for env in self._envs:
            env.close()

    def _start_from(self, episodes: Array) -> Array:
        self._course.begin(episodes)
        for env in range(self.num_envs):
            self._open_episode(env)
        return self._outgoing_obs()

    def _open_episode(self, env: int) -> None:
        self._native_obs[env], _ = self._envs[env].reset(seed=self._course.seed_of(env))

    def _act(self, action: Array) -> tuple[Array, Array, Array]:
        reward = np.zeros(self.num_envs, dtype=np.float64)
        terminated = np.zeros(self.num_envs, dtype=bool)
        truncated = np.zeros(self.num_envs, dtype=bool)
        for i, env in enumerate(self._envs):
            self._native_obs[i], reward[i], terminated[i], truncated[i], _ = env.step(action[i])
        return reward, terminated, truncated

    def _replay(self, env: int, saved_obs: Array) -> None:
        self._open_episode(env)
        for action in self._course.log.of(env):
            self._native_obs[env], _, terminated, truncated, _ = self._envs[env].step(action.copy())
            if terminated or truncated:
                raise NotReproducible(f"{self.env_id}: the open episode of environment {env} ended early in its replay")
        if not same_bits(self._native_obs[env], saved_obs):
            raise NotReproducible(f"{self.env_id}: the replay of environment {env} led to another observation")

    def _outgoing_obs(self) -> Array:
        return policy_obs(self._native_obs, self.obs_space, self.env_id, self._course.tally.lengths)

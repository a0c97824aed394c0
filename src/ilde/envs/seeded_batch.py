"""The book-keeping of a batch whose every episode has a seed of its own, whoever simulates it.

An open episode is a function of its seed and of the actions since, so restoring replays it: exact, without any help
from the simulator.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import gymnasium as gym
import numpy as np

from ilde.envs.base import Array, State, Step
from ilde.envs.course import Course
from ilde.envs.replay import NotReproducible, same_bits
from ilde.envs.spaces import checked_action, policy_action_space, policy_obs, policy_obs_space, require_finite

_logger = logging.getLogger(__name__)

Outcome: TypeAlias = tuple[Array, Array, Array, Array]
"""Observations, rewards, terminated and truncated of some copies, in the simulator's own precision."""


class Copies(Protocol):
    """Simulated copies of one environment that are told when to reset, and with which seeds."""

    num_envs: int
    observation_space: gym.Space[Any]
    action_space: gym.Space[Any]

    def reset(self, envs: Sequence[int], seeds: Sequence[int]) -> Array:
        """Start an episode in some copies, one seed each; returns a fresh array of their first observations."""

    def step(self, envs: Sequence[int], action: Array) -> Outcome:
        """Take one action in each of some copies; returns fresh arrays."""

    def close(self) -> None:
        """Free the simulator."""


class SeededBatch:
    """N copies of one environment; observations come out in float32, images in uint8.

    Args:
        env_id: the name errors, demonstrations and run directories give this environment.
        copies: who simulates them.
        seed: of the run; episode k of copy i is reset with `episode_seed(seed, i, k)`.
        clip_actions: move Box actions into the space's bounds before stepping.
    """

    def __init__(self, env_id: str, copies: Copies, seed: int, *, clip_actions: bool = False) -> None:
        self.env_id = env_id
        self.num_envs = copies.num_envs
        self.resume_mode = "exact"
        self.obs_space = policy_obs_space(copies.observation_space, env_id)
        self.action_space = policy_action_space(copies.action_space, env_id)
        self._copies = copies
        self._clip_actions = clip_actions
        # The simulator's own precision is kept to compare a restored state with; casting happens once, on the way out.
        self._native_obs: Array = np.zeros((self.num_envs, *self.obs_space.shape), copies.observation_space.dtype)
        self._course = Course(self.num_envs, seed, self.action_space.shape or (), self.action_space.dtype)

    def reset(self) -> Array:
        """Start all episodes anew from this batch's seed; returns the first observations (N, ...)."""
        return self._start_from(np.zeros_like(self._course.seedings))

    def step(self, action: Array) -> Step:
        """Take one action (N, ...) in each environment; ended episodes start again within the same step."""
        action = checked_action(action, self.action_space, self.num_envs, self._clip_actions)
        self._course.log.append(action)
        self._native_obs, reward, terminated, truncated = self._copies.step(range(self.num_envs), action)
        self._course.tally.add(reward)
        require_finite(reward, "reward", self.env_id, self._course.tally.lengths)
        next_obs = self._outgoing_obs()
        ended = terminated | truncated
        scores = self._course.tally.finish(ended)
        self._course.next_seeding(ended)
        self._open_episodes(ended)
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
        """Free the simulator."""
        self._copies.close()

    def _start_from(self, episodes: Array) -> Array:
        self._course.begin(episodes)
        self._open_episodes(np.ones(self.num_envs, dtype=bool))
        return self._outgoing_obs()

    def _open_episodes(self, opening: Array) -> None:
        """Reset some copies (a mask) with the seeds of their present episodes."""
        envs = np.flatnonzero(opening).tolist()
        if envs:
            self._native_obs[envs] = self._copies.reset(envs, [self._course.seed_of(env) for env in envs])

    def _replay(self, env: int, saved_obs: Array) -> None:
        obs = self._copies.reset([env], [self._course.seed_of(env)])
        for action in self._course.log.of(env)[:, None]:
            obs, _, terminated, truncated = self._copies.step([env], action.copy())
            if terminated[0] or truncated[0]:
                raise NotReproducible(f"{self.env_id}: the open episode of environment {env} ended early in its replay")
        if not same_bits(obs[0], saved_obs):
            raise NotReproducible(f"{self.env_id}: the replay of environment {env} led to another observation")
        self._native_obs[env] = obs[0]

    def _outgoing_obs(self) -> Array:
        return policy_obs(self._native_obs, self.obs_space, self.env_id, self._course.tally.lengths)

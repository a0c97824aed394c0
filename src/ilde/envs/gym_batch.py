"""N Gymnasium environments in a plain loop.

Worker processes were left out: on few cores they are slower than this loop on every MuJoCo task.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from ilde.data import UserError
from ilde.envs.base import Array
from ilde.envs.seeded_batch import Outcome, SeededBatch

JUDGED = ("reward", "terminated", "truncated")


class GymLoop:
    """Copies of one Gymnasium environment, stepped one after the other.

    Args:
        make_one: builds one copy.
        num_envs: how many copies.
    """

    def __init__(self, make_one: Callable[[], gym.Env[Any, Any]], num_envs: int) -> None:
        self.num_envs = num_envs
        self._envs = [make_one() for _ in range(num_envs)]
        first = self._envs[0]
        if not isinstance(first, gym.Env):
            raise UserError(f"env: it built a {type(first).__name__}, not a Gymnasium environment")
        self.name = first.spec.id if first.spec else type(first.unwrapped).__name__
        self.observation_space: gym.Space[Any] = first.observation_space
        self.action_space: gym.Space[Any] = first.action_space

    def reset(self, envs: Sequence[int], seeds: Sequence[int]) -> Array:
        """Start an episode in some copies, one seed each; returns their first observations."""
        obs = self._room_for_obs(len(envs))
        for row, (env, seed) in enumerate(zip(envs, seeds, strict=True)):
            seen, _ = self._returned(self._begun(self._envs[env], seed), 2, "reset")
            obs[row] = self._fitting(seen)
        return obs

    def step(self, envs: Sequence[int], action: Array) -> Outcome:
        """Take one action in each of some copies."""
        obs = self._room_for_obs(len(envs))
        reward = np.zeros(len(envs), dtype=np.float64)
        terminated = np.zeros(len(envs), dtype=bool)
        truncated = np.zeros(len(envs), dtype=bool)
        for row, env in enumerate(envs):
            returned = self._returned(self._envs[env].step(action[row]), 5, "step")
            seen, *judged, _ = returned
            reward[row], terminated[row], truncated[row] = map(self._number, judged, JUDGED)
            obs[row] = self._fitting(seen)
        return obs, reward, terminated, truncated

    def close(self) -> None:
        """Free the simulators."""
        for env in self._envs:
            env.close()

    def _begun(self, env: gym.Env[Any, Any], seed: int) -> Any:
        try:
            return env.reset(seed=seed)
        except TypeError as error:
            if _takes_a_seed(env):  # something else is amiss, and the whole message says what
                raise
            asked = "Gymnasium's is reset(self, *, seed=None, options=None)"
            raise UserError(f"{self.name}: its reset takes no seed; {asked}") from error

    def _number(self, value: Any, what: str) -> Any:
        if isinstance(value, int | float | np.generic):
            return value
        try:
            number = np.asarray(value)
        except ValueError:  # a ragged list
            number = np.empty(0)
        if number.ndim or number.dtype.kind not in "biuf":
            shape = f" of shape {number.shape}" if number.ndim and number.size else ""
            raise UserError(f"{self.name}: its {what} is a {type(value).__name__}{shape}, not one number")
        return number[()]

    def _returned(self, values: Any, count: int, what: str) -> Any:
        if not isinstance(values, tuple) or len(values) != count:
            got = f"{len(values)} values" if isinstance(values, tuple) else type(values).__name__
            raise UserError(f"{self.name}: its {what} returned {got}; Gymnasium's returns {count}")
        return values

    def _fitting(self, obs: Any) -> Any:
        # Assigned as it is, an observation of another shape might be repeated to fill the room.
        if np.shape(obs) != self.observation_space.shape:
            said = f"its observation has shape {np.shape(obs)}, its space {self.observation_space.shape}"
            raise UserError(f"{self.name}: {said}")
        return obs

    def _room_for_obs(self, count: int) -> Array:
        return np.zeros((count, *(self.observation_space.shape or ())), dtype=self.observation_space.dtype)


def _takes_a_seed(env: gym.Env[Any, Any]) -> bool:
    known = inspect.signature(env.unwrapped.reset).parameters.values()
    return any(p.kind is p.VAR_KEYWORD or (p.name == "seed" and p.kind is not p.POSITIONAL_ONLY) for p in known)


class GymBatch(SeededBatch):
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
        copies = GymLoop(make_one, num_envs)
        super().__init__(env_id or copies.name, copies, seed, clip_actions=clip_actions)

"""What an exact restore replays: the actions every environment took since it was last seeded."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from ilde.data import UserError
from ilde.envs.base import EVERY, Array, State

_FIRST_CAPACITY = 64


class NotReproducible(Exception):  # noqa: N818 - a verdict on a simulator, answered inside the batch
    """The same seed and actions led elsewhere: the simulator keeps state of its own."""


def same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays are equal to the last bit, the sign of zero included."""
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


class ActionLog:
    """One growing sequence of actions per environment.

    Args:
        num_envs: how many environments act together.
        shape: of one action.
        dtype: of one action; it must hold exactly what the simulator was given.
    """

    def __init__(self, num_envs: int, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self.lengths = np.zeros(num_envs, dtype=np.int64)
        self._actions = np.zeros((_FIRST_CAPACITY, num_envs, *shape), dtype=dtype)
        self._columns = np.arange(num_envs)

    def append(self, action: Array, envs: slice = EVERY) -> None:
        """Record one action for each of some environments."""
        self._reserve(int(self.lengths.max()) + 1)
        self._actions[self.lengths[envs], self._columns[envs]] = action
        self.lengths[envs] += 1

    def clear(self, envs: Array) -> None:
        """Forget the actions of some environments (a mask): they were seeded anew."""
        self.lengths[envs] = 0

    def of(self, env: int) -> Array:
        """The actions of one environment, oldest first."""
        return self._actions[: self.lengths[env], env]

    def aligned(self) -> Array:
        """All logs as one (longest, num_envs, ...) table in which they end together, zeros before a log begins."""
        longest = int(self.lengths.max())
        table = np.zeros_like(self._actions, shape=(longest, *self._actions.shape[1:]))
        for env, length in enumerate(self.lengths):
            table[longest - length :, env] = self.of(env)
        return table

    def state(self) -> State:
        """All logs end to end, and where each one stops."""
        return {
            "actions": np.concatenate([self.of(env) for env in range(len(self.lengths))]),
            "lengths": self.lengths.copy(),
        }

    def restore(self, state: State) -> None:
        """Take over saved logs."""
        lengths = np.asarray(state["lengths"])
        if lengths.shape != self.lengths.shape:
            raise UserError(
                f"the saved state holds {len(lengths)} environments, this run has {len(self.lengths)}: "
                f"set num_envs to {len(lengths)}"
            )
        self._reserve(int(lengths.max()))
        self.lengths[:] = lengths
        for env, actions in enumerate(np.split(np.asarray(state["actions"]), np.cumsum(lengths)[:-1])):
            self._actions[: len(actions), env] = actions

    def _reserve(self, capacity: int) -> None:
        held = len(self._actions)
        if capacity > held:
            more = np.zeros_like(self._actions, shape=(max(capacity, 2 * held) - held, *self._actions.shape[1:]))
            self._actions = np.concatenate((self._actions, more))

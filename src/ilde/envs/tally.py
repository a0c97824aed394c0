"""The true return of every open episode, kept apart from what a learner is rewarded with."""

from __future__ import annotations

import numpy as np

from ilde.envs.base import EVERY, Array, Score, State


class EpisodeTally:
    """Sums rewards and steps per environment; an episode's `Score` comes out when it is whole."""

    def __init__(self, num_envs: int) -> None:
        self.totals = np.zeros(num_envs, dtype=np.float64)
        self.lengths = np.zeros(num_envs, dtype=np.int64)

    def add(self, reward: Array, envs: slice = EVERY) -> None:
        """Count one step of each of some environments."""
        self.totals[envs] += reward
        self.lengths[envs] += 1

    def finish(self, ended: Array) -> tuple[Score, ...]:
        """The scores of the episodes that ended with this step; their sums start again from zero."""
        scores = tuple(Score(int(i), float(self.totals[i]), int(self.lengths[i])) for i in np.flatnonzero(ended))
        self.totals[ended] = 0.0
        self.lengths[ended] = 0
        return scores

    def clear(self) -> None:
        """Forget all open episodes."""
        self.totals[:] = 0.0
        self.lengths[:] = 0

    def state(self) -> State:
        """The open episodes' sums."""
        return {"totals": self.totals.copy(), "lengths": self.lengths.copy()}

    def restore(self, state: State) -> None:
        """Go on from saved sums."""
        self.totals[:] = np.asarray(state["totals"])
        self.lengths[:] = np.asarray(state["lengths"])

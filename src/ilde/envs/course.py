"""How a batch of environments came to where it is: what a checkpoint keeps of it, and a restore replays."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from ilde.envs.base import Array, State, episode_seed
from ilde.envs.replay import ActionLog
from ilde.envs.tally import EpisodeTally


class Course:
    """The seedings of N environments, their actions since, and the sums of their open episodes.

    Args:
        num_envs: how many environments act together.
        seed: of the run; the k-th seeding of environment i is `episode_seed(seed, i, k)`.
        action_shape: of one action.
        action_dtype: of one action.
    """

    def __init__(self, num_envs: int, seed: int, action_shape: tuple[int, ...], action_dtype: DTypeLike) -> None:
        self.seed = seed
        self.seedings = np.zeros(num_envs, dtype=np.int64)
        self.log = ActionLog(num_envs, action_shape, action_dtype)
        self.tally = EpisodeTally(num_envs)

    def begin(self, seedings: Array) -> None:
        """Forget everything; the environments start from these seedings."""
        self.seedings[:] = seedings
        self.log.clear(np.ones(len(self.seedings), dtype=bool))
        self.tally.clear()

    def just_begun(self, seedings: Array) -> bool:
        """Whether the environments are at the beginning of these seedings."""
        return np.array_equal(seedings, self.seedings) and not self.log.lengths.any()

    def next_seeding(self, envs: Array) -> None:
        """Some environments (a mask) are seeded anew: their past no longer matters."""
        self.seedings[envs] += 1
        self.log.clear(envs)

    def seed_of(self, env: int) -> int:
        """The seed of an environment's present seeding."""
        return episode_seed(self.seed, env, int(self.seedings[env]))

    def state(self) -> State:
        """All of it."""
        return {
            "seed": self.seed,
            "seedings": self.seedings.copy(),
            "log": self.log.state(),
            "tally": self.tally.state(),
        }

    def restore(self, state: State) -> None:
        """Take over a saved course."""
        self.log.restore(state["log"])
        self.tally.restore(state["tally"])
        self.seed = int(state["seed"])
        self.seedings[:] = np.asarray(state["seedings"])

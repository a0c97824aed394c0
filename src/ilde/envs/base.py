"""What the rest of the library sees of an environment.

Every batch of environments resets itself within the step that ends an episode, so a rollout holds no reset steps:
`Step.next_obs` is the true successor, `Step.obs` is what the policy acts on next. The two differ only where an episode
ended. Restoring needs no simulator support: a batch is a function of its seeds and of the actions since.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
State: TypeAlias = dict[str, Any]
"""A tree of dicts whose leaves are arrays, tensors, strings, numbers, booleans or None: what a checkpoint can hold."""

SUCCESSIVE_SEEDS = 2**31 - 1
EVERY = slice(None)
"""All environments of a batch."""


@dataclass(frozen=True)
class Score:
    """A finished whole episode (in Atari a whole game): its undiscounted true return and its length in agent steps."""

    env: int
    total: float
    length: int


@dataclass(frozen=True)
class Step:
    """The outcome of one action in each of N environments.

    The arrays are the caller's to keep but not to write into: `obs` and `next_obs` may share memory. `truncated` is a
    time limit only, never set together with `terminated`. In Atari a lost life is `terminated` too; only the end of the
    whole game comes with a `Score`.
    """

    obs: Array
    next_obs: Array
    reward: Array
    terminated: Array
    truncated: Array
    scores: tuple[Score, ...]


class EnvBatch(Protocol):
    """N copies of one environment, stepped together."""

    num_envs: int
    env_id: str
    obs_space: gym.spaces.Box
    action_space: gym.spaces.Discrete | gym.spaces.Box
    resume_mode: str
    """`exact`, or `fresh-episodes` where open episodes are dropped on restore."""

    def reset(self) -> Array:
        """Start all episodes anew from this batch's seed; returns the first observations (N, ...)."""

    def step(self, action: Array) -> Step:
        """Take one action (N, ...) in each environment. Discrete actions out of range raise `ValueError`."""

    def state(self) -> State:
        """What `restore` needs to go on exactly here."""

    def restore(self, state: State) -> Array:
        """Bring a fresh batch to a saved state; returns the observations the policy acts on next."""

    def close(self) -> None:
        """Free the simulator."""


@runtime_checkable
class Turns(Protocol):
    """Environments in groups that step in the background: while one does, actions are chosen for another."""

    groups: tuple[slice, ...]
    """Which environments form each group."""

    def begin(self, group: int, action: Array) -> None:
        """Start a step of one group; `action` holds its environments' actions only."""

    def finish(self, group: int) -> Step:
        """Wait for that step; its arrays hold the group's environments only, `Score.env` counts over all groups."""


@runtime_checkable
class ShowsFrames(Protocol):
    """Environments whose observation is their latest frames, newest last: a step adds one and drops the oldest.

    Only a whole episode that ends, and so comes with a `Score`, starts with other frames.
    """

    frames_shown: int


def episode_seed(seed: int, env: int, episode: int) -> int:
    """The reset seed of one episode: a function of the run's seed, the copy and the episode's number alone."""
    return int(np.random.SeedSequence((seed, env, episode)).generate_state(1, np.uint32)[0]) % SUCCESSIVE_SEEDS

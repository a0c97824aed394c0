"""Demonstrations in memory: whole episodes with their true successors, and the checks that they fit a run.

Subsampling is left to the reward models. Episodes and steps are counted from 0 in every message.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from ilde.data import ShapeError, Transitions, UserError
from ilde.demos.header import Header
from ilde.envs.base import Array

MIN_TRANSITIONS = 2
"""Fewer teach nothing: one pair has no neighbour and no contrast."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Episode:
    """T consecutive transitions; `obs` has T + 1 entries, the last one the true successor of the last action."""

    obs: Array
    action: Array
    reward: Array
    """The true reward (T,), float64: for scores and pictures, never for learning."""
    trembled: Array
    """Where (T,) a random action replaced the chosen one."""
    terminated: bool
    truncated: bool
    life_lost: bool = False
    """It terminated by a lost life while the game went on."""
    seed: int | None = None

    def __post_init__(self) -> None:
        steps = len(self.reward)
        if steps == 0:
            raise ShapeError("an episode without transitions")
        if len(self.obs) != steps + 1:
            raise ShapeError(f"{len(self.obs)} observations for {steps} rewards; expected {steps + 1}")
        if len(self.action) != steps:
            raise ShapeError(f"{len(self.action)} actions for {steps} rewards")
        if self.reward.dtype != np.float64 or self.reward.ndim != 1:
            raise ShapeError(f"rewards {self.reward.shape} {self.reward.dtype}; expected ({steps},) float64")
        if self.trembled.dtype != np.bool_ or self.trembled.shape != (steps,):
            raise ShapeError(f"trembled {self.trembled.shape} {self.trembled.dtype}; expected ({steps},) bool")

    def __len__(self) -> int:
        return len(self.reward)

    def prefix(self, fraction: float) -> Episode:
        """The first part of the episode, at least two transitions; what is cut short has not ended."""
        # The tiny term undoes binary rounding: 0.29 of 100 steps is 29, although 0.29 * 100 < 29 in floating point.
        steps = max(MIN_TRANSITIONS, math.floor(fraction * len(self) + 1e-9))
        if steps >= len(self):
            return self
        return replace(
            self,
            obs=self.obs[: steps + 1],
            action=self.action[:steps],
            reward=self.reward[:steps],
            trembled=self.trembled[:steps],
            terminated=False,
            truncated=False,
            life_lost=False,
        )


@dataclass(frozen=True, eq=False)
class Demonstrations:
    """Episodes of one environment, alike in shapes and dtypes, and where they come from."""

    env_id: str
    episodes: tuple[Episode, ...]
    header: Header

    def __post_init__(self) -> None:
        if not self.episodes:
            raise ShapeError("demonstrations without episodes")
        if self.header.env_id != self.env_id:
            raise ShapeError(f"the header names {self.header.env_id}, the demonstrations {self.env_id}")
        for name in ("seeds", "returns", "lives"):
            count = len(getattr(self.header, name))
            unknown = name == "returns" and not count
            if count != len(self.episodes) and not unknown:
                raise ShapeError(f"header: {count} {name} for {len(self.episodes)} episodes")
        if self.header.seeds != tuple(episode.seed for episode in self.episodes):
            raise ShapeError("header: its seeds are not those of the episodes")
        if len({(_layout(episode.obs), _layout(episode.action)) for episode in self.episodes}) > 1:
            raise ShapeError("the episodes differ in the shape or dtype of observations or actions")

    @property
    def num_transitions(self) -> int:
        """All steps of all episodes."""
        return sum(len(episode) for episode in self.episodes)

    @property
    def mean_return(self) -> float | None:
        """The mean true return of the episodes as they stand here; None where rewards are not known.

        `header.returns` has those before any prefix.
        """
        known = bool(self.header.returns)
        return float(np.mean([episode.reward.sum() for episode in self.episodes])) if known else None

    @property
    def content_hash(self) -> str:
        """SHA-256 of the environment's id and of everything in the episodes; the header is left out."""
        digest = hashlib.sha256(f"{self.env_id!r}\n".encode())
        for episode in self.episodes:
            ending = (episode.terminated, episode.truncated, episode.life_lost, episode.seed)
            digest.update(f"{ending}\n".encode())
            for array in (episode.obs, episode.action, episode.reward, episode.trembled):
                stored = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
                digest.update(f"{stored.dtype.str} {stored.shape}\n".encode())
                digest.update(stored.tobytes())
        return digest.hexdigest()

    def prefix(self, fraction: float) -> Demonstrations:
        """The first `fraction` (0 < fraction <= 1) of each episode, at least two transitions of each."""
        if not 0 < fraction <= 1:
            raise UserError(f"fraction {fraction}: must be above 0 and at most 1")
        header = replace(self.header, fraction=self.header.fraction * fraction)
        return replace(self, episodes=tuple(episode.prefix(fraction) for episode in self.episodes), header=header)

    def transitions(self, device: torch.device | str = "cpu") -> Transitions:
        """One flat batch, floats as float32; `env_reward` is NaN, so that no learner can profit from it."""
        terminated = torch.zeros(self.num_transitions, dtype=torch.bool, device=device)
        ends = np.cumsum([len(episode) for episode in self.episodes]) - 1
        terminated[ends.tolist()] = torch.tensor([episode.terminated for episode in self.episodes], device=device)
        return Transitions(
            obs=_flat((episode.obs[:-1] for episode in self.episodes), device),
            action=_flat((episode.action for episode in self.episodes), device),
            next_obs=_flat((episode.obs[1:] for episode in self.episodes), device),
            terminated=terminated,
            env_reward=torch.full((self.num_transitions,), math.nan, device=device),
        )

    def check_finite(self, source: str) -> None:
        """Refuse NaN and infinity in observations, actions and rewards, naming the place."""
        for what, field in (("observation", "obs"), ("action", "action"), ("reward", "reward")):
            for number, episode in enumerate(self.episodes):
                array = getattr(episode, field)
                bad = _first_bad(array, np.isfinite) if array.dtype.kind == "f" else None
                if bad is not None:
                    value = array[bad][~np.isfinite(array[bad])].flat[0]
                    raise UserError(f"{source}: episode {number} step {bad}: {what} contains {value}")

    def check_matches(
        self,
        env_id: str,
        obs_space: gym.spaces.Box,
        action_space: gym.spaces.Discrete | gym.spaces.Box,
        source: str,
    ) -> None:
        """Refuse demonstrations of another environment, naming the first difference.

        Continuous actions outside their box pass: a Gaussian policy's actions are recorded as it chose them.
        """
        self.check_recorded_on(env_id, source)
        given, wanted = _layout(self.episodes[0].obs), f"{obs_space.shape} {obs_space.dtype}"
        if given != wanted:
            raise UserError(f"{source}: observations {given}; the environment gives {wanted}")
        given, wanted = _layout(self.episodes[0].action), f"{action_space.shape} {action_space.dtype}"
        if given != wanted:
            raise UserError(f"{source}: actions {given}; the environment takes {wanted}")
        self.check_finite(source)
        if isinstance(action_space, gym.spaces.Discrete):
            self._check_range(action_space, source)

    def check_recorded_on(self, env_id: str, source: str) -> None:
        """Refuse demonstrations of another environment by its name alone, which takes no environment to know."""
        if self.env_id != env_id:
            remedy = "record there, or name the environment as the recording does"
            raise UserError(f"{source}: recorded on {self.env_id}, this run is {env_id}; {remedy}")

    def _check_range(self, space: gym.spaces.Discrete, source: str) -> None:
        for number, episode in enumerate(self.episodes):
            bad = _first_bad(episode.action, lambda a: (a >= space.start) & (a < space.start + space.n))
            if bad is not None:
                raise UserError(f"{source}: episode {number} step {bad}: action {episode.action[bad]} not in {space}")


def shuffle_transitions(transitions: Transitions, generator: torch.Generator) -> Transitions:
    """The control without information: observations, actions and successors of a flat batch permuted independently."""

    def permutation() -> Tensor:
        order = torch.randperm(len(transitions), generator=generator, device=generator.device)
        return order.to(transitions.obs.device)

    successor = permutation()
    return replace(
        transitions,
        obs=transitions.obs[permutation()],
        action=transitions.action[permutation()],
        next_obs=transitions.next_obs[successor],
        terminated=transitions.terminated[successor],
    )


def _layout(array: Array) -> str:
    return f"{array.shape[1:]} {array.dtype}"


def _first_bad(array: Array, holds: Callable[[Array], Array]) -> int | None:
    bad = np.flatnonzero(~holds(array).reshape(len(array), -1).all(axis=1))
    return int(bad[0]) if len(bad) else None


def _flat(parts: Iterable[Array], device: torch.device | str) -> Tensor:
    array = np.concatenate(list(parts))
    return torch.from_numpy(array.astype(np.float32) if array.dtype.kind == "f" else array).to(device)

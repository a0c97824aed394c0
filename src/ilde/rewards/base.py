"""The contract of a reward term, and transitions as the terms see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from ilde.data import Metrics, Transitions
from ilde.nets.features import FeatureSpace

INPUT_LIMIT = 5.0
"""Spreads at which features are cut by a term that an unheard-of state would blow up: the discriminator's bottleneck
takes an exponential, the elliptical bonus inverts a matrix."""

EXPONENT_LIMIT = 16.0
"""Where the exponential of a learned spread turns straight: it would overflow at 88."""


def tame_exp(x: Tensor) -> Tensor:
    """exp(x), going on as its tangent beyond EXPONENT_LIMIT: finite there, and its gradient still pushes back."""
    return x.clamp(max=EXPONENT_LIMIT).exp() * (1.0 + (x - EXPONENT_LIMIT).clamp(min=0.0))


@dataclass(frozen=True)
class Encoded:
    """Transitions in the shared feature space, computed once for all terms; leading dimensions are the batch."""

    features: Tensor
    action: Tensor
    next_features: Tensor
    terminated: Tensor
    env_reward: Tensor
    ended: Tensor
    """Where an episode ended for either reason, as far as it is known: transitions alone know terminations only."""

    def map(self, transform: Callable[[Tensor], Tensor]) -> Encoded:
        """The same record with every tensor transformed."""
        return replace(self, **{f.name: transform(getattr(self, f.name)) for f in fields(self)})

    def flatten(self) -> Encoded:
        """Merge all batch dimensions into one."""
        ndim = self.terminated.ndim
        return self.map(lambda x: x.flatten(0, ndim - 1))

    def __getitem__(self, index: Tensor) -> Encoded:
        return self.map(lambda x: x[index])

    def __len__(self) -> int:
        return self.terminated.numel()


class ActionCode:
    """Actions as vectors: one-hot, or the executed (clipped to the box) continuous action."""

    def __init__(self, space: gym.Space[object], clip: bool) -> None:
        self.discrete = isinstance(space, gym.spaces.Discrete)
        if isinstance(space, gym.spaces.Discrete):
            self.size = int(space.n)
        else:
            assert isinstance(space, gym.spaces.Box)
            self.size = int(torch.tensor(space.shape).prod())
            self.low, self.high = torch.as_tensor(space.low), torch.as_tensor(space.high)
        self.clip = clip

    def __call__(self, action: Tensor) -> Tensor:
        """Codes (..., size) of actions."""
        if self.discrete:
            return one_hot(action.long(), self.size).float()
        if self.clip:
            action = action.clamp(self.low.to(action.device), self.high.to(action.device))
        return action.float()


def encode(
    transitions: Transitions, space: FeatureSpace | None, code: ActionCode, ended: Tensor | None = None
) -> Encoded:
    """Bring transitions into the feature space; without a space there are no features to compute.

    Args:
        ended: where episodes ended for either reason; if not given, where they terminated.
    """
    blind = transitions.env_reward.new_empty((*transitions.batch_shape, 0))
    features = blind if space is None else space(transitions.obs)
    return Encoded(
        features=features,
        action=code(transitions.action),
        next_features=blind if space is None else _successors(transitions, features, space),
        terminated=transitions.terminated,
        env_reward=transitions.env_reward,
        ended=transitions.terminated if ended is None else ended,
    )


def _successors(transitions: Transitions, features: Tensor, space: FeatureSpace) -> Tensor:
    """Features of the successors; in time order nearly all of them are the next step's own, and are not made twice."""
    obs, next_obs = transitions.obs, transitions.next_obs
    if len(obs) < 2:
        whole: Tensor = space(next_obs)
        return whole
    batch = transitions.terminated.ndim
    successors = features.roll(-1, 0)
    successors[-1] = space(next_obs[-1])
    new = (next_obs[:-1] != obs[1:]).flatten(batch).any(-1)
    apart = next_obs[:-1][new]
    if len(apart):
        successors[:-1][new] = space(_padded(apart, transitions.terminated[-1].numel()))[: len(apart)]
    return successors


def _padded(rows: Tensor, multiple: int) -> Tensor:
    """With blank rows up to a multiple: cuDNN looks for an algorithm anew for every batch size it has not met."""
    blank = rows.new_zeros((-len(rows) % multiple, *rows.shape[1:]))
    return torch.cat([rows, blank])


def read_numbers(numbers: dict[str, Tensor]) -> Metrics:
    """Bring single numbers to the host, all in one transfer: each of its own would wait for the device."""
    return dict(zip(numbers, torch.stack(list(numbers.values())).tolist(), strict=True)) if numbers else {}


def subsampled(demos: Encoded, every: int, generator: torch.Generator, *, least: int) -> Encoded:
    """Every `every`-th demonstrated transition from a random offset; all where fewer than `least` would be left."""
    offset = int(torch.randint(every, (1,), generator=generator))
    kept = demos.map(lambda x: x[offset::every])
    return kept if len(kept) >= least else demos


class RewardModel(Protocol):
    """One term of a reward expression.

    `fit` runs once, before interaction. `update` sees every rollout, time-ordered (T, N); whatever learns, learns
    there and only there. `reward` is pure, carries no gradient, and gives one finite value per transition.
    """

    @property
    def episodic(self) -> bool:
        """Whether a reward depends on the episode before it, so that steps replayed out of order have none."""

    def fit(self, demos: Encoded) -> Metrics:
        """Learn from the demonstrations before interaction."""

    def update(self, rollout: Encoded) -> Metrics:
        """Learn from a rollout."""

    def reward(self, batch: Encoded) -> Tensor:
        """The reward of each transition, in the batch's shape."""

    def state_dict(self) -> dict[str, Any]:
        """Everything the next `update`, and the rewards after it, depend on."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""


@runtime_checkable
class FollowsEpisodes(Protocol):
    """Whatever carries something along an open episode, from one rollout to the next."""

    def begin_episodes(self) -> None:
        """Forget the open episodes: the next rollout begins with new ones."""


class Unlearned:
    """The empty half of the contract, for terms that neither learn nor remember."""

    episodic = False

    def fit(self, demos: Encoded) -> Metrics:
        """Nothing to learn."""
        return {}

    def update(self, rollout: Encoded) -> Metrics:
        """Nothing to learn."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Nothing to remember."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to remember."""

"""The contract of a learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from torch import Tensor

from ilde.data import Metrics, Rollout, Transitions
from ilde.nets.policy import Policy, UniformPolicy

RewardFunction: TypeAlias = Callable[[Transitions], Tensor]


class Learner(Protocol):
    """Improves a policy from rollouts; rewards come as a function, never from the rollout."""

    @property
    def offline(self) -> bool:
        """Whether everything is learned in `fit`, before the first step in the environment."""

    @property
    def policy(self) -> Policy:
        """The policy that is learned."""

    @property
    def explorer(self) -> Policy:
        """The policy that collects: the learned one, unless a learner warms up otherwise."""

    def fit(self, demos: Transitions) -> Metrics:
        """Learn from the demonstrations before interaction."""

    def update(self, rollout: Rollout, reward: RewardFunction, progress: float) -> Metrics:
        """Learn from one rollout; `progress` in [0, 1] is the place on the schedule."""

    def state_dict(self) -> dict[str, Any]:
        """Everything the next update depends on."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""


class NoLearning:
    """The control `random`: acts uniformly, and since it never improves no step is worth taking before it is judged."""

    offline = True

    def __init__(self, policy: UniformPolicy) -> None:
        self._policy = policy

    @property
    def policy(self) -> UniformPolicy:
        """The uniform policy."""
        return self._policy

    @property
    def explorer(self) -> UniformPolicy:
        """The uniform policy."""
        return self._policy

    def fit(self, demos: Transitions) -> Metrics:
        """Learn nothing."""
        return {}

    def update(self, rollout: Rollout, reward: RewardFunction, progress: float) -> Metrics:
        """Learn nothing."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Nothing to remember."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to remember."""

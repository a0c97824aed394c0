"""What learners from replayed steps share: two stores of transitions, a random warm-up, and the state of it all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, Protocol, TypeVar

import gymnasium as gym
import torch
from torch import Tensor

from ilde.data import Metrics, Rollout, Transitions
from ilde.learners.averages import Averages
from ilde.learners.base import RewardFunction
from ilde.learners.replay import Replay, row_bytes
from ilde.learners.soft_q import Agent
from ilde.nets.policy import Policy
from ilde.nets.soft import Explorer
from ilde.nets.steps import make_step

A = TypeVar("A", bound=Agent)

DRAWN_BYTES = 2**25
"""Of the batches that are drawn at once: on a GPU a draw of its own for each step would take longer than the step, and
all steps of a long rollout at once may not fit."""


def drawn_at_once(batch_size: int, obs_space: gym.spaces.Box) -> int:
    """How many batches of this size are drawn together."""
    return max(1, DRAWN_BYTES // (batch_size * row_bytes(obs_space)))


class Pace(Protocol):
    """The settings that decide when to learn, and from how much."""

    @property
    def warm_up(self) -> int:
        """First environment steps, with random actions and no learning."""

    @property
    def updates_per_step(self) -> float:
        """Gradient steps per environment step."""

    @property
    def replay_size(self) -> int:
        """Latest transitions that are kept."""


class ReplayLearner(ABC, Generic[A]):
    """Remembers every rollout, then takes as many gradient steps as its length allows."""

    def __init__(
        self, agent: A, pace: Pace, action_space: gym.Space[object], generator: torch.Generator, device: torch.device
    ) -> None:
        self.agent, self.pace, self.generator, self.device = agent, pace, generator, device
        self.replay, self.demos = Replay(pace.replay_size, device), Replay(1, device)
        self._explorer = Explorer(agent.policy, action_space, device)
        self._explorer.warm_up(pace.warm_up > 0)
        self._step = make_step(self._learn, device)
        self._averages = Averages()

    @property
    def policy(self) -> Policy:
        """The policy that is learned."""
        return self.agent.policy

    @property
    def explorer(self) -> Explorer:
        """The policy, after a random warm-up."""
        return self._explorer

    def fit(self, demos: Transitions) -> Metrics:
        """Keep the demonstrations."""
        self.demos = Replay(len(demos), self.device)
        self.demos.add(demos)
        return {}

    def update(self, rollout: Rollout, reward: RewardFunction, progress: float) -> Metrics:
        """Remember a rollout, then take its share of gradient steps."""
        self.replay.add(rollout.transitions)
        metrics = {"replay/size": float(len(self.replay))}
        if self.replay.added < self.pace.warm_up:
            return metrics
        self._explorer.warm_up(False)
        count = round(self.pace.updates_per_step * len(rollout.transitions))
        return metrics | (self._take_steps(count, reward) if count else {})

    @abstractmethod
    def _take_steps(self, count: int, reward: RewardFunction) -> Metrics:
        """So many gradient steps."""

    @abstractmethod
    def _learn(self, batch: tuple[Tensor, ...]) -> dict[str, Tensor]:
        """One gradient step, which a CUDA graph may hold."""

    def state_dict(self) -> dict[str, Any]:
        """Agent, both stores of transitions, randomness."""
        return {
            "agent": self.agent.state_dict(),
            "replay": self.replay.state_dict(),
            "demos": self.demos.state_dict(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.agent.load_state_dict(state["agent"])
        self.replay.load_state_dict(state["replay"])
        self.demos.load_state_dict(state["demos"])
        self.generator.set_state(state["generator"])
        self._explorer.warm_up(self.replay.added < self.pace.warm_up)

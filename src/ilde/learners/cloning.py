"""Behavioural cloning: the demonstrator's actions as labels, before any interaction.

Maximises the log-likelihood of the demonstrated actions; part of the demonstrations is held out, and the weights kept
are those that predicted it best. Left out: interaction of any kind, so nothing is learned afterwards.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ilde.data import Metrics, Rollout, Transitions
from ilde.learners.base import RewardFunction
from ilde.nets.policy import ActorCritic
from ilde.patience import counted
from ilde.randomness import minibatches

CHUNK = 1024
"""Transitions whose loss is measured at a time."""


@dataclass(frozen=True)
class CloningConfig:
    """Settings of behavioural cloning."""

    learning_rate: float = 3e-4
    """Of the policy."""
    batch_size: int = 64
    """Demonstrated transitions per gradient step."""
    epochs: int = 500
    """Passes over the demonstrations at most."""
    held_out: float = 0.1
    """Part of the transitions that is only predicted, never learned from: at least one of two or more, never all."""
    patience: int = 30
    """Passes without a better prediction of the held-out part after which learning stops."""


class Cloning:
    """The learner `bc`."""

    offline = True

    def __init__(self, policy: ActorCritic, config: CloningConfig, generator: torch.Generator) -> None:
        self._policy, self.config, self.generator = policy, config, generator

    @property
    def policy(self) -> ActorCritic:
        """The cloned policy."""
        return self._policy

    @property
    def explorer(self) -> ActorCritic:
        """The cloned policy."""
        return self._policy

    def fit(self, demos: Transitions) -> Metrics:
        """Learn to predict the demonstrated actions; keep the weights that do it best where they were not shown."""
        demos = demos.flatten()
        self.policy.observe(demos.obs)
        shown, hidden = self._split(demos)
        optimiser = torch.optim.Adam(self.policy.parameters(), lr=self.config.learning_rate, eps=1e-5, fused=True)
        best, best_weights, since, epochs = math.inf, copy.deepcopy(self.policy.state_dict()), 0, 0
        for _ in counted(self.config.epochs, "bc", "passes at most"):
            for index in minibatches(len(shown), self.config.batch_size, self.generator, shown.obs.device):
                optimiser.zero_grad(set_to_none=True)
                self.loss(shown[index]).backward()
                optimiser.step()
            epochs, since, loss = epochs + 1, since + 1, self._measured(hidden)
            if loss < best:
                best, best_weights, since = loss, copy.deepcopy(self.policy.state_dict()), 0
            if since >= self.config.patience:
                break
        if not math.isfinite(best):
            raise FloatingPointError("bc: the fit diverged; lower cloning.learning_rate")
        self.policy.load_state_dict(best_weights)
        return {"bc/loss": self._measured(shown), "bc/held_out_loss": best, "bc/epochs": float(epochs)}

    def _split(self, demos: Transitions) -> tuple[Transitions, Transitions]:
        count = max(1, min(round(len(demos) * self.config.held_out), len(demos) - 1))
        order = torch.randperm(len(demos), generator=self.generator).to(demos.obs.device)
        # A single transition is both shown and hidden.
        return (demos, demos) if len(demos) < 2 else (demos[order[count:]], demos[order[:count]])

    def loss(self, batch: Transitions) -> Tensor:
        """Mean negative log-likelihood of the demonstrated actions, in nats."""
        distribution, _ = self.policy(batch.obs)
        likelihood: Tensor = distribution.log_prob(batch.action).mean()
        return -likelihood

    @torch.no_grad()
    def _measured(self, demos: Transitions) -> float:
        # In parts: images would take gigabytes at once.
        parts = torch.arange(len(demos), device=demos.obs.device).split(CHUNK)
        return sum(len(part) * float(self.loss(demos[part])) for part in parts) / len(demos)

    def update(self, rollout: Rollout, reward: RewardFunction, progress: float) -> Metrics:
        """Learn nothing from interaction."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """The policy with its observation statistics."""
        return {"policy": self.policy.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.policy.load_state_dict(state["policy"])

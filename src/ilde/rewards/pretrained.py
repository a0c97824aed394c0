"""Curiosity from a model of the demonstrations: fitted to them before interaction, frozen, then paid for its errors.

Where an episode terminated the reward is 0, for otherwise dying would be the most surprising thing to do.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ilde.data import Metrics
from ilde.randomness import minibatches
from ilde.rewards.base import Encoded, subsampled


@dataclass(frozen=True)
class FitConfig:
    """How a model is fitted to the demonstrations."""

    learning_rate: float = 3e-4
    batch_size: int = 32
    epochs: int = 1000
    subsample: int = 4
    """Every how many-th transition is used, from a random offset; all where fewer than a batch would be left."""


class Surprise(ABC):
    """A reward term that is the error of a frozen model; the policy's data never reach it."""

    name: str
    episodic = False

    def __init__(self, net: nn.Module, config: FitConfig, generator: torch.Generator) -> None:
        self.net, self.config, self.generator = net, config, generator

    @abstractmethod
    def loss(self, batch: Encoded) -> Tensor:
        """What the fit minimises, averaged over the batch."""

    @abstractmethod
    def error(self, batch: Encoded) -> Tensor:
        """The model's error on each transition."""

    def fit(self, demos: Encoded) -> Metrics:
        """Fit the model to the demonstrations, then freeze it."""
        data = subsampled(demos, self.config.subsample, self.generator, least=self.config.batch_size)
        optimiser = torch.optim.Adam(self.net.parameters(), lr=self.config.learning_rate, fused=True)
        for _ in range(self.config.epochs):
            for index in minibatches(len(data), self.config.batch_size, self.generator, data.features.device):
                optimiser.zero_grad(set_to_none=True)
                self.loss(data[index]).backward()
                optimiser.step()
        self.net.requires_grad_(False)
        error = float(self.reward(demos).mean())
        if not math.isfinite(error):
            raise FloatingPointError(f"{self.name}: the fit diverged; lower its learning_rate")
        return {f"{self.name}/demo_error": error, f"{self.name}/fit_transitions": float(len(data))}

    @torch.no_grad()
    def reward(self, batch: Encoded) -> Tensor:
        """The error; 0 where the episode terminated."""
        return self.error(batch) * ~batch.terminated

    def update(self, rollout: Encoded) -> Metrics:
        """Frozen: there is nothing to learn."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """The frozen network."""
        return {"net": self.net.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.net.load_state_dict(state["net"])
        self.net.requires_grad_(False)

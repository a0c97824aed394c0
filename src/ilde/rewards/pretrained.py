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
from ilde.nets.steps import Inputs, make_step_by_size
from ilde.patience import counted
from ilde.randomness import minibatches
from ilde.rewards.base import Encoded, subsampled


@dataclass(frozen=True)
class FitConfig:
    """How a model is fitted to the demonstrations."""

    learning_rate: float = 3e-4
    """Of the fit."""
    batch_size: int = 32
    """Demonstrated transitions per gradient step of the fit."""
    epochs: int = 1000
    """Passes of the fit over the transitions that are used."""
    subsample: int = 4
    """Every how many-th transition is used, from a random offset; all where fewer than a batch would be left."""


class Surprise(ABC):
    """A reward term that is the error of a frozen model; the policy's data never reach it."""

    name: str
    episodic = False

    def __init__(self, net: nn.Module, config: FitConfig, generator: torch.Generator) -> None:
        self.net, self.config, self.generator = net, config, generator

    @abstractmethod
    def loss(self, batch: Encoded, *noise: Tensor) -> Tensor:
        """What the fit minimises, averaged over the batch."""

    def draw(self, count: int) -> tuple[Tensor, ...]:
        """The noise of a step over so many transitions, drawn before it, for a captured step cannot."""
        return ()

    @abstractmethod
    def error(self, batch: Encoded) -> Tensor:
        """The model's error on each transition."""

    def fit(self, demos: Encoded) -> Metrics:
        """Fit the model to the demonstrations, then freeze it."""
        data = subsampled(demos, self.config.subsample, self.generator, least=self.config.batch_size)
        device = data.features.device
        optimiser = torch.optim.Adam(
            self.net.parameters(), lr=self.config.learning_rate, fused=True, capturable=device.type == "cuda"
        )

        def learn(drawn: Inputs) -> dict[str, Tensor]:
            index, *noise = drawn
            optimiser.zero_grad(set_to_none=True)
            self.loss(data[index], *noise).backward()
            optimiser.step()
            return {}

        step = make_step_by_size(learn, device)
        for _ in counted(self.config.epochs, self.name, "passes over the demonstrations"):
            for index in minibatches(len(data), self.config.batch_size, self.generator, device):
                step((index, *(noise.to(device) for noise in self.draw(len(index)))))
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

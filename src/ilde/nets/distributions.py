"""The two action distributions, in the few lines PPO needs; sampling draws from an explicit generator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor


@dataclass(frozen=True)
class Categorical:
    """Discrete actions; `log_probs` is (B, num_actions), normalised."""

    log_probs: Tensor

    @staticmethod
    def of_logits(logits: Tensor) -> Categorical:
        """The distribution softmax(logits)."""
        return Categorical(logits.log_softmax(-1))

    def sample(self, generator: torch.Generator) -> Tensor:
        """One action each, by the exponential race (no host synchronisation)."""
        arrival = torch.empty_like(self.log_probs).exponential_(generator=generator)
        return (self.log_probs - arrival.log()).argmax(-1)

    def mode(self) -> Tensor:
        """The most likely action."""
        return self.log_probs.argmax(-1)

    def log_prob(self, action: Tensor) -> Tensor:
        """Log-probability of each action."""
        return self.log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """Entropy in nats."""
        return -(self.log_probs.exp() * self.log_probs).sum(-1)


@dataclass(frozen=True)
class Gaussian:
    """Continuous actions with independent dimensions; unsquashed."""

    mean: Tensor
    log_std: Tensor

    def sample(self, generator: torch.Generator) -> Tensor:
        """One action each."""
        noise = torch.empty_like(self.mean).normal_(generator=generator)
        return self.mean + self.log_std.exp() * noise

    def mode(self) -> Tensor:
        """The mean."""
        return self.mean

    def log_prob(self, action: Tensor) -> Tensor:
        """Log-density of each action, summed over dimensions."""
        standardised = (action - self.mean) * (-self.log_std).exp()
        return (-0.5 * standardised.square() - self.log_std - 0.5 * math.log(2 * math.pi)).sum(-1)

    def entropy(self) -> Tensor:
        """Differential entropy in nats."""
        return (self.log_std + 0.5 * math.log(2 * math.pi * math.e)).expand_as(self.mean).sum(-1)


ActionDistribution: TypeAlias = Categorical | Gaussian

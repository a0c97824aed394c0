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
        """One action each."""
        return self.at(self.noise(*self.log_probs.shape, generator=generator))

    @staticmethod
    def noise(count: int, size: int, *, generator: torch.Generator) -> Tensor:
        """What chance adds to so many choices among so many actions."""
        return torch.empty((count, size), device=generator.device).exponential_(generator=generator)

    def at(self, noise: Tensor) -> Tensor:
        """The actions that exponential noise leads to: each runs at its own rate, the first to arrive is taken."""
        return (self.log_probs - noise.log()).argmax(-1)

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
        return self.at(self.noise(*self.mean.shape, generator=generator))

    @staticmethod
    def noise(count: int, size: int, *, generator: torch.Generator) -> Tensor:
        """What chance adds to so many actions of so many dimensions."""
        return torch.empty((count, size), device=generator.device).normal_(generator=generator)

    def at(self, noise: Tensor) -> Tensor:
        """The actions that normal noise leads to."""
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

"""CDIL: curiosity as the error of a forward model of the demonstrations, in a space shaped by an inverse model (ICM).

The inverse model recognises the action from the embedded states before and after it, and so decides what the embedding
keeps; the forward model predicts the embedded successor. Both learn from the demonstrations, then are frozen.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from ilde.nets.layers import linear, mlp, xavier
from ilde.rewards.base import Encoded
from ilde.rewards.pretrained import FitConfig, Surprise


@dataclass(frozen=True)
class DynamicsConfig(FitConfig):
    """The models of the term `icm` and how they are fitted."""

    forward_share: float = 0.2
    """Part of the loss that is the forward model's; the rest is the inverse model's."""


class DynamicsModel(nn.Module):
    """embed: s -> e; recognise: (e, e') -> a; predict: (e, a) -> e'."""

    def __init__(
        self, features: int, actions: int, hidden: int, activation: type[nn.Module], generator: torch.Generator
    ) -> None:
        super().__init__()
        self.encoder = mlp((features, hidden), activation, xavier, generator)
        self.inverse = mlp((2 * hidden, hidden), activation, xavier, generator)
        self.action_head = linear(hidden, actions, xavier, generator)
        self.forward_model = mlp((hidden + actions, hidden), activation, xavier, generator)
        self.next_head = linear(hidden, hidden, xavier, generator)

    def embed(self, features: Tensor) -> Tensor:
        """Where states are compared."""
        embedded: Tensor = self.encoder(features)
        return embedded

    def recognise(self, embedded: Tensor, next_embedded: Tensor) -> Tensor:
        """The action's logits, or the action itself where it is continuous."""
        action: Tensor = self.action_head(self.inverse(torch.cat([embedded, next_embedded], -1)))
        return action

    def predict(self, embedded: Tensor, action: Tensor) -> Tensor:
        """The expected embedding of the successor."""
        successor: Tensor = self.next_head(self.forward_model(torch.cat([embedded, action], -1)))
        return successor


def recognition_error(recognised: Tensor, action: Tensor, *, discrete: bool) -> Tensor:
    """Cross-entropy of the logits of discrete actions, mean squared error of continuous ones."""
    return cross_entropy(recognised, action.argmax(-1)) if discrete else mse_loss(recognised, action)


class DynamicsReward(Surprise):
    """The term `icm`."""

    name = "icm"
    net: DynamicsModel
    config: DynamicsConfig

    def __init__(
        self, net: DynamicsModel, config: DynamicsConfig, generator: torch.Generator, *, discrete: bool
    ) -> None:
        super().__init__(net, config, generator)
        self.discrete = discrete

    def loss(self, batch: Encoded, *noise: Tensor) -> Tensor:
        """Recognising the action, and half the squared error of the predicted embedding."""
        embedded, next_embedded = self.net.embed(batch.features), self.net.embed(batch.next_features)
        recognised = self.net.recognise(embedded, next_embedded)
        inverse = recognition_error(recognised, batch.action, discrete=self.discrete)
        # The forward model must not shape the space it is judged in: a constant embedding would please it most.
        predicted = self.net.predict(embedded.detach(), batch.action)
        forward = 0.5 * (predicted - next_embedded.detach()).square().sum(-1).mean()
        share = self.config.forward_share
        return (1.0 - share) * inverse + share * forward

    def error(self, batch: Encoded) -> Tensor:
        """Mean squared error of the predicted embedding."""
        predicted = self.net.predict(self.net.embed(batch.features), batch.action)
        return (predicted - self.net.embed(batch.next_features)).square().mean(-1)

"""Actor, critics and temperature of entropy-regularised learning with continuous actions, each with its optimiser.

V(s) = min_i Q_i(s, a) - temperature * log pi(a | s) for one a drawn from pi. What the critics are fitted to is the
learner's business: `sac.py` and `iq_learn.py` differ in that.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import torch
from torch import Tensor, nn

from ilde.nets.soft import SoftActor, SoftCritics


def make_adam(parameters: Iterable[Tensor], learning_rate: float, device: torch.device) -> torch.optim.Adam:
    """Adam in one fused step, which a CUDA graph can hold."""
    return torch.optim.Adam(parameters, lr=learning_rate, fused=True, capturable=device.type == "cuda")


@torch.no_grad()
def follow(target: nn.Module, source: nn.Module, rate: float) -> None:
    """Move a target network towards its source: target += rate * (source - target)."""
    torch._foreach_lerp_(list(target.parameters()), list(source.parameters()), rate)


def frozen_copy(net: nn.Module) -> nn.Module:
    """A copy that no gradient reaches."""
    return copy.deepcopy(net).requires_grad_(False)


def actor_loss(q: Tensor, log_prob: Tensor, temperature: Tensor) -> Tensor:
    """E[temperature * log pi(a | s) - min_i Q_i(s, a)]; `q` is (critics, B)."""
    return (temperature * log_prob - q.amin(0)).mean()


def temperature_loss(log_temperature: Tensor, log_prob: Tensor, target_entropy: float) -> Tensor:
    """Raises the temperature where the policy's entropy is below its target."""
    return -log_temperature * (log_prob.detach() + target_entropy).mean()


class Judged(NamedTuple):
    """Values of a batch of transitions: Q(s, a) (critics, B), V(s) (B,) and V(s') (B,)."""

    q: Tensor
    value: Tensor
    next_value: Tensor


@dataclass(frozen=True)
class AgentConfig:
    """What the two learners that use the agent set differently."""

    hidden: int
    num_critics: int
    learning_rate: float
    actor_learning_rate: float
    target_rate: float
    temperature: float
    """The first one, or the only one."""
    learn_temperature: bool


class SoftAgent:
    """Everything that is learned about continuous actions."""

    def __init__(
        self,
        obs_space: gym.spaces.Box,
        action_space: gym.Space[object],
        config: AgentConfig,
        generator: torch.Generator,
        device: torch.device,
    ) -> None:
        self.config = config
        self.actor = SoftActor(obs_space, action_space, config.hidden, generator).to(device)
        self.noise_width = self.actor.centre.numel()
        inputs = math.prod(obs_space.shape) + self.noise_width
        self.critics = SoftCritics(inputs, config.hidden, config.num_critics, generator).to(device)
        self.target_critics = frozen_copy(self.critics)
        self.log_temperature = torch.tensor(math.log(config.temperature), device=device, requires_grad=True)
        learned = [self.log_temperature] if config.learn_temperature else []
        self._actor_weights: list[Tensor] = [*self.actor.parameters(), *learned]
        self._critic_weights: list[Tensor] = list(self.critics.parameters())
        self.actor_optimiser = make_adam(self._actor_weights, config.actor_learning_rate, device)
        self.critic_optimiser = make_adam(self._critic_weights, config.learning_rate, device)

    @property
    def policy(self) -> SoftActor:
        """The actor."""
        return self.actor

    @property
    def temperature(self) -> Tensor:
        """The weight of the entropy."""
        return self.log_temperature.detach().exp()

    def value(self, obs: Tensor, noise: Tensor, *, target: bool) -> Tensor:
        """V (B,), by the target critics or by the critics themselves; its gradient is the critics' alone."""
        with torch.no_grad():
            action, log_prob = self.actor(obs).sample(noise)
        critics = self.target_critics if target else self.critics
        value: Tensor = critics(obs, action).amin(0) - self.temperature * log_prob
        return value

    def judge(self, obs: Tensor, action: Tensor, next_obs: Tensor, noise: Tensor, *, target: bool) -> Judged:
        """Q(s, a), V(s) and V(s'), the last by the target critics or by the critics themselves; `noise` is for both."""
        q = self.critics(obs, self.actor.scaled(action))
        return Judged(q, self.value(obs, noise[0], target=False), self.value(next_obs, noise[1], target=target))

    def fit_critics(self, loss: Tensor) -> None:
        """One step of the critics."""
        _descend(self.critic_optimiser, loss, self._critic_weights)

    def improve(self, obs: Tensor, noise: Tensor) -> dict[str, Tensor]:
        """One step of actor and temperature, whose losses share no weight, then the targets follow."""
        action, log_prob = self.actor(obs).sample(noise)
        loss = actor_loss(self.critics(obs, action), log_prob, self.temperature)
        balance = temperature_loss(self.log_temperature, log_prob, -float(self.noise_width))
        _descend(self.actor_optimiser, loss + balance, self._actor_weights)
        follow(self.target_critics, self.critics, self.config.target_rate)
        return {"actor_loss": loss.detach(), "entropy": -log_prob.detach().mean(), "ent_coef": self.temperature}

    def state_dict(self) -> dict[str, Any]:
        """Networks, temperature, optimisers."""
        return {
            "actor": self.actor.state_dict(),
            "critics": self.critics.state_dict(),
            "target_critics": self.target_critics.state_dict(),
            "log_temperature": self.log_temperature.detach(),
            "actor_optimiser": self.actor_optimiser.state_dict(),
            "critic_optimiser": self.critic_optimiser.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.actor.load_state_dict(state["actor"])
        self.critics.load_state_dict(state["critics"])
        self.target_critics.load_state_dict(state["target_critics"])
        with torch.no_grad():
            self.log_temperature.copy_(state["log_temperature"])
        self.actor_optimiser.load_state_dict(state["actor_optimiser"])
        self.critic_optimiser.load_state_dict(state["critic_optimiser"])


def _descend(optimiser: torch.optim.Adam, loss: Tensor, weights: list[Tensor]) -> None:
    optimiser.zero_grad(set_to_none=True)
    # Only these weights: the actor's loss runs through the critics, whose own gradients would be thrown away.
    loss.backward(inputs=weights)
    optimiser.step()

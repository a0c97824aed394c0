"""A soft Q network with its target and optimiser: for discrete actions what `SoftAgent` is for continuous ones."""

from __future__ import annotations

from typing import Any, Protocol

import gymnasium as gym
import torch
from torch import Tensor

from ilde.learners.soft import AgentConfig, Judged, SoftAgent, follow, frozen_copy, make_adam
from ilde.nets.policy import Policy
from ilde.nets.soft import SoftQ


class Agent(Protocol):
    """What is learned about either kind of action."""

    @property
    def policy(self) -> Policy:
        """The policy that is learned."""

    @property
    def noise_width(self) -> int:
        """Normal numbers needed to draw one action."""

    def judge(self, obs: Tensor, action: Tensor, next_obs: Tensor, noise: Tensor, *, target: bool) -> Judged:
        """Q(s, a), V(s) and V(s')."""

    def fit_critics(self, loss: Tensor) -> None:
        """One step of the values."""

    def improve(self, obs: Tensor, noise: Tensor) -> dict[str, Tensor]:
        """One step of the policy, then the targets follow."""

    def state_dict(self) -> dict[str, Any]:
        """Networks and optimisers."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""


class SoftQAgent:
    """Everything that is learned about discrete actions: the policy is read off the values."""

    noise_width = 0
    """The soft value needs no drawn action."""

    def __init__(
        self,
        obs_space: gym.spaces.Box,
        action_space: gym.spaces.Discrete,
        config: AgentConfig,
        generator: torch.Generator,
        device: torch.device,
    ) -> None:
        self.target_rate = config.target_rate
        self.policy = SoftQ(obs_space, action_space, config.hidden, config.temperature, generator).to(device)
        self.target = frozen_copy(self.policy)
        self.optimiser = make_adam(self.policy.parameters(), config.learning_rate, device)

    def judge(self, obs: Tensor, action: Tensor, next_obs: Tensor, noise: Tensor, *, target: bool) -> Judged:
        """Q(s, a), V(s) and V(s'), the last by the target network or by the network itself."""
        values = self.policy(obs)
        chosen = values.gather(-1, action.unsqueeze(-1)).squeeze(-1)
        net = self.target if target else self.policy
        return Judged(chosen.unsqueeze(0), self.policy.soft_value(values), self.policy.soft_value(net(next_obs)))

    def fit_critics(self, loss: Tensor) -> None:
        """One step of the network."""
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()

    def improve(self, obs: Tensor, noise: Tensor) -> dict[str, Tensor]:
        """The policy follows its values by itself; the target network has to be moved."""
        follow(self.target, self.policy, self.target_rate)
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Networks and optimiser."""
        return {
            "policy": self.policy.state_dict(),
            "target": self.target.state_dict(),
            "optimiser": self.optimiser.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.policy.load_state_dict(state["policy"])
        self.target.load_state_dict(state["target"])
        self.optimiser.load_state_dict(state["optimiser"])


def build_agent(
    obs_space: gym.spaces.Box,
    action_space: gym.Space[object],
    config: AgentConfig,
    generator: torch.Generator,
    device: torch.device,
) -> Agent:
    """Soft Q for discrete actions, actor and critics for continuous ones."""
    if isinstance(action_space, gym.spaces.Discrete):
        return SoftQAgent(obs_space, action_space, config, generator, device)
    return SoftAgent(obs_space, action_space, config, generator, device)

"""Networks of the entropy-regularised learners: a squashed Gaussian actor with its critics, and a soft Q network.

Observations are taken as they come, as in the code that HyPE and IQ-Learn build on: statistics that move would change
what a replayed transition looks like. Pixels are divided by 255. Within the learners actions lie in [-1, 1]; only
`SoftActor.act` gives them the box's own bounds. Left out: continuous actions from images.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import gymnasium as gym
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from ilde.data import UserError
from ilde.nets.distributions import Categorical
from ilde.nets.layers import linear, mlp, orthogonal, xavier
from ilde.nets.policy import SQRT2, ConvTrunk, Decision, Policy, UniformPolicy

LOG_STD = (-5.0, 2.0)
"""Bounds of the logarithm of the spread, before squashing."""


@dataclass(frozen=True)
class SquashedGaussian:
    """tanh of independent normals: actions in [-1, 1]; `mean` and `log_std` are those before squashing."""

    mean: Tensor
    log_std: Tensor

    def sample(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions made of standard normal noise, differentiable, and their log-densities."""
        raw = self.mean + self.log_std.exp() * noise
        normal = -0.5 * noise.square() - self.log_std - 0.5 * math.log(2 * math.pi)
        # log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2 x)), without the cancellation.
        stretch = 2.0 * (math.log(2.0) - raw - softplus(-2.0 * raw))
        return raw.tanh(), (normal - stretch).sum(-1)

    def mode(self) -> Tensor:
        """tanh of the mean."""
        return self.mean.tanh()


class SoftActor(nn.Module):
    """The policy of SAC: two hidden layers, mean and spread for each observation."""

    centre: Tensor
    reach: Tensor

    def __init__(
        self, obs_space: gym.spaces.Box, action_space: gym.Space[object], hidden: int, generator: torch.Generator
    ) -> None:
        super().__init__()
        box = _bounded(action_space)
        if len(obs_space.shape) == 3:
            raise UserError(f"observations {obs_space.shape}: continuous actions are learned from vectors only here")
        low, high = torch.as_tensor(box.low).float(), torch.as_tensor(box.high).float()
        self.register_buffer("centre", (high + low) / 2)
        self.register_buffer("reach", (high - low) / 2)
        self.trunk = mlp((math.prod(obs_space.shape), hidden, hidden), nn.ReLU, xavier, generator)
        self.head = linear(hidden, 2 * math.prod(box.shape), xavier, generator)

    def forward(self, obs: Tensor) -> SquashedGaussian:
        """The distribution of actions in [-1, 1]."""
        mean, log_std = self.head(self.trunk(obs.flatten(1))).chunk(2, -1)
        return SquashedGaussian(mean, log_std.clamp(*LOG_STD))

    def executed(self, action: Tensor) -> Tensor:
        """Actions in [-1, 1] within the box's own bounds."""
        return self.centre + self.reach * action

    def scaled(self, action: Tensor) -> Tensor:
        """Executed actions brought to [-1, 1]."""
        return ((action - self.centre) / self.reach).clamp(-1.0, 1.0)

    @torch.no_grad()
    def act(self, obs: Tensor, generator: torch.Generator, *, greedy: bool = False) -> Decision:
        """Choose actions; without noise when greedy. No value is known: the critics stay with the learner."""
        distribution = self(obs)
        noise = torch.zeros_like(distribution.mean)
        action, log_prob = distribution.sample(noise if greedy else noise.normal_(generator=generator))
        return Decision(self.executed(action), log_prob, torch.zeros_like(log_prob))


def _bounded(space: gym.Space[object]) -> gym.spaces.Box:
    if not isinstance(space, gym.spaces.Box):
        raise UserError(f"action space {space}: this learner needs continuous actions; choose a method of ppo's")
    if not space.is_bounded():
        raise UserError(f"action space {space}: this learner needs bounds on actions")
    return space


class SoftCritics(nn.Module):
    """Some independent values of an observation and an action in [-1, 1]."""

    def __init__(self, inputs: int, hidden: int, count: int, generator: torch.Generator) -> None:
        super().__init__()
        towers = (
            nn.Sequential(*mlp((inputs, hidden, hidden), nn.ReLU, xavier, generator), _head(hidden, 1, generator))
            for _ in range(count)
        )
        self.towers = nn.ModuleList(towers)

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        """Values (count, B)."""
        inputs = torch.cat([obs.flatten(1), action], -1)
        return torch.stack([tower(inputs).squeeze(-1) for tower in self.towers])


def _head(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    return linear(inputs, outputs, orthogonal(1.0), generator)


class SoftQ(nn.Module):
    """A value for each discrete action; the policy is softmax(Q / temperature)."""

    def __init__(
        self,
        obs_space: gym.spaces.Box,
        action_space: gym.spaces.Discrete,
        hidden: int,
        temperature: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.images, self.temperature = len(obs_space.shape) == 3, temperature
        if self.images:
            self.trunk: nn.Module = ConvTrunk(obs_space.shape, generator)
        else:
            widths = (math.prod(obs_space.shape), hidden, hidden)
            self.trunk = nn.Sequential(nn.Flatten(), mlp(widths, nn.ReLU, orthogonal(SQRT2), generator))
        self.head = _head(512 if self.images else hidden, int(action_space.n), generator)

    def forward(self, obs: Tensor) -> Tensor:
        """Values (B, num_actions)."""
        values: Tensor = self.head(self.trunk(obs))
        return values

    def soft_value(self, values: Tensor) -> Tensor:
        """V = temperature * log sum exp(Q / temperature): what acting softly is worth."""
        return self.temperature * (values / self.temperature).logsumexp(-1)

    def distribution(self, obs: Tensor) -> Categorical:
        """The soft policy."""
        return Categorical.of_logits(self(obs) / self.temperature)

    @torch.no_grad()
    def act(self, obs: Tensor, generator: torch.Generator, *, greedy: bool = False) -> Decision:
        """Choose actions; the best when greedy."""
        values = self(obs)
        soft = Categorical.of_logits(values / self.temperature)
        action = soft.mode() if greedy else soft.sample(generator)
        return Decision(action, soft.log_prob(action), self.soft_value(values))


class Explorer:
    """Acts uniformly at random while it is warming up, then as its policy.

    Which of the two is a number on the device, so that a captured step follows it.
    """

    def __init__(self, policy: Policy, action_space: gym.Space[object], device: torch.device) -> None:
        self.policy, self.uniform = policy, UniformPolicy(action_space).to(device)
        self._warming = torch.ones((), dtype=torch.bool, device=device)

    def warm_up(self, warming: bool) -> None:
        """Begin or end the warm-up."""
        self._warming.fill_(warming)

    def act(self, obs: Tensor, generator: torch.Generator, *, greedy: bool = False) -> Decision:
        """Choose both ways, take one."""
        random, chosen = self.uniform.act(obs, generator), self.policy.act(obs, generator, greedy=greedy)
        return Decision(*(torch.where(self._warming, *pair) for pair in zip(random, chosen, strict=True)))

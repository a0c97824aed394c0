"""Policies: the paper's actor-critic networks for images and for vectors, and the uniform one."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import gymnasium as gym
import torch
from torch import Tensor, nn

from ilde.data import UserError
from ilde.nets.distributions import ActionDistribution, Categorical, Gaussian
from ilde.nets.layers import can_fold, conv, folded_conv, linear, mlp, orthogonal
from ilde.nets.moments import Standardise

SQRT2 = math.sqrt(2.0)


class Decision(NamedTuple):
    """What a policy chose, how likely that was, and what it expects."""

    action: Tensor
    log_prob: Tensor
    value: Tensor


class Policy(Protocol):
    """Anything that acts."""

    def act(self, obs: Tensor, generator: torch.Generator, *, greedy: bool = False) -> Decision:
        """Choose one action for each observation (B, ...)."""


class ConvTrunk(nn.Module):
    """Images in 0..255 to 512 units, shared by actor and critic (paper, table "atari_policy_arch")."""

    def __init__(self, obs_shape: tuple[int, ...], generator: torch.Generator) -> None:
        super().__init__()
        init = orthogonal(SQRT2)
        self.convs = nn.Sequential(
            conv(obs_shape[0], 32, kernel=8, stride=4, init=init, generator=generator),
            nn.ReLU(),
            conv(32, 64, kernel=4, stride=2, init=init, generator=generator),
            nn.ReLU(),
            conv(64, 32, kernel=3, stride=1, init=init, generator=generator),
            nn.ReLU(),
            nn.Flatten(),
        )
        flat = self.convs(torch.zeros(1, *obs_shape)).shape[1]
        self.dense = nn.Sequential(linear(flat, 512, init, generator), nn.ReLU())

    def forward(self, obs: Tensor) -> Tensor:
        """Units (B, 512)."""
        # Convolutions work channels last, on a GPU and on a CPU; otherwise each of them would turn its images over.
        units = (obs.float() / 255.0).contiguous(memory_format=torch.channels_last)
        for layer in self.convs:
            if obs.is_cuda and isinstance(layer, nn.Conv2d) and can_fold(layer, *units.shape[-2:]):
                units = folded_conv(layer, units)
            else:
                units = layer(units)
        hidden: Tensor = self.dense(units)
        return hidden


class ActorCritic(nn.Module):
    """The policy PPO trains: a distribution over actions and a value for each observation."""

    def __init__(
        self,
        obs_space: gym.spaces.Box,
        action_space: gym.Space[object],
        hidden: int,
        generator: torch.Generator,
        *,
        initial_log_std: float = 0.0,
        initial_action_gain: float = 1.0,
    ) -> None:
        super().__init__()
        self.images = len(obs_space.shape) == 3
        if self.images:
            trunk = ConvTrunk(obs_space.shape, generator)
            self.actor: nn.Module = trunk
            self.critic: nn.Module = trunk
            width = 512
            self.normalise: Standardise | None = None
        else:
            widths = (math.prod(obs_space.shape), hidden, hidden)
            self.actor = mlp(widths, nn.Tanh, orthogonal(SQRT2), generator)
            self.critic = mlp(widths, nn.Tanh, orthogonal(SQRT2), generator)
            width = hidden
            self.normalise = Standardise(obs_space.shape)
        self.value_head = linear(width, 1, orthogonal(1.0), generator)
        if isinstance(action_space, gym.spaces.Discrete):
            self.action_head = linear(width, int(action_space.n), orthogonal(0.01), generator)
            self.log_std: nn.Parameter | None = None
        elif isinstance(action_space, gym.spaces.Box):
            size = math.prod(action_space.shape)
            self.action_head = linear(width, size, orthogonal(initial_action_gain), generator)
            self.log_std = nn.Parameter(torch.full((size,), initial_log_std))
        else:
            raise UserError(f"action space {action_space}: only Discrete and Box are supported")

    def forward(self, obs: Tensor) -> tuple[ActionDistribution, Tensor]:
        """The distribution of actions and the values (B,)."""
        x = obs if self.normalise is None else self.normalise(obs).flatten(1)
        actor_units = self.actor(x)
        critic_units = actor_units if self.images else self.critic(x)
        return self._distribution(actor_units), self.value_head(critic_units).squeeze(-1)

    def _distribution(self, units: Tensor) -> ActionDistribution:
        head = self.action_head(units)
        return Categorical.of_logits(head) if self.log_std is None else Gaussian(head, self.log_std)

    @torch.no_grad()
    def act(self, obs: Tensor, generator: torch.Generator, *, greedy: bool = False) -> Decision:
        """Choose actions; the mode when greedy."""
        if not greedy:
            return self.choose(obs, self.noise(len(obs), generator))
        distribution, value = self(obs)
        action = distribution.mode()
        return Decision(action, distribution.log_prob(action), value)

    def noise(self, count: int, generator: torch.Generator) -> Tensor:
        """What chance adds to so many choices."""
        family = Categorical if self.log_std is None else Gaussian
        return family.noise(count, self.action_head.out_features, generator=generator)

    @torch.no_grad()
    def choose(self, obs: Tensor, noise: Tensor) -> Decision:
        """The actions that noise leads to: a function of its inputs, which a compiler can take."""
        distribution, value = self(obs)
        action = distribution.at(noise)
        return Decision(action, distribution.log_prob(action), value)

    @torch.no_grad()
    def value(self, obs: Tensor) -> Tensor:
        """Values alone (B,)."""
        value: Tensor = self(obs)[1]
        return value

    def observe(self, obs: Tensor) -> None:
        """Move the observation statistics; between iterations only, so that one iteration sees one normalisation."""
        if self.normalise is not None:
            self.normalise.observe(obs)


class UniformPolicy(nn.Module):
    """Uniformly random actions: the control `random`, and the explorer that gives features their scale."""

    low: Tensor
    high: Tensor

    def __init__(self, action_space: gym.Space[object]) -> None:
        super().__init__()
        self.num_actions = int(action_space.n) if isinstance(action_space, gym.spaces.Discrete) else 0
        box = action_space if isinstance(action_space, gym.spaces.Box) else gym.spaces.Box(0.0, 1.0, (1,))
        # An unbounded action has no uniform distribution; a width of two stands in, at zero or beside the one bound.
        low, high = torch.as_tensor(box.low).float(), torch.as_tensor(box.high).float()
        beside_low = torch.where(low.isfinite(), low + 2.0, 1.0)
        beside_high = torch.where(high.isfinite(), high - 2.0, -1.0)
        self.register_buffer("low", torch.where(low.isfinite(), low, beside_high))
        self.register_buffer("high", torch.where(high.isfinite(), high, beside_low))

    @torch.no_grad()
    def act(self, obs: Tensor, generator: torch.Generator, *, greedy: bool = False) -> Decision:
        """Choose without looking."""
        num = obs.shape[0]
        zeros = torch.zeros(num, device=obs.device)
        if self.num_actions:
            action = torch.randint(self.num_actions, (num,), generator=generator, device=obs.device)
            return Decision(action, zeros - math.log(self.num_actions), zeros)
        uniform = torch.rand((num, *self.low.shape), generator=generator, device=obs.device)
        return Decision(self.low + (self.high - self.low) * uniform, zeros, zeros)

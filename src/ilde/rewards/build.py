"""From a reward expression to the models that compute it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

import gymnasium as gym
import torch
from torch import nn

from ilde.nets.features import FeatureConfig, FeatureSpace
from ilde.randomness import torch_generator
from ilde.rewards.base import ActionCode, RewardModel
from ilde.rewards.compose import RewardMix, ScaleConfig, ScaledTerm
from ilde.rewards.discriminator import AdversarialReward, Discriminator, DiscriminatorConfig
from ilde.rewards.dynamics import DynamicsConfig, DynamicsModel, DynamicsReward
from ilde.rewards.elliptical import EllipticalBonus, EllipticalConfig, InverseModel, Projection
from ilde.rewards.entropy import EntropyConfig, StateEntropy
from ilde.rewards.expression import TERMS, TermName, WeightedTerm, needs_features, parse_expression
from ilde.rewards.generative import GenerativeConfig, GenerativeReward, TransitionVAE
from ilde.rewards.scaling import ReturnScale
from ilde.rewards.simple import Constant, EnvReward, EnvRewardConfig


@dataclass(frozen=True)
class RewardConfig:
    """Settings of all reward terms."""

    features: FeatureConfig = field(default_factory=FeatureConfig)
    env: EnvRewardConfig = field(default_factory=EnvRewardConfig)
    discriminator: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)
    generative: GenerativeConfig = field(default_factory=GenerativeConfig)
    dynamics: DynamicsConfig = field(default_factory=DynamicsConfig)
    entropy: EntropyConfig = field(default_factory=EntropyConfig)
    elliptical: EllipticalConfig = field(default_factory=EllipticalConfig)
    scale: ScaleConfig = field(default_factory=ScaleConfig)
    hidden: int = 100
    """Units of each hidden layer of the reward networks: 1024 for images, 100 for vectors in the paper."""
    curiosity_factor: float = 1.0
    """Multiplies the weight of `giril`: the constant that the paper sets by the range of the curiosity."""
    background_steps: int = 10_000
    """Random-policy steps that give the features their scale; no reward is read."""


@dataclass(frozen=True)
class Blueprint:
    """What every term's network needs to know."""

    config: RewardConfig
    space: FeatureSpace
    code: ActionCode
    seed: int
    device: torch.device

    @property
    def activation(self) -> type[nn.Module]:
        """LeakyReLU on image features, Tanh on vectors (paper, both network tables)."""
        return nn.LeakyReLU if len(self.space.obs_shape) == 3 else nn.Tanh

    def build(self, name: TermName) -> RewardModel:
        """The model of one term."""
        match name:
            case "env":
                return EnvReward(self.config.env)
            case "constant":
                return Constant()
            case "gail" | "vail":
                return self._adversarial(bottleneck=name == "vail")
            case "giril":
                return self._generative()
            case "icm":
                return self._dynamics()
            case "entropy":
                return StateEntropy(self.config.entropy, torch_generator(self.seed, "entropy"))
            case "e3b":
                return self._elliptical()
            case _:
                assert_never(name)

    def _adversarial(self, *, bottleneck: bool) -> RewardModel:
        config = self.config.discriminator
        inputs = self.space.size + (self.code.size if config.input == "state-action" else 0)
        generator = torch_generator(self.seed, "discriminator")
        net = Discriminator(inputs, self.config.hidden, self.activation, bottleneck=bottleneck, generator=generator)
        return AdversarialReward(net.to(self.device), config, generator)

    def _generative(self) -> RewardModel:
        config, generator = self.config.generative, torch_generator(self.seed, "generative")
        net = TransitionVAE(
            self.space.size, self.code.size, self.config.hidden, self.activation, generator, config.predicts
        )
        return GenerativeReward(net.to(self.device), config, generator, discrete=self.code.discrete)

    def _dynamics(self) -> RewardModel:
        generator = torch_generator(self.seed, "dynamics")
        net = DynamicsModel(self.space.size, self.code.size, self.config.hidden, self.activation, generator)
        return DynamicsReward(net.to(self.device), self.config.dynamics, generator, discrete=self.code.discrete)

    def _elliptical(self) -> RewardModel:
        config, generator = self.config.elliptical, torch_generator(self.seed, "elliptical")
        net: InverseModel | Projection
        if config.features == "shared":
            net = Projection(self.space.size, width=config.width, generator=generator)
        else:
            net = InverseModel(
                self.space.size, self.code.size, width=config.width, hidden=self.config.hidden,
                activation=self.activation, generator=generator,
            )  # fmt: skip
        return EllipticalBonus(net.to(self.device), config, generator, discrete=self.code.discrete)


def build_reward(
    expression: str,
    config: RewardConfig,
    obs_space: gym.spaces.Box,
    action_space: gym.Space[object],
    *,
    num_envs: int,
    clip_actions: bool,
    seed: int,
    device: torch.device,
) -> RewardMix:
    """The reward of an expression such as `vail + 10*giril + entropy`."""
    space = FeatureSpace(obs_space.shape, torch_generator(seed, "features"), config.features).to(device)
    blueprint = Blueprint(config, space, ActionCode(action_space, clip_actions), seed, device)

    def scale() -> ReturnScale:
        return ReturnScale(num_envs, config.scale.discount, config.scale.window)

    def term_scale(name: TermName) -> ReturnScale | None:
        spared: dict[str, tuple[TermName, ...]] = {
            "all": (),
            "exploration": ("gail", "vail"),
            "novelty": ("gail", "vail", "env"),
            "none": TERMS,
        }
        return None if name in ("constant", *spared[config.scale.terms]) else scale()

    def weight(term: WeightedTerm) -> float:
        return term.weight * (config.curiosity_factor if term.name == "giril" else 1.0)

    summands = parse_expression(expression)
    terms = {
        term.name: ScaledTerm(blueprint.build(term.name), weight(term), term_scale(term.name)) for term in summands
    }
    seen = space if needs_features(summands) else None
    return RewardMix(terms, seen, blueprint.code, scale() if config.scale.total else None)

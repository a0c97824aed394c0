"""Five environments that each isolate one thing a learner must get right: all are solved under all of ten seeds."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from toys import (
    CPU,
    TINY,
    ChosenReward,
    ConstantReward,
    LateReward,
    MatchedReward,
    SeenReward,
    Toy,
)

from ilde.envs import make_envs
from ilde.learners.ppo import PPOConfig
from ilde.nets.distributions import Categorical
from ilde.rewards.build import RewardConfig
from ilde.rewards.compose import ScaleConfig
from ilde.trainer import Trainer

DISCOUNT = 0.5
CONFIG = replace(
    TINY,
    method="expert",
    num_envs=4,
    rollout_steps=16,
    ppo=PPOConfig(
        learning_rate=3e-2,
        anneal=False,
        num_epochs=6,
        num_minibatches=1,
        clip_range=0.2,
        clip_value=False,
        discount=DISCOUNT,
        entropy_weight=0.0,
        value_weight=1.0,
        hidden=16,
    ),
    rewards=RewardConfig(scale=ScaleConfig(terms="none", total=False)),
)

SEEDS = pytest.mark.parametrize("seed", range(10))


def learned(env: type[Toy], seed: int, *obs: float) -> tuple[list[float], list[float]]:
    """The values of some observations, and how likely action 1 is there, after 12 rollouts of 64 steps."""
    trainer = Trainer(replace(CONFIG, seed=seed), make_envs(env, CONFIG.num_envs, seed), CPU)
    for _ in range(12):
        trainer.iterate()
    distribution, value = trainer.learner.policy(torch.tensor(obs).unsqueeze(1))  # type: ignore[operator]
    assert isinstance(distribution, Categorical)
    return value.tolist(), distribution.log_probs.exp()[:, 1].tolist()


@SEEDS
def test_the_value_of_a_constant_reward_is_learned(seed: int) -> None:
    value, _ = learned(ConstantReward, seed, 0.0)
    assert value == pytest.approx([1.0], abs=0.1)


@SEEDS
def test_the_value_of_what_is_seen_is_learned(seed: int) -> None:
    value, _ = learned(SeenReward, seed, -1.0, 1.0)
    assert value == pytest.approx([-1.0, 1.0], abs=0.1)


@SEEDS
def test_a_later_reward_is_worth_its_discount(seed: int) -> None:
    value, _ = learned(LateReward, seed, 0.0, 1.0)
    assert value == pytest.approx([DISCOUNT, 1.0], abs=0.1)


@SEEDS
def test_the_better_action_is_learned(seed: int) -> None:
    value, likely = learned(ChosenReward, seed, 0.0)
    assert likely[0] > 0.95
    assert value == pytest.approx([1.0], abs=0.1)


@SEEDS
def test_the_better_action_for_what_is_seen_is_learned(seed: int) -> None:
    value, likely = learned(MatchedReward, seed, -1.0, 1.0)
    assert likely[0] < 0.05
    assert likely[1] > 0.95
    assert value == pytest.approx([1.0, 1.0], abs=0.1)

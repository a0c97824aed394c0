"""The uncertainty-regularised regret and its decomposition, exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ilde.theory.mdp import Array, Mdp, occupancy
from ilde.theory.rewards import RewardClass
from ilde.theory.saddle import Saddle


@dataclass(frozen=True)
class Game:
    """Everything that stands still while the learner plays: the process, the classes, the expert, pi*."""

    mdp: Mdp
    rewards: RewardClass
    expert: Array
    """(H, S, A), the expert's policy."""
    expert_expectation: Array
    intrinsic: Array
    """(H, S, A), L."""
    curiosity_weight: float
    """lambda of the objective."""
    saddle: Saddle


@dataclass(frozen=True)
class Moments:
    """What the regret needs of policies: J(pi, r) = <theta, expectation>, Int(pi) = curiosity."""

    expectation: Array
    """(K, d)."""
    curiosity: Array
    """(K,)."""


def moments(game: Game, policies: Array) -> Moments:
    """Of policies (K, H, S, A)."""
    mu = occupancy(game.mdp, policies)
    return Moments(game.rewards.expectation(mu), np.sum(mu * game.intrinsic, axis=(1, 2, 3)))


def regret(game: Game, played: Moments, weights: Array) -> float:
    """max over r of sum_k w_k (l(pi_k, r) - l(pi*, r)), as the paper states it."""
    behind = weights @ (game.saddle.expectation - played.expectation)
    return game.rewards.support(behind) + game.curiosity_weight * float(
        weights @ (game.saddle.curiosity - played.curiosity)
    )


def saddle_regret(game: Game, played: Moments, weights: Array) -> float:
    """max over r of sum_k w_k l(pi_k, r), less sum_k w_k times the saddle value.

    This is what the proof bounds. It is at most `regret`, and equal to it where lambda = 0.
    """
    behind = weights @ (game.expert_expectation - played.expectation)
    loss = game.rewards.support(behind) - game.curiosity_weight * float(weights @ played.curiosity)
    return loss - float(weights.sum()) * game.saddle.value


@dataclass(frozen=True)
class Decomposition:
    """The proof's terms, summed over iterations with their weights."""

    policy: float
    """I1 + lambda I3: the policy player against pi* at the rewards it was given."""
    reward: float
    """I2: the reward player against the best fixed reward."""


def decompose(game: Game, iterates: Moments, thetas: Array, weights: Array) -> Decomposition:
    """I1 + lambda I3 and I2 of iterates pi^k with rewards theta^k (K, d)."""
    behind = game.saddle.expectation - iterates.expectation
    first = float(weights @ np.sum(thetas * behind, axis=1))
    third = float(weights @ (game.saddle.curiosity - iterates.curiosity))
    loss = game.expert_expectation - iterates.expectation
    second = game.rewards.support(weights @ loss) - float(weights @ np.sum(thetas * loss, axis=1))
    return Decomposition(first + game.curiosity_weight * third, second)

"""Algorithm 1: ILDE with natural policy gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from ilde.theory.constants import Schedule
from ilde.theory.evaluation import SplitData, optimistic_evaluation
from ilde.theory.mdp import Array, Mdp, sample
from ilde.theory.rewards import RewardClass, WeightedFeatures, Weighting
from ilde.theory.uncertainty import ValueClass


@dataclass(frozen=True)
class Learner:
    """What the learner is given."""

    mdp: Mdp
    """Only sampled from."""
    rewards: RewardClass
    values: ValueClass
    demos: Array
    """(d,): the demonstrations' mean sum of features; the expert's own where epsilon_E = 0."""
    intrinsic: Array
    """(H, S, A), L."""
    curiosity_weight: float
    weighting: Weighting = "decision"

    @property
    def step_bound(self) -> float:
        """The largest |r + lambda L|."""
        return 1.0 + self.curiosity_weight


@dataclass(frozen=True)
class Run:
    """What was played, and every iterate."""

    policies: Array
    """(K, H, S, A), the iterates; the output is their uniform mixture."""
    thetas: Array
    """(K, d), the reward each iterate was evaluated with."""
    played: Array
    """(K,): how many episodes were played with each iterate."""


def natural_policy_gradient(learner: Learner, schedule: Schedule, rng: np.random.Generator) -> Run:
    """Algorithm 1, with `(k - 1) mod m = 0` for the paper's `k mod m = 1`, which for m = 1 never holds."""
    mdp, k_all, m = learner.mdp, schedule.iterations, schedule.period
    log_policies = np.empty((k_all, mdp.horizon, mdp.num_states, mdp.num_actions))
    thetas = np.zeros((k_all, learner.rewards.dimension))
    played = np.zeros(k_all)
    log_policy, theta = np.full(log_policies.shape[1:], -np.log(mdp.num_actions)), thetas[0]
    for k in range(k_all):
        log_policies[k], thetas[k] = log_policy, theta
        if k % m == 0:
            behaviour = int(rng.integers(max(0, k - m + 1), k + 1))
            played[behaviour] += schedule.batch
            data = sample(mdp, np.exp(log_policies[behaviour]), schedule.batch, rng)
            split = SplitData.of(mdp, learner.values, data)
            visited = WeightedFeatures.of(mdp, learner.rewards, data, learner.weighting)
        # Ascent on L-hat is the paper's descent on -L-hat; theta^k serves the evaluation at k, its update the next.
        gradient = learner.demos - visited.expectation(log_policy, log_policies[behaviour])
        reward = learner.rewards.reward(theta) + learner.curiosity_weight * learner.intrinsic
        q = optimistic_evaluation(np.exp(log_policy), split, reward, schedule.bonus_constant, learner.step_bound)
        log_policy = mirror_step(log_policy, q, schedule.policy_step_size)
        theta = learner.rewards.project(theta + schedule.reward_step_size * gradient)
    return Run(np.exp(log_policies), thetas, played)


def mirror_step(log_policy: Array, q: Array, step_size: float) -> Array:
    """pi <- pi exp(eta Q) / Z, in logarithms."""
    return np.asarray(log_softmax(log_policy + step_size * q, axis=-1))

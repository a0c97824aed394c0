"""Decision processes and games small enough to enumerate."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from ilde.theory.mdp import Array, Mdp, Trajectories, occupancy, one_hot_features, optimal_policy
from ilde.theory.regret import Game
from ilde.theory.rewards import RewardClass, Shape
from ilde.theory.saddle import solve_saddle
from ilde.theory.worlds import random_mdp


def tiny_mdp(states: int = 2, actions: int = 2, horizon: int = 2, seed: int = 0) -> Mdp:
    return random_mdp(states, actions, horizon, 1.0, np.random.default_rng(seed))


def random_policy(mdp: Mdp, rng: np.random.Generator) -> Array:
    return rng.dirichlet(np.ones(mdp.num_actions), size=(mdp.horizon, mdp.num_states))


def every_trajectory(mdp: Mdp, policy: Array) -> Iterator[tuple[float, Trajectories]]:
    """All trajectories with their probabilities."""
    for actions in product(range(mdp.num_actions), repeat=mdp.horizon):
        for later in product(range(mdp.num_states), repeat=mdp.horizon):
            states = (mdp.start, *later)
            chance = 1.0
            for h, action in enumerate(actions):
                chance *= policy[h, states[h], action] * mdp.kernel[h, states[h], action, states[h + 1]]
            yield chance, Trajectories(np.array([states]), np.array([actions]))


def tiny_game(mdp: Mdp, curiosity_weight: float, shape: Shape = "box", seed: int = 1) -> Game:
    rng = np.random.default_rng(seed)
    pairs = (mdp.num_states, mdp.num_actions)
    rewards = RewardClass(one_hot_features(*pairs), shape)
    expert = optimal_policy(mdp, rng.uniform(-1, 1, pairs), temperature=0.5)
    intrinsic = np.broadcast_to(rng.uniform(0, 1, pairs), expert.shape).copy()
    expectation = rewards.expectation(occupancy(mdp, expert))
    saddle = solve_saddle(mdp, rewards, expectation, intrinsic, curiosity_weight)
    return Game(mdp, rewards, expert, expectation, intrinsic, curiosity_weight, saddle)

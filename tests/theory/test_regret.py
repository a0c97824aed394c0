from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small import random_policy, tiny_game, tiny_mdp

from ilde.theory.mdp import occupancy
from ilde.theory.presets import build_game, find_preset
from ilde.theory.regret import Game, decompose, moments, regret, saddle_regret


def play(game: Game, iterations: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    policies = np.stack([random_policy(game.mdp, rng) for _ in range(iterations)])
    return policies, rng.uniform(-1, 1, (iterations, game.rewards.dimension))


def test_the_regret_is_the_largest_over_rewards() -> None:
    game = tiny_game(tiny_mdp(), 1.5)
    policies, _ = play(game, 5)
    weights = np.arange(1.0, 6.0)
    best = -np.inf
    for signs in np.ndindex(2, 2, 2, 2):  # a linear function is largest at a corner of the box
        reward = 2.0 * np.array(signs).reshape(2, 2) - 1 + 1.5 * game.intrinsic
        value = np.sum(occupancy(game.mdp, game.saddle.policy) * reward)
        values = np.sum(occupancy(game.mdp, policies) * reward, axis=(1, 2, 3))
        best = max(best, float(weights @ (value - values)))
    assert regret(game, moments(game, policies), weights) == pytest.approx(best)


@pytest.mark.parametrize("weight", [0.0, 1.0, 5.0])
def test_the_saddle_regret_lies_between_nothing_and_the_stated_one(weight: float) -> None:
    game = tiny_game(tiny_mdp(4, 3, 4), weight)
    for seed in range(20):
        policies, _ = play(game, seed=seed)
        played, even = moments(game, policies), np.ones(20)
        low, high = saddle_regret(game, played, even), regret(game, played, even)
        assert -1e-6 <= low <= high + 1e-6
        if weight == 0:
            assert low == pytest.approx(high, abs=1e-3)


def test_playing_the_saddle_has_no_regret() -> None:
    game = tiny_game(tiny_mdp(4, 3, 4), 2.0)
    played = moments(game, game.saddle.policy[None])
    assert regret(game, played, np.ones(1)) == pytest.approx(0, abs=1e-9)
    assert saddle_regret(game, played, np.ones(1)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_the_decomposition_bounds_the_saddle_regret(weight: float) -> None:
    game = tiny_game(tiny_mdp(4, 3, 4), weight)
    for seed in range(20):
        policies, thetas = play(game, seed=seed)
        played, even = moments(game, policies), np.ones(20)
        terms = decompose(game, played, thetas, even)
        assert saddle_regret(game, played, even) <= terms.policy + terms.reward + 1e-6


def test_the_decomposition_does_not_bound_the_regret_as_stated() -> None:
    """Let the learner play the expert, and the rewards be the worst for pi*: the paper's inequality fails."""
    game = tiny_game(tiny_mdp(4, 3, 4), 5.0)
    played = moments(game, game.expert[None])
    theta = game.rewards.best(game.expert_expectation - game.saddle.expectation)
    terms = decompose(game, played, theta[None], np.ones(1))
    assert regret(game, played, np.ones(1)) > terms.policy + terms.reward + 0.1
    assert saddle_regret(game, played, np.ones(1)) <= terms.policy + terms.reward + 1e-9


def test_where_the_saddle_is_not_unique_the_stated_regret_counts_a_difference_that_costs_nothing() -> None:
    """In the last state of the chain's room all actions are alike; rewards that see actions tell them apart."""
    game = build_game(replace(find_preset("chain"), reward_features="process"))
    other = game.saddle.policy.copy()
    other[:, -1] = np.roll(other[:, -1], 1, axis=-1)
    played = moments(game, other[None])
    assert saddle_regret(game, played, np.ones(1)) == pytest.approx(0, abs=1e-6)
    assert regret(game, played, np.ones(1)) > 0.5

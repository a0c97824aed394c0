from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from small import random_policy, tiny_game, tiny_mdp

from ilde.theory.mdp import occupancy
from ilde.theory.regret import Game, moments
from ilde.theory.rewards import Shape
from ilde.theory.saddle import flow_constraints, policy_of


def losses(game: Game, policies: np.ndarray) -> np.ndarray:
    """max over r of l(pi, r) for each policy."""
    found = moments(game, policies)
    norms = [game.rewards.support(game.expert_expectation - row) for row in found.expectation]
    return np.array(norms) - game.curiosity_weight * found.curiosity


@pytest.mark.parametrize("shape", ["box", "ball"])
@pytest.mark.parametrize("weight", [0.5, 3.0])
def test_the_program_finds_what_brute_force_finds(shape: Shape, weight: float) -> None:
    mdp = tiny_mdp()
    game = tiny_game(mdp, weight, shape)
    # Two steps, two states, two actions; at the first step only the start state matters: three probabilities.
    grid = np.linspace(0, 1, 41)
    choices = np.array(list(product(grid, repeat=3)))
    policies = np.full((len(choices), 2, 2, 2), 0.5)
    policies[:, 0, mdp.start, 0], policies[:, 1, :, 0] = choices[:, 0], choices[:, 1:]
    policies[..., 1] = 1 - policies[..., 0]
    best = losses(game, policies).min()
    assert game.saddle.value <= best + 1e-9
    assert best - game.saddle.value < 0.1  # the grid's own coarseness: 1/40 in each of three probabilities


@pytest.mark.parametrize("shape", ["box", "ball"])
def test_no_policy_beats_the_saddle(shape: Shape) -> None:
    mdp = tiny_mdp(states=4, actions=3, horizon=4)
    game = tiny_game(mdp, 2.0, shape)
    rng = np.random.default_rng(0)
    near = game.saddle.policy + 0.02 * np.stack([random_policy(mdp, rng) for _ in range(200)])
    far = np.stack([random_policy(mdp, rng) for _ in range(200)])
    policies = np.concatenate([near / near.sum(axis=-1, keepdims=True), far])
    assert losses(game, policies).min() >= game.saddle.value - 1e-7
    np.testing.assert_allclose(losses(game, game.saddle.policy[None])[0], game.saddle.value)


@pytest.mark.parametrize("shape", ["box", "ball"])
def test_without_curiosity_the_saddle_is_the_expert_at_value_zero(shape: Shape) -> None:
    game = tiny_game(tiny_mdp(states=4, actions=3, horizon=4), 0.0, shape)
    assert game.saddle.value == pytest.approx(0.0, abs=1e-5)
    np.testing.assert_allclose(game.saddle.expectation, game.expert_expectation, atol=1e-5)


def test_occupancies_satisfy_the_flow_and_give_their_policy_back() -> None:
    mdp = tiny_mdp(states=3, actions=2, horizon=4)
    policy = random_policy(mdp, np.random.default_rng(0))
    mu = occupancy(mdp, policy)
    rows, right = flow_constraints(mdp)
    np.testing.assert_allclose(rows @ mu.ravel(), right, atol=1e-12)
    reached = mu.sum(axis=-1) > 0
    np.testing.assert_allclose(policy_of(mu)[reached], policy[reached])

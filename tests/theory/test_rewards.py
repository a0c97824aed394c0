from __future__ import annotations

import numpy as np
import pytest
from small import every_trajectory, random_policy, tiny_mdp

from ilde.theory.mdp import occupancy, one_hot_features, sample, state_features
from ilde.theory.rewards import RewardClass, Shape, WeightedFeatures, Weighting, demo_expectation


def rewards_of(shape: Shape) -> RewardClass:
    return RewardClass(one_hot_features(2, 2), shape)


def test_projection_on_the_box_clips_and_on_the_ball_shrinks() -> None:
    theta = np.array([3.0, -4.0, 0.0, 0.0])
    assert rewards_of("box").project(theta).tolist() == [1, -1, 0, 0]
    assert rewards_of("ball").project(theta) == pytest.approx([0.6, -0.8, 0, 0])
    inside = np.array([0.1, -0.2, 0.3, 0.0])
    for shape in ("box", "ball"):
        np.testing.assert_array_equal(rewards_of(shape).project(inside), inside)


@pytest.mark.parametrize("shape", ["box", "ball"])
def test_no_member_exceeds_the_support_and_the_best_attains_it(shape: Shape) -> None:
    rewards, rng = rewards_of(shape), np.random.default_rng(0)
    direction = rng.normal(size=4)
    members = [rewards.project(rng.normal(scale=3, size=4)) for _ in range(200)]
    assert max(float(theta @ direction) for theta in members) <= rewards.support(direction)
    best = rewards.best(direction)
    assert float(best @ direction) == pytest.approx(rewards.support(direction))
    np.testing.assert_allclose(rewards.project(best), best)
    assert np.abs(rewards.reward(best)).max() <= 1


@pytest.mark.parametrize("shape", ["box", "ball"])
def test_no_two_members_are_further_apart_than_the_diameter(shape: Shape) -> None:
    rewards = rewards_of(shape)
    direction = np.ones(4)
    assert np.linalg.norm(rewards.best(direction) - rewards.best(-direction)) == pytest.approx(rewards.diameter)


@pytest.mark.parametrize("weighting", ["trajectory", "decision"])
def test_importance_weights_are_unbiased(weighting: Weighting) -> None:
    """The mean over every trajectory of the behaviour is the exact expectation of the other policy."""
    mdp, rng = tiny_mdp(horizon=3), np.random.default_rng(0)
    policy, behaviour = random_policy(mdp, rng), random_policy(mdp, rng)
    rewards = rewards_of("box")
    total = np.zeros(4)
    for chance, path in every_trajectory(mdp, behaviour):
        weighted = WeightedFeatures.of(mdp, rewards, path, weighting)
        total += chance * weighted.expectation(np.log(policy), np.log(behaviour))
    np.testing.assert_allclose(total, rewards.expectation(occupancy(mdp, policy)), atol=1e-12)


def test_per_decision_weights_vary_less() -> None:
    mdp, rng = tiny_mdp(horizon=3), np.random.default_rng(0)
    policy, behaviour = random_policy(mdp, rng), random_policy(mdp, rng)
    spread = {}
    for weighting in ("trajectory", "decision"):
        estimates = []
        for _ in range(300):
            data = sample(mdp, behaviour, 20, rng)
            weighted = WeightedFeatures.of(mdp, rewards_of("box"), data, weighting)
            estimates.append(weighted.expectation(np.log(policy), np.log(behaviour)))
        spread[weighting] = np.var(estimates, axis=0).sum()
    assert spread["decision"] < 0.8 * spread["trajectory"]


def test_fresh_data_of_the_policy_itself_has_weights_of_one() -> None:
    mdp = tiny_mdp(horizon=3)
    policy = random_policy(mdp, np.random.default_rng(0))
    data = sample(mdp, policy, 50, np.random.default_rng(1))
    weighted = WeightedFeatures.of(mdp, rewards_of("box"), data, "trajectory")
    np.testing.assert_allclose(
        weighted.expectation(np.log(policy), np.log(policy)), demo_expectation(rewards_of("box"), data)
    )


def test_demonstrations_count_their_states() -> None:
    mdp = tiny_mdp(horizon=3)
    data = sample(mdp, random_policy(mdp, np.random.default_rng(0)), 4, np.random.default_rng(1))
    found = demo_expectation(RewardClass(state_features(2, 2)), data)
    by_hand = [float(np.mean(np.sum(data.states[:, :-1] == s, axis=1))) for s in range(2)]
    assert found.tolist() == by_hand

from __future__ import annotations

import numpy as np
import pytest
from small import random_policy, tiny_mdp

from ilde.theory.constants import bonus_constant
from ilde.theory.evaluation import SplitData, optimistic_evaluation
from ilde.theory.mdp import Mdp, evaluate, occupancy, one_hot_features, sample, uniform_policy
from ilde.theory.uncertainty import LinearClass, TabularClass
from ilde.theory.worlds import linear_mdp

DRAWS = 1000
STEP = 2


def values_of(mdp: Mdp, step_bound: float) -> TabularClass:
    return TabularClass(mdp.num_states, mdp.num_actions, mdp.horizon * step_bound)


def test_the_value_difference_lemma_is_an_identity() -> None:
    mdp, rng = tiny_mdp(states=4, actions=3, horizon=5), np.random.default_rng(0)
    policy, other, reward = random_policy(mdp, rng), random_policy(mdp, rng), rng.uniform(-1, 1, (5, 4, 3))
    q = rng.normal(size=(5, 4, 3))  # any Q whatever
    v = np.concatenate([np.sum(other * q, axis=-1), np.zeros((1, 4))])
    mu = occupancy(mdp, policy)
    left = evaluate(mdp, policy, reward)[1][0, mdp.start] - v[0, mdp.start]
    moved = np.sum(mu.sum(axis=-1) * np.sum(q * (policy - other), axis=-1))
    next_value = np.einsum("hsat,ht->hsa", mdp.kernel, v[1:])
    assert left == pytest.approx(moved - np.sum(mu * (q - reward - next_value)))


def test_each_step_learns_from_its_own_part() -> None:
    mdp = tiny_mdp(states=3, actions=2, horizon=2)
    policy = random_policy(mdp, np.random.default_rng(0))
    data = sample(mdp, policy, 40, np.random.default_rng(1))
    split = SplitData.of(mdp, values_of(mdp, 1.0), data)
    for h, part in enumerate((slice(0, 20), slice(20, 40))):
        visits = np.zeros((3, 2))
        np.add.at(visits, (data.states[part, h], data.actions[part, h]), 1.0)
        np.testing.assert_allclose(split.uncertainty[h], 1 / np.sqrt(visits + 0.25))


@pytest.mark.parametrize("kind", ["tabular", "linear"])
def test_the_confidence_lemma_covers(kind: str) -> None:
    """Over 1,000 draws the bonus of the theorem covers every error; of a bonus scaled to 0.1 we learn how often."""
    rng = np.random.default_rng(0)
    mdp = tiny_mdp(3, 2, 4) if kind == "tabular" else linear_mdp(6, 2, 3, 4, rng)
    bound, part = float(mdp.horizon), 25
    values = TabularClass(3, 2, bound) if kind == "tabular" else LinearClass(mdp.features, bound)
    policy = random_policy(mdp, rng)
    constant = bonus_constant(values, mdp.horizon, part * mdp.horizon, delta=0.05) * bound
    v = rng.uniform(-bound, bound, mdp.num_states)
    covered = np.zeros(2)
    for _ in range(DRAWS):
        drawn = sample(mdp, policy, part, rng)  # the part of one step is all that its regression sees
        counts = np.zeros(mdp.kernel.shape[1:])
        np.add.at(counts, (drawn.states[:, STEP], drawn.actions[:, STEP], drawn.states[:, STEP + 1]), 1.0)
        error = np.abs(values.regression(counts)(v) - mdp.kernel[STEP] @ v)
        uncertainty = values.uncertainty(counts.sum(axis=-1))
        covered += [np.all(error <= c * uncertainty) for c in (constant, 0.1 * bound)]
    assert covered[0] >= 0.95 * DRAWS
    assert covered[1] < covered[0]  # a tenth of the range is not always enough: scaled bonuses are no theorem


def test_evaluation_with_the_theorems_bonus_is_optimistic() -> None:
    mdp, rng = tiny_mdp(4, 3, 5), np.random.default_rng(0)
    step_bound = 3.0
    values = values_of(mdp, step_bound)
    constant = bonus_constant(values, mdp.horizon, 500, delta=0.05)
    for _ in range(20):
        policy, reward = random_policy(mdp, rng), rng.uniform(-step_bound, step_bound, (5, 4, 3))
        split = SplitData.of(mdp, values, sample(mdp, policy, 500, rng))
        q = optimistic_evaluation(policy, split, reward, constant, step_bound)
        v = np.concatenate([np.sum(policy * q, axis=-1), np.zeros((1, 4))])
        # The lemma's own form: Q is at least reward plus expected next V, at every cell.
        assert np.all(q >= reward + np.einsum("hsat,ht->hsa", mdp.kernel, v[1:]) - 1e-9)
        assert np.all(q >= evaluate(mdp, policy, reward)[0] - 1e-9)


def test_the_bonus_is_c_times_the_largest_value_of_the_step_after_times_d_f() -> None:
    mdp, rng = tiny_mdp(3, 2, 2), np.random.default_rng(0)
    step_bound, constant = 3.0, 1e-3  # so little that nothing is clipped
    policy, reward = random_policy(mdp, rng), rng.uniform(-1, 1, (2, 3, 2))
    split = SplitData.of(mdp, values_of(mdp, step_bound), sample(mdp, policy, 60, rng))
    q = optimistic_evaluation(policy, split, reward, constant, step_bound)
    expected = split.regressions[0](np.sum(policy[1] * q[1], axis=-1))
    # One step is left after the first, none after the last.
    np.testing.assert_allclose(q[0] - reward[0] - expected, constant * step_bound * split.uncertainty[0], rtol=1e-9)
    np.testing.assert_allclose(q[1], reward[1])


def test_clipping_at_the_horizon_would_break_optimism() -> None:
    """One state, one action, reward 1 + lambda = 11 at each of 3 steps: the truth is 33, the paper's clip 3."""
    mdp = Mdp(np.ones((3, 1, 1, 1)), 0, np.zeros((1, 1)), one_hot_features(1, 1))
    policy, reward = np.ones((3, 1, 1)), np.full((3, 1, 1), 11.0)
    data = sample(mdp, policy, 30, np.random.default_rng(0))
    split = SplitData.of(mdp, values_of(mdp, 11.0), data)
    assert optimistic_evaluation(policy, split, reward, 1.0, 11.0)[0, 0, 0] == pytest.approx(33.0)
    assert optimistic_evaluation(policy, split, reward, 1.0, 1.0)[0, 0, 0] == pytest.approx(3.0)


def test_without_noise_and_bonus_the_evaluation_is_exact() -> None:
    mdp, rng = tiny_mdp(3, 2, 4), np.random.default_rng(0)
    sure = Mdp(np.eye(3)[mdp.kernel.argmax(axis=-1)], 0, mdp.positions, mdp.features)
    policy, reward = uniform_policy(sure), rng.uniform(-1, 1, (4, 3, 2))
    split = SplitData.of(sure, values_of(sure, 1.0), sample(sure, policy, 4000, rng))
    visited = occupancy(sure, policy) > 0  # then at least 1/16, and of 1,000 episodes surely seen
    q = optimistic_evaluation(policy, split, reward, 0.0, 1.0)
    np.testing.assert_allclose(q[visited], evaluate(sure, policy, reward)[0][visited])

from __future__ import annotations

import numpy as np
import pytest
from small import every_trajectory, random_policy, tiny_mdp

from ilde.theory.mdp import Mdp, evaluate, occupancy, one_hot_features, optimal_policy, sample, uniform_policy
from ilde.theory.presets import build_mdp, presets


def test_occupancies_are_the_frequencies_of_played_episodes() -> None:
    mdp = tiny_mdp(states=4, actions=3, horizon=5)
    policy = random_policy(mdp, np.random.default_rng(1))
    data = sample(mdp, policy, 200_000, np.random.default_rng(2))
    exact = occupancy(mdp, policy)
    for h in range(mdp.horizon):
        seen = np.zeros((mdp.num_states, mdp.num_actions))
        np.add.at(seen, (data.states[:, h], data.actions[:, h]), 1.0 / len(data))
        # Five standard deviations of a frequency of at most 1/2.
        assert np.abs(seen - exact[h]).max() < 5 * 0.5 / np.sqrt(len(data))


def test_occupancies_are_the_sums_over_every_trajectory() -> None:
    mdp = tiny_mdp(horizon=3)
    policy = random_policy(mdp, np.random.default_rng(1))
    total = np.zeros_like(policy)
    for chance, path in every_trajectory(mdp, policy):
        total[np.arange(mdp.horizon), path.states[0, :-1], path.actions[0]] += chance
    np.testing.assert_allclose(occupancy(mdp, policy), total, atol=1e-12)


def test_a_batch_of_policies_has_the_occupancies_of_each() -> None:
    mdp = tiny_mdp(states=3)
    policies = np.stack([random_policy(mdp, np.random.default_rng(seed)) for seed in range(3)])
    np.testing.assert_allclose(occupancy(mdp, policies)[2], occupancy(mdp, policies[2]))


def test_values_are_the_reward_under_the_occupancy() -> None:
    mdp = tiny_mdp(states=4, actions=3, horizon=5)
    rng = np.random.default_rng(3)
    policy, reward = random_policy(mdp, rng), rng.normal(size=(5, 4, 3))
    _, v = evaluate(mdp, policy, reward)
    assert v[0, mdp.start] == pytest.approx(float(np.sum(occupancy(mdp, policy) * reward)))


def test_a_two_state_process_is_solved_by_hand() -> None:
    # Action 0 stays, action 1 changes the state; state 1 pays 1. From state 0 in two steps: change, then stay: 0 + 1.
    stay = np.eye(2)
    kernel = np.broadcast_to(np.stack([stay, stay[::-1]], axis=1), (2, 2, 2, 2)).copy()
    mdp = Mdp(kernel, 0, np.eye(2), one_hot_features(2, 2))
    reward = np.array([[0.0, 0.0], [1.0, 1.0]])
    best = optimal_policy(mdp, reward)
    q, v = evaluate(mdp, best, reward)
    assert best[0, 0].tolist() == [0, 1]
    np.testing.assert_allclose(q[0], [[0, 1], [2, 1]])
    assert v[0].tolist() == [1, 2]
    # Half of the uniform policy's episodes reach state 1 at the second step.
    assert evaluate(mdp, uniform_policy(mdp), reward)[1][0, 0] == 0.5


def test_a_temperature_of_nothing_is_the_optimal_policy_and_a_large_one_is_uniform() -> None:
    mdp = tiny_mdp(states=4, actions=3, horizon=4)
    reward = np.random.default_rng(0).normal(size=(4, 3))
    np.testing.assert_allclose(optimal_policy(mdp, reward, 1e-4), optimal_policy(mdp, reward), atol=1e-6)
    np.testing.assert_allclose(optimal_policy(mdp, reward, 1e6), 1 / 3, atol=1e-4)


@pytest.mark.parametrize("config", presets(), ids=lambda config: config.name)
def test_every_process_has_rows_of_probabilities(config) -> None:  # type: ignore[no-untyped-def]
    mdp = build_mdp(config.world, np.random.default_rng(0))
    assert mdp.kernel.min() >= 0
    np.testing.assert_allclose(mdp.kernel.sum(axis=-1), 1.0)


def test_a_linear_process_is_linear_in_its_features() -> None:
    mdp = build_mdp(presets()[3].world, np.random.default_rng(0))
    flat = mdp.features.reshape(-1, mdp.features.shape[-1])
    rows = mdp.kernel[0].reshape(len(flat), -1)
    measures = np.linalg.lstsq(flat, rows, rcond=None)[0]
    np.testing.assert_allclose(flat @ measures, rows, atol=1e-12)
    assert mdp.num_states > flat.shape[1]  # else every process would be


def test_the_room_of_the_chain_is_rarely_reached() -> None:
    mdp = build_mdp(presets()[0].world, np.random.default_rng(0))
    reached = occupancy(mdp, uniform_policy(mdp))[-1, 7:].sum()
    assert 0 < reached < 0.003

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small import tiny_game, tiny_mdp

from ilde.theory.constants import Schedule, bonus_constant, scaled_schedule, theorem_schedule
from ilde.theory.mdp import sample, uniform_policy
from ilde.theory.npg import Learner, mirror_step, natural_policy_gradient
from ilde.theory.presets import StudyConfig
from ilde.theory.uncertainty import TabularClass

SCHEDULE = Schedule(iterations=12, batch=40, period=4, policy_step_size=0.1, reward_step_size=0.05, bonus_constant=0.1)


def learner_of(curiosity_weight: float = 1.0) -> Learner:
    game = tiny_game(tiny_mdp(3, 2, 4), curiosity_weight)
    values = TabularClass(3, 2, 4 * (1 + curiosity_weight))
    return Learner(game.mdp, game.rewards, values, game.expert_expectation, game.intrinsic, curiosity_weight)


def test_one_step_is_the_closed_form() -> None:
    # From (1/4, 3/4) with Q = (2, 0) and eta = ln(3) / 2: weights 3/4 and 3/4.
    step = mirror_step(np.log([[0.25, 0.75]]), np.array([[2.0, 0.0]]), np.log(3) / 2)
    np.testing.assert_allclose(np.exp(step), [[0.5, 0.5]])


def test_a_step_maximises_the_regularised_return() -> None:
    rng = np.random.default_rng(0)
    before, q, eta = rng.dirichlet(np.ones(4)), rng.normal(size=4), 0.7

    def gain(policy: np.ndarray) -> float:
        return float(eta * q @ policy - np.sum(policy * np.log(policy / before)))

    best = np.exp(mirror_step(np.log(before), q, eta))
    assert gain(best) > max(gain(rng.dirichlet(np.ones(4))) for _ in range(2000))
    # At the maximum the value is log Z.
    assert gain(best) == pytest.approx(np.log(np.sum(before * np.exp(eta * q))))


def test_the_first_iterate_is_uniform_and_the_second_one_step_away() -> None:
    learner = learner_of()
    run = natural_policy_gradient(learner, SCHEDULE, np.random.default_rng(0))
    np.testing.assert_allclose(run.policies[0], uniform_policy(learner.mdp))
    assert np.all(run.thetas[0] == 0)
    ratio = np.log(run.policies[1] / run.policies[0])
    assert np.ptp(ratio, axis=-1).max() <= SCHEDULE.policy_step_size * 2 * learner.values.bound


def test_a_batch_is_played_by_one_of_the_last_m_iterates() -> None:
    run = natural_policy_gradient(learner_of(), SCHEDULE, np.random.default_rng(3))
    assert run.played.sum() == SCHEDULE.episodes == 120
    behaviours = np.repeat(np.arange(12), (run.played / 40).astype(int))
    assert all(max(0, k - 3) <= played <= k for k, played in zip((0, 4, 8), behaviours, strict=True))


def test_with_a_period_of_one_every_iterate_plays_itself() -> None:
    run = natural_policy_gradient(learner_of(), replace(SCHEDULE, period=1), np.random.default_rng(0))
    assert run.played.tolist() == [40] * 12


def test_each_reward_is_the_last_one_moved_along_the_weighted_gradient_and_projected() -> None:
    learner, schedule = learner_of(), replace(SCHEDULE, reward_step_size=1.0)
    run = natural_policy_gradient(learner, schedule, np.random.default_rng(0))
    rng, steps, features = np.random.default_rng(0), np.arange(4), learner.rewards.features
    weighted = outside = 0
    for k in range(schedule.iterations - 1):
        if k % schedule.period == 0:  # the same draws once more
            behaviour = int(rng.integers(max(0, k - 3), k + 1))
            data = sample(learner.mdp, run.policies[behaviour], schedule.batch, rng)
        seen = (steps, data.states[:, :-1], data.actions)
        # Every step's own past counts: the product of the ratios up to it.
        ratios = np.cumprod(run.policies[k][seen] / run.policies[behaviour][seen], axis=1)
        agent = np.einsum("nh,nhd->d", ratios, features[seen[1:]]) / schedule.batch
        moved = run.thetas[k] + learner.demos - agent
        np.testing.assert_allclose(run.thetas[k + 1], np.clip(moved, -1.0, 1.0), atol=1e-9)
        weighted += behaviour != k
        outside += np.abs(moved).max() > 1
    assert weighted
    assert outside


def test_equal_seeds_give_equal_runs_and_others_do_not() -> None:
    first, second, third = (
        natural_policy_gradient(learner_of(), SCHEDULE, np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.policies, second.policies)
    np.testing.assert_array_equal(first.thetas, second.thetas)
    assert not np.array_equal(first.policies, third.policies)


def test_the_scaled_schedule_has_the_theorems_exponents() -> None:
    values = TabularClass(5, 2, 5.0)
    small, large = (scaled_schedule(values, 5, 2, 2.0, t, StudyConfig().scale) for t in (1e6, 1e9))
    # A thousand times the episodes: K 100 times, m and 1 / eta 10 times, N 100 times.
    assert large.iterations / small.iterations == pytest.approx(100, rel=0.02)
    assert large.period / small.period == pytest.approx(10, rel=0.02)
    assert large.batch / small.batch == pytest.approx(100, rel=0.03)
    assert small.policy_step_size / large.policy_step_size == pytest.approx(10)
    assert large.episodes == pytest.approx(1e9, rel=0.01)


def test_the_theorems_schedule_solves_its_own_equations() -> None:
    values, horizon, episodes = TabularClass(5, 2, 5.0), 5, 1e12
    schedule = theorem_schedule(values, horizon, 2, episodes, delta=0.05)
    complexity = values.eluder_dimension(int(episodes)) * values.log_covering_number(1 / schedule.batch)
    assert schedule.iterations == pytest.approx((episodes / (horizon**2 * complexity)) ** (2 / 3), rel=1e-3)
    assert schedule.batch == pytest.approx(schedule.iterations * horizon * complexity / np.log(2) ** 0.5, rel=1e-3)
    assert schedule.episodes == pytest.approx(episodes, rel=0.1)
    # eta m <= 1 / H^2, which keeps importance weights bounded.
    assert schedule.policy_step_size * schedule.period <= 1 / horizon**2
    assert schedule.bonus_constant == bonus_constant(values, horizon, schedule.batch, 0.05)


def test_the_theorems_bonus_constant_is_the_papers() -> None:
    # sqrt(8 log(H N / delta) + 4 / H^2 + 1), H = 5, with log N of the values' own cover at the radius 1 / N.
    values = TabularClass(5, 2, 5.0)
    cover = values.log_covering_number(1 / 100)
    assert bonus_constant(values, 5, 100, delta=0.05) ** 2 == pytest.approx(8 * (np.log(100) + cover) + 0.16 + 1)


def test_at_sizes_that_can_be_played_the_theorems_period_is_one_and_its_bonus_the_whole_range() -> None:
    schedule = theorem_schedule(TabularClass(5, 2, 5.0), 5, 2, 1e6, delta=0.05)
    assert schedule.period == 1
    # c / sqrt(n + 1/4) exceeds the largest value until a cell was visited c^2 times.
    assert schedule.bonus_constant**2 > 500

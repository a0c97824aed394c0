"""The spread a reward is divided by: the filter by hand, both endings, several rollouts, several environments."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from toys import generator, reward_mix, rollout

from ilde.rewards.scaling import ReturnScale


def flags(*rows: list[bool]) -> torch.Tensor:
    return torch.tensor(rows)


def test_the_filter_by_hand_with_an_ending_and_across_rollouts() -> None:
    scale = ReturnScale(num_envs=2, discount=0.5, window=1e6)
    scale.update(torch.tensor([[1.0, 2.0], [1.0, 2.0]]), flags([False, True], [False, False]))
    # Environment 0: 1, 1.5; environment 1 ends after its first step: 2, then 2 anew.
    returns = [1.0, 1.5, 2.0, 2.0]
    assert scale.divisor == pytest.approx(np.std(returns))
    assert scale.accumulated.tolist() == [1.5, 2.0]
    scale.update(torch.tensor([[4.0, 0.0]]), flags([False, False]))
    assert scale.accumulated.tolist() == [4.75, 1.0]
    assert scale.divisor == pytest.approx(np.std([*returns, 4.75, 1.0]))


def test_dividing_brings_the_discounted_return_to_spread_one() -> None:
    reward = 37.0 * torch.rand(400, 2, generator=generator())
    ended = torch.rand(400, 2, generator=generator(1)) < 0.05
    first, second = (ReturnScale(2, 0.99, 1e6) for _ in range(2))
    first.update(reward, ended)
    second.update(reward / first.divisor, ended)
    assert second.divisor == pytest.approx(1.0, rel=1e-5)


def test_early_outliers_fade_once_the_window_is_full() -> None:
    never, quiet = flags([False]), torch.tensor([[0.0], [1.0]]).repeat(50, 1)
    remembering, forgetting = ReturnScale(1, 0.0, 1e9), ReturnScale(1, 0.0, 100)
    for scale in (remembering, forgetting):
        scale.update(torch.tensor([[0.0], [1000.0]]), never.expand(2, 1))
        for _ in range(10):
            scale.update(quiet, never.expand(100, 1))
    assert forgetting.divisor < remembering.divisor / 5
    assert forgetting.divisor == pytest.approx(np.sqrt(forgetting.moments.var.item()))


def test_saved_and_loaded_it_goes_on_with_the_same_spread() -> None:
    scale, other = ReturnScale(3, 0.9, 50), ReturnScale(3, 0.9, 50)
    draw = generator()
    batches = [(torch.rand(7, 3, generator=draw), torch.rand(7, 3, generator=draw) < 0.2) for _ in range(2)]
    scale.update(*batches[0])
    other.load_state_dict(copy.deepcopy(scale.state_dict()))
    for one in (scale, other):
        one.update(*batches[1])
    assert scale.divisor == other.divisor


def test_a_return_that_never_varies_is_not_blown_up() -> None:
    # Every episode is one step worth 1, as in a bandit.
    scale = ReturnScale(2, 0.99, 1e6)
    scale.update(torch.ones(5, 2), torch.ones(5, 2, dtype=torch.bool))
    assert 1.0 / scale.divisor < 1000


def test_terms_share_the_total_in_the_proportion_of_their_weights() -> None:
    data = rollout("vector")
    mix = reward_mix("2*env + 3*constant")
    mix.fit(None, data.transitions)
    metrics = mix.update(data)
    env, total = mix.terms["env"].scale, mix.total_scale
    assert env is not None
    assert total is not None
    expected = (2 * data.transitions.env_reward / env.divisor + 3) / total.divisor
    torch.testing.assert_close(mix.reward(data.transitions), expected)
    assert metrics["reward/constant"] == 3.0
    assert metrics["reward/total"] == pytest.approx(float(expected.mean()), rel=1e-5)
    assert metrics["reward/env_raw"] == pytest.approx(float(data.transitions.env_reward.mean()), rel=1e-5)


def test_a_loaded_state_decides_the_reward_of_the_latest_rollout_too() -> None:
    data, later = rollout("vector"), rollout("vector", seed=5)
    mix = reward_mix("env")
    mix.fit(None, data.transitions)
    mix.update(data)
    saved, expected = copy.deepcopy(mix.state_dict()), mix.reward(data.transitions).clone()
    mix.update(later)
    late = mix.reward(later.transitions).clone()
    mix.load_state_dict(saved)
    torch.testing.assert_close(mix.reward(data.transitions), expected)
    assert not torch.allclose(mix.reward(later.transitions), late)

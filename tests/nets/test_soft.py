"""The soft networks: bounds, densities, greedy choices, and the warm-up."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from references import soft_maximum, squashed
from toys import CPU, generator

from ilde.data import UserError
from ilde.nets.soft import Explorer, SoftActor, SoftCritics, SoftQ, SquashedGaussian

OBS = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
LOPSIDED = gym.spaces.Box(np.array([-1.0, 2.0], np.float32), np.array([3.0, 2.5], np.float32))
numbers = st.floats(-3, 3)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(numbers, st.floats(-3, 1), numbers), min_size=1, max_size=4))
def test_a_squashed_density_agrees_with_numpy(parts: list[tuple[float, float, float]]) -> None:
    mean, log_std, noise = (torch.tensor(part, dtype=torch.float64).unsqueeze(0) for part in zip(*parts, strict=True))
    action, log_prob = SquashedGaussian(mean, log_std).sample(noise)
    expected = squashed(*zip(*parts, strict=True))
    np.testing.assert_allclose(action[0], expected[0], rtol=0, atol=1e-9)
    assert log_prob.item() == pytest.approx(expected[1], rel=1e-6, abs=1e-6)


def test_the_density_integrates_to_one() -> None:
    # In one dimension: a = tanh(u), so the integral over a is one over u of density times 1 - a^2.
    noise = torch.linspace(-8, 8, 20_001, dtype=torch.float64).unsqueeze(1)
    distribution = SquashedGaussian(torch.full_like(noise, 0.3), torch.full_like(noise, -0.5))
    action, log_prob = distribution.sample(noise)
    assert torch.trapezoid(log_prob.exp(), action[:, 0]).item() == pytest.approx(1.0, abs=1e-4)


def test_far_from_the_origin_the_density_stays_finite() -> None:
    distribution = SquashedGaussian(torch.tensor([[60.0, -60.0]]), torch.zeros(1, 2))
    assert distribution.sample(torch.zeros(1, 2))[1].isfinite().all()


def test_actions_reach_all_of_the_box_and_nothing_beyond() -> None:
    actor = SoftActor(OBS, LOPSIDED, 8, generator())
    with torch.no_grad():
        actor.head.bias.copy_(torch.tensor([0.0, 0.0, 2.0, 2.0]))
    decision = actor.act(torch.zeros(5000, 3), generator())
    low, high = decision.action.amin(0), decision.action.amax(0)
    torch.testing.assert_close(low, torch.tensor([-1.0, 2.0]), atol=1e-2, rtol=0)
    torch.testing.assert_close(high, torch.tensor([3.0, 2.5]), atol=1e-2, rtol=0)
    assert decision.log_prob.shape == decision.value.shape == (5000,)


def test_scaling_to_the_unit_box_and_back() -> None:
    actor = SoftActor(OBS, LOPSIDED, 8, generator())
    executed = torch.tensor([[-1.0, 2.5], [1.0, 2.25]])
    torch.testing.assert_close(actor.scaled(executed), torch.tensor([[-1.0, 1.0], [0.0, 0.0]]))
    torch.testing.assert_close(actor.executed(actor.scaled(executed)), executed)
    # What was recorded unclipped was executed clipped.
    assert actor.scaled(torch.tensor([[9.0, 0.0]])).tolist() == [[1.0, -1.0]]


def test_the_greedy_action_is_tanh_of_the_mean_and_draws_nothing() -> None:
    actor, obs, draw = SoftActor(OBS, LOPSIDED, 8, generator()), torch.randn(4, 3, generator=generator(1)), generator(2)
    before = draw.get_state()
    action = actor.act(obs, draw, greedy=True).action
    torch.testing.assert_close(action, actor.executed(actor(obs).mean.tanh()))
    assert torch.equal(draw.get_state(), before)


@pytest.mark.parametrize(
    ("obs", "action", "says"),
    [
        (OBS, gym.spaces.Discrete(3), r"Discrete\(3\): this learner needs continuous actions"),
        (OBS, gym.spaces.Box(-np.inf, np.inf, (2,)), "needs bounds on actions"),
        (gym.spaces.Box(0, 255, (4, 84, 84), np.uint8), LOPSIDED, "from vectors only"),
    ],
)
def test_what_the_actor_cannot_learn_is_said_in_one_line(
    obs: gym.spaces.Box, action: gym.Space[object], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        SoftActor(obs, action, 8, generator())


def test_critics_share_nothing() -> None:
    critics = SoftCritics(5, 8, 2, generator())
    first, second = critics(torch.ones(4, 3), torch.zeros(4, 2))
    assert first.shape == (4,)
    assert not torch.allclose(first, second)


@settings(max_examples=60, deadline=None)
@given(st.lists(numbers, min_size=2, max_size=5), st.floats(1e-3, 10))
def test_the_soft_value_agrees_with_numpy(values: list[float], temperature: float) -> None:
    net = SoftQ(OBS, gym.spaces.Discrete(len(values)), 4, temperature, generator())
    assert net.soft_value(torch.tensor(values, dtype=torch.float64)).item() == pytest.approx(
        soft_maximum(values, temperature), rel=1e-6, abs=1e-6
    )


def test_a_soft_policy_chooses_by_its_values() -> None:
    net, obs = SoftQ(OBS, gym.spaces.Discrete(3), 8, 0.5, generator()), torch.zeros(20_000, 3)
    with torch.no_grad():
        net.head.weight.zero_()
        net.head.bias.copy_(torch.tensor([0.0, 0.5, 1.0]))
    chosen = net.act(obs, generator())
    # softmax(0, 1, 2)
    shares = chosen.action.bincount() / len(obs)
    torch.testing.assert_close(shares, torch.tensor([0.0900, 0.2447, 0.6652]), atol=0.015, rtol=0)
    assert net.act(obs, generator(), greedy=True).action.eq(2).all()


def test_an_explorer_acts_at_random_until_its_warm_up_is_over() -> None:
    net, obs = SoftQ(OBS, gym.spaces.Discrete(3), 8, 1e-3, generator()), torch.zeros(600, 3)
    with torch.no_grad():
        net.head.bias.copy_(torch.tensor([0.0, 0.0, 5.0]))
    explorer = Explorer(net, gym.spaces.Discrete(3), CPU)
    assert explorer.act(obs, generator()).action.bincount().amin() > 150
    explorer.warm_up(False)
    assert explorer.act(obs, generator()).action.eq(2).all()

"""The elliptical bonus: by hand, against its definition, across endings, rollouts and a resume; its features."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import references
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import one_hot
from toys import SMALL, generator, reward_mix, rollout

from ilde.data import Rollout
from ilde.rewards.base import Encoded
from ilde.rewards.elliptical import (
    EllipticalBonus,
    EllipticalConfig,
    InverseModel,
    Projection,
    elliptical_bonus,
    fresh_inverse,
)


def encoded(features: torch.Tensor, ended: torch.Tensor | None = None) -> Encoded:
    batch = features.shape[:-1]
    ended = torch.zeros(batch, dtype=torch.bool) if ended is None else ended
    return Encoded(features, torch.zeros(*batch, 2), features, torch.zeros_like(ended), torch.zeros(batch), ended)


def shared(features: int = 2, width: int = 8, **config: Any) -> EllipticalBonus:
    """The bonus over the features themselves."""
    net, settings = Projection(features, width=width, generator=generator()), EllipticalConfig(features="shared")
    return EllipticalBonus(net, replace(settings, **config), generator(), discrete=True)


def learned(seed: int = 0, *, discrete: bool = True, width: int = 3, **config: Any) -> EllipticalBonus:
    """The bonus over an encoder that learns."""
    draw = generator(seed)
    net = InverseModel(2, 2, width=width, hidden=16, activation=nn.Tanh, generator=draw)
    return EllipticalBonus(net, EllipticalConfig(batch_size=16, **config), draw, discrete=discrete)


def paid(term: EllipticalBonus, batch: Encoded) -> torch.Tensor:
    """What a rollout earns."""
    term.update(batch)
    return term.reward(batch)


def test_a_state_that_repeats_pays_less_each_time_and_a_new_direction_pays_in_full() -> None:
    # Along x, C is 1/2 + 1 and then 1/2 + 2; along y it is untouched: 4 / (1/2). The first state was not chosen.
    walk = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 2.0]]).unsqueeze(1)
    bonus = paid(shared(ridge=0.5), encoded(walk)).flatten()
    torch.testing.assert_close(bonus, torch.tensor([0.0, 2 / 3, 2 / 5, 8.0]))


def test_a_new_episode_forgets_the_last_one_and_only_in_its_own_environment() -> None:
    walk = torch.ones(4, 2, 1)
    ended = torch.tensor([[False, False], [True, False], [False, False], [False, False]])
    bonus = paid(shared(1, ridge=1.0), encoded(walk, ended))
    torch.testing.assert_close(bonus[:, 0], torch.tensor([0.0, 1 / 2, 0.0, 1 / 2]))
    torch.testing.assert_close(bonus[:, 1], torch.tensor([0.0, 1 / 2, 1 / 3, 1 / 4]))


@settings(max_examples=40, deadline=None)
@given(
    steps=st.integers(1, 20),
    envs=st.integers(1, 3),
    width=st.integers(1, 6),
    seed=st.integers(0, 2**20),
    ridge=st.sampled_from([0.01, 0.1, 1.0, 10.0]),
    grid=st.booleans(),
)
def test_the_bonus_equals_its_definition(
    steps: int, envs: int, width: int, seed: int, ridge: float, grid: bool
) -> None:
    draw = generator(seed)
    states = 2 * torch.randn(steps, envs, width, generator=draw, dtype=torch.float64)
    # On a grid states repeat exactly.
    states = states.round() if grid else states
    ended = torch.rand(steps, envs, generator=draw) < 0.2
    ours, _ = elliptical_bonus(states, ended, fresh_inverse(states[0], ridge), ridge)
    np.testing.assert_allclose(ours.numpy(), references.elliptical(states, ended, ridge), rtol=1e-6, atol=1e-9)


def test_a_long_episode_keeps_its_digits() -> None:
    # One state over and over: phi^2 / (ridge + t phi^2).
    states = torch.full((5000, 1, 32), 5.0, dtype=torch.float64)
    bonus, _ = elliptical_bonus(states, torch.zeros(5000, 1, dtype=torch.bool), fresh_inverse(states[0], 0.1), 0.1)
    expected = 800 / (0.1 + 800 * torch.arange(5000, dtype=torch.float64))
    torch.testing.assert_close(bonus.flatten()[1:], expected[1:], rtol=1e-5, atol=0.0)


def test_states_unheard_of_leave_the_bonus_finite_and_positive() -> None:
    walk = 1e10 + 1e7 * torch.randn(200, 2, 2, generator=generator())
    bonus = paid(shared(), encoded(walk))
    assert bonus.isfinite().all()
    assert float(bonus[1:].min()) > 0.0


@pytest.mark.parametrize("term", [shared, lambda: learned(passes=0)], ids=["shared", "inverse"])
@pytest.mark.parametrize("cut", [1, 4, 9])
def test_an_episode_goes_on_from_one_rollout_to_the_next(term: Any, cut: int) -> None:
    draw = generator(3)
    walk, ended = torch.randn(10, 3, 2, generator=draw), torch.rand(10, 3, generator=draw) < 0.15
    whole, parts = paid(term(), encoded(walk, ended)), term()
    pieces = [paid(parts, encoded(walk[part], ended[part])) for part in (slice(cut), slice(cut, None))]
    torch.testing.assert_close(torch.cat(pieces), whole)
    assert not torch.allclose(paid(term(), encoded(walk[cut:], ended[cut:])), whole[cut:])


def test_a_time_limit_ends_an_episode_as_a_termination_does() -> None:
    """The mixture knows of both, and so does the bonus."""
    data = rollout("vector", steps=6, envs=3)
    never = torch.zeros(6, 3, dtype=torch.bool)
    steps, third = replace(data.transitions, terminated=never), torch.arange(6)[:, None].expand(6, 3) == 2
    cut = Rollout(steps, third, data.log_prob, data.value)
    dead = Rollout(replace(steps, terminated=third), never, data.log_prob, data.value)
    on = Rollout(steps, never, data.log_prob, data.value)
    by_limit, by_death, unbroken = (
        reward_mix("e3b", config=replace(SMALL, elliptical=EllipticalConfig(features="shared")))
        for _ in range(3)
    )  # fmt: skip
    for mix, run in ((by_limit, cut), (by_death, dead), (unbroken, on)):
        mix.update(run)
    assert torch.equal(by_limit.reward(cut.transitions), by_death.reward(dead.transitions))
    assert not torch.equal(by_limit.reward(cut.transitions), unbroken.reward(on.transitions))


def test_the_latest_rollout_is_known_again_and_any_other_begins_new_episodes() -> None:
    draw = generator(5)
    first, second = (encoded(torch.randn(4, 2, 2, generator=draw)) for _ in range(2))
    term = shared()
    term.update(first)
    carried = paid(term, second)
    assert torch.equal(term.reward(second.map(torch.clone)), carried)
    assert torch.equal(term.reward(first), paid(shared(), first))
    fresh = references.elliptical(second.features, second.ended, 0.1)
    assert not np.allclose(carried.numpy(), fresh)


def test_without_an_order_each_state_is_judged_as_if_nothing_like_it_came_before() -> None:
    bonus = shared(ridge=0.5).reward(encoded(torch.tensor([[1.0, 0.0], [1.0, 0.0], [3.0, 4.0]])))
    torch.testing.assert_close(bonus, torch.tensor([2.0, 2.0, 50.0]))


def test_open_episodes_survive_a_resume() -> None:
    draw = generator(7)
    first, second = (encoded(torch.randn(6, 2, 2, generator=draw)) for _ in range(2))
    original, restored = learned(0), learned(1)
    original.update(first)
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    assert original.update(second) == restored.update(second)
    assert torch.equal(original.reward(second), restored.reward(second))
    forgetful = learned(1)
    forgetful.load_state_dict(original.state_dict() | {"inverse": None})
    assert not torch.equal(paid(forgetful, second), original.reward(second))


def moves(size: int, *, discrete: bool, seed: int = 0) -> Encoded:
    """Two features: the first moves with the action, the second at random."""
    draw = generator(seed)
    features = torch.randn(size, 1, 2, generator=draw)
    choice = torch.randint(2, (size, 1), generator=draw)
    step = 2.0 * choice - 1.0
    action = one_hot(choice, 2).float() if discrete else torch.stack([step, torch.zeros_like(step)], -1)
    noise = 3 * torch.randn(size, 1, generator=draw)
    return replace(
        encoded(features), action=action, next_features=torch.stack([features[..., 0] + step, noise], -1)
    )  # fmt: skip


@pytest.mark.parametrize("discrete", [True, False], ids=["discrete", "continuous"])
def test_the_encoder_learns_to_recognise_actions_and_to_overlook_what_they_do_not_move(discrete: bool) -> None:
    term = learned(discrete=discrete, learning_rate=1e-2, passes=10)

    def influence() -> torch.Tensor:
        """How much phi changes with each feature."""
        states = moves(200, discrete=discrete, seed=9).features.flatten(0, 1)
        shifted = [states + 0.5 * torch.eye(2)[i] for i in range(2)]
        return torch.stack([(term.net.encoder(x) - term.net.encoder(states)).norm(dim=-1).mean() for x in shifted])

    before = influence().detach()
    losses = [term.update(moves(256, discrete=discrete, seed=i))["e3b/inverse_loss"] for i in range(10)]
    after = influence().detach()
    assert losses[-1] < 0.5 * losses[0]
    assert float(after[0] / after[1]) > 2 * float(before[0] / before[1])


def test_the_inverse_loss_is_the_mean_over_the_minibatches_by_hand() -> None:
    # All weights 0: both actions are equally likely, and without a step size it stays so.
    term = learned(learning_rate=0.0)
    for parameter in term.net.parameters():
        parameter.data.zero_()
    metrics = term.update(moves(40, discrete=True))
    assert metrics["e3b/inverse_loss"] == pytest.approx(np.log(2), rel=1e-6)
    assert metrics["e3b/bonus_mean"] == metrics["e3b/feature_norm"] == 0.0


def test_many_shared_features_are_projected_and_few_are_taken_as_they_are() -> None:
    wide, narrow = (Projection(size, width=32, generator=generator()) for size in (2000, 32))
    states = torch.randn(50, 2000, generator=generator(1))
    ratio = wide.encoder(states).square().sum(-1) / states.square().sum(-1)
    assert wide.encoder(states).shape == (50, 32)
    assert float(ratio.mean()) == pytest.approx(1.0, abs=0.15)
    assert torch.equal(narrow.encoder(states[:, :32]), states[:, :32])
    assert not any(weight.requires_grad for weight in wide.parameters())


@pytest.mark.parametrize("kind", ["vector", "image"])
def test_over_the_shared_features_it_has_nothing_to_learn(kind: Any) -> None:
    mix = reward_mix("e3b", kind, config=replace(SMALL, elliptical=EllipticalConfig(features="shared", width=8)))
    before = copy.deepcopy(mix.state_dict()["terms"]["e3b"])
    metrics = mix.update(rollout(kind))
    after = mix.state_dict()["terms"]["e3b"]
    assert "e3b/inverse_loss" not in metrics
    assert after["optimiser"] is None
    assert torch.equal(before["generator"], after["generator"])
    assert all(torch.equal(before["net"][name], after["net"][name]) for name in before["net"])
    assert len(before["net"]) == (2 if kind == "image" else 0)
    assert after["inverse"].shape == ((3, 8, 8) if kind == "image" else (3, 2, 2))

"""Running moments, observation normalisation and the feature space: what is learned before and between rollouts."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import generator

from ilde.nets.features import FeatureConfig, FeatureSpace
from ilde.nets.moments import RunningMoments, Standardise
from ilde.nets.policy import ActorCritic, UniformPolicy


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 7), min_size=1, max_size=6),
    seed=st.integers(0, 2**20),
    offset=st.sampled_from([0.0, 1e4, 1e8]),
)
def test_merging_batches_gives_the_moments_of_the_whole(sizes: list[int], seed: int, offset: float) -> None:
    draw = generator(seed)
    batches = [offset + torch.randn(size, 2, generator=draw, dtype=torch.float64) for size in sizes]
    moments = RunningMoments((2,))
    for batch in batches:
        moments.update(batch)
    whole = torch.cat(batches)
    np.testing.assert_allclose(moments.mean.numpy(), whole.mean(0).numpy(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        moments.var.numpy(), whole.var(0, correction=0).numpy(), rtol=1e-6, atol=1e-9 + 1e-14 * offset**2
    )
    assert float(moments.count) == len(whole)


def test_a_window_lets_old_samples_fade_by_hand() -> None:
    moments = RunningMoments((), window=2)
    for value in (0.0, 0.0, 0.0, 0.0):
        moments.update(torch.tensor([value]))
    moments.update(torch.tensor([3.0]))
    # Two remembered zeros and a three: mean 1, variance (1 + 1 + 4) / 3.
    assert float(moments.mean) == pytest.approx(1.0)
    assert float(moments.var) == pytest.approx(2.0)
    assert float(moments.count) == 2.0


def test_before_anything_is_seen_observations_pass_through() -> None:
    torch.testing.assert_close(Standardise((2,))(torch.tensor([[0.5, -3.0]])), torch.tensor([[0.5, -3.0]]))


def test_normalising_moves_nothing_and_observing_does() -> None:
    layer = Standardise((1,))
    layer(torch.tensor([[100.0]]))
    assert float(layer.moments.count) == 0.0
    layer.observe(torch.tensor([[1.0], [3.0]]))
    # Mean 2, deviation 1.
    torch.testing.assert_close(layer(torch.tensor([[4.0], [100.0]])), torch.tensor([[2.0], [10.0]]))


def test_a_constant_observation_is_zero_and_not_infinite() -> None:
    layer = Standardise((1,))
    layer.observe(torch.full((9, 1), 7.0))
    assert layer(torch.full((1, 1), 7.0)).tolist() == [[0.0]]


def test_features_have_mean_zero_and_spread_one_over_what_they_were_fitted_to() -> None:
    space = FeatureSpace((3,), generator())
    background, demos = (
        5 + 2 * torch.randn(40, 2, 3, generator=generator(1)),
        torch.randn(20, 3, generator=generator(2)),
    )
    space.fit(background, demos)
    features = torch.cat([space(background).flatten(0, 1), space(demos)])
    torch.testing.assert_close(features.mean(0), torch.zeros(3), rtol=0, atol=1e-5)
    torch.testing.assert_close(features.std(0, correction=0), torch.ones(3), rtol=0, atol=1e-5)


def test_a_feature_that_hardly_moved_is_floored_at_a_hundredth_of_the_median_spread() -> None:
    space = FeatureSpace((3,), generator())
    space.fit(torch.tensor([[-1.0, -2.0, 0.0], [1.0, 2.0, 0.0]]))
    # Spreads 1, 2 and 0; the median of those that moved is 1 (the lower of two), the floor 0.01.
    torch.testing.assert_close(space.inverse_std, torch.tensor([1.0, 0.5, 100.0]))
    assert space(torch.tensor([0.0, 0.0, 0.02])).tolist() == pytest.approx([0.0, 0.0, 2.0])
    assert space(torch.tensor([0.0, 0.0, 9.0])).tolist() == pytest.approx([0.0, 0.0, 5.0])


def test_without_a_clip_the_unheard_of_keeps_its_size_and_the_floor_is_the_given_part() -> None:
    space = FeatureSpace((2,), generator(), FeatureConfig(clip=0.0, floor=0.5))
    space.fit(torch.tensor([[-1.0, 0.0], [1.0, 0.0]]))
    assert space(torch.tensor([40.0, -9.0])).tolist() == pytest.approx([40.0, -18.0])


def test_states_that_never_moved_at_all_give_finite_features() -> None:
    space = FeatureSpace((2,), generator())
    space.fit(torch.ones(4, 2))
    assert space(torch.tensor([[1.0, 3.0]])).tolist() == [[0.0, 2.0]]


def test_features_of_many_images_are_those_of_each() -> None:
    space = FeatureSpace((4, 84, 84), generator())
    images = torch.randint(256, (3, 2, 4, 84, 84), generator=generator(1), dtype=torch.uint8)
    space.fit(images)
    features = space(images)
    assert features.shape == (3, 2, 5184)
    torch.testing.assert_close(features[1, 1], space(images[1, 1].unsqueeze(0))[0], rtol=1e-4, atol=1e-4)


def test_features_of_images_are_computed_at_full_precision_and_leave_the_setting_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    def watch(*_: object) -> None:
        seen.append(torch.backends.cudnn.allow_tf32)

    space, images = FeatureSpace((4, 84, 84), generator()), torch.zeros(2, 4, 84, 84, dtype=torch.uint8)
    space.extract.layers[0].register_forward_hook(watch)  # type: ignore[index, union-attr]
    for usual in (True, False):
        monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", usual)
        space(images)
        assert seen.pop() is False
        with pytest.raises(RuntimeError, match="channels"):
            space.extract(images[:, :3])
        assert torch.backends.cudnn.allow_tf32 is usual


def test_features_of_images_keep_to_a_precision_set_operation_by_operation() -> None:
    space, seen = FeatureSpace((4, 84, 84), generator()), []
    conv: Any = torch.backends.cudnn.conv  # type: ignore[attr-defined]
    space.extract.layers[0].register_forward_hook(  # type: ignore[index, union-attr]
        lambda *_: seen.append(conv.fp32_precision)
    )
    try:
        torch.backends.cudnn.allow_tf32 = False
        conv.fp32_precision = "tf32"
        with pytest.raises(RuntimeError, match="allow_tf32"):
            _ = torch.backends.cudnn.allow_tf32
        space(torch.zeros(2, 4, 84, 84, dtype=torch.uint8))
        assert seen == ["ieee"]
        assert conv.fp32_precision == "tf32"
    finally:
        torch.backends.cudnn.allow_tf32 = True  # torch's own default


def test_chunks_change_no_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces = [FeatureSpace((2,), generator()) for _ in range(2)]
    obs = torch.randn(50, 2, generator=generator(1))
    spaces[0].fit(obs)
    monkeypatch.setattr("ilde.nets.features.CHUNK", 7)
    spaces[1].fit(obs)
    torch.testing.assert_close(spaces[1](obs), spaces[0](obs))


def test_the_size_of_its_batch_changes_no_bit_of_an_images_features(monkeypatch: pytest.MonkeyPatch) -> None:
    space = FeatureSpace((4, 84, 84), generator())
    images = torch.randint(256, (10, 4, 84, 84), generator=generator(1), dtype=torch.uint8)
    space.fit(images)
    whole = space(images)
    for size in (3, 4):
        monkeypatch.setattr("ilde.nets.features.CHUNK_OF_A_THREAD", size)
        assert torch.equal(space(images), whole)
        assert torch.equal(space(images[: 2 * size + 1]), whole[: 2 * size + 1])  # no image is left alone
    assert torch.equal(torch.cat([space(part) for part in images.split(5)]), whole)


def test_the_policy_normalises_before_both_towers() -> None:
    policy = ActorCritic(gym.spaces.Box(-9, 9, (2,)), gym.spaces.Discrete(3), 8, generator())
    obs = torch.tensor([[5.0, -5.0]])
    before = policy.value(obs)
    policy.observe(torch.tensor([[4.0, -4.0], [6.0, -6.0]]))
    assert not torch.equal(policy.value(obs), before)
    torch.testing.assert_close(policy.value(obs), policy.value_head(policy.critic(torch.zeros(1, 2))).detach()[:, 0])


@pytest.mark.parametrize("greedy", [False, True])
def test_the_decision_of_a_policy_is_told_with_its_own_likelihood_and_value(greedy: bool) -> None:
    for space in (gym.spaces.Discrete(3), gym.spaces.Box(-1.0, 1.0, (2,))):
        policy = ActorCritic(gym.spaces.Box(-9, 9, (2,)), space, 8, generator())
        obs = torch.randn(5, 2, generator=generator(1))
        decision = policy.act(obs, generator(2), greedy=greedy)
        distribution, value = policy(obs)
        torch.testing.assert_close(decision.log_prob, distribution.log_prob(decision.action).detach())
        torch.testing.assert_close(decision.value, value.detach())
        assert torch.equal(decision.action, distribution.mode()) == greedy


def test_the_uniform_policy_fills_its_space() -> None:
    obs = torch.zeros(4000, 1)
    discrete = UniformPolicy(gym.spaces.Discrete(4)).act(obs, generator())
    torch.testing.assert_close(discrete.action.bincount() / 4000, torch.full((4,), 0.25), rtol=0, atol=0.03)
    assert float(discrete.log_prob[0]) == pytest.approx(np.log(0.25))
    box = gym.spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 1.0], np.float32))
    action = UniformPolicy(box).act(obs, generator()).action
    torch.testing.assert_close(action.min(0).values, torch.tensor([-2.0, 0.0]), rtol=0, atol=0.01)
    torch.testing.assert_close(action.max(0).values, torch.tensor([2.0, 1.0]), rtol=0, atol=0.01)


def test_the_uniform_policy_respects_the_one_bound_there_is() -> None:
    action = UniformPolicy(gym.spaces.Box(5.0, np.inf, (1,))).act(torch.zeros(50, 1), generator()).action
    assert float(action.min()) >= 5.0

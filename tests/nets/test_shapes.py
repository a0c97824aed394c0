"""The paper's network tables, asserted on the real modules: layers, widths, activations, initial weights."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn
from toys import CPU, generator

from ilde.config import find_preset
from ilde.nets.features import ConvExtractor, FeatureSpace
from ilde.nets.policy import ActorCritic
from ilde.rewards.build import build_reward

FRAMES = gym.spaces.Box(0, 255, (4, 84, 84), np.uint8)
QBERT = gym.spaces.Discrete(6)
HOPPER = gym.spaces.Box(-np.inf, np.inf, (11,), np.float32), gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
FEATURES = 5184


def dense(module: nn.Module) -> list[tuple[int, int]]:
    return [(x.in_features, x.out_features) for x in module.modules() if isinstance(x, nn.Linear)]


def convolutions(module: nn.Module) -> list[tuple[int, int, int, int, int]]:
    """(inputs, outputs, kernel, stride, padding) of each."""
    layers = [x for x in module.modules() if isinstance(x, nn.Conv2d)]
    return [(x.in_channels, x.out_channels, x.kernel_size[0], x.stride[0], int(x.padding[0])) for x in layers]


def activations(module: nn.Module) -> set[type]:
    return {type(x) for x in module.modules() if isinstance(x, nn.ReLU | nn.LeakyReLU | nn.Tanh)}


def reward_net(preset: str, term: str) -> Any:
    obs, action = (FRAMES, QBERT) if preset == "atari" else HOPPER
    mix = build_reward(
        term, find_preset(preset).rewards, obs, action, num_envs=1, clip_actions=False, seed=0, device=CPU
    )  # fmt: skip
    (summand,) = mix.terms.values()
    return summand.model.net  # type: ignore[attr-defined]


def test_the_extractor_goes_from_84_over_41_and_20_to_9_and_5184_features() -> None:
    extractor = ConvExtractor(4, generator())
    assert convolutions(extractor) == [(4, 32, 3, 2, 0), (32, 32, 3, 2, 0), (32, 64, 3, 2, 0)]
    x, sides = torch.zeros(1, 4, 84, 84), []
    for layer in extractor.layers:
        x = layer(x)
        sides += [x.shape[-1]] if isinstance(layer, nn.Conv2d) else []
    assert sides == [41, 20, 9]
    assert x.shape == (1, 64 * 9 * 9) == (1, FEATURES)
    assert activations(extractor) == {nn.LeakyReLU}


def test_the_extractor_is_frozen_and_sees_pixels_between_0_and_1() -> None:
    extractor = ConvExtractor(4, generator())
    assert not any(p.requires_grad for p in extractor.parameters())
    full = torch.full((1, 4, 84, 84), 255, dtype=torch.uint8)
    torch.testing.assert_close(extractor(full), extractor.layers(torch.ones(1, 4, 84, 84)))


def test_the_feature_space_of_frames_has_5184_dimensions_and_of_vectors_their_own() -> None:
    assert FeatureSpace((4, 84, 84), generator()).size == FEATURES
    assert FeatureSpace((11,), generator()).size == 11


def test_the_policy_on_frames() -> None:
    policy = ActorCritic(FRAMES, QBERT, 100, generator())
    assert convolutions(policy) == [(4, 32, 8, 4, 0), (32, 64, 4, 2, 0), (64, 32, 3, 1, 0)]
    assert dense(policy.actor) == [(32 * 7 * 7, 512)]
    assert policy.actor is policy.critic
    assert dense(policy.action_head) == [(512, 6)]
    assert dense(policy.value_head) == [(512, 1)]
    assert activations(policy) == {nn.ReLU}
    assert policy.normalise is None


def test_the_policy_on_vectors_has_two_towers_of_100_units() -> None:
    policy = ActorCritic(*HOPPER, 100, generator())
    assert dense(policy.actor) == dense(policy.critic) == [(11, 100), (100, 100)]
    assert policy.actor is not policy.critic
    assert dense(policy.action_head) == [(100, 3)]
    assert dense(policy.value_head) == [(100, 1)]
    assert activations(policy) == {nn.Tanh}
    assert policy.log_std is not None
    assert policy.log_std.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("preset", "states", "units", "actions", "activation"),
    [("atari", FEATURES, 1024, 6, nn.LeakyReLU), ("mujoco", 11, 100, 3, nn.Tanh)],
)
class TestRewardNetworks:
    def test_the_encoder_reads_two_states_and_gives_mean_and_spread_of_an_action(
        self, preset: str, states: int, units: int, actions: int, activation: type[nn.Module]
    ) -> None:
        net = reward_net(preset, "giril")
        assert dense(net.encoder) == [(2 * states, units), (units, units)]
        assert dense(net.mean_head) == dense(net.log_var_head) == [(units, actions)]
        assert activations(net) == {activation}

    def test_the_decoder_reads_an_action_and_a_state_and_gives_a_state(
        self, preset: str, states: int, units: int, actions: int, activation: type[nn.Module]
    ) -> None:
        net = reward_net(preset, "giril")
        assert dense(net.decoder) == [(states + actions, units), (units, units)]
        assert dense(net.next_head) == [(units, states)]
        assert net.decode_next(torch.zeros(2, actions), torch.zeros(2, states)).shape == (2, states)

    def test_the_bottleneck_splits_its_units_in_halves(
        self, preset: str, states: int, units: int, actions: int, activation: type[nn.Module]
    ) -> None:
        net = reward_net(preset, "vail")
        half = {1024: 512, 100: 50}[units]
        assert dense(net.trunk) == [(states, units), (units, units)]
        assert dense(net.mean_head) == dense(net.log_std_head) == [(half, 1)]
        assert activations(net) == {activation}
        judgement = net(torch.zeros(2, states))
        assert judgement.logit.shape == judgement.log_std.shape == (2,)

    def test_without_a_bottleneck_all_units_give_the_logit(
        self, preset: str, states: int, units: int, actions: int, activation: type[nn.Module]
    ) -> None:
        net = reward_net(preset, "gail")
        assert dense(net.trunk) == [(states, units), (units, units)]
        assert dense(net.mean_head) == [(units, 1)]
        assert net.log_std_head is None


def test_the_halves_of_the_bottleneck_see_different_units() -> None:
    net = reward_net("mujoco", "vail")
    x = torch.randn(3, 11, generator=generator())
    before = net(x)
    net.trunk[2].weight.data[:50] += 1.0
    after = net(x)
    assert not torch.equal(after.logit, before.logit)
    assert torch.equal(after.log_std, before.log_std)


@pytest.mark.parametrize(("obs", "action"), [(FRAMES, QBERT), HOPPER], ids=["frames", "vector"])
def test_policy_weights_start_orthogonal_with_the_gains_of_this_family(obs: Any, action: Any) -> None:
    policy = ActorCritic(obs, action, 100, generator())
    gains: dict[nn.Module, float] = {policy.value_head: 1.0, policy.action_head: 0.01 if action is QBERT else 1.0}
    for layer in policy.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            weight = layer.weight.flatten(1)
            rows = weight if weight.shape[0] <= weight.shape[1] else weight.T
            gain = gains.get(layer, math.sqrt(2.0))
            torch.testing.assert_close(rows @ rows.T, gain**2 * torch.eye(len(rows)), rtol=1e-3, atol=1e-4 * gain**2)
            assert layer.bias is not None
            assert not layer.bias.any()


def test_reward_weights_start_within_the_bound_of_xavier() -> None:
    for layer in reward_net("mujoco", "giril").modules():
        if isinstance(layer, nn.Linear):
            bound = math.sqrt(6 / (layer.in_features + layer.out_features))
            assert 0.9 * bound < float(layer.weight.detach().abs().max()) <= bound
            assert not layer.bias.any()

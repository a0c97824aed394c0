"""Exported policies: the same numbers in another program."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from products import saved_run
from toys import generator, spaces

from ilde.data import UserError
from ilde.export import export_onnx, export_policy, random_observations
from ilde.nets.policy import ActorCritic, UniformPolicy
from ilde.nets.soft import SoftActor, SoftQ


def outputs(path: Path, obs: Any) -> list[Any]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    results: list[Any] = session.run(None, {"obs": obs})
    return results


def test_a_run_becomes_a_file_that_acts_alike_and_says_where_it_is_from(tmp_path: Path) -> None:
    run = saved_run("HalfCheetah-v5", tmp_path / "run")
    assert export_onnx(run, tmp_path / "out" / "policy.onnx") < 1e-5
    model = onnx.load(tmp_path / "out" / "policy.onnx")
    assert {prop.key: prop.value for prop in model.metadata_props} == {
        "env": "HalfCheetah-v5",
        "method": "ilde",
        "env_steps": "16",
        "ilde": "0.1.0",
    }
    assert [output.name for output in model.graph.output] == ["action"]


@pytest.mark.parametrize("kind", ["vector", "image"])
def test_discrete_policies_give_actions_and_logits_for_any_batch(kind: Any, tmp_path: Path) -> None:
    obs_space, action_space = spaces(kind)
    policy = ActorCritic(obs_space, action_space, 16, generator())
    policy.observe(torch.randn(100, *obs_space.shape, generator=generator()) * 3 + 5)
    export_policy(policy, obs_space, action_space, tmp_path / "policy.onnx", clip_actions=True, facts={})
    obs = random_observations(policy, obs_space)[:5]
    action, logits = outputs(tmp_path / "policy.onnx", obs.numpy())
    distribution, _ = policy(obs)
    np.testing.assert_array_equal(action, distribution.mode().numpy())
    np.testing.assert_allclose(logits, distribution.log_probs.detach().numpy(), atol=1e-5)


def test_a_soft_actor_gives_its_mode_within_the_box(tmp_path: Path) -> None:
    obs_space, _ = spaces("continuous")
    box = gym.spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([3.0, 0.5], np.float32))
    policy = SoftActor(obs_space, box, 16, generator())
    export_policy(policy, obs_space, box, tmp_path / "policy.onnx", clip_actions=True, facts={})
    obs = random_observations(policy, obs_space)[:5]
    (action,) = outputs(tmp_path / "policy.onnx", obs.numpy())
    np.testing.assert_allclose(action, policy.act(obs, generator(), greedy=True).action, atol=1e-5)


@pytest.mark.parametrize("kind", ["vector", "image"])
def test_a_soft_q_network_gives_actions_and_logits(kind: Any, tmp_path: Path) -> None:
    obs_space, action_space = spaces(kind)
    policy = SoftQ(obs_space, action_space, 16, 0.5, generator())  # type: ignore[arg-type]
    export_policy(policy, obs_space, action_space, tmp_path / "policy.onnx", clip_actions=True, facts={})
    obs = random_observations(policy, obs_space)[:5]
    action, logits = outputs(tmp_path / "policy.onnx", obs.numpy())
    np.testing.assert_array_equal(action, policy.act(obs, generator(), greedy=True).action)
    np.testing.assert_allclose(logits, policy.distribution(obs).log_probs.detach().numpy(), atol=1e-4)


@pytest.mark.parametrize("clips", [True, False])
def test_continuous_actions_are_clipped_where_the_run_clips_them(clips: bool, tmp_path: Path) -> None:
    obs_space, action_space = spaces("continuous")
    policy = ActorCritic(obs_space, action_space, 16, generator())
    with torch.no_grad():
        policy.action_head.bias.copy_(torch.tensor([7.0, -7.0]))
    export_policy(policy, obs_space, action_space, tmp_path / "policy.onnx", clip_actions=clips, facts={})
    (action,) = outputs(tmp_path / "policy.onnx", np.zeros((1, 2), np.float32))
    np.testing.assert_allclose(action, [[1.0, -1.0]] if clips else [[7.0, -7.0]], atol=1e-5)


def test_a_file_that_acts_otherwise_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    obs_space, action_space = spaces("continuous")
    policy = ActorCritic(obs_space, action_space, 16, generator())
    monkeypatch.setattr("ilde.export._outputs", lambda program, obs: (torch.full((len(obs), 2), 3.0),))
    with pytest.raises(RuntimeError, match="differs from PyTorch"):
        export_policy(policy, obs_space, action_space, tmp_path / "policy.onnx", clip_actions=True, facts={})
    assert os.listdir(tmp_path) == []


def test_a_random_policy_cannot_be_exported(tmp_path: Path) -> None:
    obs_space, action_space = spaces("continuous")
    out = tmp_path / "policy.onnx"
    with pytest.raises(UserError, match="a random policy has no network to export"):
        export_policy(UniformPolicy(action_space), obs_space, action_space, out, clip_actions=True, facts={})


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    obs_space, action_space = spaces("continuous")
    policy = ActorCritic(obs_space, action_space, 16, generator())
    with pytest.raises(UserError, match=r"pip install ilde\[export\]"):
        export_policy(policy, obs_space, action_space, tmp_path / "policy.onnx", clip_actions=True, facts={})

"""The paper's Atari preset as it stands, full networks, 32 x 128 rollouts, all three terms; small runs of others."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from toys import SMALL, TINY

from ilde.config import find_preset, override
from ilde.demos import Demonstrations
from ilde.demos.recording import Provenance, random_policy, record
from ilde.envs import make_envs
from ilde.prepare import build, fit
from ilde.rewards.discriminator import AdversarialReward
from ilde.rewards.generative import GenerativeReward


def one_life() -> Demonstrations:
    """A random policy's first life."""
    envs = make_envs("ALE/Qbert-v5", 1, 5)
    generator = np.random.default_rng(5)
    provenance = Provenance(recorder="random", greedy=False, simulator_versions={}, created="", command="", seed=5)
    return record(
        envs,
        random_policy(envs.action_space, generator),
        episodes=1,
        until="life",
        tremble=0.0,
        generator=generator,
        provenance=provenance,
    )


def test_the_papers_atari_preset_makes_two_updates() -> None:
    config = replace(find_preset("atari"), env="ALE/Qbert-v5", device="cpu")
    # Fitting for 1000 epochs and scaling on 10k frames take a minute and change no shape.
    config = override(override(config, "rewards.generative.epochs", "3"), "rewards.background_steps", "320")
    trainer, checked = build(config, demos=one_life())
    fit(trainer, checked)
    before = {name: weight.clone() for name, weight in trainer.learner.policy.state_dict().items()}
    metrics = [trainer.iterate(), trainer.iterate()]

    assert trainer.env_steps == 2 * 32 * 128
    assert all(math.isfinite(value) for row in metrics for value in row.values())
    assert {"reward/vail", "reward/giril", "reward/entropy", "disc/disc_acc", "train/approx_kl"} <= metrics[1].keys()
    after = trainer.learner.policy.state_dict()
    assert all(not torch.equal(before[name], after[name]) for name in before)
    vail, giril = trainer.reward.terms["vail"].model, trainer.reward.terms["giril"].model
    assert isinstance(vail, AdversarialReward)
    assert isinstance(giril, GenerativeReward)
    assert vail.net.trunk[0].weight.shape == (1024, 5184)
    assert giril.net.encoder[0].weight.shape == (1024, 2 * 5184)
    trainer.envs.close()


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("gail", {"discriminator.gradient_penalty": "10", "discriminator.subsample": "2"}),
        ("gail", {"discriminator.input": "state-action", "discriminator.reward_form": "logit"}),
        ("e3b", {"elliptical.features": "inverse"}),
        ("e3b", {"elliptical.features": "shared"}),
    ],
)
def test_the_method_learns_from_images(method: str, changes: dict[str, str]) -> None:
    config = replace(TINY, method=method, env="ALE/Qbert-v5", num_envs=2, rollout_steps=16, rewards=SMALL)
    for name, value in changes.items():
        config = override(config, f"rewards.{name}", value)
    trainer, demos = build(config, demos=one_life())
    fit(trainer, demos)
    before = copy.deepcopy(trainer.reward.state_dict()["terms"])
    metrics = [trainer.iterate(), trainer.iterate()]
    trainer.envs.close()
    assert all(math.isfinite(value) for row in metrics for value in row.values())
    assert metrics[1][f"reward/{method}_std"] > 0.0
    weights, learned = before[method]["net"], trainer.reward.state_dict()["terms"][method]["net"]
    assert weights
    frozen = changes.get("elliptical.features") == "shared"
    assert all(torch.equal(weights[name], learned[name]) == frozen for name in weights)
    if method == "gail":
        kept = before["gail"]["demos"]
        assert kept.shape[1] == 5184 + (6 if "discriminator.input" in changes else 0)
        assert demos is not None
        assert abs(len(kept) * int(changes.get("discriminator.subsample", 1)) - demos.num_transitions) <= 1

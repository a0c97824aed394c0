"""The loop: who learns before whom, how steps are counted, and where the schedule stands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from toys import CPU, SMALL, TINY, Corridor, corridor_trainer, reward_mix, transitions

from ilde import prepare
from ilde.config import QUICK
from ilde.envs import make_envs
from ilde.learners.ppo import PPO
from ilde.nets.policy import UniformPolicy
from ilde.prepare import TURNS
from ilde.trainer import Trainer

FAST: dict[str, Any] = {"rollout_steps": 4, "num_envs": 2, "rewards": SMALL}


def test_one_iteration_collects_then_teaches_the_reward_then_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = corridor_trainer("vail", **FAST)
    order: list[str] = []

    def noted(name: str, call: Any) -> Any:
        def wrapped(*given: Any) -> Any:
            order.append(name)
            return call(*given)

        return wrapped

    for name, owner, method in (
        ("collect", trainer.collector, "collect"),
        ("reward", trainer.reward, "update"),
        ("policy", trainer.learner, "update"),
    ):
        monkeypatch.setattr(owner, method, noted(name, getattr(owner, method)))
    trainer.iterate()
    assert order == ["collect", "reward", "policy"]


def test_after_fitting_the_environments_stand_where_their_first_observations_say() -> None:
    # A background of random steps was played in them meanwhile.
    first = corridor_trainer("ilde", **FAST | {"num_envs": 8}).collector.collect().transitions[0]
    assert not first.obs.any()
    torch.testing.assert_close(first.next_obs, (0.1 * (first.action[:, None] - 1.0)).clamp(0.0, 1.0))


def test_features_are_standardised_over_chance_and_demonstrations_together() -> None:
    mix, demos, background = reward_mix("giril"), transitions("vector", 5, seed=1), transitions("vector", 4, 3, seed=2)
    mix.fit(demos, background)
    assert mix.space is not None
    seen = torch.cat([background.obs.flatten(0, 1), demos.obs, demos.next_obs])
    torch.testing.assert_close(mix.space.mean, seen.mean(0))
    torch.testing.assert_close(mix.space.inverse_std, 1.0 / seen.std(0, correction=0))


def test_steps_and_updates_are_counted_and_the_run_ends_when_it_has_had_its_steps() -> None:
    trainer = corridor_trainer("constant", **FAST, steps=20)
    progress = []
    while not trainer.done:
        progress.append(trainer.progress)
        trainer.iterate()
    # Eight steps at a time: 0, 8 and 16 of 20.
    assert progress == [0.0, 0.4, 0.8]
    assert (trainer.env_steps, trainer.updates) == (24, 3)


def test_the_learning_rate_follows_its_own_schedule_where_one_is_given() -> None:
    ppo = replace(TINY.ppo, anneal=True, learning_rate=1.0, num_minibatches=1)
    for schedule, expected in ((None, [1.0, 0.5]), (32, [1.0, 0.75])):
        trainer = corridor_trainer("constant", **FAST, steps=16, schedule_steps=schedule, ppo=ppo)
        rates = [trainer.iterate()["train/learning_rate"] for _ in range(2)]
        assert rates == pytest.approx(expected)


def test_the_policy_learns_from_the_reward_and_not_from_the_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = corridor_trainer("expert", **FAST)
    seen: list[torch.Tensor] = []
    update = trainer.learner.update

    def spying(rollout: Any, reward: Any, progress: float) -> Any:
        seen.append(reward(rollout.transitions).clone())
        return update(rollout, reward, progress)

    monkeypatch.setattr(trainer.learner, "update", spying)
    trainer.iterate()
    raw = torch.from_numpy(trainer.collector._outcomes["env_reward"])
    torch.testing.assert_close(seen[0] / seen[0].max(), raw / raw.max())
    assert not torch.allclose(seen[0], raw)


def test_random_is_a_policy_that_never_learns() -> None:
    trainer = corridor_trainer("random", **FAST)
    assert trainer.done
    metrics = trainer.iterate()
    assert isinstance(trainer.learner.policy, UniformPolicy)
    assert not any(name.startswith("train/") for name in metrics)


def test_a_reward_expression_replaces_the_methods_own() -> None:
    trainer = Trainer(replace(TINY, method="constant", reward="2*env + entropy"), make_envs(Corridor, 8, 0), CPU)
    assert {name: term.weight for name, term in trainer.reward.terms.items()} == {"env": 2.0, "entropy": 1.0}
    assert isinstance(trainer.learner, PPO)


def test_curiosity_alone_carries_the_factor_of_its_range() -> None:
    rewards = replace(SMALL, curiosity_factor=0.1)
    trainer = Trainer(replace(TINY, method="ilde", rewards=rewards), make_envs(Corridor, 8, 0), CPU)
    weights = {name: term.weight for name, term in trainer.reward.terms.items()}
    assert weights == {"vail": 1.0, "giril": 1.0, "entropy": 1.0}


def test_metrics_carry_the_names_people_know() -> None:
    metrics = corridor_trainer("ilde", **FAST).iterate()
    expected = {
        "train/approx_kl", "train/clip_fraction", "train/value_loss", "train/policy_gradient_loss", "train/loss",
        "train/explained_variance", "train/learning_rate", "disc/disc_acc", "reward/vail", "reward/giril",
        "reward/entropy", "reward/total", "rollout/episodes",
    }  # fmt: skip
    assert expected <= metrics.keys()
    assert all(isinstance(value, float) for value in metrics.values())


@pytest.mark.parametrize("mode", ["exact", "fresh-episodes"])
def test_episodes_that_could_not_be_taken_up_again_are_forgotten_by_the_reward(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer, resumed = (corridor_trainer("ilde", **FAST, reward="vail + entropy + e3b") for _ in range(2))
    trainer.iterate()
    total, entropy = trainer.reward.total_scale, trainer.reward.terms["entropy"].scale
    assert total is not None
    assert entropy is not None
    total.accumulated, entropy.accumulated = np.ones(2), np.ones(2)  # as if all episodes were open
    monkeypatch.setattr(resumed.envs, "resume_mode", mode)
    resumed.load_state_dict(trainer.state_dict())
    saved, loaded = (t.reward.state_dict() for t in (trainer, resumed))
    gone = mode != "exact"
    assert (loaded["terms"]["e3b"]["inverse"] is None) == gone
    for scale in (loaded["scales"]["entropy"], loaded["total_scale"]):
        assert scale["accumulated"].any() == (not gone)
    assert loaded["total_scale"]["moments"]["mean"] == saved["total_scale"]["moments"]["mean"]


@pytest.mark.parametrize(("device", "groups"), [("cuda", TURNS), ("cpu", 1)])
def test_games_take_turns_beside_a_gpu_alone(monkeypatch: pytest.MonkeyPatch, device: str, groups: int) -> None:
    asked: list[int] = []
    monkeypatch.setattr(prepare, "make_envs", lambda *_, num_groups, **__: asked.append(num_groups))
    prepare.make_training_envs(replace(QUICK, env="ALE/Breakout-v5"), torch.device(device))
    assert asked == [groups]

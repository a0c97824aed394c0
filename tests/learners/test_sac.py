"""SAC: its losses against plain NumPy, what a gradient step moves, the mixture, the warm-up, what it refuses."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import references
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import CPU, SMALL, TINY, Corridor, corridor_demos, corridor_trainer, generator, rollout, transitions

from ilde.config import find_preset, override
from ilde.data import Transitions, UserError
from ilde.learners.guard import NonFiniteError
from ilde.learners.replay import row_bytes
from ilde.learners.sac import SAC, SACConfig, critic_loss, demo_share, soft_target
from ilde.learners.soft import AgentConfig, SoftAgent, actor_loss, temperature_loss
from ilde.prepare import build, check_replay

OBS, ACTIONS = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32), gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
SETTINGS = SACConfig(batch_size=8, hidden=8, warm_up=0, replay_size=64, learning_rate=1e-2)


def learner(**changes: Any) -> SAC:
    return SAC(OBS, ACTIONS, replace(SETTINGS, **changes), generator(3), generator(4), CPU)


def of_ones(batch: Transitions) -> torch.Tensor:
    return torch.ones(batch.batch_shape)


def numbers(draw: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=draw, dtype=torch.float64)


@settings(max_examples=50, deadline=None)
@given(
    size=st.integers(1, 9), seed=st.integers(0, 2**20), temperature=st.floats(1e-3, 3.0), discount=st.floats(0.0, 1.0)
)
def test_the_losses_agree_with_numpy(size: int, seed: int, temperature: float, discount: float) -> None:
    draw = generator(seed)
    reward, log_prob, value = (numbers(draw, size) for _ in range(3))
    q, next_q = numbers(draw, 2, size), numbers(draw, 2, size)
    terminated = torch.rand(size, generator=draw) < 0.3
    target = soft_target(reward, terminated, next_q.amin(0) - temperature * log_prob, discount)
    expected = references.soft_target(
        reward.tolist(),
        terminated.tolist(),
        next_q.tolist(),
        log_prob.tolist(),
        temperature=temperature,
        discount=discount,
    )
    np.testing.assert_allclose(target, expected, rtol=1e-6, atol=1e-6)
    heat = torch.tensor(temperature, dtype=torch.float64)
    ours = (critic_loss(q, value), actor_loss(q, log_prob, heat), temperature_loss(heat.log(), log_prob, -2.0))
    rows, targets, logs = q.tolist(), value.tolist(), log_prob.tolist()
    theirs = references.sac_losses(rows, targets, rows, logs, temperature=temperature, target_entropy=-2.0)
    np.testing.assert_allclose([float(x) for x in ours], theirs, rtol=1e-6, atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**20))
def test_the_value_of_a_state_agrees_with_numpy(seed: int) -> None:
    draw = generator(seed)
    config = AgentConfig(
        hidden=6, num_critics=2, learning_rate=1e-3, actor_learning_rate=1e-3, target_rate=0.1,
        temperature=0.2, learn_temperature=True,
    )  # fmt: skip
    agent = SoftAgent(OBS, ACTIONS, config, draw, CPU)
    for net in (agent.actor, agent.critics):
        net.double()
    obs, noise = numbers(draw, 4, 2), numbers(draw, 4, 2)
    ours = agent.value(obs, noise, target=False)

    def rectified(x: float) -> float:
        return max(x, 0.0)

    for i in range(4):
        units = references.dense(agent.actor.trunk, references.array(obs[i]), rectified)
        mean, log_std = np.split(references.linear(agent.actor.head, units), 2)
        action, log_prob = references.squashed(mean, np.clip(log_std, -5, 2), noise[i].tolist())
        inputs = np.concatenate([obs[i].numpy(), action])
        values = [
            references.linear(tower[-1], references.dense(tower[:-1], inputs, rectified))[0]  # type: ignore[index]
            for tower in agent.critics.towers
        ]
        assert ours[i].item() == pytest.approx(min(values) - 0.2 * log_prob, rel=1e-6, abs=1e-6)


def test_a_terminated_step_has_no_future_and_a_truncated_one_has() -> None:
    reward, ends, value = torch.tensor([1.0, 1.0]), torch.tensor([True, False]), torch.tensor([10.0, 10.0])
    assert soft_target(reward, ends, value, 0.5).tolist() == [1.0, 6.0]


def test_one_gradient_step_moves_everything_and_the_target_a_little() -> None:
    sac = learner(target_rate=0.25)
    before = copy.deepcopy(sac.agent.state_dict())
    sac.update(rollout("continuous", 1, 1), of_ones, 0.0)
    after = sac.agent.state_dict()
    assert sac.gradient_steps == 1
    for part in ("actor", "critics", "target_critics"):
        moved = [name for name in before[part] if not torch.equal(before[part][name], after[part][name])]
        assert {"centre", "reach"}.isdisjoint(moved)
        assert len(moved) >= len(before[part]) - 2
    assert after["log_temperature"] != before["log_temperature"]
    for name, old in before["critics"].items():
        followed = old + 0.25 * (after["critics"][name] - old)
        torch.testing.assert_close(after["target_critics"][name], followed)


def test_the_actors_loss_leaves_the_critics_alone() -> None:
    sac = learner()
    before = copy.deepcopy(sac.agent.critics.state_dict())
    sac.agent.improve(torch.randn(8, 2, generator=generator()), torch.randn(8, 2, generator=generator(1)))
    assert all(torch.equal(before[name], weight) for name, weight in sac.agent.critics.state_dict().items())


@pytest.mark.parametrize(("entropy", "rises"), [(-20.0, True), (20.0, False)])
def test_the_temperature_rises_where_the_policy_is_surer_than_it_should_be(entropy: float, rises: bool) -> None:
    log_temperature = torch.zeros((), requires_grad=True)
    temperature_loss(log_temperature, torch.tensor([-entropy]), -2.0).backward()
    assert log_temperature.grad is not None
    assert (float(log_temperature.grad) < 0) == rises


def test_a_fixed_temperature_stays() -> None:
    sac = learner(temperature=0.3)
    for seed in range(3):
        metrics = sac.update(rollout("continuous", seed=seed), of_ones, 0.0)
    assert metrics["train/ent_coef"] == pytest.approx(0.3)


@pytest.mark.parametrize(("rate", "steps"), [(1.0, 18), (0.5, 9), (0.0, 0), (2.0, 36)])
def test_gradient_steps_follow_environment_steps(rate: float, steps: int) -> None:
    sac = learner(updates_per_step=rate)
    sac.update(rollout("continuous"), of_ones, 0.0)
    assert sac.gradient_steps == steps


@pytest.mark.parametrize(("steps", "share"), [(0, 0.2), (50, 0.15), (100, 0.1), (1000, 0.1)])
def test_the_share_of_demonstrations_moves_linearly_then_stays(steps: int, share: float) -> None:
    config = replace(SETTINGS, demo_share=0.2, final_demo_share=0.1, demo_share_steps=100)
    assert demo_share(config, steps) == pytest.approx(share)


def test_each_batch_holds_its_share_of_demonstrations_and_is_judged_anew() -> None:
    sac, seen = learner(demo_share=0.25, final_demo_share=0.25, updates_per_step=0.2), []
    shown = transitions("continuous", 5, seed=50)
    sac.fit(shown)

    def watching(batch: Transitions) -> torch.Tensor:
        seen.append(batch)
        return of_ones(batch)

    for seed in (1, 2):
        metrics = sac.update(rollout("continuous", seed=seed), watching, 0.0)
    assert metrics["replay/demo_share"] == 0.25
    demonstrated = {tuple(obs) for obs in shown.obs.tolist()}
    for batch in seen:
        assert batch.batch_shape == (4, 8)
        known = torch.tensor([[tuple(obs) in demonstrated for obs in row] for row in batch.obs.tolist()])
        # Two of eight, in front, in every batch.
        assert known.tolist() == [[True] * 2 + [False] * 6] * 4


def test_long_updates_are_drawn_and_judged_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ilde.learners.replaying.DRAWN_BYTES", 4 * 8 * row_bytes(OBS))
    sac, sizes = learner(), []

    def watching(batch: Transitions) -> torch.Tensor:
        sizes.append(batch.batch_shape)
        return of_ones(batch)

    metrics = sac.update(rollout("continuous"), watching, 0.0)
    assert sizes == [(4, 8)] * 4 + [(2, 8)]
    assert (sac.gradient_steps, metrics["train/reward"]) == (18, 1.0)


def test_without_demonstrations_nothing_is_mixed_in() -> None:
    assert learner().update(rollout("continuous"), of_ones, 0.0)["replay/demo_share"] == 0.0


def test_the_reward_that_counts_is_the_one_given_now() -> None:
    poor, rich = learner(), learner()
    for sac, worth in ((poor, -1.0), (rich, 1.0)):
        for seed in range(8):
            sac.update(rollout("continuous", seed=seed), lambda batch, worth=worth: worth * of_ones(batch), 0.0)
    batch = transitions("continuous", 20, seed=9)
    assert (rich.agent.critics(batch.obs, batch.action) > poor.agent.critics(batch.obs, batch.action)).all()


def test_nothing_is_learned_before_the_warm_up_is_over() -> None:
    sac = learner(warm_up=40)
    before = copy.deepcopy(sac.agent.state_dict()["actor"])
    for seed in range(2):
        assert sac.update(rollout("continuous", seed=seed), of_ones, 0.0) == {"replay/size": 18.0 * (seed + 1)}
    assert all(torch.equal(before[name], weight) for name, weight in sac.policy.state_dict().items())
    assert "train/actor_loss" in sac.update(rollout("continuous", seed=2), of_ones, 0.0)


def test_the_warm_up_acts_uniformly_over_the_box() -> None:
    sac, obs = learner(warm_up=20), torch.zeros(4000, 2)
    with torch.no_grad():
        sac.policy.head.bias.copy_(torch.tensor([3.0, 3.0, -5.0, -5.0]))
    random = sac.explorer.act(obs, generator()).action
    torch.testing.assert_close(random.mean(0), torch.zeros(2), atol=0.05, rtol=0)
    for seed in range(2):
        sac.update(rollout("continuous", seed=seed), of_ones, 0.0)
    assert sac.explorer.act(obs, generator()).action.mean() > 0.9


def test_a_reward_that_is_not_finite_stops_it_before_a_weight_moves() -> None:
    sac = learner()
    before = copy.deepcopy(sac.agent.state_dict()["critics"])
    with pytest.raises(NonFiniteError, match="not finite: reward"):
        sac.update(rollout("continuous"), lambda batch: of_ones(batch) / 0.0, 0.0)
    assert all(torch.equal(before[name], weight) for name, weight in sac.agent.critics.state_dict().items())


@pytest.mark.parametrize("warm_up", [0, 40, 60])
def test_a_saved_learner_goes_on_with_the_same_numbers(warm_up: int) -> None:
    original, restored = learner(warm_up=warm_up), learner(warm_up=warm_up)
    original.fit(transitions("continuous", 5, seed=50))
    for seed in range(3):
        original.update(rollout("continuous", seed=seed), of_ones, 0.0)
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    obs = torch.zeros(3, 2)
    for seed in range(3, 6):
        # Acting comes first: 54 steps were taken, so a warm-up of 40 is over and must not begin again.
        acts = [sac.explorer.act(obs, generator(seed)).action for sac in (original, restored)]
        assert torch.equal(*acts)
        rows = [sac.update(rollout("continuous", seed=seed), of_ones, 0.0) for sac in (original, restored)]
        assert rows[0] == rows[1]


def test_discrete_actions_are_refused_in_one_line() -> None:
    with pytest.raises(UserError, match="needs continuous actions"):
        corridor_trainer("sac")


def test_a_term_that_needs_whole_episodes_is_refused_in_one_line() -> None:
    trainer = corridor_trainer("hype-ilde", continuous=True, rewards=SMALL)
    check_replay(trainer, None)
    trainer.reward.terms["entropy"].model.episodic = True  # type: ignore[attr-defined]
    with pytest.raises(UserError, match="hype-ilde replays single steps, but entropy needs whole episodes"):
        check_replay(trainer, None)


def test_curiosity_shared_by_environments_is_not_for_steps_drawn_from_everywhere() -> None:
    shared = replace(SMALL, generative=replace(SMALL.generative, shared=True))
    with pytest.raises(UserError, match="hype-ilde replays single steps, but giril needs whole episodes"):
        check_replay(corridor_trainer("hype-ilde", continuous=True, rewards=shared), None)


def test_the_true_reward_and_demonstrations_cannot_be_mixed() -> None:
    env, demos = partial(Corridor, continuous=True), corridor_demos(continuous=True)
    config = replace(TINY, method="hype", reward="env", rewards=SMALL)
    with pytest.raises(UserError, match="demonstrations carry no true reward"):
        build(config, env=env, demos=demos)
    alone = replace(config, sac=replace(config.sac, demo_share=0.0, final_demo_share=0.0))
    build(alone, env=env, demos=demos)


def test_the_preset_is_that_of_hype() -> None:
    config = find_preset("replay")
    assert config.num_envs * config.rollout_steps * config.sac.updates_per_step == 64
    assert (config.sac.discount, config.sac.target_rate, config.sac.batch_size, config.sac.hidden) == (
        0.98,
        0.02,
        256,
        256,
    )
    assert (config.sac.demo_share, config.sac.final_demo_share, config.sac.demo_share_steps) == (0.2, 0.1, 200_000)
    discriminator = config.rewards.discriminator
    assert (discriminator.loss, discriminator.reward_form, discriminator.input) == ("linear", "logit", "state-action")
    assert (discriminator.gradient_penalty, discriminator.penalty_norm) == (10.0, 0.4)
    assert not config.rewards.scale.total
    assert override(config, "sac.temperature", "none").sac.temperature is None

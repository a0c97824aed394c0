"""IQ-Learn: its loss against plain NumPy, both kinds of action, online and offline, what it keeps."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pytest
import references
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import CPU, KINDS, TINY, Corridor, Kind, corridor_trainer, generator, rollout, spaces, transitions

from ilde.data import Transitions
from ilde.envs import make_envs
from ilde.evaluation import evaluate
from ilde.learners.iq_learn import IQLearn, IQLearnConfig, iq_loss
from ilde.learners.soft import Judged, SoftAgent
from ilde.learners.soft_q import SoftQAgent

SETTINGS = IQLearnConfig(batch_size=4, hidden=8, warm_up=0, replay_size=64, learning_rate=1e-2, updates_per_step=0.2)


def learner(kind: Kind, **changes: Any) -> IQLearn:
    return IQLearn(*spaces(kind), replace(SETTINGS, **changes), generator(3), generator(4), CPU)


def unasked(batch: Transitions) -> torch.Tensor:
    raise AssertionError("the reward was asked")


@settings(max_examples=80, deadline=None)
@given(
    num_demos=st.integers(1, 6),
    others=st.integers(0, 6),
    critics=st.integers(1, 2),
    seed=st.integers(0, 2**20),
    discount=st.floats(0.0, 1.0),
    value_term=st.sampled_from(["value", "value-demos", "initial"]),
    chi_on=st.sampled_from(["all", "demos"]),
    chi_weight=st.floats(0.0, 2.0),
)
def test_the_loss_agrees_with_numpy(
    num_demos: int,
    others: int,
    critics: int,
    seed: int,
    discount: float,
    value_term: Literal["value", "value-demos", "initial"],
    chi_on: Literal["all", "demos"],
    chi_weight: float,
) -> None:
    draw, size = generator(seed), num_demos + others
    q = torch.randn(critics, size, generator=draw, dtype=torch.float64)
    value, next_value = torch.randn(2, size, generator=draw, dtype=torch.float64)
    terminated = torch.rand(size, generator=draw) < 0.3
    config = IQLearnConfig(discount=discount, value_term=value_term, chi_on=chi_on, chi_weight=chi_weight)
    loss, parts = iq_loss(Judged(q, value, next_value), terminated, num_demos, config)
    expected = references.iq_loss(
        q.tolist(), value.tolist(), next_value.tolist(), terminated.tolist(), num_demos,
        discount=discount, value_term=value_term, chi_weight=chi_weight, chi_on=chi_on,
    )  # fmt: skip
    assert loss.item() == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert ("policy_reward" in parts) == (others > 0)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**20), target=st.booleans())
def test_discrete_values_agree_with_numpy(seed: int, target: bool) -> None:
    agent = learner("vector", temperature=0.5).agent
    assert isinstance(agent, SoftQAgent)
    agent.policy.double()
    agent.target.double()
    torch.nn.init.normal_(agent.target.head.bias, generator=generator(seed))  # type: ignore[union-attr,arg-type]
    batch = transitions("vector", 3, seed=seed)
    obs, next_obs = batch.obs.double(), batch.next_obs.double()
    judged = agent.judge(obs, batch.action, next_obs, torch.empty(0), target=target)

    def values(net: Any, x: torch.Tensor) -> Any:
        units = references.dense(net.trunk[1], references.array(x), lambda z: max(z, 0.0))
        return references.linear(net.head, units)

    for i in range(3):
        now = values(agent.policy, obs[i])
        later = values(agent.target if target else agent.policy, next_obs[i])
        expected = (now[batch.action[i]], references.soft_maximum(now, 0.5), references.soft_maximum(later, 0.5))
        ours = (judged.q[0, i].item(), judged.value[i].item(), judged.next_value[i].item())
        np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6)
    assert judged.next_value.requires_grad == (not target)


@pytest.mark.parametrize("target", [False, True])
def test_continuous_values_of_successors_are_the_target_critics_alone_if_asked(target: bool) -> None:
    agent, batch = learner("continuous").agent, transitions("continuous", 3)
    assert isinstance(agent, SoftAgent)
    noise = torch.randn(2, 3, agent.noise_width, generator=generator(1))

    def judged() -> Judged:
        return agent.judge(batch.obs, batch.action, batch.next_obs, noise, target=target)

    before = judged()
    with torch.no_grad():
        for weight in agent.target_critics.parameters():
            weight += 0.1
    after = judged()
    assert torch.equal(before.q, after.q)
    assert torch.equal(before.value, after.value)
    assert torch.equal(before.next_value, after.next_value) == (not target)
    assert before.next_value.requires_grad == (not target)


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_from_any_observation_and_action_without_a_reward(kind: Kind) -> None:
    iq = learner(kind)
    assert not iq.offline
    assert iq.fit(transitions(kind, 6, seed=50)) == {}
    before = copy.deepcopy(iq.agent.state_dict())
    metrics = iq.update(rollout(kind), unasked, 0.0)
    assert {"iq/loss", "iq/demo_reward", "iq/policy_reward", "iq/value_loss", "iq/chi_loss"} <= metrics.keys()
    key = "actor" if kind == "continuous" else "policy"
    after = iq.agent.state_dict()
    assert any(not torch.equal(before[key][name], after[key][name]) for name in before[key])


def test_demonstrated_steps_come_to_be_worth_more_than_the_policys() -> None:
    iq = learner("vector", batch_size=16, updates_per_step=2.0)
    shown = transitions("vector", 30, seed=50)
    iq.fit(replace(shown, action=torch.zeros_like(shown.action)))
    for seed in range(6):
        metrics = iq.update(rollout("vector", seed=seed), unasked, 0.0)
    assert metrics["iq/demo_reward"] > metrics["iq/policy_reward"] + 0.1


@pytest.mark.parametrize("kind", ["vector", "continuous"])
def test_offline_everything_is_learned_from_the_demonstrations(kind: Kind) -> None:
    iq = learner(kind, online=False, offline_steps=30)
    assert iq.offline
    metrics = iq.fit(transitions(kind, 6, seed=50))
    assert "iq/demo_reward" in metrics
    assert "iq/policy_reward" not in metrics
    assert iq.replay.state_dict()["rows"] is None


@pytest.mark.parametrize("continuous", [False, True])
def test_offline_it_walks_like_the_demonstrator_without_a_single_step(continuous: bool) -> None:
    trainer = corridor_trainer("iq-learn", continuous=continuous, iq=replace(TINY.iq, online=False))
    assert trainer.done
    assert trainer.env_steps == 0
    envs = make_envs(partial(Corridor, continuous=continuous), 1, 0, clip_actions=True)
    score = evaluate(envs, trainer.learner.policy, episodes=1, generator=generator(), greedy=True)
    # The demonstrator scores 25.5; random actions score about 6.
    assert score.returns[0] > 20


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_learner_goes_on_with_the_same_numbers(kind: Kind) -> None:
    original, restored = (learner(kind, warm_up=30) for _ in range(2))
    original.fit(transitions(kind, 6, seed=50))
    for seed in range(2):
        original.update(rollout(kind, seed=seed), unasked, 0.0)
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    # 36 steps were taken: the warm-up is over and must not begin again.
    obs = transitions(kind, 20, seed=8).obs
    assert torch.equal(*(iq.explorer.act(obs, generator(1)).action for iq in (original, restored)))
    rows = [iq.update(rollout(kind, seed=7), unasked, 0.0) for iq in (original, restored)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("at_once", [1, 3, 8])
def test_batches_drawn_together_are_used_one_after_another(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = learner("vector", updates_per_step=1.0)
    shown = transitions("vector", 5, seed=7)
    agent.fit(shown)
    monkeypatch.setattr(agent, "_at_once", at_once)
    steps: list[tuple[torch.Tensor, ...]] = []
    monkeypatch.setattr(agent, "_step", lambda batch, take=agent._step: (steps.append(batch), take(batch))[1])
    lived = rollout("vector", steps=4, envs=2)
    agent.update(lived, unasked, 0.0)
    assert len(steps) == len(lived.transitions)
    demonstrated = {tuple(row.tolist()) for row in shown.obs}
    for obs, *_ in steps:
        assert [tuple(row.tolist()) in demonstrated for row in obs] == [True] * 4 + [False] * 4
    assert len({tuple(obs.flatten().tolist()) for obs, *_ in steps}) > len(steps) // 2

"""PPO: the loss by hand and against the definition, the minibatches, the schedule, the successors' values."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import references
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import generator, rollout, spaces, transitions

from ilde.data import Rollout
from ilde.learners.guard import FiniteGuard, NonFiniteError
from ilde.learners.ppo import PPO, Batch, PPOConfig, normalised, ppo_loss
from ilde.nets.distributions import Categorical, Gaussian
from ilde.nets.policy import ActorCritic

SMALL = PPOConfig(num_epochs=2, num_minibatches=3, hidden=8)


class Fixed:
    """Stands in for a policy: gives the same distribution and values whatever it sees."""

    def __init__(self, distribution: Categorical | Gaussian, value: torch.Tensor) -> None:
        self.answer = distribution, value

    def __call__(self, obs: torch.Tensor) -> Any:
        return self.answer


def learner(config: PPOConfig = SMALL, kind: Any = "vector", seed: int = 0) -> PPO:
    return PPO(ActorCritic(*spaces(kind), config.hidden, generator(seed)), config, generator(seed + 1))


def true_reward(batch: Any) -> torch.Tensor:
    return batch.env_reward  # type: ignore[no-any-return]


def one_sample_loss(ratio: float, advantage: float, value: float, **config: Any) -> tuple[float, dict[str, float]]:
    """One sample with two equally likely actions, an old value of 0 and a target of 1."""
    log_half = math.log(0.5)
    batch = Batch(
        obs=torch.zeros(1, 1),
        action=torch.zeros(1, dtype=torch.int64),
        log_prob=torch.tensor([log_half - math.log(ratio)]),
        value=torch.zeros(1),
        advantage=torch.tensor([advantage]),
        target=torch.ones(1),
    )
    policy: Any = Fixed(Categorical(torch.tensor([[log_half, log_half]])), torch.tensor([value]))
    loss, parts = ppo_loss(policy, batch, PPOConfig(advantages="raw", **config))
    return float(loss), {name: float(part) for name, part in parts.items()}


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [(1.5, 2.0, -1.1 * 2), (1.5, -2.0, 1.5 * 2), (0.5, 2.0, -0.5 * 2), (0.5, -2.0, 0.9 * 2), (1.05, 2.0, -1.05 * 2)],
)
def test_the_policy_loss_takes_the_worse_of_the_ratio_and_its_clipping(
    ratio: float, advantage: float, expected: float
) -> None:
    _, parts = one_sample_loss(ratio, advantage, value=0.0)
    assert parts["policy_gradient_loss"] == pytest.approx(expected)
    assert parts["clip_fraction"] == float(ratio not in (1.05,))


def test_the_value_loss_is_half_the_squared_error_and_clipping_takes_the_worse() -> None:
    # The value moved from 0 to 0.6, the target is 1: error 0.4 as it stands, 0.9 when held within 0.1.
    assert one_sample_loss(1.0, 0.0, 0.6, clip_value=False)[1]["value_loss"] == pytest.approx(0.5 * 0.4**2)
    assert one_sample_loss(1.0, 0.0, 0.6, clip_value=True)[1]["value_loss"] == pytest.approx(0.5 * 0.9**2)


def test_the_loss_is_the_weighted_sum_of_its_parts() -> None:
    # policy -1 * 1, value 0.5 * 0.25, entropy log 2.
    loss, _ = one_sample_loss(1.0, 1.0, 0.5, clip_value=False, value_weight=3.0, entropy_weight=0.2)
    assert loss == pytest.approx(-1.0 + 3.0 * 0.125 - 0.2 * math.log(2))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.float32, 1e-4)])
@settings(max_examples=30, deadline=None)
@given(
    size=st.integers(2, 9), seed=st.integers(0, 2**20), discrete=st.booleans(), clip_value=st.booleans(),
    clip=st.floats(0.01, 0.5), over=st.sampled_from(["minibatch", "raw"]),
)  # fmt: skip
def test_the_loss_equals_its_definition(
    dtype: torch.dtype, tolerance: float, size: int, seed: int, discrete: bool, clip_value: bool, clip: float, over: Any
) -> None:
    draw = generator(seed)
    head, value, old_value, advantage, target = (
        torch.randn(*shape, generator=draw, dtype=dtype) for shape in ((size, 4), (size,), (size,), (size,), (size,))
    )
    log_std = 0.5 * torch.randn(4, generator=draw, dtype=dtype)
    discrete_action = torch.randint(4, (size,), generator=draw)
    action = discrete_action if discrete else torch.randn(size, 4, generator=draw, dtype=dtype)
    distribution = Categorical.of_logits(head) if discrete else Gaussian(head, log_std)
    old_log_prob = distribution.log_prob(action) + 0.3 * torch.randn(size, generator=draw, dtype=dtype)
    config = PPOConfig(clip_range=clip, clip_value=clip_value, advantages=over, value_weight=0.7, entropy_weight=0.03)
    policy: Any = Fixed(distribution, value)
    ours, _ = ppo_loss(policy, Batch(head, action, old_log_prob, old_value, advantage, target), config)

    choices = [
        references.categorical(references.array(head[i]), int(discrete_action[i])) if discrete
        else references.gaussian(references.array(head[i]), references.array(log_std), references.array(action[i]))
        for i in range(size)
    ]  # fmt: skip
    plain = references.array(advantage)
    scaled = (plain - plain.mean()) / (plain.std(ddof=1) + 1e-8) if over == "minibatch" else plain
    theirs = references.ppo_loss(
        choices, references.array(value), references.array(old_log_prob), references.array(old_value), scaled,
        references.array(target),
        clip=clip, clip_value=clip_value, value_weight=0.7, entropy_weight=0.03,
    )  # fmt: skip
    assert ours.item() == pytest.approx(theirs, rel=tolerance, abs=tolerance)


def test_normalised_advantages_have_mean_zero_and_deviation_one() -> None:
    np.testing.assert_allclose(normalised(torch.tensor([1.0, 3.0]), 0.0), [-(0.5**0.5), 0.5**0.5], rtol=1e-6)


def test_rollout_normalisation_happens_before_the_minibatches() -> None:
    ppo = learner(replace(SMALL, advantages="rollout"))
    batch = ppo._batch(rollout("vector"), torch.randn(6, 3, generator=generator(3)))
    assert float(batch.advantage.mean()) == pytest.approx(0.0, abs=1e-6)
    assert float(batch.advantage.std()) == pytest.approx(1.0, abs=1e-3)


def test_targets_are_raw_advantages_plus_values_whatever_the_normalisation() -> None:
    data, reward = rollout("vector"), torch.randn(6, 3, generator=generator(3))
    raw = learner(replace(SMALL, advantages="raw"))._batch(data, reward)
    torch.testing.assert_close(raw.target, raw.advantage + raw.value)
    torch.testing.assert_close(learner(replace(SMALL, advantages="rollout"))._batch(data, reward).target, raw.target)


@pytest.mark.parametrize(("size", "count"), [(12, 3), (8, 8), (6, 1), (1, 4)])
def test_each_epoch_is_a_partition_in_a_new_order(size: int, count: int) -> None:
    parts = learner(replace(SMALL, num_epochs=3, num_minibatches=count))._minibatches(size)
    per_epoch = len(parts) // 3
    assert {len(part) for part in parts} == {max(1, size // count)}
    orders = [torch.cat(parts[i * per_epoch : (i + 1) * per_epoch]).tolist() for i in range(3)]
    assert all(sorted(order) == list(range(size)) for order in orders)
    assert size < 6 or orders[0] != orders[1] != orders[2]


def test_no_sample_is_used_twice_in_an_epoch_and_all_minibatches_have_one_size() -> None:
    parts = learner(replace(SMALL, num_epochs=1, num_minibatches=3))._minibatches(11)
    assert {len(part) for part in parts} == {3}
    drawn = torch.cat(parts).tolist()
    assert len(set(drawn)) == len(drawn) == 9


def test_there_are_as_many_minibatches_as_asked_for() -> None:
    assert len(learner(replace(SMALL, num_epochs=1, num_minibatches=32))._minibatches(100)) == 32


@pytest.mark.parametrize(("progress", "expected"), [(0.0, 1e-2), (0.25, 0.75e-2), (1.0, 0.0), (1.5, 0.0)])
def test_the_learning_rate_falls_linearly_and_never_below_zero(progress: float, expected: float) -> None:
    ppo = learner(replace(SMALL, learning_rate=1e-2))
    before = [p.clone() for p in ppo.policy.parameters()]
    metrics = ppo.update(rollout("vector"), true_reward, progress)
    assert metrics["train/learning_rate"] == pytest.approx(expected)
    moved = any(not torch.equal(p, q) for p, q in zip(ppo.policy.parameters(), before, strict=True))
    assert moved == (expected > 0)


def test_without_annealing_the_learning_rate_stays() -> None:
    metrics = learner(replace(SMALL, anneal=False)).update(rollout("vector"), true_reward, 0.9)
    assert metrics["train/learning_rate"] == pytest.approx(SMALL.learning_rate)


def chained_rollout(ppo: PPO) -> Rollout:
    """Four steps of two environments in which each successor is the next observation, except after an ending."""
    batch = transitions("vector", 4, 2, seed=5)
    obs, next_obs = batch.obs, batch.next_obs.clone()
    next_obs[:-1] = obs[1:]
    truncated, terminated = torch.zeros(4, 2, dtype=torch.bool), torch.zeros(4, 2, dtype=torch.bool)
    truncated[1, 0] = terminated[2, 1] = True
    next_obs[1, 0], next_obs[2, 1] = 7.0, -7.0
    steps = replace(batch, next_obs=next_obs, terminated=terminated)
    return Rollout(steps, truncated, torch.zeros(4, 2), ppo.policy.value(obs.flatten(0, 1)).view(4, 2))


def test_the_future_of_each_step_is_the_value_of_its_true_successor() -> None:
    ppo = learner()
    data = chained_rollout(ppo)
    expected = ppo.policy.value(data.transitions.next_obs.flatten(0, 1)).view(4, 2)
    alive = ~data.transitions.terminated
    torch.testing.assert_close(ppo._next_value(data)[alive], expected[alive])
    assert not torch.allclose(ppo._next_value(data)[1, 0], data.value[2, 0])


def test_endless_returns_go_on_past_a_death_and_past_a_reward_for_living() -> None:
    ppo = learner(replace(SMALL, endless=True, advantages="raw", gae_lambda=1.0))
    data, reward = chained_rollout(ppo), torch.randn(4, 2, generator=generator(3))
    batch = ppo._batch(data, reward)
    centred, discount = reward - reward.mean(), ppo.config.discount
    after = ppo.policy.value(data.transitions.next_obs[-1])
    # The second environment dies at its third step: what comes then still counts for all that came before.
    expected = [after[1]]
    for t in (3, 2, 1, 0):
        expected.append(centred[t, 1] + discount * expected[-1])
    torch.testing.assert_close(batch.target.view(4, 2)[:, 1], torch.stack(expected[:0:-1]))
    # The first met its time limit at the second: there the value of the true successor stands for the rest.
    cut = centred[1, 0] + discount * ppo.policy.value(data.transitions.next_obs[1, :1])[0]
    torch.testing.assert_close(batch.target.view(4, 2)[:2, 0], torch.stack([centred[0, 0] + discount * cut, cut]))
    torch.testing.assert_close(ppo._batch(data, reward + 5.0).advantage, batch.advantage)
    mortal = learner(replace(SMALL, advantages="raw", gae_lambda=1.0))
    assert not torch.allclose(mortal._batch(data, reward + 5.0).advantage, mortal._batch(data, reward).advantage)


def test_observation_statistics_move_after_the_update_only() -> None:
    ppo = learner()
    seen: list[float] = []

    def reward(batch: Any) -> torch.Tensor:
        seen.append(float(ppo.policy.normalise.moments.count))  # type: ignore[union-attr]
        return true_reward(batch)

    data = rollout("vector")
    ppo.update(data, reward, 0.0)
    moments = ppo.policy.normalise.moments  # type: ignore[union-attr]
    assert seen == [0.0]
    assert float(moments.count) == 18.0
    torch.testing.assert_close(moments.mean.float(), data.transitions.obs.mean((0, 1)))


@pytest.mark.parametrize(("poison", "named"), [("reward", "reward"), ("log_prob", "policy_gradient_loss")])
def test_a_number_that_is_not_finite_stops_the_update_and_is_named(poison: str, named: str) -> None:
    data = rollout("vector")
    if poison == "log_prob":
        data = replace(data, log_prob=torch.full_like(data.log_prob, torch.nan))
    reward = torch.full((6, 3), torch.nan) if poison == "reward" else torch.ones(6, 3)
    with pytest.raises(NonFiniteError, match=named):
        learner().update(data, lambda batch: reward, 0.0)


def test_an_update_that_was_stopped_leaves_the_policy_usable() -> None:
    ppo = learner()
    before = deepcopy(ppo.policy.state_dict())
    with pytest.raises(NonFiniteError):
        ppo.update(rollout("vector"), lambda batch: torch.full((6, 3), torch.nan), 0.0)
    assert all(torch.equal(x, before[name]) for name, x in ppo.policy.state_dict().items())


def test_the_guard_names_only_what_was_broken_and_forgets_it_once_told() -> None:
    guard = FiniteGuard()
    guard.watch("fine", torch.ones(2))
    guard.watch("broken", torch.ones(2))
    guard.watch("broken", torch.tensor([1.0, torch.inf]))
    guard.watch("broken", torch.ones(2))
    with pytest.raises(NonFiniteError, match="not finite: broken;"):
        guard.check()
    guard.check()


def test_saved_and_loaded_it_goes_on_with_the_same_numbers() -> None:
    first, second = learner(seed=0), learner(seed=9)
    first.update(rollout("vector", seed=1), true_reward, 0.1)
    second.load_state_dict(deepcopy(first.state_dict()))
    metrics = [ppo.update(rollout("vector", seed=2), true_reward, 0.5) for ppo in (first, second)]
    assert metrics[0] == metrics[1]
    for one, other in zip(first.policy.state_dict().values(), second.policy.state_dict().values(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("kind", ["vector", "continuous", "image"])
def test_an_update_leaves_the_rollout_as_it_was(kind: Any) -> None:
    data = rollout(kind, steps=4, envs=2)
    copies = [x.clone() for x in (data.transitions.obs, data.transitions.action, data.log_prob, data.value)]
    learner(kind=kind).update(data, true_reward, 0.0)
    after = (data.transitions.obs, data.transitions.action, data.log_prob, data.value)
    assert all(torch.equal(x, y) for x, y in zip(copies, after, strict=True))

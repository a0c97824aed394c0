"""One contract for every reward: each term and the mixture of the paper, vectors and images, both kinds of action."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from toys import KINDS, SMALL, TINY, Kind, corridor_trainer, generator, poisoned, reward_mix, rollout, transitions

from ilde.collector import OneGroup
from ilde.data import Rollout, Transitions
from ilde.envs.base import Step
from ilde.methods import METHODS, Method
from ilde.rewards.base import encode
from ilde.rewards.compose import RewardMix
from ilde.rewards.expression import TERMS, TermName

EXPRESSIONS = (*TERMS, "vail + 10*giril + entropy", "vail + 10*giril + e3b")
BLIND = tuple(expression for expression in EXPRESSIONS if expression != "env")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param  # type: ignore[no-any-return]


def demos(kind: Kind) -> Transitions:
    return poisoned(transitions(kind, 10, seed=100))


def background(kind: Kind) -> Transitions:
    return transitions(kind, 8, 2, seed=200)


def trained(expression: str, kind: Kind, seed: int = 0, *, poison: bool = False) -> RewardMix:
    """A reward after its fit and two rollouts."""
    mix = reward_mix(expression, kind, seed)
    rollouts = [rollout(kind, seed=1), rollout(kind, seed=2)]
    if poison:
        rollouts = [spoiled(data) for data in rollouts]
    mix.fit(demos(kind), poisoned(background(kind)) if poison else background(kind))
    for data in rollouts:
        mix.update(data)
    return mix


def spoiled(data: Rollout) -> Rollout:
    return replace(data, transitions=poisoned(data.transitions))


def leaves(state: Any) -> list[Any]:
    """The tensors and numbers of a state, in order."""
    if isinstance(state, dict):
        return [leaf for key in state for leaf in leaves(state[key])]
    if isinstance(state, list | tuple):
        return [leaf for part in state for leaf in leaves(part)]
    return [state]


def same(one: Any, other: Any) -> bool:
    """Whether two states agree in every bit."""
    first, second = leaves(one), leaves(other)
    pairs = zip(first, second, strict=True)
    return len(first) == len(second) and all(np.array_equal(np.asarray(x), np.asarray(y)) for x, y in pairs)


@pytest.mark.parametrize("batch", [(5,), (4, 3), (2, 2, 2), (1,)])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_one_finite_value_per_transition_without_gradient(expression: str, kind: Kind, batch: tuple[int, ...]) -> None:
    value = trained(expression, kind).reward(transitions(kind, *batch, seed=7))
    assert value.shape == batch
    assert value.dtype == torch.float32
    assert value.isfinite().all()
    assert not value.requires_grad


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_asking_for_a_reward_changes_nothing(expression: str, kind: Kind) -> None:
    mix, batch = trained(expression, kind), transitions(kind, 5, seed=7)
    before, given = copy.deepcopy(mix.state_dict()), batch.map(torch.clone)
    first, second = mix.reward(batch), mix.reward(batch)
    assert torch.equal(first, second)
    assert same(mix.state_dict(), before)
    assert all(torch.equal(getattr(batch, name), getattr(given, name)) for name in vars(batch))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_remembered_reward_of_a_rollout_is_the_reward_of_its_transitions(expression: str, kind: Kind) -> None:
    mix, data = trained(expression, kind), rollout(kind, seed=3)
    mix.update(data)
    again = mix.reward(data.transitions.map(torch.clone))
    torch.testing.assert_close(mix.reward(data.transitions), again, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_permuting_the_batch_permutes_the_rewards(expression: str, kind: Kind) -> None:
    mix, batch = trained(expression, kind), transitions(kind, 9, seed=7)
    order = torch.randperm(9, generator=generator(1))
    torch.testing.assert_close(mix.reward(batch[order]), mix.reward(batch)[order], rtol=1e-5, atol=1e-6)
    halves = torch.cat([mix.reward(batch[torch.arange(4)]), mix.reward(batch[torch.arange(4, 9)])])
    torch.testing.assert_close(halves, mix.reward(batch), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("expression", TERMS)
def test_a_term_minds_the_order_of_steps_just_where_it_says_so(expression: TermName, kind: Kind) -> None:
    mix, batch = trained(expression, kind), transitions(kind, 5, 2, seed=7)
    back = mix.reward(batch.map(lambda x: x.flip(0))).flip(0)
    same_order = torch.allclose(back, mix.reward(batch), rtol=1e-5, atol=1e-6)
    assert same_order != mix.terms[expression].model.episodic
    swapped = mix.reward(batch.map(lambda x: x.flip(1))).flip(1)
    torch.testing.assert_close(swapped, mix.reward(batch), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("expression", BLIND)
def test_the_true_reward_is_never_looked_at(expression: str, kind: Kind) -> None:
    honest, robbed = trained(expression, kind), trained(expression, kind, poison=True)
    batch = transitions(kind, 5, seed=7)
    assert same(robbed.state_dict(), honest.state_dict())
    assert torch.equal(robbed.reward(poisoned(batch)), honest.reward(batch))


def test_the_term_env_is_the_true_reward_and_nothing_else(kind: Kind) -> None:
    mix, batch = trained("env", kind), transitions(kind, 5, seed=7)
    value = mix.reward(batch)
    torch.testing.assert_close(value / value[0], batch.env_reward / batch.env_reward[0])


@pytest.mark.parametrize(
    ("expression", "field", "matters"),
    [
        ("giril", "next_obs", True),
        ("giril", "action", True),
        ("giril", "obs", True),
        ("giril", "terminated", True),
        ("icm", "obs", True),
        ("icm", "next_obs", True),
        ("icm", "action", True),
        ("icm", "terminated", True),
        ("vail", "obs", True),
        ("vail", "next_obs", False),
        ("vail", "action", False),
        ("gail", "obs", True),
        ("gail", "next_obs", False),
        ("entropy", "obs", True),
        ("entropy", "next_obs", False),
        ("entropy", "action", False),
        ("e3b", "obs", True),
        ("e3b", "next_obs", False),
        ("e3b", "action", False),
        ("constant", "obs", False),
    ],
)
def test_each_term_looks_at_its_own_part_of_a_transition(
    expression: str, field: str, matters: bool, kind: Kind
) -> None:
    mix, batch, other = trained(expression, kind), transitions(kind, 6, seed=7), transitions(kind, 6, seed=8)
    changed = ~batch.terminated if field == "terminated" else getattr(other, field)
    moved = not torch.equal(mix.reward(batch), mix.reward(replace(batch, **{field: changed})))
    assert moved == matters


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_saved_state_goes_on_with_the_same_numbers(expression: str, kind: Kind) -> None:
    original, restored = trained(expression, kind, seed=0), reward_mix(expression, kind, seed=99)
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    data, batch = rollout(kind, seed=3), transitions(kind, 5, seed=7)
    assert original.update(data) == restored.update(data)
    assert torch.equal(original.reward(batch), restored.reward(batch))
    assert same(original.state_dict(), restored.state_dict())


def test_a_restored_entropy_bonus_asks_for_a_rollout_before_it_pays() -> None:
    original, restored = trained("entropy", "vector"), reward_mix("entropy", "vector")
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    with pytest.raises(RuntimeError, match="needs a rollout first"):
        restored.reward(transitions("vector", 5, seed=7))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_same_seed_gives_the_same_numbers(expression: str, kind: Kind) -> None:
    assert same(trained(expression, kind).state_dict(), trained(expression, kind).state_dict())


@pytest.mark.parametrize("expression", [term for term in EXPRESSIONS if "il" in term or "e3b" in term])
def test_another_seed_gives_other_numbers(expression: str, kind: Kind) -> None:
    batch = transitions(kind, 5, seed=7)
    assert not torch.equal(trained(expression, kind, 0).reward(batch), trained(expression, kind, 1).reward(batch))


def test_no_global_randomness_is_drawn(kind: Kind) -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    trained("vail + 10*giril + entropy + e3b", kind)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_mixture_is_the_sum_of_its_terms_over_the_scale_of_the_total(kind: Kind) -> None:
    mix, batch = trained("vail + 10*giril + entropy", kind), transitions(kind, 5, seed=7)
    alone = {name: trained(name, kind).breakdown(batch) for name in ("vail", "giril", "entropy")}
    shares = mix.breakdown(batch)
    for name, weight in (("vail", 1), ("giril", 10), ("entropy", 1)):
        torch.testing.assert_close(shares[name], weight * alone[name][name], msg=name)  # type: ignore[index]
    assert mix.total_scale is not None
    torch.testing.assert_close(mix.reward(batch), sum(shares.values()) / mix.total_scale.divisor)


def test_successors_are_encoded_as_if_each_were_made_for_itself(kind: Kind) -> None:
    mix, steps = reward_mix("giril", kind), rollout(kind).transitions
    # As in a real rollout: the next step's own, except in two places.
    chained = steps.next_obs.clone()
    chained[:-1] = steps.obs[1:]
    chained[2, 1] = steps.next_obs[2, 1]
    steps = replace(steps, next_obs=chained)
    assert mix.space is not None
    mix.space.fit(steps.obs)
    encoded = encode(steps, mix.space, mix.code)
    torch.testing.assert_close(encoded.next_features, mix.space(chained), rtol=1e-4, atol=1e-4)
    assert not torch.equal(encoded.next_features[2, 1], encoded.features[3, 1])


def test_successors_are_made_in_batches_of_as_many_as_there_are_environments() -> None:
    mix, steps = reward_mix("giril", "image"), rollout("image").transitions
    chained = steps.next_obs.clone()
    chained[:-1] = steps.obs[1:]
    chained[2, 1] = steps.next_obs[2, 1]
    assert mix.space is not None
    made: list[int] = []
    mix.space.extract.register_forward_pre_hook(lambda _, images: made.append(len(images[0])))
    encode(replace(steps, next_obs=chained), mix.space, mix.code)
    # All observations, then the successors of the last step, then the one that no step shows, beside blank ones.
    assert made == [18, 3, 3]


class Robbed:
    """Environments that withhold the true reward; everything else passes through."""

    def __init__(self, envs: Any) -> None:
        self._envs = envs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._envs, name)

    def step(self, action: Any) -> Step:
        step: Step = self._envs.step(action)
        return replace(step, reward=np.full_like(step.reward, np.nan))


def learned(trainer: Any) -> dict[str, Any]:
    """A learner's state, without the true reward that a replay buffer may hold but not read."""
    state: dict[str, Any] = trainer.learner.state_dict()
    stores = {name: part for name, part in state.items() if name in ("replay", "demos") and part["rows"]}
    return state | {name: part | {"rows": part["rows"] | {"env_reward": None}} for name, part in stores.items()}


@pytest.mark.parametrize("method", [row for row in METHODS if row.reward != "env"], ids=lambda row: row.name)
def test_no_method_but_the_experts_looks_at_the_true_reward(method: Method) -> None:
    small: dict[str, Any] = {
        "rollout_steps": 8,
        "rewards": SMALL,
        "sac": replace(TINY.sac, warm_up=64),
        "iq": replace(TINY.iq, warm_up=64),
    }
    continuous = method.learner == "sac"
    honest, robbed = (corridor_trainer(method.name, continuous=continuous, **small) for _ in range(2))
    robbed.collector._turns = OneGroup(Robbed(robbed.envs))
    for _ in range(2):
        assert honest.iterate() == robbed.iterate()
    assert np.isnan(robbed.collector._outcomes["env_reward"]).all()
    assert same(learned(honest), learned(robbed))
    assert same(honest.reward.state_dict(), robbed.reward.state_dict())


@pytest.mark.parametrize("method", ["expert", "sac"])
def test_an_expert_notices_when_the_true_reward_is_withheld(method: str) -> None:
    sac = replace(TINY.sac, warm_up=0)
    trainer = corridor_trainer(method, continuous=method == "sac", rollout_steps=8, sac=sac)
    trainer.collector._turns = OneGroup(Robbed(trainer.envs))
    with pytest.raises(FloatingPointError, match="not finite: reward"):
        trainer.iterate()

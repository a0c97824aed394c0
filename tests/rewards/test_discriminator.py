"""GAIL and VAIL: the bottleneck by hand, the loss against its definition, the forms of the reward, what is learned."""

from __future__ import annotations

import math
from typing import Any

import pytest
import references
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from toys import generator

from ilde.rewards.base import Encoded
from ilde.rewards.discriminator import (
    AdversarialReward,
    Discriminator,
    DiscriminatorConfig,
    Judgement,
    bottleneck_kl,
    imitation_reward,
)


def model(*, bottleneck: bool = True, features: int = 3, seed: int = 0, **config: Any) -> AdversarialReward:
    draw = generator(seed)
    net = Discriminator(features, 6, nn.Tanh, bottleneck=bottleneck, generator=draw)
    return AdversarialReward(net, DiscriminatorConfig(**config), draw)


def encoded(features: torch.Tensor, action: torch.Tensor | None = None) -> Encoded:
    batch = features.shape[:-1]
    action = torch.zeros(*batch, 2) if action is None else action
    never = torch.zeros(batch, dtype=torch.bool)
    return Encoded(features, action, features, never, torch.zeros(batch), never)


@pytest.mark.parametrize(
    ("mean", "std", "expected"),
    # (1 + 4 - 1) / 2 - log 2; a standard normal costs nothing; a shift of 2 costs 2 nats.
    [(1.0, 2.0, 2 - math.log(2)), (0.0, 1.0, 0.0), (2.0, 1.0, 2.0), (0.0, math.e, (math.e**2 - 1) / 2 - 1)],
)
def test_the_bottleneck_costs_the_kl_of_known_gaussians(mean: float, std: float, expected: float) -> None:
    judgement = Judgement(torch.tensor([mean]), torch.tensor([math.log(std)]))
    assert float(bottleneck_kl(judgement)) == pytest.approx(expected, abs=1e-6)


def test_a_code_spread_beyond_all_bounds_costs_a_finite_price_that_pushes_it_back() -> None:
    log_std = torch.tensor([7.9, 8.1, 50.0, 1000.0], requires_grad=True)
    price = bottleneck_kl(Judgement(torch.zeros(4), log_std))
    price.sum().backward()
    assert log_std.grad is not None
    assert price.isfinite().all()
    assert price.diff().min() > 0
    assert log_std.grad.isfinite().all()
    assert log_std.grad.min() > 1e6


def test_every_form_of_the_reward_by_hand_and_rising_with_the_logit() -> None:
    third = torch.tensor([math.log(0.5)])  # D = 1/3
    assert float(imitation_reward(third, "softplus")) == pytest.approx(-math.log(2 / 3))
    assert float(imitation_reward(third, "logit")) == pytest.approx(math.log(1 / 3) - math.log(2 / 3))
    assert float(imitation_reward(third, "neg-log-d")) == pytest.approx(math.log(1 / 3))
    for form in ("softplus", "logit", "neg-log-d"):
        assert imitation_reward(torch.linspace(-50, 50, 11), form).diff().min() >= 0
        assert imitation_reward(torch.tensor([-1e4, 1e4]), form).isfinite().all()


def test_a_discriminator_without_an_opinion_loses_two_log_two() -> None:
    untold = model(bottleneck=False)
    for parameter in untold.net.parameters():
        parameter.data.zero_()
    loss, statistics = untold.loss(torch.ones(4, 3), torch.ones(4, 3))
    assert float(loss.detach()) == pytest.approx(2 * math.log(2))
    assert float(statistics["disc_acc"]) == 0.5


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.float32, 1e-4)])
@settings(max_examples=30, deadline=None)
@given(
    size=st.integers(1, 6),
    seed=st.integers(0, 2**20),
    bottleneck=st.booleans(),
    weight=st.floats(0, 3),
    limit=st.floats(0, 1),
    scale=st.sampled_from([0.1, 1.0, 5.0]),
)
def test_the_loss_equals_its_definition(
    dtype: torch.dtype, tolerance: float, size: int, seed: int, bottleneck: bool, weight: float, limit: float,
    scale: float,
) -> None:  # fmt: skip
    term = model(bottleneck=bottleneck, seed=seed, bottleneck_weight=weight, information_limit=limit)
    term.net.to(dtype)
    draw = generator(seed + 1)
    demos, policy = (scale * torch.randn(size, 3, generator=draw, dtype=dtype) for _ in range(2))
    twin = generator(0)
    twin.set_state(term.generator.get_state())
    noise = tuple(references.array(torch.randn(size, generator=twin)) for _ in range(2))
    ours, statistics = term.loss(demos, policy)

    def judged(x: torch.Tensor) -> tuple[float, float | None]:
        units = references.dense(list(term.net.trunk), references.array(x))
        mean = float(references.linear(term.net.mean_head, units[: term.net.mean_units])[0])
        if term.net.log_std_head is None:
            return mean, None
        return mean, float(references.linear(term.net.log_std_head, units[term.net.mean_units :])[0])

    expert, learner = [judged(x) for x in demos], [judged(x) for x in policy]
    theirs = references.adversarial_loss(expert, learner, (noise[0], noise[1]), weight=weight, limit=limit)
    assert ours.item() == pytest.approx(theirs, rel=tolerance, abs=tolerance)
    right = [m > 0 for m, _ in expert] + [m <= 0 for m, _ in learner]
    assert float(statistics["disc_acc"]) == pytest.approx(sum(right) / len(right), abs=0.5 / size)


def test_the_limit_shifts_the_loss_and_no_gradient() -> None:
    losses, slopes = [], []
    for limit in (0.0, 0.7):
        term = model(information_limit=limit, seed=2)
        loss, _ = term.loss(torch.ones(4, 3), -torch.ones(4, 3))
        losses.append(float(loss.detach()))
        slopes.append(torch.autograd.grad(loss, list(term.net.parameters())))
    assert losses[0] - losses[1] == pytest.approx(0.7, abs=1e-6)
    assert all(torch.equal(one, other) for one, other in zip(*slopes, strict=True))


def test_the_gradient_penalty_is_the_squared_distance_of_the_slope_from_one() -> None:
    # A trunk that passes its input on (tanh is straight near 0), and a head that sums: the slope is sqrt(3).
    term = model(bottleneck=False, gradient_penalty=10.0)
    for layer in (x for x in term.net.trunk if isinstance(x, nn.Linear)):
        layer.weight.data.copy_(torch.eye(*layer.weight.shape))
        layer.bias.data.zero_()
    term.net.mean_head.weight.data.fill_(1.0)
    tiny = torch.full((2, 3), 1e-4)
    with_penalty = term.loss(tiny, -tiny)[0].detach()
    without = AdversarialReward(term.net, DiscriminatorConfig(), generator(0)).loss(tiny, -tiny)[0].detach()
    assert float(with_penalty - without) == pytest.approx(10 * (math.sqrt(3) - 1) ** 2, rel=1e-4)


@settings(max_examples=30, deadline=None)
@given(size=st.integers(1, 6), seed=st.integers(0, 2**20), bottleneck=st.booleans(), weight=st.floats(0.1, 20))
def test_the_gradient_penalty_equals_its_definition(size: int, seed: int, bottleneck: bool, weight: float) -> None:
    term = model(bottleneck=bottleneck, seed=seed, gradient_penalty=weight)
    plain = AdversarialReward(term.net, DiscriminatorConfig(), generator(0))
    term.net.double()
    draw = generator(seed + 1)
    demos, policy = (2 * torch.randn(size, 3, generator=draw, dtype=torch.float64) for _ in range(2))
    plain.generator.set_state(term.generator.get_state())
    penalised, unpenalised = term.loss(demos, policy)[0], plain.loss(demos, policy)[0]
    # The twin has drawn the codes' noise by now; what it draws next is where between the two the slope was taken.
    mix = torch.rand((size, 1), generator=plain.generator).double()
    points = references.array(mix * demos + (1 - mix) * policy)
    theirs = weight * references.gradient_penalty(term.net, points)
    assert (penalised - unpenalised).item() == pytest.approx(theirs, rel=1e-6, abs=1e-9)


def clusters(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """64 states around (1, 1, 1) and as many around (-1, -1, -1), overlapping a little."""
    noise = torch.randn(2, 64, 3, generator=generator(seed))
    return 1 + noise[0], noise[1] - 1


@pytest.mark.parametrize("penalty", [0.0, 10.0])
@pytest.mark.parametrize("form", ["softplus", "logit", "neg-log-d"])
def test_every_form_of_the_reward_separates_two_clusters_with_and_without_penalty(form: str, penalty: float) -> None:
    term = model(bottleneck=False, learning_rate=1e-2, passes=200, gradient_penalty=penalty, reward_form=form)
    demos, policy = clusters(0)
    term.fit(encoded(demos))
    term.update(encoded(policy.view(8, 8, 3)))
    expert, learner = (term.reward(encoded(states)) for states in clusters(1))
    # The best rule there is ranks 99.3% of the pairs aright.
    assert (expert[:, None] > learner[None]).float().mean() > 0.97
    signs = {"softplus": (expert.min() > 0, learner.min() > 0), "neg-log-d": (expert.max() < 0, learner.max() < 0)}
    assert all(signs.get(form, (expert.median() > 0, learner.median() < 0)))


def test_the_penalty_keeps_the_slope_near_one() -> None:
    slopes = []
    for penalty in (0.0, 10.0):
        term = model(bottleneck=False, learning_rate=1e-2, passes=40, gradient_penalty=penalty)
        demos, policy = clusters(0)
        term.fit(encoded(demos))
        term.update(encoded(policy.view(8, 8, 3)))
        between = ((demos + policy) / 2).requires_grad_(True)
        (slope,) = torch.autograd.grad(term.net(between).logit.sum(), between)
        slopes.append(float((slope.norm(dim=-1) - 1).abs().mean()))
    assert slopes[1] < 0.25 < slopes[0]


@pytest.mark.parametrize("bottleneck", [False, True], ids=["gail", "vail"])
def test_after_some_updates_demonstrated_states_pay_more(bottleneck: bool) -> None:
    term = model(bottleneck=bottleneck, learning_rate=1e-2, passes=20)
    term.fit(encoded(torch.ones(16, 3)))
    metrics = term.update(encoded(-torch.ones(4, 4, 3)))
    there, elsewhere = (float(term.reward(encoded(x * torch.ones(1, 3)))) for x in (1.0, -1.0))
    assert there > elsewhere + 0.1
    assert metrics["disc/expert_logit"] > metrics["disc/policy_logit"]


def test_separable_states_settle_where_the_bottleneck_lets_them() -> None:
    # Solved numerically for weight 1: mu = +-0.70, sigma = 0.85, so the reward spans softplus(-0.70) to softplus(0.70).
    term = model(learning_rate=1e-2, passes=300, batch_size=512)
    term.fit(encoded(torch.ones(512, 3)))
    metrics = term.update(encoded(-torch.ones(8, 8, 3)))
    there, elsewhere = (term.net(torch.full((1, 3), x)) for x in (1.0, -1.0))
    assert there.logit.item() == pytest.approx(0.70, abs=0.1)
    assert elsewhere.logit.item() == pytest.approx(-0.70, abs=0.1)
    assert there.log_std.exp().item() == pytest.approx(0.85, abs=0.1)
    assert metrics["disc/disc_acc"] > 0.9


def test_the_default_input_is_the_state_alone_and_a_switch_adds_the_action() -> None:
    features, one, other = torch.ones(1, 3), torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    blind, seeing = model(), model(features=5, input="state-action")
    assert torch.equal(blind.reward(encoded(features, one)), blind.reward(encoded(features, other)))
    assert not torch.equal(seeing.reward(encoded(features, one)), seeing.reward(encoded(features, other)))


def test_each_pass_takes_every_demonstration_once() -> None:
    term = model(batch_size=4, passes=2)
    term.fit(encoded(torch.arange(10.0)[:, None].expand(10, 3) / 2))
    seen: list[float] = []

    def note(batch: tuple[torch.Tensor, ...]) -> dict[str, torch.Tensor]:
        seen.extend(batch[0][:, 0].tolist())
        return {}

    term._step = note
    term.update(encoded(torch.zeros(2, 2, 3)))
    assert sorted(seen[:10]) == sorted(seen[10:]) == [i / 2 for i in range(10)]


def kept(count: int, seed: int = 0, **config: int) -> list[float]:
    """Which of the demonstrated states 0, 1, ... stay."""
    term = model(seed=seed, **config)
    term.fit(encoded(torch.arange(float(count))[:, None].expand(count, 3) / 10))
    assert term.demos is not None
    return [round(10 * x) for x in term.demos[:, 0].tolist()]


def test_every_third_demonstration_is_kept_from_an_offset_that_the_seed_decides() -> None:
    chosen = [kept(10, seed, subsample=3) for seed in range(8)]
    assert chosen == [kept(10, seed, subsample=3) for seed in range(8)]
    assert {tuple(x) for x in chosen} == {(0, 3, 6, 9), (1, 4, 7), (2, 5, 8)}


def test_few_demonstrations_are_subsampled_too_but_never_to_none() -> None:
    # A batch is 128 by default; fewer than that are a set like any other.
    assert len(kept(40, subsample=20)) == 2
    assert {len(kept(2, seed, subsample=50)) for seed in range(8)} <= {1, 2}


def test_keeping_all_demonstrations_draws_no_number() -> None:
    term = model()
    before = term.generator.get_state()
    term.fit(encoded(torch.zeros(10, 3)))
    assert torch.equal(term.generator.get_state(), before)
    assert kept(10) == list(range(10))


def test_an_unheard_of_state_is_judged_like_one_at_the_limit() -> None:
    term = model()
    outlier, limit = encoded(torch.full((1, 3), 1e6)), encoded(torch.full((1, 3), 5.0))
    assert torch.equal(term.reward(outlier), term.reward(limit))


def test_a_logit_is_paid_up_to_its_limit_on_either_side() -> None:
    states = encoded(torch.randn(64, 3, generator=generator(1)))
    free, held = model(), model(logit_limit=0.1)
    for term in (free, held):
        with torch.no_grad():
            term.net.mean_head.weight.mul_(100.0)
    logit = free.net(states.features).logit.detach()
    assert float(logit.min()) < -0.1 < 0.1 < float(logit.max())
    torch.testing.assert_close(held.reward(states), imitation_reward(logit.clamp(-0.1, 0.1), "softplus"))
    torch.testing.assert_close(free.reward(states), imitation_reward(logit, "softplus"))


def test_without_demonstrations_it_says_so() -> None:
    with pytest.raises(RuntimeError, match="never given demonstrations"):
        model().update(encoded(torch.zeros(2, 2, 3)))


@settings(max_examples=25, deadline=None)
@given(size=st.integers(1, 5), seed=st.integers(0, 2**20), weight=st.floats(0.1, 20.0), norm=st.floats(0.0, 2.0))
def test_hypes_loss_agrees_with_numpy(size: int, seed: int, weight: float, norm: float) -> None:
    hype = model(bottleneck=False, seed=seed, loss="linear", gradient_penalty=weight, penalty_norm=norm)
    hype.net.double()
    demos, policy = torch.randn(2, size, 3, generator=generator(seed + 1), dtype=torch.float64)
    state = hype.generator.get_state()
    mix = torch.rand((size, 1), generator=hype.generator)
    hype.generator.set_state(state)
    loss, _ = hype.loss(demos, policy)
    expected = references.hype_loss(
        hype.net, demos.numpy(), policy.numpy(), mix.double().numpy()[:, 0], weight=weight, norm=norm
    )
    assert loss.item() == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_it_waits_for_its_rollouts_and_compares_with_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, compared = model(rollouts=3), []
    slow.fit(encoded(torch.ones(4, 3)))
    before = slow.net.trunk[0].weight.clone()
    monkeypatch.setattr(slow, "_compare", lambda policy: compared.append(policy[:, 0].tolist()) or {"learned": 1.0})
    rows = [slow.update(encoded(torch.full((2, 1, 3), float(i)))) for i in range(6)]
    assert rows == [{}, {}, {"learned": 1.0}] * 2
    assert compared == [[0.0, 0.0, 1.0, 1.0, 2.0, 2.0], [3.0, 3.0, 4.0, 4.0, 5.0, 5.0]]
    assert torch.equal(slow.net.trunk[0].weight, before)


def test_rollouts_that_wait_are_part_of_the_state() -> None:
    one, other = (model(rollouts=2, slowing=True) for _ in range(2))
    one.fit(encoded(torch.ones(4, 3)))
    for i in range(3):
        one.update(encoded(torch.full((2, 1, 3), float(i))))
    other.load_state_dict(one.state_dict())
    rows = [reward.update(encoded(torch.full((2, 1, 3), 9.0))) for reward in (one, other)]
    assert rows[0] == rows[1] != {}


def test_a_slowing_discriminator_divides_its_rate_by_the_round() -> None:
    slow = model(learning_rate=0.6, slowing=True)
    slow.fit(encoded(torch.ones(4, 3)))
    rates = []
    for _ in range(3):
        slow.update(encoded(torch.zeros(2, 1, 3)))
        rates.append(slow.optimiser.param_groups[0]["lr"])
    assert rates == pytest.approx([0.6, 0.3, 0.2])

"""The two action distributions, beside PyTorch's own and beside the frequencies of their samples."""

from __future__ import annotations

import math

import pytest
import torch
from toys import generator

from ilde.nets.distributions import Categorical, Gaussian


def test_categorical_log_probabilities_and_entropy_by_hand() -> None:
    quarter = Categorical.of_logits(torch.tensor([[math.log(1.0), math.log(3.0)]]))
    assert float(quarter.log_prob(torch.tensor([0]))) == pytest.approx(math.log(0.25))
    assert float(quarter.log_prob(torch.tensor([1]))) == pytest.approx(math.log(0.75))
    assert float(quarter.entropy()) == pytest.approx(-0.25 * math.log(0.25) - 0.75 * math.log(0.75))
    assert quarter.mode().tolist() == [1]


def test_categorical_is_pytorchs() -> None:
    logits = 3 * torch.randn(20, 6, generator=generator())
    action = torch.randint(6, (20,), generator=generator(1))
    ours, theirs = Categorical.of_logits(logits), torch.distributions.Categorical(logits=logits)
    torch.testing.assert_close(ours.log_prob(action), theirs.log_prob(action))
    torch.testing.assert_close(ours.entropy(), theirs.entropy())


def test_gaussian_is_pytorchs() -> None:
    mean, log_std = torch.randn(20, 3, generator=generator()), torch.tensor([-1.0, 0.0, 0.7])
    action = torch.randn(20, 3, generator=generator(1))
    ours = Gaussian(mean, log_std)
    theirs = torch.distributions.Independent(torch.distributions.Normal(mean, log_std.exp()), 1)
    torch.testing.assert_close(ours.log_prob(action), theirs.log_prob(action))
    torch.testing.assert_close(ours.entropy(), theirs.entropy())
    assert torch.equal(ours.mode(), mean)


def test_discrete_actions_come_as_often_as_they_should() -> None:
    probability = torch.tensor([0.1, 0.2, 0.7])
    sample = Categorical.of_logits(probability.log().expand(40_000, 3)).sample(generator())
    # Four standard errors of the largest share: 4 sqrt(0.7 * 0.3 / 40000) < 0.01.
    torch.testing.assert_close(sample.bincount() / 40_000, probability, rtol=0, atol=0.01)


def test_an_action_of_probability_zero_never_comes() -> None:
    logits = torch.tensor([0.0, -torch.inf, 0.0]).expand(10_000, 3)
    assert set(Categorical.of_logits(logits).sample(generator()).tolist()) == {0, 2}


def test_continuous_actions_have_the_mean_and_spread_they_should() -> None:
    sample = Gaussian(torch.tensor([1.0, -2.0]).expand(40_000, 2), torch.tensor([0.0, math.log(0.5)]))
    drawn = sample.sample(generator())
    torch.testing.assert_close(drawn.mean(0), torch.tensor([1.0, -2.0]), rtol=0, atol=0.02)
    torch.testing.assert_close(drawn.std(0), torch.tensor([1.0, 0.5]), rtol=0, atol=0.02)


@pytest.mark.parametrize(
    "distribution",
    [Categorical.of_logits(torch.zeros(50, 4)), Gaussian(torch.zeros(50, 2), torch.zeros(2))],
    ids=["discrete", "continuous"],
)
def test_samples_follow_from_the_generator_alone(distribution: Categorical | Gaussian) -> None:
    assert torch.equal(distribution.sample(generator(3)), distribution.sample(generator(3)))
    assert not torch.equal(distribution.sample(generator(3)), distribution.sample(generator(4)))

"""Generalised advantage estimation: by hand with both kinds of ending, and against the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import references
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import generator

from ilde.learners.returns import generalised_advantage


def column(*values: Any) -> torch.Tensor:
    return torch.tensor(values).unsqueeze(1)


def advantage(reward: torch.Tensor, **endings: torch.Tensor) -> list[float]:
    value, next_value = column(1.0, 2.0, 3.0), column(2.0, 3.0, 4.0)
    nowhere = torch.zeros_like(reward, dtype=torch.bool)
    terminated, truncated = endings.get("terminated", nowhere), endings.get("truncated", nowhere)
    result = generalised_advantage(
        reward, value, next_value, terminated=terminated, ended=terminated | truncated, discount=0.5, gae_lambda=0.5
    )
    return [round(x, 10) for x in result.squeeze(1).tolist()]


REWARD = column(1.0, 1.0, 1.0)
# Without an ending: delta = r + V'/2 - V = (1 + 1 - 1, 1 + 1.5 - 2, 1 + 2 - 3) = (1, 0.5, 0), and each step hands a
# quarter (discount * lambda) of its advantage to the one before.


def test_without_an_ending_errors_flow_back_to_the_start() -> None:
    assert advantage(REWARD) == [1 + 0.5 / 4, 0.5, 0.0]


def test_a_terminated_step_has_no_future() -> None:
    # delta_1 = 1 + 0 - 2 = -1, and nothing of step 2 reaches it.
    assert advantage(REWARD, terminated=column(False, True, False)) == [1 - 1 / 4, -1.0, 0.0]


def test_truncation_bootstraps_the_successor() -> None:
    # The same delta as without an ending, 0.5, but nothing flows back from the episode that follows.
    late_surprise = column(1.0, 1.0, 9.0)
    assert advantage(late_surprise) == [1 + (0.5 + 8 / 4) / 4, 0.5 + 8 / 4, 8.0]
    assert advantage(late_surprise, truncated=column(False, True, False)) == [1 + 0.5 / 4, 0.5, 8.0]


def test_lambda_one_gives_returns_and_lambda_zero_one_step_errors() -> None:
    flags = torch.zeros(3, 1, dtype=torch.bool)
    value, chained = column(1.0, 2.0, 3.0), column(2.0, 3.0, 4.0)
    for gae_lambda, expected in ((1.0, [1 + 0.5 + 0.25 + 4 / 8 - 1]), (0.0, [1.0])):
        result = generalised_advantage(
            REWARD, value, chained, terminated=flags, ended=flags, discount=0.5, gae_lambda=gae_lambda
        )
        assert result[0].tolist() == expected


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.float32, 1e-4)])
@settings(max_examples=30, deadline=None)
@given(
    steps=st.integers(1, 12),
    envs=st.integers(1, 4),
    seed=st.integers(0, 2**20),
    discount=st.floats(0, 1),
    gae_lambda=st.floats(0, 1),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_equals_its_definition(
    dtype: torch.dtype, tolerance: float, steps: int, envs: int, seed: int, discount: float, gae_lambda: float,
    scale: float,
) -> None:  # fmt: skip
    draw = generator(seed)
    reward, value, next_value = (scale * torch.randn(steps, envs, generator=draw, dtype=dtype) for _ in range(3))
    terminated, truncated = (torch.rand(steps, envs, generator=draw) < 0.2 for _ in range(2))
    ended = terminated | truncated
    ours = generalised_advantage(
        reward, value, next_value, terminated=terminated, ended=ended, discount=discount, gae_lambda=gae_lambda
    )
    theirs = references.advantages(reward, value, next_value, terminated, ended, discount, gae_lambda)
    assert ours.dtype == dtype
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=tolerance, atol=tolerance * scale)

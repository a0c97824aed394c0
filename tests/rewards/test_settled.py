"""What changes for good, by hand and by its definition pair by pair."""

from __future__ import annotations

import pytest
import torch

from ilde.rewards.settled import settled_change


def slowly(states: torch.Tensor, ended: torch.Tensor, span: int) -> torch.Tensor:
    """The definition, pair by pair."""
    change = torch.zeros_like(states)
    for step in range(span, len(states) - span + 1):
        if ended[step - span : step + span - 1].any():
            continue
        before, after = states[step - span : step], states[step : step + span]
        pairs = (after[:, None] - before[None]).flatten(0, 1)
        one_sided = (pairs > 0).all(0) | (pairs < 0).all(0)
        change[step] = torch.where(one_sided, pairs.abs().amin(0), 0.0)
    return change


@pytest.mark.parametrize("span", [1, 2, 3, 5, 8])
def test_what_settles_is_what_every_pair_of_states_says(span: int) -> None:
    generator = torch.Generator().manual_seed(span)
    states = torch.randn(60, 7, generator=generator).cumsum(0)
    ended = torch.rand(60, generator=generator) < 0.05
    found = settled_change(states, ended, span)
    assert bool(found.any())
    assert torch.allclose(found, slowly(states, ended, span), atol=1e-6)


def test_a_counter_is_news_and_what_moves_or_flickers_is_not() -> None:
    counter = torch.tensor([1.0] * 6 + [4.0] * 6)
    passing = torch.zeros(12).index_fill(0, torch.tensor([5, 6]), 9.0)
    flicker = torch.tensor([0.0, 9.0]).repeat(6)
    change = settled_change(torch.stack([counter, passing, flicker], 1), torch.zeros(12, dtype=torch.bool), 4)
    assert change[6].tolist() == [3, 0, 0]
    assert int((change != 0).sum()) == 1


def test_nothing_settles_across_a_death_nor_where_it_cannot_be_known() -> None:
    states, alive = torch.tensor([[0.0]] * 5 + [[1.0]] * 5), torch.zeros(10, dtype=torch.bool)
    assert settled_change(states, alive, 5).flatten().tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert not settled_change(states, alive.index_fill(0, torch.tensor([4]), True), 5).any()
    # The last state is still of the life that ends with it.
    assert bool(settled_change(states, alive.index_fill(0, torch.tensor([9]), True), 5).any())
    assert not settled_change(states, alive, 6).any()


def test_each_environment_of_a_rollout_has_its_own_changes() -> None:
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(30, 3, 4, generator=generator).cumsum(0)
    ended = torch.rand(30, 3, generator=generator) < 0.05
    found = settled_change(states, ended, 2)
    alone = [settled_change(states[:, env], ended[:, env], 2) for env in range(3)]
    assert torch.equal(found, torch.stack(alone, 1))

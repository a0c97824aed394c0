"""The records of one training step: their shape laws and what may be done to them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
import torch
from toys import rollout, transitions

from ilde.data import Rollout, ShapeError, Transitions


def test_every_field_shares_the_batch() -> None:
    batch = transitions("vector", 4, 3)
    assert batch.batch_shape == (4, 3)
    assert len(batch) == 12
    for name in ("obs", "action", "env_reward"):
        with pytest.raises(ShapeError, match=f"{name} has shape .*; its batch must be \\(4, 3\\)"):
            replace(batch, **{name: getattr(batch, name)[:3]})


def test_a_successor_has_the_shape_of_its_state() -> None:
    batch = transitions("vector", 4)
    with pytest.raises(ShapeError, match="differ"):
        replace(batch, next_obs=batch.next_obs[:, :1])


@pytest.mark.parametrize("kind", ["vector", "continuous", "image"])
def test_flattening_keeps_time_order_and_every_row_together(kind: Any) -> None:
    batch = transitions(kind, 2, 3)
    flat = batch.flatten()
    assert flat.batch_shape == (6,)
    for name in vars(batch):
        assert torch.equal(getattr(flat, name)[4], getattr(batch, name)[1, 1]), name


def test_indexing_takes_the_same_rows_of_every_field() -> None:
    batch = transitions("continuous", 6)
    chosen = batch[torch.tensor([5, 0])]
    for name in vars(batch):
        assert torch.equal(getattr(chosen, name), getattr(batch, name)[[5, 0]]), name


def test_records_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        transitions("vector", 2).obs = torch.zeros(2, 2)  # type: ignore[misc]


def test_a_rollout_is_steps_by_environments() -> None:
    data = rollout("vector", steps=4, envs=3)
    with pytest.raises(ShapeError, match=r"a rollout is \(steps, envs\); received a batch of shape \(12,\)"):
        Rollout(data.transitions.flatten(), data.truncated, data.log_prob, data.value)
    for name in ("truncated", "log_prob", "value"):
        with pytest.raises(ShapeError, match=f"{name} has shape"):
            replace(data, **{name: getattr(data, name)[0]})


def test_an_episode_ends_for_either_reason() -> None:
    no = torch.tensor([[False], [False], [False]])
    terminated, truncated = no.clone(), no.clone()
    terminated[0], truncated[2] = True, True
    zeros = torch.zeros(3, 1)
    steps = Transitions(zeros, zeros, zeros, terminated, zeros)
    assert Rollout(steps, truncated, zeros, zeros).ended.flatten().tolist() == [True, False, True]

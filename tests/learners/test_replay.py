"""The replay buffer: what it keeps, what it forgets, and that a saved one goes on in the same order."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import CPU, KINDS, Kind, generator, rollout, transitions

from ilde.data import Transitions
from ilde.learners.replay import Replay, joined
from ilde.runs import read_checkpoint, write_checkpoint


def numbered(first: int, count: int) -> Transitions:
    """Transitions that carry their number."""
    number = torch.arange(first, first + count)
    return Transitions(
        obs=number[:, None].float(), action=number, next_obs=number[:, None] + 1.0,
        terminated=number % 3 == 0, env_reward=number.float(),
    )  # fmt: skip


def held(replay: Replay) -> list[int]:
    """The numbers in a buffer, in the order of its rows."""
    rows = replay.state_dict()["rows"]
    return [] if rows is None else rows["action"].tolist()


@settings(max_examples=60, deadline=None)
@given(capacity=st.integers(1, 12), sizes=st.lists(st.integers(1, 20), max_size=6))
def test_the_latest_transitions_are_kept_in_a_ring(capacity: int, sizes: list[int]) -> None:
    replay, added = Replay(capacity, CPU), 0
    ring: list[int | None] = [None] * capacity
    for size in sizes:
        replay.add(numbered(added, size))
        for number in range(added, added + size):
            ring[number % capacity] = number
        added += size
    assert len(replay) == min(added, capacity)
    assert held(replay) == ring[: len(replay)]


def test_a_transition_stays_whole() -> None:
    replay = Replay(7, CPU)
    for first in (0, 5, 10):
        replay.add(numbered(first, 5))
    drawn = replay.sample((50,), generator())
    assert set(drawn.action.tolist()) == set(range(8, 15))
    assert torch.equal(drawn.obs[:, 0], drawn.action.float())
    assert torch.equal(drawn.next_obs, drawn.obs + 1)
    assert torch.equal(drawn.terminated, drawn.action % 3 == 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_rollout_is_kept_in_its_own_types_and_a_time_limit_is_no_end(kind: Kind) -> None:
    data, replay = rollout(kind), Replay(100, CPU)
    assert (data.truncated & ~data.transitions.terminated).any()
    replay.add(data.transitions)
    flat, rows = data.transitions.flatten(), replay.state_dict()["rows"]
    for field in fields(Transitions):
        assert rows[field.name].dtype == getattr(flat, field.name).dtype
        assert torch.equal(rows[field.name], getattr(flat, field.name))


def test_what_is_drawn_has_the_asked_for_shape_and_depends_on_the_generator_alone() -> None:
    replay = Replay(100, CPU)
    replay.add(numbered(0, 30))
    one, same, other = (replay.sample((4, 5), generator(seed)) for seed in (1, 1, 2))
    assert one.batch_shape == (4, 5)
    assert one.obs.shape == (4, 5, 1)
    assert torch.equal(one.action, same.action)
    assert not torch.equal(one.action, other.action)


def test_every_row_is_drawn_equally_often() -> None:
    replay = Replay(4, CPU)
    replay.add(numbered(0, 4))
    counts = replay.sample((40_000,), generator()).action.bincount()
    # 10,000 each, with a deviation of 87.
    assert (counts - 10_000).abs().max() < 400


def test_drawing_from_nothing_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="nothing was added"):
        Replay(4, CPU).sample((1,), generator())


@pytest.mark.parametrize("added", [0, 3, 5, 8])
def test_a_saved_buffer_goes_on_as_if_nothing_had_happened(added: int, tmp_path: Path) -> None:
    original, restored = Replay(5, CPU), Replay(99, CPU)
    if added:
        original.add(numbered(0, added))
    path = write_checkpoint(tmp_path, 0, {"replay": original.state_dict()}, header={})
    restored.load_state_dict(read_checkpoint(path)[0]["replay"])
    for replay in (original, restored):
        replay.add(numbered(added, 4))
    assert held(original) == held(restored)
    drawn: list[Any] = [replay.sample((9,), generator()).action.tolist() for replay in (original, restored)]
    assert drawn[0] == drawn[1]


def test_only_the_filled_part_is_saved() -> None:
    replay = Replay(1000, CPU)
    replay.add(transitions("image", 3))
    assert replay.state_dict()["rows"]["obs"].shape == (3, 4, 84, 84)


def test_joined_batches_keep_their_order() -> None:
    pair = joined(numbered(0, 2), numbered(10, 3))
    assert pair.action.tolist() == [0, 1, 10, 11, 12]
    grid = joined(transitions("vector", 2, 1), transitions("vector", 2, 4))
    assert grid.batch_shape == (2, 5)

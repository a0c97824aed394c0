from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from hypothesis import example, given
from hypothesis import strategies as st

from ilde.data import ShapeError, UserError
from ilde.demos import Demonstrations, Episode, Header
from ilde.demos.demonstrations import shuffle_transitions

VECTOR_SPACES = (Box(-np.inf, np.inf, (3,), np.float64), Box(-1.0, 1.0, (2,), np.float32))
FRAME_SPACES = (Box(0, 255, (4, 12, 10), np.uint8), Discrete(6))


def _episode(steps: int) -> Episode:
    return Episode(
        obs=np.arange(steps + 1, dtype=np.float32)[:, None],
        action=np.arange(steps),
        reward=np.ones(steps),
        trembled=np.zeros(steps, np.bool_),
        terminated=True,
        truncated=False,
    )


def _with_episode(demos: Demonstrations, number: int, **changes: object) -> Demonstrations:
    episodes = list(demos.episodes)
    episodes[number] = replace(episodes[number], **changes)  # type: ignore[arg-type]
    return replace(demos, episodes=tuple(episodes))


def test_lengths_and_returns_are_those_of_the_episodes(vector_demos: Demonstrations) -> None:
    returns = [sum(episode.reward.tolist()) for episode in vector_demos.episodes]
    assert vector_demos.num_transitions == 35
    assert vector_demos.mean_return == pytest.approx(sum(returns) / 3)


def test_an_episode_needs_one_observation_more_than_actions() -> None:
    with pytest.raises(ShapeError, match="3 observations for 3 rewards; expected 4"):
        replace(_episode(3), obs=np.zeros((3, 1), np.float32))


def test_a_header_must_name_every_episode(vector_demos: Demonstrations) -> None:
    with pytest.raises(ShapeError, match="header: 3 seeds for 2 episodes"):
        replace(vector_demos, episodes=vector_demos.episodes[:2])


def test_episodes_must_share_their_shapes(vector_demos: Demonstrations) -> None:
    with pytest.raises(ShapeError, match="differ in the shape"):
        _with_episode(vector_demos, 1, obs=np.zeros((6, 4)))


@pytest.mark.parametrize(("fraction", "lengths"), [(0.1, (2, 2, 2)), (0.5, (10, 2, 5)), (1.0, (20, 5, 10))])
def test_a_prefix_keeps_the_start_of_each_episode(
    vector_demos: Demonstrations, fraction: float, lengths: tuple[int, ...]
) -> None:
    prefix = vector_demos.prefix(fraction)
    assert tuple(len(episode) for episode in prefix.episodes) == lengths
    for part, whole in zip(prefix.episodes, vector_demos.episodes, strict=True):
        np.testing.assert_array_equal(part.obs, whole.obs[: len(part) + 1])
        np.testing.assert_array_equal(part.action, whole.action[: len(part)])
    assert prefix.header.fraction == fraction
    assert prefix.header.returns == vector_demos.header.returns


def test_an_episode_cut_short_has_not_ended(vector_demos: Demonstrations) -> None:
    for episode in vector_demos.prefix(0.5).episodes:
        assert not episode.terminated
        assert not episode.truncated
    assert vector_demos.prefix(1.0).episodes[0].terminated


@example(steps=100, percent=29)
@given(steps=st.integers(1, 1000), percent=st.integers(1, 100))
def test_a_prefix_of_n_percent_has_n_percent_of_the_steps(steps: int, percent: int) -> None:
    assert len(_episode(steps).prefix(percent / 100)) == min(steps, max(2, steps * percent // 100))


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.01, math.nan])
def test_a_fraction_outside_its_range_is_refused(vector_demos: Demonstrations, fraction: float) -> None:
    with pytest.raises(UserError, match="must be above 0 and at most 1"):
        vector_demos.prefix(fraction)


def test_transitions_pair_each_observation_with_its_true_successor(vector_demos: Demonstrations) -> None:
    batch = vector_demos.transitions()
    second = vector_demos.episodes[1]
    np.testing.assert_array_equal(batch.obs[20:25], second.obs[:5].astype(np.float32))
    np.testing.assert_array_equal(batch.next_obs[20:25], second.obs[1:].astype(np.float32))
    np.testing.assert_array_equal(batch.action[20:25], second.action)
    assert batch.obs.dtype == torch.float32


def test_transitions_terminate_only_where_an_episode_terminated(vector_demos: Demonstrations) -> None:
    assert vector_demos.transitions().terminated.nonzero().flatten().tolist() == [19, 34]
    assert not vector_demos.prefix(0.5).transitions().terminated.any()


def test_transitions_hide_the_true_reward(vector_demos: Demonstrations) -> None:
    assert vector_demos.transitions().env_reward.isnan().all()


def test_images_and_discrete_actions_keep_their_types(frame_demos: Demonstrations) -> None:
    batch = frame_demos.transitions(torch.device("cpu"))
    assert (batch.obs.dtype, batch.action.dtype) == (torch.uint8, torch.int64)
    assert batch.obs.shape == (9, 4, 12, 10)


def test_shuffling_keeps_the_values_and_breaks_the_pairs(vector_demos: Demonstrations) -> None:
    batch = vector_demos.transitions()
    shuffled = shuffle_transitions(batch, torch.Generator().manual_seed(0))
    orders = []
    for name in ("obs", "action", "next_obs"):
        before, after = getattr(batch, name), getattr(shuffled, name)
        orders.append([int((before == row).all(1).nonzero()[0, 0]) for row in after])
        assert sorted(orders[-1]) == list(range(35))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert sum(a == b for a, b in zip(orders[one], orders[other], strict=True)) < 10


def test_shuffling_keeps_the_ending_with_its_successor(vector_demos: Demonstrations) -> None:
    batch = vector_demos.transitions()
    shuffled = shuffle_transitions(batch, torch.Generator().manual_seed(0))
    last = batch.next_obs[batch.terminated]
    assert {tuple(row.tolist()) for row in shuffled.next_obs[shuffled.terminated]} == {tuple(r.tolist()) for r in last}


def test_the_content_hash_sees_every_part_but_not_the_header(vector_demos: Demonstrations) -> None:
    first = vector_demos.episodes[0]
    changed = [
        _with_episode(vector_demos, 0, obs=first.obs + 1e-9),
        _with_episode(vector_demos, 0, action=-first.action),
        _with_episode(vector_demos, 0, reward=first.reward + 1),
        _with_episode(vector_demos, 0, trembled=~first.trembled),
        _with_episode(vector_demos, 0, terminated=False),
        replace(vector_demos, env_id="Other-v0", header=replace(vector_demos.header, env_id="Other-v0")),
    ]
    assert len({vector_demos.content_hash, *(demos.content_hash for demos in changed)}) == 7
    renamed = replace(vector_demos, header=replace(vector_demos.header, command="another"))
    assert renamed.content_hash == vector_demos.content_hash


def test_the_content_hash_stays_the_same_for_ever() -> None:
    content = (
        b"'Fixed-v0'\n(True, False, False, None)\n"
        b"<f4 (4, 1)\n"
        + struct.pack("<4f", 0, 1, 2, 3)
        + b"<i8 (3,)\n"
        + struct.pack("<3q", 0, 1, 2)
        + b"<f8 (3,)\n"
        + struct.pack("<3d", 1, 1, 1)
        + b"|b1 (3,)\n"
        + bytes(3)
    )
    assert _fixed_demos().content_hash == hashlib.sha256(content).hexdigest()


def test_matching_demonstrations_pass(vector_demos: Demonstrations, frame_demos: Demonstrations) -> None:
    vector_demos.check_matches("Toy-v0", *VECTOR_SPACES, "a.npz")
    frame_demos.check_matches("Toy-v0", *FRAME_SPACES, "a.npz")


def test_continuous_actions_outside_the_box_pass(vector_demos: Demonstrations) -> None:
    assert np.abs(vector_demos.episodes[0].action).max() > 1.0
    vector_demos.check_matches("Toy-v0", *VECTOR_SPACES, "a.npz")


def test_another_environment_is_refused(frame_demos: Demonstrations) -> None:
    pong = replace(frame_demos, env_id="ALE/Pong-v5", header=replace(frame_demos.header, env_id="ALE/Pong-v5"))
    with pytest.raises(UserError) as error:
        pong.check_matches("ALE/Breakout-v5", *FRAME_SPACES, "a.npz")
    assert str(error.value) == (
        "a.npz: recorded on ALE/Pong-v5, this run is ALE/Breakout-v5; "
        "record there, or name the environment as the recording does"
    )


def test_another_observation_shape_or_type_is_refused(frame_demos: Demonstrations) -> None:
    with pytest.raises(UserError) as error:
        frame_demos.check_matches("Toy-v0", Box(0, 255, (4, 84, 84), np.uint8), Discrete(6), "a.npz")
    assert str(error.value) == "a.npz: observations (4, 12, 10) uint8; the environment gives (4, 84, 84) uint8"
    with pytest.raises(UserError, match=r"observations .* uint8; the environment gives .* float32"):
        frame_demos.check_matches("Toy-v0", Box(0, 255, (4, 12, 10), np.float32), Discrete(6), "a.npz")


def test_another_kind_of_action_is_refused(vector_demos: Demonstrations) -> None:
    with pytest.raises(UserError) as error:
        vector_demos.check_matches("Toy-v0", VECTOR_SPACES[0], Discrete(6), "a.npz")
    assert str(error.value) == "a.npz: actions (2,) float32; the environment takes () int64"


@pytest.mark.parametrize("action", [7, 6, -1])
def test_an_action_out_of_range_is_named_with_its_place(frame_demos: Demonstrations, action: int) -> None:
    actions = frame_demos.episodes[1].action.copy()
    actions[2] = action
    with pytest.raises(UserError) as error:
        _with_episode(frame_demos, 1, action=actions).check_matches("Toy-v0", *FRAME_SPACES, "a.npz")
    assert str(error.value) == f"a.npz: episode 1 step 2: action {action} not in Discrete(6)"


@pytest.mark.parametrize(("value", "word"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_a_number_that_is_not_finite_is_named_with_its_place(
    vector_demos: Demonstrations, value: float, word: str
) -> None:
    for field, what in (("obs", "observation"), ("action", "action"), ("reward", "reward")):
        array = getattr(vector_demos.episodes[2], field).copy()
        array[4] = value
        with pytest.raises(UserError) as error:
            _with_episode(vector_demos, 2, **{field: array}).check_matches("Toy-v0", *VECTOR_SPACES, "a.npz")
        assert str(error.value) == f"a.npz: episode 2 step 4: {what} contains {word}"


def _fixed_demos() -> Demonstrations:
    header = Header(
        env_id="Fixed-v0",
        simulator_versions={},
        recorder="random",
        seeds=(None,),
        returns=(3.0,),
        lives=(1,),
        until="episode",
        greedy=False,
        tremble=0.0,
        created="",
        command="",
    )
    return Demonstrations("Fixed-v0", (_episode(3),), header)

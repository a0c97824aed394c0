"""Plain arrays: three steps and two, whose observations count 0, 1, 2, ... so that every successor is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign_files import imported
from gymnasium.spaces import Box, Discrete

from ilde.data import UserError
from ilde.demos import Demonstrations, load, save
from ilde.demos.importing import Target, import_demos
from ilde.prepare import demonstrator_return

COUNTING = Target("Toy-v0", Box(-np.inf, np.inf, (1,), np.float32), Discrete(3))
OBS = np.array([[0], [1], [2], [10], [11]], np.float32)
NEXT_OBS = np.array([[1], [2], [3], [11], [12]], np.float32)
WHOLE_OBS = np.array([[0], [1], [2], [3], [10], [11], [12]], np.float32)
ACTIONS = np.array([0, 1, 2, 2, 1])
REWARDS = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
TERMINALS = np.array([False, False, True, False, False])
TIMEOUTS = np.array([False, False, False, False, True])


def _import(path: Path, **arrays: Any) -> tuple[Demonstrations, tuple[str, ...]]:
    np.savez(path, **arrays)
    result = imported(path, COUNTING)
    assert result.source_format == "npz"
    return result.demos, result.notes


def _refusal(path: Path, **arrays: Any) -> str:
    with pytest.raises(UserError) as error:
        _import(path, **arrays)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    return message.removeprefix(f"{path}: ")


def _assert_all_five_steps(demos: Demonstrations) -> None:
    first, second = demos.episodes
    assert [first.obs.ravel().tolist(), second.obs.ravel().tolist()] == [[0, 1, 2, 3], [10, 11, 12]]
    assert [first.action.tolist(), second.action.tolist()] == [[0, 1, 2], [2, 1]]
    assert [first.reward.tolist(), second.reward.tolist()] == [[1, 2, 4], [8, 16]]
    assert [first.terminated, first.truncated, second.terminated, second.truncated] == [True, False, False, True]
    assert demos.header.returns == (7.0, 24.0)


@pytest.mark.parametrize(
    "arrays",
    [
        {"observations": OBS, "next_observations": NEXT_OBS, "terminals": TERMINALS, "timeouts": TIMEOUTS},
        {"obs": OBS, "next_obs": NEXT_OBS, "terminateds": TERMINALS, "truncations": TIMEOUTS, "lengths": [3, 2]},
        {"obs": OBS, "next_obs": NEXT_OBS, "dones": TERMINALS | TIMEOUTS, "timeouts": TIMEOUTS},
        {"obs": WHOLE_OBS, "terminated": TERMINALS, "truncated": TIMEOUTS},
        {"obs": WHOLE_OBS, "terminals": TERMINALS, "timeouts": TIMEOUTS, "episode_starts": [1, 0, 0, 1, 0]},
        {"obs": WHOLE_OBS, "terminals": TERMINALS.astype(float), "timeouts": TIMEOUTS[:, None], "episode_ends": [3, 5]},
    ],
    ids=["d4rl", "lengths", "dones", "one more per episode", "starts", "ends"],
)
def test_every_way_of_storing_episodes_gives_the_same_transitions(path: Path, arrays: dict[str, Any]) -> None:
    demos, notes = _import(path, actions=ACTIONS, rewards=REWARDS, **arrays)
    _assert_all_five_steps(demos)
    assert notes == ()


def test_a_last_step_without_successor_is_dropped_and_said_to_be(path: Path) -> None:
    demos, notes = _import(path, obs=OBS, acts=ACTIONS, rews=REWARDS, terminals=TERMINALS, timeouts=TIMEOUTS)
    assert [episode.obs.ravel().tolist() for episode in demos.episodes] == [[0, 1, 2], [10, 11]]
    assert [episode.action.tolist() for episode in demos.episodes] == [[0, 1], [2]]
    assert not any(episode.terminated or episode.truncated for episode in demos.episodes)
    assert demos.header.returns == (7.0, 24.0)
    assert notes == ("dropped the last step of each episode (2 in all): its successor is not stored",)


def test_an_episode_that_loses_its_only_step_vanishes(path: Path) -> None:
    demos, _ = _import(path, obs=OBS, actions=ACTIONS, rewards=REWARDS, episode_lengths=[3, 1, 1])
    assert [len(episode) for episode in demos.episodes] == [2]
    assert demos.header.returns == (7.0,)


def test_steps_that_do_not_go_on_are_cut_apart(path: Path) -> None:
    demos, notes = _import(path, obs=OBS, next_obs=NEXT_OBS, actions=ACTIONS, rewards=REWARDS)
    assert [len(episode) for episode in demos.episodes] == [3, 2]
    assert notes == ("no terminations are marked: no episode is taken to have ended",)


def test_dones_alone_are_terminations_and_said_to_be(path: Path) -> None:
    demos, notes = _import(path, obs=WHOLE_OBS, actions=ACTIONS, rewards=REWARDS, dones=TERMINALS | TIMEOUTS)
    assert [episode.terminated for episode in demos.episodes] == [True, True]
    assert notes == (
        "this format does not tell time limits from terminations: every marked end is taken for a termination",
    )


def test_missing_rewards_and_unknown_entries_are_said(path: Path) -> None:
    demos, notes = _import(path, obs=WHOLE_OBS, actions=ACTIONS, terminals=TERMINALS, qpos=OBS)
    assert demos.header.returns == ()
    assert demonstrator_return(demos) is None
    assert notes == (
        "ignored entries 'qpos'",
        "no rewards: what the demonstrator scores is not known, so nothing will be compared with it",
    )
    save(demos, path)
    assert load(path).header.returns == ()


def test_actions_beyond_the_bounds_are_kept_and_said(path: Path) -> None:
    np.savez(path, obs=WHOLE_OBS, actions=np.array([[0.5], [3], [1], [-2], [0]], np.float32), terminals=TERMINALS)
    target = Target("Toy-v0", COUNTING.obs_space, Box(-1, 1, (1,), np.float32))
    result = import_demos(path, target, created="", command="")
    assert result.demos.episodes[0].action.ravel().tolist() == [0.5, 3, 1]
    assert "actions beyond the environment's bounds, kept as recorded: 2" in result.notes


def test_other_types_become_the_environments_own(path: Path) -> None:
    arrays = {"terminals": TERMINALS, "timeouts": TIMEOUTS}
    demos, notes = _import(
        path,
        obs=np.asfortranarray(WHOLE_OBS.astype(">f8")),
        actions=ACTIONS[:, None].astype(float),
        rewards=REWARDS[:, None].astype(np.float32),
        **arrays,
    )
    _assert_all_five_steps(demos)
    assert (demos.episodes[0].obs.dtype, demos.episodes[0].action.dtype) == (np.float32, np.int64)
    assert notes == ()


def test_rounding_is_said(path: Path) -> None:
    obs = WHOLE_OBS.astype(np.float64) + 0.1
    demos, notes = _import(path, obs=obs, actions=ACTIONS, rewards=REWARDS, terminals=TERMINALS)
    np.testing.assert_array_equal(demos.episodes[1].obs[2], np.float32([12.1]))
    assert notes == ("observations rounded from float64 to float32, as the environment gives them",)


def test_the_header_tells_the_source(path: Path) -> None:
    demos, _ = _import(path, obs=WHOLE_OBS, actions=ACTIONS, rewards=REWARDS, terminals=TERMINALS)
    assert demos.header.recorder.startswith("imported from npz a.npz, sha256 ")
    assert (demos.env_id, demos.header.seeds, demos.header.demonstrator) == ("Toy-v0", (None, None), None)
    save(demos, path)
    assert load(path).content_hash == demos.content_hash


STEPS = {"actions": ACTIONS, "rewards": REWARDS}


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"obs": OBS}, "no entry 'actions' or 'acts' or 'action'"),
        ({"obs": OBS, **STEPS}, "no episode boundaries: add an array 'episode_lengths', 'terminals' or 'timeouts'"),
        ({"obs": OBS, "observations": OBS, **STEPS}, "'observations' and 'obs' mean the same; keep one of them"),
        (
            {"obs": OBS[:4], **STEPS, "terminals": TERMINALS},
            "4 observations for 5 actions in 2 episodes; expected 5 (one per action) or 7 (one more per episode)",
        ),
        (
            {"obs": OBS, "next_obs": NEXT_OBS[:4], **STEPS},
            "observations (5, 1), next observations (4, 1) and 5 actions do not go together",
        ),
        ({"obs": OBS, "actions": ACTIONS, "rewards": REWARDS[:3]}, "rewards (3,) float64; expected 5 numbers"),
        ({"obs": OBS, **STEPS, "terminals": [0, 0, 2, 0, 0]}, "terminations hold values other than 0 and 1"),
        ({"obs": OBS, **STEPS, "episode_lengths": [3, 3]}, "the episode lengths add up to 6; there are 5 actions"),
        ({"obs": OBS, **STEPS, "episode_lengths": [5, 0]}, "episode 1: no transitions (length 0)"),
        ({"obs": OBS, **STEPS, "episode_lengths": [7, -2]}, "episode 1: no transitions (length -2)"),
        ({"obs": OBS, **STEPS, "episode_ends": [9, 5]}, "episode 1: no transitions (length -4)"),
        (
            {"obs": OBS, **STEPS, "episode_lengths": [3, 2], "episode_ends": [3, 5]},
            "'episode_lengths' and 'episode_ends' both set the episodes; keep one of them",
        ),
        (
            {"obs": OBS, **STEPS, "episode_starts": [0, 1, 0, 0, 0]},
            "'episode_starts' must mark the first step of each episode, step 0 too",
        ),
        (
            {"obs": OBS, **STEPS, "episode_lengths": [1, 4], "terminals": TERMINALS},
            "episode 1 step 1: marked as an end inside its episode",
        ),
        (
            {"obs": OBS, "next_obs": NEXT_OBS, **STEPS, "episode_lengths": [5]},
            "episode 0 step 2: its next observation is not the observation of the step after it",
        ),
        ({"obs": OBS[:0], "actions": ACTIONS[:0]}, "no transitions; need at least 2"),
        ({"obs": OBS[:2], "actions": ACTIONS[:2], "episode_lengths": [2]}, "1 transition; need at least 2"),
        ({"obs": np.zeros((6, 2)), **STEPS}, "observations (2,) float64; the environment gives (1,) float32"),
        (
            {"obs": np.zeros((6, 1)), "actions": ACTIONS + 0.5},
            "actions () float64; the environment takes () int64",
        ),
        (
            {"obs": np.zeros((6, 1)), "actions": [0, 1, 2, 3, 0]},
            "episode 0 step 3: action 3 not in Discrete(3)",
        ),
        (
            {"obs": np.zeros((6, 1)), "actions": [0, 1, np.nan, 2, 0]},
            "episode 0 step 2: action contains nan",
        ),
        ({"obs": np.full((6, 1), 1e300), "actions": ACTIONS}, "episode 0 step 0: observation contains inf"),
        ({"obs": np.array(["a"] * 6), "actions": ACTIONS}, "observations (6,) <U1; expected numbers, one row per step"),
        ({"obs": WHOLE_OBS, **STEPS, "env_id": "Other-v0"}, "recorded on Other-v0, --env is Toy-v0"),
    ],
)
def test_contradictions_are_refused_in_one_line(path: Path, arrays: dict[str, Any], reason: str) -> None:
    assert _refusal(path, **arrays) == reason


def test_nan_is_named_with_its_place(path: Path) -> None:
    poisoned = NEXT_OBS.copy()
    poisoned[3] = np.nan
    broken = OBS.copy()
    broken[4] = np.nan
    arrays = {"obs": broken, "next_obs": poisoned, **STEPS, "terminals": TERMINALS}
    assert _refusal(path, **arrays) == "episode 1 step 1: observation contains nan"

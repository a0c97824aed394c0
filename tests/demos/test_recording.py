from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from ilde.data import UserError
from ilde.demos import record
from ilde.demos.recording import Provenance, random_policy
from ilde.envs.base import Score, State, Step, episode_seed
from ilde.prepare import demonstrator_return

PROVENANCE = Provenance(
    recorder="test", greedy=True, simulator_versions={"toy": "1"}, created="2025-01-01", command="record", seed=7
)


class TwoLives:
    """A game of six steps whose first life ends at the third; observations are (game, step), one buffer reused."""

    num_envs = 1
    env_id = "TwoLives-v0"
    obs_space = Box(0, 1000, (2,), np.float32)
    resume_mode = "exact"

    def __init__(self, action_space: Discrete | Box | None = None, time_limit: bool = False) -> None:
        self.action_space = action_space or Discrete(4)
        self.time_limit = time_limit
        self.game, self.time = 0, 0
        self.taken: list[Any] = []
        self._next_obs = np.zeros((1, 2), np.float32)

    def reset(self) -> np.ndarray:
        self.game, self.time = 0, 0
        return np.array([[0, 0]], np.float32)

    def step(self, action: np.ndarray) -> Step:
        assert action.shape == (1, *self.action_space.shape)
        assert action.dtype == self.action_space.dtype
        self.taken.append(action[0].copy())
        self.time += 1
        self._next_obs[0] = (self.game, self.time)
        over = self.time == 6
        ended = self.time == 3 or over
        scores = (Score(0, 60.0, 6),) if over else ()
        if over:
            self.game, self.time = self.game + 1, 0
        return Step(
            obs=np.array([[self.game, self.time]], np.float32),
            next_obs=self._next_obs,
            reward=np.array([10.0]),
            terminated=np.array([ended and not (over and self.time_limit)]),
            truncated=np.array([over and self.time_limit]),
            scores=scores,
        )

    def state(self) -> State:
        return {}

    def restore(self, state: State) -> np.ndarray:
        return self.reset()

    def close(self) -> None:
        return None


def _always(action: int) -> Any:
    return lambda obs: np.full(len(obs), action)


def _record(envs: TwoLives, act: Any, **changes: Any) -> Any:
    options = {"episodes": 2, "until": "episode", "tremble": 0.0, "generator": np.random.default_rng(0)}
    return record(envs, act, **(options | {"provenance": PROVENANCE} | changes))


def test_a_whole_game_ends_with_its_true_successor() -> None:
    demos = _record(TwoLives(), _always(2))
    for game, episode in enumerate(demos.episodes):
        assert episode.obs.tolist() == [[game, step] for step in range(7)]
        assert episode.action.tolist() == [2] * 6
        assert episode.terminated
        assert not episode.truncated
        assert not episode.life_lost
    assert demos.header.returns == (60.0, 60.0)
    assert demos.header.lives == (2, 2)


def test_a_life_ends_with_its_true_successor_and_the_next_recording_is_a_first_life_too() -> None:
    envs = TwoLives()
    demos = _record(envs, _always(2), until="life")
    assert [episode.obs.tolist() for episode in demos.episodes] == [[[g, step] for step in range(4)] for g in (0, 1)]
    assert all(episode.terminated and episode.life_lost for episode in demos.episodes)
    assert demos.header.returns == (30.0, 30.0)
    assert demos.header.lives == (1, 1)
    assert len(envs.taken) == 6 + 3
    # What a life is worth says nothing of a game.
    assert demonstrator_return(demos) is None
    assert demonstrator_return(_record(TwoLives(), _always(2))) == 60.0


def test_a_time_limit_is_recorded_as_a_truncation() -> None:
    episode = _record(TwoLives(time_limit=True), _always(0), episodes=1).episodes[0]
    assert (episode.terminated, episode.truncated) == (False, True)


def test_only_the_seed_that_is_certain_is_claimed() -> None:
    assert _record(TwoLives(), _always(0)).header.seeds == (episode_seed(7, 0, 0), None)


def test_without_trembling_every_action_is_the_chosen_one() -> None:
    for episode in _record(TwoLives(), _always(3), tremble=0.0, episodes=20).episodes:
        assert not episode.trembled.any()
        assert (episode.action == 3).all()


def test_trembling_always_is_a_uniformly_random_policy() -> None:
    demos = _record(TwoLives(), _always(3), tremble=1.0, episodes=200)
    actions = np.concatenate([episode.action for episode in demos.episodes])
    assert all(episode.trembled.all() for episode in demos.episodes)
    # 1200 draws of probability 1/4: standard deviation 15.
    assert np.abs(np.bincount(actions, minlength=4) - 300).max() < 75


def test_the_mask_marks_the_trembles_and_the_executed_action_is_stored() -> None:
    envs = TwoLives(Discrete(1000))
    demos = _record(envs, _always(7), tremble=0.3, episodes=200)
    actions = np.concatenate([episode.action for episode in demos.episodes])
    trembled = np.concatenate([episode.trembled for episode in demos.episodes])
    assert actions.tolist() == envs.taken
    assert (actions[~trembled] == 7).all()
    assert (actions[trembled] == 7).mean() < 0.02
    # 1200 draws of probability 0.3: standard deviation 16.
    assert abs(int(trembled.sum()) - 360) < 80


def test_continuous_trembles_fill_the_box() -> None:
    space = Box(np.array([-1.0, 2.0], np.float32), np.array([1.0, 6.0], np.float32))
    demos = _record(TwoLives(space), lambda obs: np.array([[9.0, 9.0]]), tremble=1.0, episodes=100)
    actions = np.concatenate([episode.action for episode in demos.episodes])
    assert actions.dtype == np.float32
    np.testing.assert_allclose(actions.min(0), [-1.0, 2.0], atol=0.1)
    np.testing.assert_allclose(actions.max(0), [1.0, 6.0], atol=0.1)


def test_the_same_generator_gives_the_same_recording() -> None:
    first, second = (_record(TwoLives(), _always(1), tremble=0.5) for _ in range(2))
    assert first.content_hash == second.content_hash


def test_the_random_policy_respects_where_actions_start() -> None:
    act = random_policy(Discrete(3, start=5), np.random.default_rng(0))
    assert set(act(np.zeros((100, 2))).tolist()) == {5, 6, 7}


def test_without_bounds_there_is_no_random_action() -> None:
    with pytest.raises(UserError, match="without bounds"):
        random_policy(Box(-np.inf, np.inf, (2,)), np.random.default_rng(0))


@pytest.mark.parametrize(("option", "value"), [("episodes", 0), ("tremble", 1.5), ("tremble", float("nan"))])
def test_impossible_wishes_are_refused(option: str, value: float) -> None:
    with pytest.raises(UserError, match=f"{option} {value}"):
        _record(TwoLives(), _always(0), **{option: value})

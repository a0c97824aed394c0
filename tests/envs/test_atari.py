"""Atari batches: lives, whole games, and exact restoring by replay."""

from __future__ import annotations

import os
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ilde.envs import Score
from ilde.envs import atari as atari_module
from ilde.envs.atari import NICENESS, AtariBatch

FIRE = 1


NATIVE = SimpleNamespace(
    single_observation_space=gym.spaces.Box(0, 255, (4, 84, 84), np.uint8), single_action_space=gym.spaces.Discrete(4)
)
"""What a batch asks a simulator before it plays."""


def play(envs: AtariBatch, steps: int, seed: int = 0) -> list[Any]:
    envs.reset()
    actions = np.random.default_rng(seed).integers(envs.action_space.n, size=(steps, envs.num_envs))
    return [envs.step(action) for action in actions]


@pytest.fixture(scope="module")
def breakout_steps() -> list[Any]:
    envs = AtariBatch("breakout", 3, seed=0)
    steps = play(envs, 450)
    envs.close()
    return steps


def test_frames_are_four_stacked_grey_images(breakout_steps: list[Any]) -> None:
    assert breakout_steps[0].obs.shape == (3, 4, 84, 84)
    assert breakout_steps[0].obs.dtype == np.uint8


def test_a_lost_life_ends_the_training_episode_and_the_game_plays_on(breakout_steps: list[Any]) -> None:
    lost_lives = 0
    for step, following in pairwise(breakout_steps):
        finished = {score.env for score in step.scores}
        for env in set(np.flatnonzero(step.terminated).tolist()) - finished:
            lost_lives += 1
            np.testing.assert_array_equal(step.obs[env], step.next_obs[env])
            np.testing.assert_array_equal(following.next_obs[env, :3], step.obs[env, 1:])
    games = sum(len(step.scores) for step in breakout_steps)
    assert games >= 3
    assert 4 * games <= lost_lives <= 4 * (games + 3), "a game of Breakout has five lives"


def test_the_last_frame_of_a_game_is_its_true_successor(breakout_steps: list[Any]) -> None:
    ends = [(t, score.env) for t, step in enumerate(breakout_steps) for score in step.scores]
    assert ends
    for t, env in ends:
        step = breakout_steps[t]
        assert step.terminated[env]
        np.testing.assert_array_equal(step.next_obs[env, :3], breakout_steps[t - 1].obs[env, 1:])
        assert not np.array_equal(step.obs[env], step.next_obs[env])


def test_a_score_is_the_raw_return_of_a_whole_game(breakout_steps: list[Any]) -> None:
    since = np.zeros(3)
    lengths = np.zeros(3, dtype=int)
    totals = []
    for step in breakout_steps:
        since += step.reward
        lengths += 1
        for score in step.scores:
            assert (score.total, score.length) == (since[score.env], lengths[score.env])
            since[score.env] = lengths[score.env] = 0
            totals.append(score.total)
    assert max(totals) > 0


def test_rewards_are_not_clipped() -> None:
    rewards = {float(reward) for step in play(AtariBatch("ALE/Qbert-v5", 2, seed=0), 260) for reward in step.reward}
    assert rewards == {0.0, 25.0}


class ScriptedGame:
    """Stands in for the simulator: frames show the time, lives and endings are given."""

    single_observation_space = gym.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    single_action_space = gym.spaces.Discrete(2)

    def __init__(self, first_lives: int, script: list[tuple[int, bool, bool]]) -> None:
        self.first_lives = first_lives
        self.script = iter(script)
        self.time = 0

    def frames(self, value: int) -> Any:
        return np.full((1, 4, 84, 84), value, dtype=np.uint8)

    def reset(self, **_: Any) -> Any:
        return self.frames(0), {"lives": np.array([self.first_lives])}

    def send(self, _: Any) -> None:
        self.time += 1

    def recv(self) -> Any:
        lives, terminated, truncated = next(self.script)
        info = {"lives": np.array([lives])}
        if terminated or truncated:
            info["final_obs"] = self.frames(100 + self.time)
        return self.frames(self.time), np.array([10]), np.array([terminated]), np.array([truncated]), info


def test_only_a_decrease_of_lives_is_a_death(monkeypatch: pytest.MonkeyPatch) -> None:
    rises, dies, game_over, plays, time_is_up, plays_on = (
        (4, False, False),
        (3, False, False),
        (1, True, False),  # the new game already shows its own lives, fewer than the old one had
        (4, False, False),
        (2, False, True),
        (2, False, False),
    )
    game = ScriptedGame(1, [rises, dies, game_over, plays, time_is_up, plays_on])
    monkeypatch.setattr(atari_module, "_native_env", lambda *_: game)
    envs = AtariBatch("DemonAttack", 1, seed=0)
    envs.reset()
    steps = [envs.step(np.array([0])) for _ in range(6)]
    assert [bool(step.terminated[0]) for step in steps] == [False, True, True, False, False, False]
    assert [bool(step.truncated[0]) for step in steps] == [False, False, False, False, True, False]
    assert [step.scores for step in steps] == [(), (), (Score(0, 30.0, 3),), (), (Score(0, 20.0, 2),), ()]
    assert [int(step.next_obs.max()) for step in steps] == [1, 2, 103, 4, 105, 6]
    assert [int(step.obs.max()) for step in steps] == [1, 2, 3, 4, 5, 6]
    assert envs.lives.tolist() == [2]


def test_a_frame_limit_truncates_and_scores_the_game(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atari_module, "MAX_FRAMES_PER_GAME", 400)
    steps = play(AtariBatch("Pong", 1, seed=0), 110)
    ends = [step for step in steps if step.truncated[0]]
    assert len(ends) == 1
    assert not ends[0].terminated[0]
    assert len(ends[0].scores) == 1
    assert not np.array_equal(ends[0].obs, ends[0].next_obs)


@pytest.mark.parametrize(
    "game",
    ["BeamRider", "Qbert", *(pytest.param(g, marks=pytest.mark.slow) for g in ("BattleZone", "Krull", "StarGunner"))],
)
def test_a_policy_without_chance_plays_only_four_games(game: str) -> None:
    """No-op starts of 1 to 30 frames shift a game in time, and little else is left of them."""
    envs = AtariBatch(game, 12, seed=0)
    obs, states = envs.reset(), [set[bytes]() for _ in range(12)]
    for _ in range(200):
        for seen, frames in zip(states, obs, strict=True):
            seen.add(frames.tobytes())
        obs = envs.step(obs.reshape(12, -1).sum(1, dtype=np.int64) % envs.action_space.n).obs
    envs.close()
    kinds: list[set[bytes]] = []
    for seen in states:
        if not any(len(seen & kind) > len(seen) // 2 for kind in kinds):
            kinds.append(seen)
    assert len(kinds) == 4


def test_groups_change_no_game() -> None:
    whole, halves = (AtariBatch("Breakout", 3, seed=3, num_groups=groups, reseed_after=100) for groups in (1, 2))
    assert halves.groups == (slice(0, 1), slice(1, 3))
    one, other = play(whole, 300), play(halves, 300)
    assert sum(len(step.scores) for step in one) >= 3
    for left, right in zip(one, other, strict=True):
        assert left.scores == right.scores
        for name in ("obs", "next_obs", "reward", "terminated", "truncated"):
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


@pytest.mark.parametrize(
    ("cores", "games", "groups", "threads"),
    [(16, 32, 1, 16), (16, 8, 4, 4), (16, 32, 4, 4), (16, 128, 4, 8), (16, 128, 1, 16), (6, 32, 4, 3), (1, 32, 4, 1)],
)
def test_threads_of_several_groups_share_cores_where_each_has_two_games_to_step(
    monkeypatch: pytest.MonkeyPatch, cores: int, games: int, groups: int, threads: int
) -> None:
    asked = []
    monkeypatch.setattr(atari_module, "usable_cores", lambda: list(range(cores)))
    monkeypatch.setattr(
        atari_module, "_native_env", lambda game, num_envs, num_threads: asked.append(num_threads) or NATIVE
    )
    AtariBatch("Breakout", games, seed=0, num_groups=groups)
    assert asked == [threads] * groups


def test_a_state_saved_in_groups_goes_on_without_them() -> None:
    halves = AtariBatch("Breakout", 2, seed=3, num_groups=2)
    play(halves, 150)
    whole = AtariBatch("Breakout", 2, seed=3)
    whole.restore(halves.state())
    for _ in range(100):
        action = np.array([1, 2])
        np.testing.assert_array_equal(whole.step(action).obs, halves.step(action).obs)


def test_games_that_stand_at_their_beginning_are_not_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    envs, loaded = AtariBatch("Breakout", 2, seed=3), []
    monkeypatch.setattr(envs, "_seed", lambda due, seed=envs._seed: (loaded.append(int(due.sum())), seed(due)))
    first = envs.reset()
    assert np.array_equal(envs.reset(), first)
    assert loaded == [2]
    envs.step(np.ones(2, dtype=np.int64))
    assert np.array_equal(envs.reset(), first)
    assert loaded == [2, 2]
    envs.close()


@pytest.mark.parametrize("reseed_after", [100, 8192])
def test_restoring_is_exact_across_game_overs(reseed_after: int, assert_restores_exactly: Any) -> None:
    make = partial(AtariBatch, "Breakout", 2, seed=3, reseed_after=reseed_after)
    steps = assert_restores_exactly(make, before=400, after=200)
    assert sum(len(step.scores) for step in steps) >= 3


def test_copies_are_seeded_anew_at_the_first_game_over_after_the_limit() -> None:
    envs = AtariBatch("Breakout", 2, seed=3, reseed_after=250)
    steps = play(envs, 450)
    ends = [[t + 1 for t, step in enumerate(steps) if any(s.env == env for s in step.scores)] for env in range(2)]
    seeded = [next(t for t in times if t >= 250) for times in ends]
    assert any(times[0] < 250 for times in ends)
    state = envs.state()
    assert state["course"]["seedings"].tolist() == [1, 1]
    assert state["course"]["log"]["lengths"].tolist() == [450 - t for t in seeded]


def test_a_replay_that_leads_elsewhere_starts_fresh_games(caplog: Any) -> None:
    original, restored = (AtariBatch("Breakout", 2, seed=0) for _ in range(2))
    first = original.reset()
    for _ in range(20):
        original.step(np.array([FIRE, FIRE]))
    state = original.state()
    state["obs"] = state["obs"] ^ 1
    obs = restored.restore(state)
    assert restored.resume_mode == "fresh-episodes"
    assert not np.array_equal(obs, first)
    assert restored.state()["course"]["log"]["lengths"].tolist() == [0, 0]
    assert restored.state()["course"]["tally"]["lengths"].tolist() == [0, 0]
    assert "new ones start" in caplog.text


def test_an_action_out_of_range_raises_instead_of_hanging() -> None:
    envs = AtariBatch("Breakout", 2, seed=0)
    envs.reset()
    for action in ([0, 4], [-1, 0], [0, 255]):
        with pytest.raises(ValueError, match=r"is not in Discrete\(4\)"):
            envs.step(np.array(action))
    envs.step(np.array([0, 3], dtype=np.uint8))


def test_stepping_before_a_reset_raises() -> None:
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        AtariBatch("Breakout", 1, seed=0).step(np.zeros(1, dtype=int))


def test_the_number_of_threads_changes_nothing() -> None:
    one, two = (play(AtariBatch("Breakout", 2, seed=0, num_threads=threads), 20) for threads in (1, 2))
    np.testing.assert_array_equal([step.obs for step in one], [step.obs for step in two])


def test_creating_a_game_prints_nothing(capfd: Any) -> None:
    AtariBatch("Breakout", 1, seed=0).reset()
    assert capfd.readouterr() == ("", "")


def test_a_start_that_was_interrupted_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    envs = AtariBatch("Breakout", 2, seed=3)
    native = envs._natives[0]

    def interrupted(**_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(native, "reset", interrupted)
        with pytest.raises(KeyboardInterrupt):
            envs.reset()
    first = envs.reset()
    assert first.shape == (2, 4, 84, 84)
    state = envs.state()
    envs.step(np.ones(2, dtype=np.int64))
    with monkeypatch.context() as patch:
        patch.setattr(native, "reset", interrupted)
        with pytest.raises(KeyboardInterrupt):
            envs.restore(state)
    assert np.array_equal(envs.reset(), first)
    envs.close()


@pytest.mark.skipif(sys.platform != "linux", reason="threads have priorities of their own on Linux alone")
def test_the_threads_of_the_games_stand_back() -> None:
    def niceness() -> dict[str, int]:
        tasks = Path("/proc/self/task")
        return {task.name: int((task / "stat").read_text().rpartition(")")[2].split()[16]) for task in tasks.iterdir()}

    before = niceness()
    envs = AtariBatch("Breakout", 2, seed=3, num_threads=2)
    after = niceness()
    own = os.getpriority(os.PRIO_PROCESS, 0)
    started = {after[task] for task in after.keys() - before.keys()}
    assert min(19, own + NICENESS) in started
    assert all(after[task] == level for task, level in before.items() if task in after)
    envs.close()

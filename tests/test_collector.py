"""Collecting: what the policy saw, what it did, what truly followed, and going on from a saved state."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from toys import CPU, Corridor, LateReward, continuous_corridor, generator

from ilde.collector import RECENT, Collector
from ilde.envs import make_envs
from ilde.envs.atari import AtariBatch
from ilde.nets.policy import Decision, UniformPolicy


class Onwards:
    """Always goes on; tells what it saw as its value, and a likelihood that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def act(self, obs: torch.Tensor, generator: torch.Generator, *, greedy: bool = False) -> Decision:
        self.calls += 1
        assert not greedy
        return Decision(torch.full((len(obs),), 2), torch.full((len(obs),), -float(self.calls)), obs[:, 0].clone())


def collector(steps: int, policy: Any = None, env: Any = Corridor, num_envs: int = 2, seed: int = 0) -> Collector:
    envs = make_envs(env, num_envs, seed)
    return Collector(envs, policy or UniformPolicy(envs.action_space), steps, generator(seed), CPU)


def test_each_step_holds_what_was_seen_done_and_told() -> None:
    data = collector(4, Onwards()).collect()
    places = [0.0, 0.1, 0.2, 0.3]
    for env in range(2):
        assert data.transitions.obs[:, env, 0].tolist() == pytest.approx(places)
        assert data.transitions.next_obs[:, env, 0].tolist() == pytest.approx([p + 0.1 for p in places])
        assert data.transitions.env_reward[:, env].tolist() == pytest.approx([p + 0.1 for p in places])
    assert data.transitions.action.tolist() == [[2, 2]] * 4
    assert data.log_prob[:, 0].tolist() == [-1.0, -2.0, -3.0, -4.0]
    torch.testing.assert_close(data.value, data.transitions.obs[..., 0])


def test_after_a_time_limit_the_successor_is_the_true_one_and_the_next_step_starts_anew() -> None:
    data = collector(32, Onwards()).collect()
    assert data.truncated[:, 0].nonzero().flatten().tolist() == [29]
    assert not data.transitions.terminated.any()
    assert float(data.transitions.next_obs[29, 0, 0]) == pytest.approx(1.0)
    assert float(data.transitions.obs[30, 0, 0]) == 0.0


@pytest.mark.parametrize("num_groups", [1, 2, 3])
def test_games_in_groups_shown_frame_by_frame_are_stored_as_they_were_played(num_groups: int) -> None:
    groups, whole = AtariBatch("Breakout", 3, seed=1, num_groups=num_groups), AtariBatch("Breakout", 3, seed=1)
    collecting = Collector(groups, UniformPolicy(groups.action_space), 150, generator(), CPU)
    obs, games, lost = whole.reset(), 0, 0
    for _ in range(3):
        data = collecting.collect()
        lost += int(data.transitions.terminated.sum())
        for t in range(150):
            np.testing.assert_array_equal(data.transitions.obs[t], obs)
            step = whole.step(data.transitions.action[t].numpy())
            np.testing.assert_array_equal(data.transitions.next_obs[t], step.next_obs)
            np.testing.assert_array_equal(data.transitions.env_reward[t], step.reward)
            np.testing.assert_array_equal(data.transitions.terminated[t], step.terminated)
            obs, games = step.obs, games + len(step.scores)
    assert lost > games > 3


def test_games_seeded_anew_and_games_restored_go_on_in_the_collector() -> None:
    def games() -> AtariBatch:
        return AtariBatch("Breakout", 3, seed=1, num_groups=2, reseed_after=100)

    def collecting(envs: AtariBatch) -> Collector:
        return Collector(envs, UniformPolicy(envs.action_space), 150, generator(), CPU)

    first = collecting(games())
    for _ in range(2):
        first.collect()
    second = collecting(games())
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    ahead, again = first.collect().transitions, second.collect().transitions
    for name in ("obs", "action", "next_obs", "terminated"):
        assert torch.equal(getattr(ahead, name), getattr(again, name)), name
    assert ahead.terminated.any()
    assert first.envs.state()["course"]["seedings"].any()
    shown = torch.from_numpy(first.envs.state()["obs"])
    assert torch.equal(first.collect().transitions.obs[0], shown)


def test_a_rollout_that_was_interrupted_is_followed_by_what_the_environments_show() -> None:
    class Impatient(Onwards):
        def act(self, obs: torch.Tensor, generator: torch.Generator, *, greedy: bool = False) -> Decision:
            if self.calls == 7:
                self.calls += 1
                raise KeyboardInterrupt
            return super().act(obs, generator, greedy=greedy)

    source = collector(4, Impatient())
    source.collect()
    with pytest.raises(KeyboardInterrupt):
        source.collect()
    # Seven steps were taken, four and three.
    assert source.collect().transitions.obs[:, 0, 0].tolist() == pytest.approx([0.7, 0.8, 0.9, 1.0])


def test_after_a_termination_likewise() -> None:
    data = collector(5, env=LateReward).collect()
    assert data.transitions.obs[:, 0, 0].tolist() == [0.0, 1.0, 0.0, 1.0, 0.0]
    assert data.transitions.next_obs[:, 0, 0].tolist() == [1.0, 2.0, 1.0, 2.0, 1.0]
    assert data.transitions.terminated[:, 0].tolist() == [False, True, False, True, False]
    assert not data.truncated.any()


def test_rollouts_follow_on_from_each_other() -> None:
    source = collector(7)
    first = source.collect().transitions.next_obs[-1].clone()
    torch.testing.assert_close(source.collect().transitions.obs[0], first)


def test_scores_are_of_whole_episodes_and_only_the_recent_ones_count() -> None:
    source = collector(29, Onwards(), num_envs=1)
    source.collect()
    assert source.metrics() == {"rollout/episodes": 0.0}
    source.collect()
    # 0.1 + ... + 1.0, then 20 steps at the end.
    assert source.metrics() == {"rollout/ep_rew_mean": pytest.approx(25.5, rel=1e-5), "rollout/episodes": 1.0}
    source.recent.extend([0.0] * (RECENT - 1))
    assert source.metrics()["rollout/ep_rew_mean"] == pytest.approx(0.255, rel=1e-5)


@pytest.mark.parametrize(
    ("env", "dtype", "shape"), [(Corridor, torch.int64, ()), (continuous_corridor, torch.float32, (1,))]
)
def test_actions_keep_the_type_of_their_space(env: Any, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    action = collector(3, env=env).collect().transitions.action
    assert action.dtype == dtype
    assert action.shape == (3, 2, *shape)


def test_actions_are_kept_as_chosen_although_the_environment_clips_them() -> None:
    class Bold:
        def act(self, obs: torch.Tensor, generator: torch.Generator, *, greedy: bool = False) -> Decision:
            return Decision(torch.full((len(obs), 1), 7.0), torch.zeros(len(obs)), torch.zeros(len(obs)))

    envs = make_envs(continuous_corridor, 2, 0, clip_actions=True)
    data = Collector(envs, Bold(), 3, generator(), CPU).collect()
    assert (data.transitions.action == 7.0).all()
    assert data.transitions.next_obs[:, 0, 0].tolist() == pytest.approx([0.1, 0.2, 0.3])


def test_a_saved_state_goes_on_with_the_same_steps() -> None:
    original, restored = collector(17), collector(17, seed=9)
    original.collect()
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    for _ in range(2):
        one, other = original.collect(), restored.collect()
        for name in vars(one.transitions):
            assert torch.equal(getattr(one.transitions, name), getattr(other.transitions, name)), name
        assert torch.equal(one.truncated, other.truncated)
        assert original.metrics() == restored.metrics()


def test_another_seed_goes_elsewhere_and_the_same_does_not() -> None:
    places = [collector(9, seed=seed).collect().transitions.obs for seed in (0, 0, 1)]
    assert torch.equal(places[0], places[1])
    assert not torch.equal(places[0], places[2])
    assert np.isfinite(places[0].numpy()).all()

"""Evaluation: quotas, whole episodes, the cap, and the figures drawn from them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from toys import generator

from ilde.cli.display import evaluation_text
from ilde.config import EvaluationConfig, RunConfig
from ilde.envs.base import Score, Step
from ilde.evaluation import Evaluation, evaluate, mean_interval, quotas, return_ratio
from ilde.launch import start
from ilde.nets.policy import Decision
from ilde.patience import heard_by


class Scripted:
    """Environments whose episodes have the given lengths, in turn; every step is worth 1."""

    env_id, resume_mode = "Scripted", "exact"
    obs_space, action_space = gym.spaces.Box(0, 9, (1,)), gym.spaces.Discrete(2)

    def __init__(self, *lengths: list[int]) -> None:
        self.lengths, self.num_envs, self.steps = lengths, len(lengths), 0

    def reset(self) -> Any:
        self.age, self.episode = np.zeros(self.num_envs, int), np.zeros(self.num_envs, int)
        return np.zeros((self.num_envs, 1), np.float32)

    def step(self, action: Any) -> Step:
        self.steps += 1
        self.age += 1
        planned = np.array([lengths[k % len(lengths)] for lengths, k in zip(self.lengths, self.episode, strict=True)])
        over = self.age >= planned
        scores = tuple(Score(int(i), float(self.age[i]), int(self.age[i])) for i in np.flatnonzero(over))
        self.age, self.episode = np.where(over, 0, self.age), self.episode + over
        obs = np.zeros((self.num_envs, 1), np.float32)
        return Step(obs, obs, np.ones(self.num_envs, np.float32), over, np.zeros_like(over), scores)


class Watching:
    """A policy that notes how it was asked."""

    def __init__(self) -> None:
        self.greedy: set[bool] = set()

    def act(self, obs: torch.Tensor, generator: torch.Generator, *, greedy: bool = False) -> Decision:
        self.greedy.add(greedy)
        zeros = torch.zeros(len(obs))
        return Decision(zeros.long(), zeros, zeros)


def play(envs: Any, episodes: int, **options: Any) -> Evaluation:
    return evaluate(envs, Watching(), episodes=episodes, generator=generator(), **options)


@pytest.mark.parametrize(
    ("episodes", "envs", "expected"), [(10, 4, [3, 3, 2, 2]), (4, 4, [1] * 4), (2, 3, [1, 1, 0]), (0, 2, [0, 0])]
)
def test_quotas_are_even_and_fixed_before_play(episodes: int, envs: int, expected: list[int]) -> None:
    assert quotas(episodes, envs) == expected


def test_short_episodes_are_not_favoured() -> None:
    # The first four finishers would all come from the quick environment.
    result = play(Scripted([1], [50]), episodes=4)
    assert result.returns == (1.0, 1.0, 50.0, 50.0)
    assert result.lengths == (1, 1, 50, 50)
    assert result.capped == 0


def test_episodes_beyond_the_quota_are_not_counted() -> None:
    assert play(Scripted([1, 2, 3, 4], [9]), episodes=3).returns == (1.0, 2.0, 9.0)


def test_a_capped_episode_counts_with_what_it_had_reached() -> None:
    result = play(Scripted([3, 4], [1000]), episodes=4, max_steps=10)
    # The second environment cannot be restarted alone, so it plays no other episode.
    assert result.returns == (3.0, 4.0, 10.0)
    assert result.capped == 1


def test_an_episode_that_ends_at_the_cap_is_whole() -> None:
    result = play(Scripted([10]), episodes=2, max_steps=10)
    assert result.returns == (10.0, 10.0)
    assert result.capped == 0


class Limited(Scripted):
    """The same with a time limit that ends episodes of ten steps."""

    def step(self, action: Any) -> Step:
        step = super().step(action)
        ended = np.array([any(s.env == env and s.length == 10 for s in step.scores) for env in range(self.num_envs)])
        return replace(step, terminated=step.terminated & ~ended, truncated=ended)


def test_episodes_that_end_at_a_time_limit_are_counted_among_the_whole_ones() -> None:
    result = play(Limited([10, 4], [10, 12]), episodes=4, max_steps=11)
    assert (result.returns, result.truncated, result.capped) == ((10.0, 4.0, 10.0, 11.0), 2, 1)
    assert result.summary()["truncated"] == 2
    assert play(Scripted([10]), episodes=2).truncated == 0


@pytest.mark.parametrize("greedy", [True, False])
def test_the_policy_is_asked_as_told(greedy: bool) -> None:
    policy = Watching()
    envs: Any = Scripted([2])
    result = evaluate(envs, policy, episodes=1, generator=generator(), greedy=greedy)
    assert policy.greedy == {greedy}
    assert result.greedy == greedy


def test_the_figures_by_hand() -> None:
    result = Evaluation((1.0, 2.0, 3.0), (5, 5, 8), greedy=True)
    assert (result.mean, result.std) == (2.0, 1.0)
    # Student's t with two degrees of freedom is 4.303 at 95%; the standard error is 1 / sqrt 3.
    assert result.interval == pytest.approx((2 - 4.3027 / math.sqrt(3), 2 + 4.3027 / math.sqrt(3)), abs=1e-3)
    summary = result.summary(demonstrator=4.0)
    assert (summary["ratio"], summary["episodes"], summary["length"]) == (0.5, 3, 6.0)


@pytest.mark.parametrize(("demonstrator", "expected"), [(None, None), (0.0, None), (-4.0, None), (4.0, 0.5)])
def test_a_ratio_exists_only_beside_a_positive_demonstrator(demonstrator: float | None, expected: float | None) -> None:
    assert return_ratio(2.0, demonstrator) == expected


def test_episodes_alike_in_return_and_length_are_of_one_kind() -> None:
    result = Evaluation((3.0, 3.0, 4.0, 3.0), (14, 5, 5, 5), greedy=True)
    assert (result.kinds, result.summary()["kinds"]) == (3, 3)
    assert "4 episodes of 3 kinds, greedy" in evaluation_text(7, result)
    assert "kind" not in evaluation_text(7, Evaluation((1.0, 2.0), (5, 5), greedy=True))


def test_a_late_start_makes_no_other_kind_of_episode() -> None:
    """Eight greedy games of one policy on BeamRider: of three kinds, after 1 to 30 frames of no action each."""
    returns = (1536.0, 1640.0, 2328.0, 1536.0, 1640.0, 2328.0, 2328.0, 1536.0)
    lengths = (4926, 4540, 4985, 4931, 4542, 4991, 4987, 4929)
    assert Evaluation(returns, lengths, greedy=True).kinds == 3
    assert Evaluation((1.0,) * 4, (21, 5, 13, 12), greedy=True).kinds == 2  # 5 to 13, not on from there
    row = Evaluation(returns, lengths, greedy=True).row(None, final=True)
    assert (row["returns"], row["lengths"]) == (list(returns), list(lengths))


def test_a_single_episode_says_nothing_of_spread() -> None:
    assert Evaluation((7.0,), (1,), greedy=True).std == 0.0
    assert mean_interval([7.0]) == (-math.inf, math.inf)


def test_the_summary_of_one_episode_is_json() -> None:
    document = json.dumps(Evaluation((7.0,), (1,), greedy=True).summary(), allow_nan=False)
    assert json.loads(document)["interval"] == [None, None]


def test_the_interval_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(3.0, 2.0, size=(2000, 5))
    covered = np.mean([low <= 3.0 <= high for low, high in map(mean_interval, samples.tolist())])
    # Four standard errors: 4 sqrt(0.95 * 0.05 / 2000) = 0.0195.
    assert covered == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize(("cap", "capped"), [(0, 0), (3, 2)])
def test_the_end_is_cut_only_where_a_trial_asks_for_it(cap: int, capped: int, tmp_path: Path) -> None:
    config = RunConfig(method="random", env="CartPole-v1", steps=8, num_envs=2, rollout_steps=4, device="cpu")
    config = replace(config, evaluation=EvaluationConfig(every=0, final_episodes=2, final_max_steps=cap))
    run = start(config, tmp_path / "run")
    with run.folder:
        assert run.train()
    rows = run.folder.evaluations.rows()
    # A pole falls after eight steps at the earliest.
    assert [(row["capped"], row["length"] == 3.0) for row in rows] == [(capped, bool(cap))] * 2


def test_an_evaluation_says_how_far_it_is_and_what_helps_where_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ilde.patience.SECONDS", -1.0)
    heard: list[str] = []
    with heard_by(heard.append):
        evaluate(Scripted([2], [3]), Watching(), episodes=2, generator=generator())
    remedy = "; one that never ends needs gymnasium's TimeLimit, or a largest number of steps"
    open_ones = [f"evaluation: {done} of 2 episodes, the longest open one {age} steps old" for done, age in HOW_FAR]
    assert heard == [open_ones[0] + remedy, open_ones[1] + remedy, open_ones[2]]
    heard.clear()
    with heard_by(heard.append):
        evaluate(Scripted([10**9]), Watching(), episodes=1, generator=generator(), max_steps=2)
    assert heard
    assert not any(remedy in line for line in heard)  # it was given one


HOW_FAR = ((0, 0), (0, 1), (1, 2))

"""Small environments whose every number can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest

from ilde.envs import EnvBatch, Step

GO_ON, TERMINATE, TRUNCATE = 0, 1, 2


class CountingEnv(gym.Env[Any, Any]):
    """Observes (a number drawn at reset, steps so far); action 1 terminates, 2 truncates; step t is worth t."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        self.mark = self.np_random.random()
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return self.observe(), float(self.steps), bool(action == TERMINATE), bool(action == TRUNCATE), {}

    def observe(self) -> Any:
        return np.array([self.mark, self.steps], dtype=np.float64)


class ForgetfulEnv(CountingEnv):
    """Ignores its seed: every reset in the process draws another number."""

    resets: ClassVar[count[int]] = count()

    def reset(self, **keywords: Any) -> tuple[Any, dict[str, Any]]:
        super().reset(**keywords)
        self.mark = float(next(self.resets))
        return self.observe(), {}


@pytest.fixture
def counting_env() -> type[CountingEnv]:
    return CountingEnv


@pytest.fixture
def forgetful_env() -> type[ForgetfulEnv]:
    return ForgetfulEnv


def random_actions(envs: EnvBatch, steps: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if isinstance(envs.action_space, gym.spaces.Discrete):
        return rng.integers(envs.action_space.n, size=(steps, envs.num_envs))
    return rng.normal(size=(steps, envs.num_envs, *envs.action_space.shape)).astype(np.float32)


def assert_same_steps(one: Step, other: Step) -> None:
    for name in ("obs", "next_obs", "reward", "terminated", "truncated"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.scores == other.scores


@pytest.fixture
def assert_restores_exactly() -> Callable[..., list[Step]]:
    """Plays, saves, restores into a fresh batch, and plays both on with the same actions; returns the first steps."""

    def check(make: Callable[[], EnvBatch], before: int, after: int) -> list[Step]:
        original, restored = make(), make()
        original.reset()
        played = [original.step(action) for action in random_actions(original, before, seed=1)]
        obs = restored.restore(original.state())
        assert restored.resume_mode == "exact"
        np.testing.assert_array_equal(obs, played[-1].obs)
        for action in random_actions(original, after, seed=2):
            assert_same_steps(original.step(action), restored.step(action))
        original.close()
        restored.close()
        return played

    return check

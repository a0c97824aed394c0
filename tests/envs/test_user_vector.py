"""A user's own vector environment: both accepted reset modes give the same data."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from ilde.data import UserError
from ilde.envs import Score, make_envs

GO_ON, TERMINATE, TRUNCATE = 0, 1, 2
ACCEPTED = [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]


@pytest.mark.parametrize("mode", ACCEPTED)
@pytest.mark.parametrize("copy", [True, False])
def test_the_true_successor_is_shown(mode: AutoresetMode, copy: bool, counting_env: Any) -> None:
    envs = make_envs(SyncVectorEnv([counting_env] * 3, copy=copy, autoreset_mode=mode), 3, seed=0)
    first = envs.reset()
    envs.step(np.array([GO_ON, GO_ON, GO_ON]))
    step = envs.step(np.array([GO_ON, TERMINATE, TRUNCATE]))
    assert step.next_obs[:, 1].tolist() == [2, 2, 2]
    assert step.obs[:, 1].tolist() == [2, 0, 0]
    np.testing.assert_array_equal(step.next_obs[:, 0], first[:, 0])
    assert (step.obs[1:, 0] != first[1:, 0]).all()
    assert step.terminated.tolist() == [False, True, False]
    assert step.truncated.tolist() == [False, False, True]
    assert step.scores == (Score(1, 3.0, 2), Score(2, 3.0, 2))
    assert envs.step(np.array([TERMINATE, GO_ON, GO_ON])).scores == (Score(0, 6.0, 3),)
    assert step.obs[:, 1].tolist() == [2, 0, 0], "handed-out arrays never change again"


@pytest.mark.parametrize("mode", ACCEPTED)
def test_restoring_starts_fresh_episodes_with_another_seed(mode: AutoresetMode, counting_env: Any) -> None:
    def make() -> Any:
        return make_envs(SyncVectorEnv([counting_env] * 2, autoreset_mode=mode), 2, seed=3)

    original, restored = make(), make()
    first = original.reset()
    original.step(np.array([GO_ON, GO_ON]))
    obs = restored.restore(original.state())
    assert restored.resume_mode == original.resume_mode == "fresh-episodes"
    assert obs[:, 1].tolist() == [0, 0]
    assert (obs[:, 0] != first[:, 0]).all()
    assert restored.state()["restores"] == 1
    np.testing.assert_array_equal(restored.reset(), first)


def test_next_step_autoreset_is_refused_with_the_remedy(counting_env: Any) -> None:
    with pytest.raises(UserError, match=r"autoreset_mode=gymnasium\.vector\.AutoresetMode\.SAME_STEP"):
        make_envs(SyncVectorEnv([counting_env] * 2), 2, seed=0)


def test_same_step_autoreset_without_final_obs_is_refused(counting_env: Any) -> None:
    class Hiding(SyncVectorEnv):
        def step(self, actions: Any) -> Any:
            *outcome, _ = super().step(actions)
            return (*outcome, {})

    envs = make_envs(Hiding([counting_env], autoreset_mode=AutoresetMode.SAME_STEP), 1, seed=0)
    envs.reset()
    envs.step(np.array([GO_ON]))
    with pytest.raises(UserError, match="final_obs"):
        envs.step(np.array([TERMINATE]))


def test_the_number_of_copies_must_agree(counting_env: Any) -> None:
    vector = SyncVectorEnv([counting_env] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    with pytest.raises(UserError, match="has 2 copies, num_envs is 3"):
        make_envs(vector, 3, seed=0)


def test_the_env_id_is_that_of_the_copies() -> None:
    vector = SyncVectorEnv([lambda: gym.make("CartPole-v1")], autoreset_mode=AutoresetMode.SAME_STEP)
    assert make_envs(vector, 1, seed=0).env_id == "CartPole-v1"

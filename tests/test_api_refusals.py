"""`Imitator` answers a mistake with one line, before it costs anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toys import Corridor, Toy

from ilde import Imitator
from ilde.config import find_preset
from ilde.data import UserError
from ilde.prepare import SMALLEST_IMAGE, action_remark

QUICK = replace(find_preset("quick"), num_envs=2, rollout_steps=8)


def copies(count: int) -> SyncVectorEnv:
    return SyncVectorEnv([Corridor] * count, autoreset_mode=AutoresetMode.SAME_STEP)


class Pictures(Toy):
    """Images of a given side."""

    side = SMALLEST_IMAGE

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(0, 255, (3, self.side, self.side), np.uint8)

    def observe(self) -> Any:
        return np.zeros(self.observation_space.shape, np.uint8)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return self.observe(), 0.0, self.steps >= 4, False, {}


class Icons(Pictures):
    """One pixel too small."""

    side = SMALLEST_IMAGE - 1


class Wide(Toy):
    """Actions of hundreds."""

    action_space = gym.spaces.Box(-500.0, 500.0, (1,), np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return self.observe(), float(action[0]), self.steps >= 4, False, {}


class Endless(Toy):
    """No episode of it ever ends."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observe(), 1.0, False, False, {}


def test_no_environment_is_not_a_default_one() -> None:
    with pytest.raises(UserError, match=r"^env is None; pass an id"):
        Imitator(None, method="random")  # type: ignore[arg-type]


def test_a_presets_name_is_no_configuration() -> None:
    with pytest.raises(UserError, match=r"^config is a str; a preset's name goes to preset$"):
        Imitator(Corridor, method="expert", config="quick")  # type: ignore[arg-type]


def test_images_are_as_large_as_the_networks_need() -> None:
    assert Imitator(Pictures, method="constant", config=QUICK).learn(16).env_steps == 16
    with pytest.raises(UserError, match=r"^Icons: images of 35 x 35 pixels; need at least 36 x 36"):
        Imitator(Icons, method="constant", config=QUICK)


def test_a_run_is_loaded_into_as_many_copies_as_it_had(tmp_path: Path) -> None:
    run = Imitator(copies(3), method="constant", config=QUICK).learn(24).save(tmp_path / "run")
    for count in (2, 4):
        with pytest.raises(UserError, match=f"learned in 3 environments at once, env has {count}$"):
            Imitator.load(run, env=copies(count))
    assert Imitator.load(run, env=copies(3)).learn(24).env_steps == 48


def test_a_policy_is_evaluated_where_its_observations_and_actions_are_at_home() -> None:
    agent = Imitator("CartPole-v1", method="constant", config=QUICK)
    with pytest.raises(UserError, match=r"^Corridor: observations are float32\(1,\); the policy's are float32\(4,\)$"):
        agent.evaluate(1, env=Corridor)
    with pytest.raises(UserError, match=r"^Acrobot-v1: observations are float32\(6,\)"):
        agent.evaluate(1, env="Acrobot-v1")
    few = Imitator("MountainCar-v0", method="constant", config=QUICK)
    with pytest.raises(UserError, match=r"actions are float32\(1,\); the policy's are Discrete\(3, start=0\)$"):
        few.evaluate(1, env="MountainCarContinuous-v0")


def test_an_episode_without_an_end_can_be_cut() -> None:
    evaluation = Imitator(Endless, method="constant", config=QUICK).evaluate(2, max_steps=7)
    assert (evaluation.returns, evaluation.capped) == ((7.0, 7.0), 2)


@pytest.mark.parametrize(
    ("low", "high", "method", "told"),
    [
        (-500.0, 500.0, "ilde", True),
        (0.0, 5.0, "bc", True),
        (-3.0, 3.0, "vail", False),
        (-0.4, 0.4, "ilde", False),
        (-np.inf, np.inf, "ilde", False),
        (-500.0, 500.0, "sac", False),  # scales its actions itself
        (-500.0, 500.0, "random", False),
    ],
)
def test_bounds_that_a_gaussian_policy_cannot_fill_are_remarked_on(
    low: float, high: float, method: str, told: bool
) -> None:
    space = gym.spaces.Box(low, high, (2,), np.float32)
    assert bool(action_remark(replace(QUICK, method=method), space)) == told


def test_wide_actions_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="one goes from -500 to 500: gymnasium's RescaleAction to -1 and 1"):
        Imitator(Wide, method="constant", config=QUICK)

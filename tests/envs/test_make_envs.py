"""From names, factories and vector environments to batches; what is refused, and how it is said."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ilde.data import UserError
from ilde.envs import canonical_env_id, list_envs, make_envs, simulator_versions, single_env


@pytest.mark.parametrize("name", ["ALE/BeamRider-v5", "BeamRider", "beam_rider", "beamrider"])
def test_an_atari_name_in_any_spelling_is_one_id(name: str) -> None:
    assert canonical_env_id(name) == "ALE/BeamRider-v5"


@pytest.mark.parametrize("name", ["CartPole-v1", "HalfCheetah-v5", "Hopper-v4", "my_package:Mine-v0"])
def test_a_gymnasium_id_is_its_own_canonical_form(name: str) -> None:
    assert canonical_env_id(name) == name


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("HalfCheeta-v5", "HalfCheetah-v5"),
        ("hopper-v4", "Hopper-v4"),
        ("ALE/Qbrt-v5", "ALE/Qbert-v5"),
        ("qberd", "ALE/Qbert-v5"),
        ("ALE/Breakout-v4", "ALE/Breakout-v5"),
        ("Hopper", "Hopper-v5"),
    ],
)
def test_an_unknown_id_gets_a_suggestion_in_one_line(name: str, meant: str) -> None:
    with pytest.raises(UserError, match=f"unknown environment '{name}'; did you mean .*{meant}") as error:
        make_envs(name, 1, seed=0)
    assert "\n" not in str(error.value)


def test_a_hopeless_id_points_to_the_list() -> None:
    with pytest.raises(UserError, match="unknown environment 'zzzzzz': see `ilde envs`"):
        make_envs("zzzzzz", 1, seed=0)


def test_two_player_roms_that_end_the_process_are_not_offered() -> None:
    with pytest.raises(UserError, match="unknown environment"):
        canonical_env_id("ALE/Warlords-v5")


@pytest.mark.parametrize(
    ("module", "name", "extra"), [("mujoco", "Hopper-v5", "mujoco"), ("ale_py", "ALE/Qbert-v5", "atari")]
)
def test_a_missing_simulator_names_the_extra(
    module: str, name: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=rf"pip install ilde\[{extra}\]"):
        make_envs(name, 1, seed=0)


def test_an_id_gymnasium_no_longer_ships_is_refused_in_one_line() -> None:
    with pytest.raises(UserError, match="Hopper-v3: cannot be built") as error:
        make_envs("Hopper-v3", 1, seed=0)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("env_id", "obs_size", "action_size"),
    [
        ("Hopper-v4", 11, 3),
        ("HalfCheetah-v5", 17, 6),
        ("Reacher-v4", 11, 2),
        ("HumanoidStandup-v4", 376, 17),
        ("Walker2d-v4", 17, 6),
        ("Ant-v4", 27, 8),
    ],
)
def test_mujoco_tasks_are_built_without_noise(
    env_id: str, obs_size: int, action_size: int, capfd: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    envs = make_envs(env_id, 1, seed=0)
    assert envs.reset().shape == (1, obs_size)
    envs.step(np.zeros((1, action_size)))
    assert capfd.readouterr() == ("", "")
    assert os.listdir(tmp_path) == [], "MuJoCo wrote its log here"


class ShapedEnv(gym.Env[Any, Any]):
    def __init__(self, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> None:
        self.observation_space = observation_space
        self.action_space = action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(self.observation_space.shape, self.observation_space.dtype), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.reset()[0], 0.0, False, False, {}


VECTOR = gym.spaces.Box(-1, 1, (3,), np.float64)
CHOICE = gym.spaces.Discrete(2)


def image(*shape: int, dtype: Any = np.uint8) -> gym.spaces.Box:
    return gym.spaces.Box(0, 255, shape, dtype)


@pytest.mark.parametrize(
    "space",
    [
        gym.spaces.Dict({"a": VECTOR}),
        gym.spaces.Tuple((VECTOR, VECTOR)),
        gym.spaces.Discrete(4),
        gym.spaces.MultiDiscrete([2, 2]),
        gym.spaces.Box(-1, 1, (), np.float64),
        gym.spaces.Box(-1, 1, (3, 3), np.float64),
        image(96, 96, 3),
        image(3, 96, 96, dtype=np.float32),
        image(84, 84),
    ],
)
def test_observations_no_policy_is_built_for_are_refused_in_one_line(space: gym.Space[Any]) -> None:
    with pytest.raises(UserError, match=r"ShapedEnv: observations are .*gymnasium\.wrappers") as error:
        make_envs(lambda: ShapedEnv(space, CHOICE), 1, seed=0)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "space",
    [
        gym.spaces.MultiDiscrete([2, 2]),
        gym.spaces.MultiBinary(3),
        gym.spaces.Discrete(3, start=1),
        gym.spaces.Box(-1, 1, (2, 2), np.float32),
        gym.spaces.Box(0, 5, (2,), np.int64),
        gym.spaces.Dict({"a": CHOICE}),
    ],
)
def test_actions_no_policy_can_give_are_refused_in_one_line(space: gym.Space[Any]) -> None:
    with pytest.raises(UserError, match="ShapedEnv: actions") as error:
        make_envs(lambda: ShapedEnv(VECTOR, space), 1, seed=0)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("space", "dtype"), [(image(3, 20, 20), np.uint8), (VECTOR, np.float32), (image(128), np.float32)]
)
def test_images_stay_uint8_and_vectors_become_float32(space: gym.spaces.Box, dtype: Any) -> None:
    envs = make_envs(lambda: ShapedEnv(space, CHOICE), 2, seed=0)
    assert envs.reset().dtype == envs.obs_space.dtype == dtype
    assert envs.reset().shape == (2, *space.shape)


def test_an_environment_instead_of_a_factory_is_refused() -> None:
    with pytest.raises(UserError, match="env is a ShapedEnv; pass an id, a function"):
        make_envs(ShapedEnv(VECTOR, CHOICE), 1, seed=0)  # type: ignore[arg-type]


def test_no_environments_at_all_are_refused() -> None:
    with pytest.raises(UserError, match="num_envs is 0"):
        make_envs("CartPole-v1", 0, seed=0)


def test_the_list_names_every_kind_and_nothing_unusable() -> None:
    kinds = {entry["name"]: entry["kind"] for entry in list_envs()}
    assert kinds["ALE/BeamRider-v5"] == "atari"
    assert kinds["Hopper-v4"] == "mujoco"
    assert kinds["CartPole-v1"] == "classic"
    assert not {"Hopper-v3", "FrozenLake-v1", "Breakout-v4", "ALE/Warlords-v5", "GymV21Environment-v0"} & set(kinds)
    assert all(entry["installed"] for entry in list_envs())


def test_simulator_versions_are_those_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    import mujoco

    versions = simulator_versions()
    assert versions["gymnasium"] == gym.__version__
    assert versions["mujoco"] == mujoco.__version__
    assert set(versions) == {"gymnasium", "ale-py", "mujoco"}


def test_a_mujoco_task_is_drawn_without_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("imageio")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    try:
        env = single_env("Hopper-v4", render=True)
    except UserError as error:
        pytest.skip(str(error))
    picture = env.render()
    env.close()
    assert os.environ["MUJOCO_GL"] in ("egl", "osmesa")
    monkeypatch.delenv("MUJOCO_GL")
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.std() > 0


def test_without_an_offscreen_library_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr("ilde.envs.rendering.find_library", lambda _: None)
    with pytest.raises(UserError, match="apt-get install libegl1"):
        single_env("Hopper-v5", render=True)
    assert "MUJOCO_GL" not in os.environ


def test_what_cannot_be_drawn_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(UserError, match=r"CartPole-v1: cannot be drawn here: .*pip install"):
        single_env("CartPole-v1", render=True)


class Plain(gym.Env[Any, Any]):
    """Whoever wrote it thought of no pictures."""

    observation_space = gym.spaces.Box(0, 1, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, **_: Any) -> Any:
        return np.zeros(1, np.float32), {}


class Undrawn(Plain):
    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode


@pytest.mark.parametrize(
    ("made", "said"),
    [(Plain, "cannot be built: .* takes no arguments"), (Undrawn, "its render.* no picture")],
)
def test_what_must_be_there_to_be_watched_is_said(monkeypatch: pytest.MonkeyPatch, made: Any, said: str) -> None:
    monkeypatch.setitem(gym.registry, "Mine-v0", gym.envs.registration.EnvSpec("Mine-v0", made))
    with pytest.raises(UserError, match=f"^Mine-v0: {said}.*; to be watched it must take render_mode='rgb_array' and"):
        single_env("Mine-v0", render=True)


def test_atari_has_no_single_env() -> None:
    with pytest.raises(UserError, match="newest frame"):
        single_env("Qbert", render=True)


def test_a_single_env_without_pictures_is_plain() -> None:
    assert single_env("CartPole-v1", render=False).render_mode is None

"""What Gymnasium's MuJoCo tasks observe, pay for and start from: for many copies at a time, equal to the last bit.

Every expression keeps Gymnasium's order and types (the square of an action is summed in float32, all else is float64),
and takes its constants from one of Gymnasium's environments wherever that has them as attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import gymnasium as gym
import numpy as np

from ilde.envs.base import Array

Readings: TypeAlias = dict[str, Array]
"""Fields of MjData by name, each flattened to (copies, size)."""


class Task(Protocol):
    """One task; arrays have one row per copy."""

    fields: tuple[str, ...]
    """What it reads of a copy's MjData."""
    compared: tuple[str, ...]
    """What its reward reads of the time before the step."""

    def start(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """The positions and velocities of one copy at the start of an episode."""

    def observe(self, now: Readings) -> Array:
        """The observations."""

    def judge(self, before: Readings, now: Readings, action: Array) -> tuple[Array, Array]:
        """The rewards of a step, and which copies it ended."""


class HalfCheetah:
    """Paid for speed, not for effort; never ends."""

    fields: tuple[str, ...] = ("qpos", "qvel")
    compared: tuple[str, ...] = ("qpos",)

    def __init__(self, env: Any, version: int) -> None:
        self._env = env

    def start(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Noise around the model's own state."""
        return _with_normal_speeds(self._env, rng)

    def observe(self, now: Readings) -> Array:
        """All but the distance covered."""
        return np.concatenate((now["qpos"][:, 1:], now["qvel"]), axis=1)

    def judge(self, before: Readings, now: Readings, action: Array) -> tuple[Array, Array]:
        """Speed minus effort."""
        reward = _forward(self._env, before["qpos"], now["qpos"]) - _squares(self._env._ctrl_cost_weight, action)
        return reward, np.zeros(len(reward), dtype=bool)


class Hopper:
    """Hopper and Walker2d: paid for speed and for not falling, minus effort; a fall is the end."""

    fields: tuple[str, ...] = ("qpos", "qvel")
    compared: tuple[str, ...] = ("qpos",)

    def __init__(self, env: Any, version: int) -> None:
        self._env, self._version = env, version
        self._state_range = getattr(env, "_healthy_state_range", None)  # Walker2d has none

    def start(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Noise around the model's own state."""
        return _with_uniform_speeds(self._env, rng, self._env._reset_noise_scale)

    def observe(self, now: Readings) -> Array:
        """All but the distance covered; speeds are clipped."""
        return np.concatenate((now["qpos"][:, 1:], np.clip(now["qvel"], -10, 10)), axis=1)

    def judge(self, before: Readings, now: Readings, action: Array) -> tuple[Array, Array]:
        """Speed and standing minus effort; v4 pays for standing in the step of the fall too."""
        standing = self._standing(now)
        paid = standing if self._version > 4 else np.ones_like(standing)
        gain = _forward(self._env, before["qpos"], now["qpos"]) + paid * self._env._healthy_reward
        return gain - _squares(self._env._ctrl_cost_weight, action), ~standing

    def _standing(self, now: Readings) -> Array:
        height, lean = now["qpos"][:, 1], now["qpos"][:, 2]
        standing = _within(self._env._healthy_z_range, height) & _within(self._env._healthy_angle_range, lean)
        if self._state_range is not None:
            standing &= _within(self._state_range, now["qpos"][:, 2:]).all(axis=1)
            standing &= _within(self._state_range, now["qvel"]).all(axis=1)
        return standing


class Ant:
    """Paid for speed and for not turning over, minus effort; v5 also charges for contacts, and shows them."""

    compared: tuple[str, ...] = ("xpos",)

    def __init__(self, env: Any, version: int) -> None:
        self._env, self._version = env, version
        self.fields: tuple[str, ...] = ("qpos", "qvel", "xpos", *(("cfrc_ext",) if version > 4 else ()))
        self._torso = _coordinates(env, "torso")

    def start(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Noise around the model's own state."""
        return _with_normal_speeds(self._env, rng)

    def observe(self, now: Readings) -> Array:
        """All but the place on the ground; v5 adds the forces on all bodies but the world."""
        forces = (self._forces(now)[:, 6:],) if self._version > 4 else ()
        return np.concatenate((now["qpos"][:, 2:], now["qvel"], *forces), axis=1)

    def judge(self, before: Readings, now: Readings, action: Array) -> tuple[Array, Array]:
        """Speed and standing minus effort and contacts; v4 pays for standing in the step of the fall too."""
        env, standing = self._env, self._standing(now)
        paid = standing if self._version > 4 else np.ones_like(standing)
        gain = _forward(env, before["xpos"][:, self._torso], now["xpos"][:, self._torso]) + paid * env._healthy_reward
        cost = _squares(env._ctrl_cost_weight, action)
        if self._version > 4:
            cost = cost + _squares(env._contact_cost_weight, self._forces(now))
        return gain - cost, ~standing

    def _standing(self, now: Readings) -> Array:
        low, high = self._env._healthy_z_range
        height = now["qpos"][:, 2]
        finite = np.isfinite(now["qpos"]).all(axis=1) & np.isfinite(now["qvel"]).all(axis=1)
        standing: Array = finite & (low <= height) & (height <= high)
        return standing

    def _forces(self, now: Readings) -> Array:
        low, high = self._env._contact_force_range
        forces: Array = np.clip(now["cfrc_ext"], low, high)
        return forces


class HumanoidStandup:
    """Paid for height, minus effort and impacts; never ends."""

    fields: tuple[str, ...] = ("qpos", "qvel", "cinert", "cvel", "qfrc_actuator", "cfrc_ext", "ctrl")
    compared: tuple[str, ...] = ()

    def __init__(self, env: Any, version: int) -> None:
        self._env = env
        # What v4 keeps in its code, v5 has as attributes.
        self._noise = getattr(env, "_reset_noise_scale", 0.01)
        self._effort = getattr(env, "_ctrl_cost_weight", 0.1)
        self._impact = getattr(env, "_impact_cost_weight", 0.5e-6)
        self._impact_range = getattr(env, "_impact_cost_range", (-np.inf, 10.0))
        # v5 leaves out the world's rows and the root's forces, which are always zero.
        world = version > 4
        self._skipped = {"qpos": 2, "qvel": 0, "cinert": 10 * world, "cvel": 6 * world}
        self._skipped |= {"qfrc_actuator": 6 * world, "cfrc_ext": 6 * world}

    def start(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Noise around the model's own state."""
        return _with_uniform_speeds(self._env, rng, self._noise)

    def observe(self, now: Readings) -> Array:
        """All but the place on the ground."""
        return np.concatenate([now[name][:, skipped:] for name, skipped in self._skipped.items()], axis=1)

    def judge(self, before: Readings, now: Readings, action: Array) -> tuple[Array, Array]:
        """Height minus effort and impacts; the effort is that of the simulator, which drops unusable actions."""
        height = now["qpos"][:, 2] / self._env.model.opt.timestep
        impact = np.clip(_squares(self._impact, now["cfrc_ext"]), *self._impact_range)
        reward = height - _squares(self._effort, now["ctrl"]) - impact + 1
        return reward, np.zeros(len(reward), dtype=bool)


class Reacher:
    """Charged for the distance to the target and for effort; v4 measures the distance before the step; never ends."""

    fields: tuple[str, ...] = ("qpos", "qvel", "xpos")

    def __init__(self, env: Any, version: int) -> None:
        self._env, self._version = env, version
        self.compared: tuple[str, ...] = ("xpos",) if version == 4 else ()
        self._fingertip, self._target = _coordinates(env, "fingertip"), _coordinates(env, "target")

    def start(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Noise around the model's own state, and a target within reach."""
        qpos: Array = rng.uniform(-0.1, 0.1, self._env.model.nq) + self._env.init_qpos
        goal = rng.uniform(-0.2, 0.2, 2)
        while np.linalg.norm(goal) >= 0.2:
            goal = rng.uniform(-0.2, 0.2, 2)
        qpos[-2:] = goal
        qvel: Array = self._env.init_qvel + rng.uniform(-0.005, 0.005, self._env.model.nv)
        qvel[-2:] = 0
        return qpos, qvel

    def observe(self, now: Readings) -> Array:
        """Angles as cosines and sines, the target, speeds, and the way from it."""
        angles, target, speeds = now["qpos"][:, :2].copy(), now["qpos"][:, 2:], now["qvel"][:, :2]
        way = self._way(now)[:, : 3 if self._version == 4 else 2]
        return np.concatenate((np.cos(angles), np.sin(angles), target, speeds, way), axis=1)

    def judge(self, before: Readings, now: Readings, action: Array) -> tuple[Array, Array]:
        """Minus distance, minus effort."""
        way = self._way(before if self._version == 4 else now)
        # `np.linalg.norm` of a vector is the root of a BLAS product; `vecdot` takes the same one row by row.
        distance = np.sqrt(np.vecdot(way, way)) * getattr(self._env, "_reward_dist_weight", 1)
        reward = -distance - _squares(getattr(self._env, "_reward_control_weight", 1), action)
        return reward, np.zeros(len(reward), dtype=bool)

    def _way(self, readings: Readings) -> Array:
        return readings["xpos"][:, self._fingertip] - readings["xpos"][:, self._target]


_CLASSES: dict[str, Callable[[Any, int], Task]] = {
    "half_cheetah": HalfCheetah,
    "hopper": Hopper,
    "walker2d": Hopper,
    "ant": Ant,
    "humanoidstandup": HumanoidStandup,
    "reacher": Reacher,
}
_TASKS = {
    f"gymnasium.envs.mujoco.{module}_v{version}": (task, version)
    for module, task in _CLASSES.items()
    for version in (4, 5)
}


def has_task(env_id: str) -> bool:
    """Whether an id is one of these tasks, as Gymnasium ships it: no other arguments, no wrappers."""
    spec = gym.registry.get(env_id)
    if spec is None or spec.kwargs or spec.additional_wrappers or not isinstance(spec.entry_point, str):
        return False
    return spec.entry_point.split(":")[0] in _TASKS


def task_of(env: Any) -> Task:
    """The task of one of Gymnasium's own environments, without its wrappers."""
    task, version = _TASKS[type(env).__module__]
    return task(env, version)


def _with_uniform_speeds(env: Any, rng: np.random.Generator, scale: float) -> tuple[Array, Array]:
    qpos = env.init_qpos + rng.uniform(-scale, scale, env.model.nq)
    return qpos, env.init_qvel + rng.uniform(-scale, scale, env.model.nv)


def _with_normal_speeds(env: Any, rng: np.random.Generator) -> tuple[Array, Array]:
    scale = env._reset_noise_scale
    qpos = env.init_qpos + rng.uniform(-scale, scale, env.model.nq)
    return qpos, env.init_qvel + scale * rng.standard_normal(env.model.nv)


def _coordinates(env: Any, body: str) -> slice:
    """Where a body stands in the flattened `xpos`."""
    first = 3 * env.model.body(body).id
    return slice(first, first + 3)


def _forward(env: Any, before: Array, now: Array) -> Array:
    """What the way along the first coordinate is worth."""
    speed = (now[:, 0] - before[:, 0]) / env.dt
    worth: Array = getattr(env, "_forward_reward_weight", 1.0) * speed  # Ant-v4 has no weight
    return worth


def _squares(weight: float, values: Array) -> Array:
    cost: Array = weight * np.square(values).sum(axis=1)
    return cost


def _within(limits: tuple[float, float], values: Array) -> Array:
    return (limits[0] < values) & (values < limits[1])

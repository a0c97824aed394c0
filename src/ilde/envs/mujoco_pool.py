"""MuJoCo tasks without Gymnasium's loop: one model, one state per copy, stepped by threads, judged all at once.

MuJoCo releases the interpreter while it steps. Observations, rewards and endings are those of Gymnasium's own
environments to the last bit, whatever the number of threads, so a run may be saved on either and go on with the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias
from weakref import finalize

import gymnasium as gym
import mujoco
import numpy as np

from ilde.envs.base import Array
from ilde.envs.cores import usable_cores
from ilde.envs.gymnasium_make import make_gym
from ilde.envs.mujoco_tasks import Readings, task_of
from ilde.envs.seeded_batch import Outcome

Share: TypeAlias = Callable[[], BaseException | None]
Inbox: TypeAlias = "SimpleQueue[tuple[Share, SimpleQueue[BaseException | None]] | None]"


class Crew:
    """The caller's thread and its helpers, who work through a list together; without helpers there are no threads.

    A pool of futures does the same, but costs a tenth of a batch's step. Helpers end with `close`, or with the crew.
    """

    def __init__(self, size: int) -> None:
        self._inbox: Inbox = SimpleQueue()
        self._helpers = [Thread(target=_help, args=(self._inbox,), name="mujoco", daemon=True) for _ in range(size - 1)]
        for helper in self._helpers:
            helper.start()
        self._dismiss = finalize(self, _dismiss, self._inbox, size - 1)

    def run(self, work: Callable[[Iterator[int]], None], items: Sequence[int]) -> None:
        """Whoever is free takes the next item; what anyone raises is raised here, once all have finished."""
        if not self._dismiss.alive:
            raise RuntimeError("the simulator's threads have been closed")
        share, answers = partial(_attempt, work, iter(items)), SimpleQueue[BaseException | None]()
        for _ in self._helpers:
            self._inbox.put((share, answers))
        failures = [share(), *(answers.get() for _ in self._helpers)]
        for failure in filter(None, failures):
            raise failure

    def close(self) -> None:
        """End the threads."""
        self._dismiss()
        for helper in self._helpers:
            helper.join()


def _attempt(work: Callable[[Iterator[int]], None], items: Iterator[int]) -> BaseException | None:
    try:
        work(items)
    except BaseException as failure:
        return failure
    return None


def _help(inbox: Inbox) -> None:
    while (job := inbox.get()) is not None:
        share, answers = job
        answers.put(share())
        del job, share, answers  # A waiting thread must not keep alive what it worked for.


def _dismiss(inbox: Inbox, count: int) -> None:
    for _ in range(count):
        inbox.put(None)


class MujocoPool:
    """Copies of one of Gymnasium's MuJoCo tasks.

    Args:
        env_id: an id for which `has_task` holds.
        num_envs: how many copies.
        num_threads: that step them, the caller's included; None takes one per core.
    """

    def __init__(self, env_id: str, num_envs: int, num_threads: int | None = None) -> None:
        env = make_gym(env_id)
        self.num_envs = num_envs
        self.observation_space: gym.Space[Any] = env.observation_space
        self.action_space: gym.Space[Any] = env.action_space
        unwrapped: Any = env.unwrapped
        self._task = task_of(unwrapped)
        self._model, self._frame_skip = unwrapped.model, unwrapped.frame_skip
        self._data = [mujoco.MjData(self._model) for _ in range(num_envs)]
        self._ctrl = [data.ctrl for data in self._data]
        names = {*self._task.fields, *self._task.compared}
        self._views = {name: [getattr(data, name).reshape(-1) for data in self._data] for name in names}
        self._wants_contacts = "cfrc_ext" in names
        self._time_limit = (env.spec and env.spec.max_episode_steps) or np.inf
        self._elapsed = np.full(num_envs, np.inf)
        self._crew = Crew(min(num_threads or len(usable_cores()), num_envs))

    def reset(self, envs: Sequence[int], seeds: Sequence[int]) -> Array:
        """Start an episode in some copies, one seed each; returns their first observations."""
        for env, seed in zip(envs, seeds, strict=True):
            data = self._data[env]
            mujoco.mj_resetData(self._model, data)
            data.qpos[:], data.qvel[:] = self._task.start(np.random.default_rng(seed))
            mujoco.mj_forward(self._model, data)
        self._elapsed[envs] = 0
        return self._task.observe(self._read(self._task.fields, envs))

    def step(self, envs: Sequence[int], action: Array) -> Outcome:
        """Take one action in each of some copies."""
        if np.isinf(self._elapsed[envs]).any():
            raise gym.error.ResetNeeded("call reset() or restore() before step()")
        before = self._read(self._task.compared, envs)
        for env, controls in zip(envs, action, strict=True):
            self._ctrl[env][:] = controls
        self._crew.run(self._simulate, envs)
        now = self._read(self._task.fields, envs)
        self._elapsed[envs] += 1
        reward, terminated = self._task.judge(before, now, action)
        return self._task.observe(now), reward, terminated, self._elapsed[envs] >= self._time_limit

    def close(self) -> None:
        """End the threads."""
        self._crew.close()

    def _simulate(self, envs: Iterator[int]) -> None:
        for env in envs:
            mujoco.mj_step(self._model, self._data[env], self._frame_skip)
            if self._wants_contacts:
                # MuJoCo computes the forces between bodies only when asked.
                mujoco.mj_rnePostConstraint(self._model, self._data[env])

    def _read(self, names: Sequence[str], envs: Sequence[int]) -> Readings:
        return {name: np.concatenate([self._views[name][env] for env in envs]).reshape(len(envs), -1) for name in names}

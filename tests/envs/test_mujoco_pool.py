"""The pooled MuJoCo tasks are Gymnasium's to the last bit, and their threads come and go with the batch."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ilde.envs import EnvBatch, make_envs
from ilde.envs.gym_batch import GymBatch, GymLoop
from ilde.envs.gymnasium_make import make_gym
from ilde.envs.mujoco_pool import Crew, MujocoPool
from ilde.envs.mujoco_tasks import has_task
from ilde.envs.seeded_batch import Copies, SeededBatch

NAMES = ("HalfCheetah", "Hopper", "Walker2d", "Ant", "HumanoidStandup", "Reacher")
ROWS = range(2)
SHORT = "ShortHopper-v0"


def gymnasium_batch(env_id: str, num_envs: int = 2, *, clip_actions: bool = False) -> EnvBatch:
    return GymBatch(env_id, lambda: make_gym(env_id), num_envs, 3, clip_actions=clip_actions)


def pooled_batch(env_id: str, num_envs: int = 2, *, threads: int = 2, clip_actions: bool = False) -> EnvBatch:
    return SeededBatch(env_id, MujocoPool(env_id, num_envs, threads), 3, clip_actions=clip_actions)


def actions_for(envs: Any, count: int, steps: int, *, scale: float = 1.5, seed: int = 0) -> Any:
    """Gaussian, so that many are out of range."""
    shape = (steps, count, *envs.action_space.shape)
    return (scale * np.random.default_rng(seed).normal(size=shape)).astype(np.float32)


def assert_same_bits(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    for left, right in zip(one, other, strict=True):
        assert left.dtype == right.dtype
        assert left.tobytes() == right.tobytes(), np.flatnonzero(np.ravel(left != right))


def assert_same_steps(one: EnvBatch, other: EnvBatch, steps: int, seed: int) -> None:
    for action in actions_for(one, one.num_envs, steps, seed=seed):
        left, right = one.step(action), other.step(action)
        assert_same_bits(tuple(vars(left).values())[:-1], tuple(vars(right).values())[:-1])
        assert left.scores == right.scores


def endings(theirs: Copies, ours: Copies, actions: Any) -> tuple[int, int]:
    """Terminated and truncated episodes of both sides, stepped and reset alike and compared bit by bit."""
    counts = np.zeros(2, dtype=int)
    assert_same_bits((theirs.reset(ROWS, [5, 6]),), (ours.reset(ROWS, [5, 6]),))
    for time_step, action in enumerate(actions):
        expected, got = theirs.step(ROWS, action), ours.step(ROWS, action)
        assert_same_bits(expected, got)
        terminated, truncated = expected[2:]
        counts += terminated.sum(), (truncated & ~terminated).sum()
        over = np.flatnonzero(terminated | truncated).tolist()
        seeds = [1000 + 2 * time_step + env for env in over]
        if over:
            assert_same_bits((theirs.reset(over, seeds),), (ours.reset(over, seeds),))
    return int(counts[0]), int(counts[1])


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("name", NAMES)
def test_whole_episodes_are_gymnasiums_to_the_last_bit(name: str, version: int) -> None:
    env_id = f"{name}-v{version}"
    theirs, ours = GymLoop(lambda: make_gym(env_id), 2), MujocoPool(env_id, 2, 2)
    falls = name in ("Hopper", "Walker2d", "Ant")
    steps = 250 if falls else (gym.spec(env_id).max_episode_steps or 0) + 5
    terminated, truncated = endings(theirs, ours, actions_for(ours, 2, steps))
    ours.close()
    assert terminated >= 5 if falls else (terminated, truncated) == (0, 2)


@pytest.fixture
def registered() -> Iterator[Any]:
    """Registers ids for the length of a test."""
    names: list[str] = []

    def register(name: str, **arguments: Any) -> None:
        names.append(name)
        gym.register(name, **arguments)

    yield register
    for name in names:
        del gym.registry[name]


def test_the_time_limit_is_that_of_the_id(registered: Any) -> None:
    registered(SHORT, entry_point="gymnasium.envs.mujoco.hopper_v5:HopperEnv", max_episode_steps=7)
    theirs, ours = GymLoop(lambda: make_gym(SHORT), 2), MujocoPool(SHORT, 2, 1)
    assert endings(theirs, ours, actions_for(ours, 2, 30, scale=0.01)) == (0, 2 * (30 // 7))


def test_an_ant_that_stands_still_is_no_different() -> None:
    theirs, ours = GymLoop(lambda: make_gym("Ant-v5"), 2), MujocoPool("Ant-v5", 2, 1)
    assert endings(theirs, ours, np.zeros((60, 2, 8), dtype=np.float32)) == (0, 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_simulation_that_blows_up_goes_on_as_gymnasiums_does(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo logs its warning to a file here
    env_id = f"{name}-v5"
    theirs, ours = GymLoop(lambda: make_gym(env_id), 2), MujocoPool(env_id, 2, 1)
    for copies in (theirs, ours):
        copies.reset(ROWS, [5, 6])
    unwrapped: Any = theirs._envs[1].unwrapped
    for data in (unwrapped.data, ours._data[1]):
        data.qvel[0] = 1e12
    for action in actions_for(ours, 2, 5):
        assert_same_bits(theirs.step(ROWS, action), ours.step(ROWS, action))
    assert unwrapped.data.warning.number.sum() > 0, "nothing blew up: the test would prove little"


@pytest.mark.parametrize("clip_actions", [False, True])
@pytest.mark.parametrize("env_id", ["Hopper-v5", "Walker2d-v4", "Ant-v5", "HumanoidStandup-v5", "Reacher-v4"])
def test_a_saved_batch_goes_on_with_either_simulator(env_id: str, clip_actions: bool) -> None:
    pooled, looped = (make(env_id, 2, clip_actions=clip_actions) for make in (pooled_batch, gymnasium_batch))
    assert_same_bits((pooled.reset(),), (looped.reset(),))
    assert_same_steps(pooled, looped, 55, seed=1)
    from_loop, from_pool = (make(env_id, 2, clip_actions=clip_actions) for make in (pooled_batch, gymnasium_batch))
    assert_same_bits((from_loop.restore(looped.state()),), (from_pool.restore(pooled.state()),))
    assert (from_loop.resume_mode, from_pool.resume_mode) == ("exact", "exact")
    assert_same_steps(from_loop, from_pool, 15, seed=2)
    for batch in (pooled, from_loop):
        batch.close()


def test_the_number_of_threads_changes_nothing() -> None:
    batches = [pooled_batch("Walker2d-v5", 5, threads=threads) for threads in (1, 3)]
    assert_same_bits((batches[0].reset(),), (batches[1].reset(),))
    assert_same_steps(*batches, 60, seed=1)
    batches[1].close()


@pytest.fixture
def helpers() -> Callable[[], list[threading.Thread]]:
    """Lists the threads that have come since the test began and still live."""
    before = set(threading.enumerate())
    return lambda: [thread for thread in threading.enumerate() if thread not in before]


def test_threads_end_with_close(helpers: Any) -> None:
    envs = make_envs("Reacher-v5", 3, 0, num_threads=3)
    envs.reset()
    assert len(helpers()) == 2
    envs.close()
    envs.close()
    assert helpers() == []
    with pytest.raises(RuntimeError, match="threads have been closed"):
        envs.step(np.zeros((3, 2)))


@pytest.mark.parametrize(("num_envs", "num_threads"), [(3, 1), (1, None), (1, 8)])
def test_one_thread_or_one_copy_needs_no_helper(num_envs: int, num_threads: int | None, helpers: Any) -> None:
    envs = make_envs("Reacher-v5", num_envs, 0, num_threads=num_threads)
    envs.reset()
    envs.step(np.zeros((num_envs, 2)))
    assert helpers() == []


def test_threads_end_with_a_batch_that_nobody_closed(helpers: Any) -> None:
    envs = make_envs("Reacher-v5", 2, 0, num_threads=2)
    envs.reset()
    envs.step(np.zeros((2, 2)))
    threads = helpers()
    del envs
    gc.collect()
    for thread in threads:
        thread.join(timeout=10)
    assert len(threads) == 1
    assert helpers() == []


@pytest.mark.parametrize("who", ["helper", "caller"])
def test_what_a_thread_raises_is_raised_by_the_caller_once_all_have_finished(who: str) -> None:
    crew, meeting, finished = Crew(2), threading.Barrier(2), []

    def fail(items: Iterator[int]) -> None:
        for item in items:
            meeting.wait(timeout=10)
            if (threading.current_thread() is threading.main_thread()) == (who == "caller"):
                raise ValueError("broken")
            time.sleep(0.05)
            finished.append(item)

    with pytest.raises(ValueError, match="broken"):
        crew.run(fail, range(2))
    assert len(finished) == 1
    done: list[int] = []
    crew.run(done.extend, range(9))
    assert sorted(done) == list(range(9))
    crew.close()


def test_an_error_of_the_simulator_is_not_swallowed() -> None:
    pool = MujocoPool("Reacher-v5", 2, 2)
    pool.reset(ROWS, [0, 1])
    pool._data[1] = None
    with pytest.raises(TypeError, match="mj_step"):
        pool.step(ROWS, np.zeros((2, 2), dtype=np.float32))
    pool.close()


def test_a_step_needs_a_reset() -> None:
    with pytest.raises(gym.error.ResetNeeded):
        make_envs("Hopper-v5", 1, 0).step(np.zeros((1, 3)))


def test_a_non_finite_reward_names_env_and_step() -> None:
    envs = make_envs("Hopper-v5", 2, 0, num_threads=1)
    envs.reset()
    action = np.zeros((2, 3), dtype=np.float32)
    action[1] = 3e38
    with (
        pytest.warns(RuntimeWarning, match="overflow"),
        pytest.raises(FloatingPointError, match="Hopper-v5: environment 1 gave a non-finite reward at step 1"),
    ):
        envs.step(action)


def test_only_tasks_as_gymnasium_ships_them_are_pooled(registered: Any) -> None:
    hopper = "gymnasium.envs.mujoco.hopper_v5:HopperEnv"
    wrapper = gym.wrappers.ClipAction.wrapper_spec()
    registered("Own-v0", entry_point=lambda: make_gym("Hopper-v5"))
    registered("Tuned-v0", entry_point=hopper, kwargs={"healthy_reward": 2.0})
    registered("Wrapped-v0", entry_point=hopper, additional_wrappers=(wrapper,))
    assert all(has_task(f"{name}-v{version}") for name in NAMES for version in (4, 5))
    for env_id in ("Swimmer-v5", "CartPole-v1", "Own-v0", "Tuned-v0", "Wrapped-v0", "elsewhere:Hopper-v5"):
        assert not has_task(env_id), env_id
    assert not isinstance(make_envs("Hopper-v5", 1, 0), GymBatch)
    assert isinstance(make_envs("Tuned-v0", 1, 0), GymBatch)

"""Batches of Gymnasium environments: true successors, both kinds of ending, exact restoring."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ilde.data import UserError
from ilde.envs import Score, episode_seed, make_envs
from ilde.envs.gym_batch import GymBatch

GO_ON, TERMINATE, TRUNCATE = 0, 1, 2


def play(envs: Any, *actions: list[int]) -> Any:
    return [envs.step(np.array(action)) for action in actions][-1]


def test_next_obs_is_the_true_successor_and_obs_the_first_of_the_new_episode(counting_env: Any) -> None:
    envs = GymBatch("Counting", counting_env, 2, seed=0)
    first = envs.reset()
    step = play(envs, [GO_ON, GO_ON], [GO_ON, GO_ON], [TERMINATE, GO_ON])
    assert step.next_obs[:, 1].tolist() == [3, 3]
    assert step.obs[:, 1].tolist() == [0, 3]
    assert step.next_obs[0, 0] == first[0, 0]
    assert step.obs[0, 0] != first[0, 0]


def test_termination_and_time_limit_are_kept_apart(counting_env: Any) -> None:
    envs = GymBatch("Counting", counting_env, 3, seed=0)
    envs.reset()
    step = play(envs, [GO_ON, TERMINATE, TRUNCATE])
    assert step.terminated.tolist() == [False, True, False]
    assert step.truncated.tolist() == [False, False, True]


def test_a_score_is_the_whole_return_of_a_finished_episode(counting_env: Any) -> None:
    envs = GymBatch("Counting", counting_env, 2, seed=0)
    envs.reset()
    assert play(envs, [GO_ON, GO_ON], [GO_ON, GO_ON]).scores == ()
    assert play(envs, [GO_ON, TRUNCATE]).scores == (Score(env=1, total=1 + 2 + 3, length=3),)
    assert play(envs, [GO_ON, TERMINATE]).scores == (Score(env=1, total=1, length=1),)
    assert play(envs, [TERMINATE, GO_ON]).scores == (Score(env=0, total=1 + 2 + 3 + 4 + 5, length=5),)


def test_every_episode_is_reset_with_its_own_seed(counting_env: Any) -> None:
    envs = GymBatch("Counting", counting_env, 2, seed=7)
    first = envs.reset()
    second = play(envs, [TERMINATE, TERMINATE]).obs
    expected = [
        [np.random.default_rng(episode_seed(7, env, episode)).random() for env in range(2)] for episode in (0, 1)
    ]
    np.testing.assert_array_equal(first[:, 0], np.float32(expected[0]))
    np.testing.assert_array_equal(second[:, 0], np.float32(expected[1]))
    np.testing.assert_array_equal(envs.reset(), first)


def test_pendulum_ends_by_its_time_limit_only() -> None:
    envs = make_envs("Pendulum-v1", 1, seed=0)
    envs.reset()
    steps = [envs.step(np.zeros((1, 1))) for _ in range(200)]
    assert [bool(step.truncated[0]) for step in steps] == [False] * 199 + [True]
    assert not any(step.terminated[0] for step in steps)
    assert steps[-1].scores[0].length == 200
    assert not np.array_equal(steps[-1].obs, steps[-1].next_obs)


def test_cartpole_that_falls_is_terminated() -> None:
    envs = make_envs("CartPole-v1", 1, seed=0)
    envs.reset()
    step = next(step for step in (envs.step(np.ones(1, dtype=int)) for _ in range(50)) if step.scores)
    assert step.terminated[0]
    assert not step.truncated[0]
    assert step.scores[0].total == step.scores[0].length


def test_handed_out_arrays_never_change_again(counting_env: Any) -> None:
    envs = GymBatch("Counting", counting_env, 1, seed=0)
    first = envs.reset()
    one = play(envs, [GO_ON])
    play(envs, [GO_ON])
    assert (first[0, 1], one.obs[0, 1], one.next_obs[0, 1]) == (0, 1, 1)


@pytest.mark.parametrize(
    ("env_id", "before", "after"),
    [("CartPole-v1", 70, 60), ("HalfCheetah-v5", 60, 40), ("Hopper-v5", 90, 60), ("Hopper-v4", 40, 20)],
)
def test_restoring_is_exact(env_id: str, before: int, after: int, assert_restores_exactly: Any) -> None:
    steps = assert_restores_exactly(partial(make_envs, env_id, 3, seed=5), before, after)
    if env_id != "HalfCheetah-v5":
        assert any(step.scores for step in steps), "nothing ended before the save: the test would prove little"


def test_restoring_replays_clipped_actions_as_they_were_taken(assert_restores_exactly: Any) -> None:
    assert_restores_exactly(partial(make_envs, "Pendulum-v1", 2, seed=5, clip_actions=True), 30, 20)


def test_open_returns_go_on_after_restoring(counting_env: Any) -> None:
    original = GymBatch("Counting", counting_env, 1, seed=0)
    original.reset()
    play(original, [GO_ON], [GO_ON])
    restored = GymBatch("Counting", counting_env, 1, seed=0)
    restored.restore(original.state())
    assert play(restored, [TERMINATE]).scores == (Score(env=0, total=1 + 2 + 3, length=3),)


def test_an_irreproducible_env_goes_on_with_fresh_episodes(forgetful_env: Any, caplog: Any) -> None:
    original = GymBatch("Forgetful", forgetful_env, 2, seed=0)
    original.reset()
    play(original, [GO_ON, GO_ON], [TERMINATE, GO_ON], [GO_ON, GO_ON])
    restored = GymBatch("Forgetful", forgetful_env, 2, seed=0)
    obs = restored.restore(original.state())
    assert restored.resume_mode == "fresh-episodes"
    assert obs[:, 1].tolist() == [0, 0]
    assert play(restored, [TERMINATE, TERMINATE]).scores == (Score(0, 1.0, 1), Score(1, 1.0, 1))
    assert "open episodes are dropped" in caplog.text


def test_fresh_episodes_are_not_the_dropped_ones_again(counting_env: Any) -> None:
    original = GymBatch("Counting", counting_env, 1, seed=0)
    first = original.reset()
    state = original.state()
    state["obs"] = state["obs"] + 1
    restored = GymBatch("Counting", counting_env, 1, seed=0)
    assert restored.restore(state)[0, 0] != first[0, 0]
    assert restored.resume_mode == "fresh-episodes"


def test_a_state_of_another_number_of_envs_is_refused(counting_env: Any) -> None:
    original = GymBatch("Counting", counting_env, 3, seed=0)
    original.reset()
    with pytest.raises(UserError, match="holds 3 environments, this run has 2: set num_envs to 3"):
        GymBatch("Counting", counting_env, 2, seed=0).restore(original.state())


@pytest.mark.parametrize("value", [-1, 3, 2**40])
def test_a_discrete_action_out_of_range_is_named(value: int, counting_env: Any) -> None:
    envs = GymBatch("Counting", counting_env, 2, seed=0)
    envs.reset()
    with pytest.raises(ValueError, match=rf"action {value} of environment 1 is not in Discrete\(3\)"):
        envs.step(np.array([0, value]))


@pytest.mark.parametrize("action", [np.zeros(2), np.zeros((2, 1), dtype=int), np.zeros(3, dtype=int)])
def test_actions_of_another_shape_or_type_are_refused(action: Any, counting_env: Any) -> None:
    envs = GymBatch("Counting", counting_env, 2, seed=0)
    envs.reset()
    with pytest.raises(ValueError, match="actions"):
        envs.step(action)


class EchoEnv(gym.Env[Any, Any]):
    """Shows the action it was given, and gives its first number as the reward."""

    observation_space = gym.spaces.Box(-10, 10, (2,), np.float64)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(2), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs = np.array(action, dtype=np.float64)
        if action[1] == 5:
            obs[0] = np.nan
        if action[1] == 6:
            obs[0] = 1e300
        return obs, np.inf if action[1] == 7 else float(action[0]), False, False, {}


@pytest.mark.parametrize(("clip_actions", "taken"), [(False, [3.0, -2.0]), (True, [1.0, -1.0])])
def test_box_actions_pass_as_given_unless_clipping_is_asked_for(clip_actions: bool, taken: list[float]) -> None:
    envs = GymBatch(None, EchoEnv, 1, seed=0, clip_actions=clip_actions)
    envs.reset()
    step = envs.step(np.array([[3.0, -2.0]], dtype=np.float32))
    assert step.obs.tolist() == [taken]
    assert step.obs.dtype == step.reward.dtype == np.float32
    assert envs.obs_space.dtype == np.float32
    assert envs.env_id == "EchoEnv"


@pytest.mark.parametrize(("trigger", "name"), [(5, "observation"), (6, "observation"), (7, "reward")])
def test_a_non_finite_number_names_env_and_step(trigger: int, name: str) -> None:
    envs = GymBatch("Echo", EchoEnv, 2, seed=0)
    envs.reset()
    envs.step(np.zeros((2, 2)))
    with pytest.raises(FloatingPointError, match=f"Echo: environment 1 gave a non-finite {name} at step 2"):
        envs.step(np.array([[0, 0], [0, trigger]]))


def test_a_non_finite_action_is_refused() -> None:
    envs = GymBatch("Echo", EchoEnv, 2, seed=0)
    envs.reset()
    with pytest.raises(FloatingPointError, match="the action of environment 1 is not finite"):
        envs.step(np.array([[0, 0], [0, np.nan]]))


class Plain(gym.Env[Any, Any]):
    """An environment that knows no `render_mode`, and may break Gymnasium's contract."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)
    first: Any = np.zeros(2, np.float32)
    outcome: Any = (np.zeros(2, np.float32), 0.0, False, False, {})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self.first, {}

    def step(self, action: Any) -> Any:
        return self.outcome


def test_a_registered_class_need_not_know_how_to_draw() -> None:
    gym.register("ilde-test/Plain-v0", Plain)
    try:
        envs = make_envs("ilde-test/Plain-v0", 2, 0)
        assert envs.reset().shape == (2, 2)
    finally:
        del gym.registry["ilde-test/Plain-v0"]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"first": 0.5}, r"Plain: its observation has shape \(\), its space \(2,\)"),
        (
            {"outcome": (np.zeros(3), 0.0, False, False, {})},
            r"Plain: its observation has shape \(3,\), its space \(2,\)",
        ),
        ({"outcome": (np.zeros(2), 0.0, False, {})}, "Plain: its step returned 4 values; Gymnasium's returns 5"),
        ({"outcome": None}, "Plain: its step returned NoneType; Gymnasium's returns 5"),
        (
            {"outcome": (np.zeros(2), np.zeros(1), False, False, {})},
            r"Plain: its reward is a ndarray of shape \(1,\), not one number",
        ),
        (
            {"outcome": (np.zeros(2), [[1.0], [1.0, 2.0]], False, False, {})},
            "Plain: its reward is a list, not one number",
        ),
        ({"outcome": (np.zeros(2), None, False, False, {})}, "Plain: its reward is a NoneType, not one number"),
        (
            {"outcome": (np.zeros(2), 0.0, [False], False, {})},
            r"its terminated is a list of shape \(1,\), not one number",
        ),
        ({"outcome": (np.zeros(2), 0.0, False, "no", {})}, "its truncated is a str, not one number"),
        ({"reset": lambda: None}, r"Plain: its reset takes no seed; Gymnasium's is reset\(self, \*, seed=None"),
        ({"reset": lambda seed, /: None}, "Plain: its reset takes no seed"),
    ],
)
def test_what_breaks_gymnasiums_contract_is_named(broken: dict[str, Any], said: str) -> None:
    def build() -> Plain:
        env = Plain()
        vars(env).update(broken)
        return env

    def use(envs: Any) -> None:
        envs.reset()
        play(envs, [0])

    with pytest.raises(UserError, match=said):
        use(make_envs(build, 1, 0))


def test_a_single_value_may_be_an_array_of_no_dimension() -> None:
    env = Plain()
    env.outcome = (np.zeros(2, np.float32), np.array(2.5), np.array(True), np.bool_(False), {})
    envs = make_envs(lambda: env, 1, 0)
    envs.reset()
    step = envs.step(np.zeros(1, np.int64))
    assert (float(step.reward[0]), bool(step.terminated[0])) == (2.5, True)


def test_what_a_reset_does_wrong_inside_keeps_its_own_words() -> None:
    def spawn() -> None: ...

    def reset(*, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        spawn(wind=1.0)  # type: ignore[call-arg]

    env = Plain()
    vars(env).update(reset=reset)
    with pytest.raises(TypeError, match="unexpected keyword argument 'wind'"):
        make_envs(lambda: env, 1, 0).reset()


def test_a_factory_must_build_an_environment() -> None:
    with pytest.raises(UserError, match="env: it built a NoneType, not a Gymnasium environment"):
        make_envs(lambda: None, 1, 0)  # type: ignore[arg-type, return-value]


def test_a_module_that_is_not_found_is_answered_with_the_path() -> None:
    with pytest.raises(UserError, match=r"No module named 'no_such_module'; is its folder on PYTHONPATH\?"):
        make_envs("no_such_module:Thing-v0", 1, 0)

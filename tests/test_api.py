"""The one class most users meet."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from products import random_demos
from toys import SMALL, TINY, Corridor, corridor_demos

import ilde
from ilde import Imitator, UserError
from ilde.cli.main import main
from ilde.config import RunConfig
from ilde.demos import from_arrays
from ilde.demos import save as save_demos
from ilde.experiments.folders import reached
from ilde.launch import Progress, Silent, resume
from ilde.policies import load_policy
from ilde.prepare import demonstrator_return
from ilde.reports.outcomes import FinalScore, read_outcome
from ilde.runs import RunDirectory
from ilde.watching import load_to_play

QUICK = replace(TINY, method="ilde", num_envs=4, rollout_steps=16, rewards=SMALL)


def corridor(continuous: bool = False, config: RunConfig = QUICK, **choices: Any) -> Imitator:
    env = partial(Corridor, continuous=continuous)
    return Imitator(env, corridor_demos(continuous=continuous), config=config, **choices)


class Heard(Silent):
    def __init__(self) -> None:
        self.steps: list[tuple[int, int]] = []

    def progressed(self, progress: Progress) -> None:
        self.steps.append((progress.env_steps, progress.total_steps))


def weights(agent: Imitator) -> dict[str, Any]:
    assert isinstance(agent.policy, torch.nn.Module)
    return {name: tensor.clone() for name, tensor in agent.policy.state_dict().items()}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def test_learning_goes_on_when_called_again() -> None:
    agent, heard = corridor(), Heard()
    assert agent.learn(100, heard) is agent
    assert agent.env_steps == 128
    agent.learn(64, heard)
    assert heard.steps == [(64, 100), (128, 100), (192, 192)]


def test_the_learning_rate_falls_over_all_steps_asked_for() -> None:
    agent = corridor(config=replace(QUICK, ppo=replace(QUICK.ppo, anneal=True)))
    agent.learn(128)
    assert agent.config.steps == 128
    agent.learn(128)
    assert agent._trainer.progress == 1.0
    assert agent.config.steps == 256


def test_equal_seeds_learn_equal_policies_and_others_do_not() -> None:
    one, two, other = (corridor(seed=seed).learn(64) for seed in (5, 5, 6))
    assert same(weights(one), weights(two))
    assert not same(weights(one), weights(other))


UPDATE = SMALL.background_steps + 16
"""Steps that an environment alone takes until the end of the first update; the walk before the fit counts."""


class Breaking(Corridor):
    """Runs what is due at one of its steps."""

    due: Callable[[], None] = staticmethod(lambda: None)
    at = 0

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0

    def step(self, action: Any) -> Any:
        self.taken += 1
        if self.taken == type(self).at:
            type(self).due()
        return super().step(action)


def breaking(at: int, due: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> Imitator:
    monkeypatch.setattr(Breaking, "at", at)
    monkeypatch.setattr(Breaking, "due", staticmethod(due))
    demos = corridor_demos()
    demos = replace(demos, env_id="Breaking", header=replace(demos.header, env_id="Breaking"))
    return Imitator(Breaking, demos, config=replace(QUICK, num_envs=1))


def ctrl_c(times: int = 1) -> None:
    for _ in range(times):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_waits_for_the_update_and_learning_goes_on_as_if_it_had_never_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    undisturbed = breaking(-1, ctrl_c, monkeypatch).learn(48)
    agent = breaking(UPDATE + 5, ctrl_c, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        agent.learn(48)
    assert agent.env_steps == 2 * 16
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    agent.learn(16)
    assert same(weights(agent), weights(undisturbed))


def test_what_broke_off_in_an_update_goes_on_after_saving_and_loading(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    agent = breaking(UPDATE + 5, partial(ctrl_c, 2), monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        agent.learn(48)
    assert agent.env_steps == 16
    with pytest.raises(UserError, match="broken off in the middle of learning; save what was learned and load it"):
        agent.learn(48)
    agent.save(tmp_path / "run")
    monkeypatch.setattr(Breaking, "at", -1)
    loaded = Imitator.load(tmp_path / "run", env=Breaking)
    assert same(weights(loaded), weights(agent))
    assert loaded.learn(16).env_steps == 32


def test_what_broke_off_in_the_fit_is_not_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = corridor()
    with monkeypatch.context() as patched:
        patched.setattr(agent._trainer, "fit", lambda *demos: ctrl_c())
        with pytest.raises(KeyboardInterrupt):
            agent.learn(64)
    with pytest.raises(UserError, match="make a new Imitator"):
        agent.learn(64)


def test_whoever_handles_ctrl_c_goes_on_handling_it(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []
    former = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        assert breaking(UPDATE + 5, ctrl_c, monkeypatch).learn(48).env_steps == 48
    finally:
        signal.signal(signal.SIGINT, former)
    assert heard == [signal.SIGINT]


def test_learning_in_another_thread_leaves_ctrl_c_to_the_main_one() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: corridor().learn(64).env_steps).result(60) == 64


def test_a_single_observation_gives_a_single_action() -> None:
    agent = corridor()
    action, state = agent.predict(np.array([0.5]))
    assert (action.shape, state) == ((), None)
    batch, _ = agent.predict(np.array([[0.5], [0.1]], np.float32))
    assert batch.shape == (2,)
    assert batch[0] == action


def test_predicted_actions_are_clipped_where_the_settings_say_so() -> None:
    free, bound = (corridor(continuous=True, config=replace(QUICK, clip_actions=clips)) for clips in (False, True))
    for agent in (free, bound):
        with torch.no_grad():
            agent.policy.action_head.bias.fill_(5.0)  # type: ignore[attr-defined]
    assert bound.predict(np.array([0.0]))[0] == pytest.approx([1.0])
    assert free.predict(np.array([0.0]))[0] > 4.0


def test_sampled_actions_vary_and_deterministic_ones_do_not() -> None:
    agent = corridor(continuous=True)
    assert len({float(agent.predict(np.array([0.5]), deterministic=True)[0][0]) for _ in range(5)}) == 1
    assert len({float(agent.predict(np.array([0.5]), deterministic=False)[0][0]) for _ in range(5)}) > 1


@pytest.mark.parametrize("obs", [np.zeros(3), np.zeros((2, 2)), np.zeros(())])
def test_an_observation_of_another_shape_is_refused(obs: Any) -> None:
    with pytest.raises(UserError, match=r"the environment gives \(1,\), alone or in a batch"):
        corridor().predict(obs)


def test_evaluation_plays_whole_episodes_and_leaves_learning_alone() -> None:
    judged, left = corridor(seed=1).learn(64), corridor(seed=1).learn(64)
    evaluation = judged.evaluate(episodes=3)
    assert evaluation.lengths == (30, 30, 30)
    assert same(weights(judged.learn(64)), weights(left.learn(64)))


def test_a_saved_imitator_learns_on_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    whole = corridor().learn(64)
    path = whole.save(tmp_path / "run")
    loaded = Imitator.load(path, env=Corridor)
    assert loaded.env_steps == 64
    assert same(weights(whole.learn(64)), weights(loaded.learn(64)))
    assert loaded.save(tmp_path / "again").joinpath("metrics.jsonl").read_text().count("\n") == 3


def test_an_environment_of_ones_own_must_be_given_again(tmp_path: Path) -> None:
    path = corridor().learn(64).save(tmp_path / "run")
    with pytest.raises(UserError, match="made with an environment of your own; pass it as env"):
        Imitator.load(path)
    for take_up in (load_policy, resume, load_to_play):
        with pytest.raises(
            UserError, match=r"made with an environment of your own; take it up in Python: Imitator\.load"
        ):
            take_up(path)


def test_what_was_evaluated_is_saved_and_can_be_reported(tmp_path: Path) -> None:
    agent = corridor().learn(64)
    agent.evaluate(episodes=9)
    agent.learn(64)
    assert read_outcome(agent.save(tmp_path / "unmeasured"), "a").greedy is None  # it has learned since
    greedy, sampled = agent.evaluate(episodes=3), agent.evaluate(episodes=2, greedy=False)
    agent.evaluate(episodes=5, env=Corridor)
    outcome = read_outcome(agent.save(tmp_path / "run"), "a")
    for kept, played, episodes in ((outcome.greedy, greedy, 3), (outcome.sampled, sampled, 2)):
        length = float(f"{sum(played.lengths) / episodes:.5g}")
        assert kept == FinalScore(played.mean, played.std, episodes, 0, played.truncated, length, played.kinds)
    assert outcome.demonstrator == agent.demonstrator


def test_arrays_are_demonstrations_once_the_environment_is_named() -> None:
    episode = corridor_demos().episodes[0]
    env = partial(Corridor, continuous=False)
    demos = from_arrays(env, [(episode.obs, episode.action, episode.reward)] * 2, terminated=[False, True])
    assert [len(e) for e in demos.episodes] == [30, 30]
    assert [e.terminated for e in demos.episodes] == [False, True]
    for kept in demos.episodes:
        assert np.array_equal(kept.obs, episode.obs)
        assert np.array_equal(kept.action, episode.action)
        assert np.array_equal(kept.reward, episode.reward)
    assert demonstrator_return(demos) == pytest.approx(float(episode.reward.sum()))
    assert Imitator(env, demos, config=QUICK).learn(64).env_steps == 64
    # As many observations as actions: the last successor is not known.
    (short,) = from_arrays(env, [(episode.obs[:-1].tolist(), episode.action.tolist())]).episodes
    assert len(short) == 29
    assert short.obs.dtype == np.float32
    assert from_arrays(env, [(episode.obs, episode.action)]).header.returns == ()
    assert from_arrays(env, [(episode.obs, episode.action, None)]).header.returns == ()


@pytest.mark.parametrize(
    ("episodes", "said"),
    [
        ([], "arrays: no episodes"),
        ([(np.zeros((3, 1)),)], r"arrays: an episode is \(observations, actions\)"),
        ([(np.zeros((5, 1)), np.zeros(3, int))], "arrays: episode 0: observations .* expected as many of both"),
        ([(np.zeros((3, 2)), np.zeros(2, int))], r"arrays: observations \(2,\) float64; the environment gives \(1,\)"),
        ([(np.zeros((3, 1)), np.full(2, 7))], "arrays: episode 0 step 0: action 7 not in Discrete"),
        ([(np.full((3, 1), np.nan), np.zeros(2, int))], "arrays: episode 0 step 0: observation contains nan"),
        ([(np.zeros((3, 1)), np.zeros(2, int)), (np.zeros((3, 2)), np.zeros(2, int))], "of different shapes"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_in_one_line(episodes: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        from_arrays(Corridor, episodes)


def test_a_vector_environment_stays_open_for_its_owner() -> None:
    env, episode = SyncVectorEnv([Corridor], autoreset_mode=AutoresetMode.SAME_STEP), corridor_demos().episodes[0]
    assert len(from_arrays(env, [(episode.obs, episode.action)]).episodes) == 1
    assert not env.closed


def test_bare_arrays_are_answered_with_the_way_to_demonstrations() -> None:
    with pytest.raises(UserError, match=r"demos is a tuple; for arrays there is ilde\.demos\.from_arrays"):
        Imitator(Corridor, (np.zeros((3, 1)), np.zeros(2)), config=QUICK)  # type: ignore[arg-type]


def test_a_saved_run_is_one_the_command_line_can_take_up(tmp_path: Path) -> None:
    config = replace(QUICK, num_envs=2, rollout_steps=8, evaluation=replace(QUICK.evaluation, final_episodes=1))
    agent = Imitator("InvertedPendulum-v5", random_demos("InvertedPendulum-v5"), config=config).learn(16)
    path = agent.save(tmp_path / "run")
    loaded = load_policy(path)
    assert (loaded.env_steps, loaded.demonstrator) == (16, agent.demonstrator)
    run = resume(path)
    assert run.trainer.env_steps == 16
    assert run.train()
    run.folder.close()


@pytest.mark.parametrize("env", ["InvertedPendulum-v5", partial(gym.make, "InvertedPendulum-v5")])
def test_a_finished_run_that_was_never_evaluated_here_owes_nothing(
    tmp_path: Path, env: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    config = replace(QUICK, num_envs=2, rollout_steps=8)
    path = Imitator(env, random_demos("InvertedPendulum-v5"), config=config).learn(16).save(tmp_path / "run")
    assert main(["resume", str(path)]) == 0
    assert f"{path}: finished at 16 steps; nothing is left to do" in capsys.readouterr().out
    assert not RunDirectory.read(path).evaluations.rows()
    assert reached(path).state == "finished"  # as a study sees it


def test_demonstrations_may_be_a_file(tmp_path: Path) -> None:
    save_demos(corridor_demos(), tmp_path / "demos.npz")
    agent = Imitator(Corridor, tmp_path / "demos.npz", config=QUICK)
    assert agent.config.demos == str(tmp_path / "demos.npz")
    assert agent.demonstrator == pytest.approx(corridor_demos().mean_return)


def test_a_vector_environment_is_learned_in_but_not_evaluated_in() -> None:
    envs = SyncVectorEnv([Corridor] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    agent = Imitator(envs, None, "expert", config=QUICK).learn(48)
    assert agent.env_steps == 48
    with pytest.raises(UserError, match="pass env"):
        agent.evaluate()
    assert agent.evaluate(episodes=2, env=Corridor).lengths == (30, 30)
    agent.close()


def test_settings_come_from_a_preset_or_a_config_not_both() -> None:
    with pytest.raises(UserError, match="give one of them"):
        corridor(preset="quick")


def test_the_environment_chooses_the_preset() -> None:
    agent = Imitator("InvertedPendulum-v5", method="expert")
    assert (agent.config.preset, agent.config.method, agent.config.env) == ("quick", "expert", "InvertedPendulum-v5")


def test_nothing_learned_is_nothing_saved(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing learned yet"):
        corridor().save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_learned_policy_is_exported(tmp_path: Path) -> None:
    assert corridor().learn(64).export(tmp_path / "policy.onnx") < 1e-5
    assert (tmp_path / "policy.onnx").stat().st_size > 1000


def test_a_method_that_imitates_needs_demonstrations() -> None:
    with pytest.raises(UserError, match="learns from demonstrations"):
        Imitator(lambda: gym.make("InvertedPendulum-v5"), config=QUICK)


def test_importing_the_package_loads_nothing_heavy() -> None:
    script = "import sys, ilde; ilde.__version__; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_every_public_name_is_there() -> None:
    assert all(hasattr(ilde, name) for name in ilde.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Imitater'"):
        ilde.Imitater  # noqa: B018


def test_steps_may_be_written_as_a_float_that_is_whole(tmp_path: Path) -> None:
    agent = corridor().learn(1e2)
    assert agent.env_steps == 128
    saved = Imitator.load(agent.save(tmp_path / "run"), env=Corridor)
    assert saved.config.steps == 100
    for steps in (0, 0.5, 99.5, float("nan"), float("inf"), "10", None):
        with pytest.raises(UserError, match=r"total_timesteps is .*; need a whole number of at least 1"):
            agent.learn(steps)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="episodes is 0; need a whole number of at least 1"):
        agent.evaluate(episodes=0)
    with pytest.raises(UserError, match=r"seed is 1\.5; need a whole number of at least 0"):
        corridor(seed=1.5)


def test_a_loaded_run_has_the_demonstrations_it_began_with_wherever_they_lie(tmp_path: Path) -> None:
    file, moved = tmp_path / "mine.npz", tmp_path / "moved.npz"
    save_demos(corridor_demos(), file)
    run = Imitator(Corridor, file, config=QUICK).learn(64).save(tmp_path / "run")
    file.rename(moved)
    with pytest.raises(UserError, match="no such file"):
        Imitator.load(run, env=Corridor)
    assert Imitator.load(run, env=Corridor, demos=moved).env_steps == 64
    (episode, *_) = corridor_demos().episodes
    other = replace(corridor_demos(), episodes=(episode.prefix(0.5),))
    with pytest.raises(UserError, match="not the demonstrations this run began with"):
        Imitator.load(run, env=Corridor, demos=other)


def test_what_a_loaded_run_had_measured_is_saved_again_until_it_learns_on(tmp_path: Path) -> None:
    agent = corridor().learn(64)
    agent.evaluate(2)
    agent.evaluate(2, greedy=False)
    first = agent.save(tmp_path / "first")
    loaded = Imitator.load(first, env=Corridor)
    again = loaded.save(tmp_path / "again")
    assert (again / "evaluations.jsonl").read_bytes() == (first / "evaluations.jsonl").read_bytes()
    loaded.evaluate(3)
    rows = RunDirectory.read(loaded.save(tmp_path / "third")).evaluations.rows()
    assert sorted((row["greedy"], row["episodes"]) for row in rows) == [(False, 2), (True, 3)]
    assert not RunDirectory.read(loaded.learn(64).save(tmp_path / "fourth")).evaluations.rows()


def test_another_kind_of_environment_is_refused_in_one_line(tmp_path: Path) -> None:
    envs = SyncVectorEnv([Corridor] * 4, autoreset_mode=AutoresetMode.SAME_STEP)
    run = Imitator(envs, method="constant", config=QUICK).learn(64).save(tmp_path / "run")
    envs.close()
    with pytest.raises(UserError, match="made with another kind of environment; pass env as it was then"):
        Imitator.load(run, env=Corridor)


def test_the_reward_and_the_device_may_be_named_and_the_environments_are_freed() -> None:
    with corridor(reward="constant", device="cpu") as agent:
        assert repr(agent) == "<Imitator: ilde on Corridor, seed 0, 0 steps>"
        agent.learn(64)
        assert (agent.config.reward, agent.config.device) == ("constant", "cpu")


def test_a_device_is_checked_as_on_the_command_line() -> None:
    with pytest.raises(UserError, match=r"^device: 'gpu' is not one of auto, cpu, cuda$"):
        corridor(device="gpu")


def test_a_loaded_run_goes_on_with_the_threads_it_began_with(tmp_path: Path) -> None:
    path = corridor().learn(64).save(tmp_path / "run")
    provenance = json.loads((path / "provenance.json").read_text())
    (path / "provenance.json").write_text(json.dumps(provenance | {"threads": 3}))
    before = torch.get_num_threads()
    try:
        assert Imitator.load(path, env=Corridor).config.threads == torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_code_written_for_recurrent_policies_can_ask_for_actions() -> None:
    agent = corridor()
    action, state = agent.predict(
        np.zeros((2, 1), np.float32), state=None, episode_start=np.ones(2), deterministic=True
    )
    assert (action.shape, state) == ((2,), None)

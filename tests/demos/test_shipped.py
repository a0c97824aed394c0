"""The demonstrations in the package: nobody has to trust them, because they can be played again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ilde.demos import resolve
from ilde.demos.bundled import FOLDER, bundled_names, expert_of
from ilde.envs import single_env
from ilde.envs.atari import _native_env
from ilde.envs.names import atari_game, is_atari
from ilde.nets.distributions import Categorical
from ilde.nets.policy import ActorCritic
from ilde.policies import bundled_policy
from ilde.randomness import torch_generator


def replay(env_id: str, seed: int, actions: Any) -> list[Any]:
    """The observations that follow from a seed and some actions, by the simulator alone."""
    if is_atari(env_id):
        game = _native_env(atari_game(env_id), 1, 1)
        frames = [game.reset(seed=np.array([seed]))[0][0].copy()]
        for action in actions:
            obs, _, terminated, truncated, info = game.step(np.array([action]))
            # A finished game starts again within the step.
            frames.append((info["final_obs"] if (terminated | truncated)[0] else obs)[0].copy())
        game.close()
        return frames
    env = single_env(env_id, render=False)
    seen = [env.reset(seed=seed)[0]] + [env.step(action)[0] for action in actions]
    env.close()
    return seen


@pytest.mark.parametrize("name", bundled_names())
def test_replaying_the_actions_from_the_seed_gives_the_observations(name: str) -> None:
    demos = resolve(name)
    for episode in demos.episodes:
        assert episode.seed is not None
        # The emulator is exact everywhere; processors may round physics differently, and long episodes amplify that.
        steps, tolerance = (len(episode), 0.0) if episode.obs.dtype == np.uint8 else (100, 1e-5)
        seen = np.array(replay(demos.header.env_id, episode.seed, episode.action[:steps]), dtype=episode.obs.dtype)
        np.testing.assert_allclose(seen, episode.obs[: steps + 1], rtol=0, atol=tolerance)


def test_the_stored_actions_are_those_of_the_shipped_policy() -> None:
    demonstrator, episode = bundled_policy("halfcheetah-v5/weak-v0"), resolve("halfcheetah-v5/weak-v0").episodes[0]
    obs = torch.from_numpy(episode.obs[:-1].copy())
    action = demonstrator.policy.act(obs, torch_generator(0, "unused"), greedy=True).action.clamp(-1, 1)
    np.testing.assert_allclose(action.numpy(), episode.action, rtol=0, atol=1e-5)
    assert not episode.trembled.any()


@pytest.mark.parametrize(("name", "trembles"), [("one-life-v0", 0), ("one-life-tremble-0.3-v0", 1)])
def test_the_stored_moves_are_those_of_the_shipped_policy_trembles_apart(name: str, trembles: int) -> None:
    policy, episode = bundled_policy("beam_rider/one-life-v0").policy, resolve(f"beam_rider/{name}").episodes[0]
    assert isinstance(policy, ActorCritic)
    with torch.no_grad():
        distribution, _ = policy(torch.from_numpy(episode.obs[:-1].copy()))
    assert isinstance(distribution, Categorical)
    own = torch.from_numpy(~episode.trembled)
    chosen = distribution.log_prob(torch.from_numpy(episode.action))[own]
    # Two moves may be worth the same to the last digits, which depend on how many games are judged together.
    assert float((distribution.log_probs.max(-1).values[own] - chosen).max()) < 1e-4
    assert (int(episode.trembled.sum()) > 0) == bool(trembles)


def test_a_demonstrator_was_measured_over_many_episodes() -> None:
    for name in bundled_names():
        measured = resolve(name).header.demonstrator
        assert measured is not None
        assert measured.episodes >= 20


def test_every_task_of_the_paper_has_its_recordings() -> None:
    games = ("beam_rider", "demon_attack", "battle_zone", "qbert", "krull", "star_gunner")
    bodies = ("reacher-v4", "hopper-v4", "walker2d-v4", "humanoidstandup-v4", "ant-v4")
    wanted = {f"{game}/{kind}-v0" for game in games for kind in ("one-life", "full")}
    wanted |= {f"{body}/{kind}-v0" for body in bodies for kind in ("four", "one")}
    assert wanted <= set(bundled_names())
    for name in wanted:
        header = resolve(name).header
        assert header.greedy
        assert header.recorder.startswith(f"expert on {header.env_id}, seed 0, ")
        assert header.until == ("life" if "one-life" in name else "episode")
        assert "one-life" not in name or header.lives == (1,)
        assert header.demonstrator is not None
        assert header.demonstrator.episodes == 30


def test_the_package_stays_small() -> None:
    assert sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file()) < 20_000_000


def test_every_expert_has_its_command_and_its_commit() -> None:
    for name in bundled_names():
        demos = resolve(name)
        expert = expert_of(demos)
        assert expert is not None, name
        assert expert["task"] == name.partition("/")[0]
        assert expert["command"].startswith(f"ilde train expert --env {demos.env_id} ")
        assert int(expert["commit"], 16) > 0

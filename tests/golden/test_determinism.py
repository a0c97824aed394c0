"""The same seed gives the same bits, another seed others, and a run that stopped goes on as if it never had."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toys import CPU, SMALL, TINY, poisoned

from ilde.data import Metrics, Transitions
from ilde.envs import make_envs
from ilde.learners.ppo import PPOConfig
from ilde.prepare import random_rollout
from ilde.rewards.entropy import EntropyConfig
from ilde.runs import read_checkpoint, write_checkpoint
from ilde.trainer import Trainer

CONFIG = replace(
    TINY,
    method="ilde",
    reward="vail + 10*giril + entropy + e3b",
    steps=1000,
    num_envs=3,
    rollout_steps=16,
    ppo=PPOConfig(learning_rate=1e-3, num_epochs=2, num_minibatches=2, hidden=16),
    # Fewer references than states, so that the thinning draws random numbers too.
    rewards=replace(SMALL, entropy=EntropyConfig(max_references=32)),
)

every_kind = pytest.mark.parametrize("env_id", ["CartPole-v1", "HalfCheetah-v5", "ALE/Pong-v5"])


def steps_of(env_id: str, steps: int, seed: int) -> Transitions:
    """Steps of a random policy (T, 2), their true reward withheld."""
    envs = make_envs(env_id, 2, seed)
    steps_taken = poisoned(random_rollout(envs, steps, seed, "test"))
    envs.close()
    return steps_taken


def fresh(env_id: str, seed: int = 0) -> Trainer:
    config = replace(CONFIG, env=env_id, seed=seed)
    return Trainer(config, make_envs(env_id, config.num_envs, seed, clip_actions=config.clip_actions), CPU)


def fitted(env_id: str, seed: int = 0) -> Trainer:
    trainer = fresh(env_id, seed)
    trainer.fit(steps_of(env_id, 6, 77).flatten(), steps_of(env_id, 16, 78))
    trainer.collector.restart()
    return trainer


def iterated(trainer: Trainer, count: int) -> list[Metrics]:
    return [trainer.iterate() for _ in range(count)]


def leaves(state: Any, path: str = "") -> dict[str, Any]:
    """The leaves of a state by their path."""
    if isinstance(state, dict | list | tuple):
        pairs = state.items() if isinstance(state, dict) else enumerate(state)
        return {key: leaf for name, part in pairs for key, leaf in leaves(part, f"{path}/{name}").items()}
    return {path: state}


def differing(one: Trainer, other: Trainer) -> list[str]:
    """The paths at which two runs hold different bits."""
    first, second = leaves(one.state_dict()), leaves(other.state_dict())
    shared = [path for path in first if path in second]
    changed = [path for path in shared if not np.array_equal(np.asarray(first[path]), np.asarray(second[path]))]
    return [*changed, *(first.keys() ^ second.keys())]


@every_kind
def test_the_same_seed_gives_the_same_bits(env_id: str) -> None:
    one, other = fitted(env_id), fitted(env_id)
    # No global generator may matter.
    torch.manual_seed(5)
    np.random.seed(5)
    rows = iterated(one, 2)
    assert rows == iterated(other, 2)
    assert differing(one, other) == []


@every_kind
def test_another_seed_gives_other_numbers(env_id: str) -> None:
    one, other = fitted(env_id, 0), fitted(env_id, 1)
    assert iterated(one, 1) != iterated(other, 1)
    changed = differing(one, other)
    for part in ("/learner/policy", "/reward/terms/vail/net", "/reward/terms/giril/net", "/collector/envs"):
        assert any(path.startswith(part) for path in changed), part


@every_kind
def test_a_run_that_stopped_goes_on_as_if_it_never_had(env_id: str, tmp_path: Path) -> None:
    original = fitted(env_id)
    iterated(original, 2)
    checkpoint = write_checkpoint(tmp_path, original.env_steps, original.state_dict(), header={})
    rows = iterated(original, 2)
    resumed = fresh(env_id)
    resumed.load_state_dict(read_checkpoint(checkpoint)[0])
    assert resumed.envs.resume_mode == "exact"
    assert rows == iterated(resumed, 2)
    assert differing(original, resumed) == []


@pytest.fixture(scope="module")
def stopped() -> tuple[dict[str, Any], list[Metrics]]:
    """A state in the middle of a run, and how that run went on."""
    trainer = fitted("CartPole-v1")
    iterated(trainer, 3)
    state = copy.deepcopy(trainer.state_dict())
    return state, iterated(trainer, 2)


def pick(state: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    """The dictionary that holds a path's last part, and that part."""
    *parents, last = path.split("/")
    for name in parents:
        state = state[name]
    return state, last


@pytest.mark.parametrize(
    "path",
    [
        "learner/policy",
        "learner/optimiser",
        "learner/generator",
        "reward/space",
        "reward/terms/vail/net",
        "reward/terms/vail/optimiser",
        "reward/terms/vail/generator",
        "reward/terms/giril/net",
        "reward/terms/entropy/generator",
        "reward/terms/e3b/net",
        "reward/terms/e3b/optimiser",
        "reward/terms/e3b/generator",
        "reward/terms/e3b/inverse",
        "reward/scales/giril",
        "reward/scales/entropy",
        "reward/total_scale",
        "reward/total_scale/accumulated",
        "collector/envs",
        "collector/generator",
        "collector/recent",
        "collector/episodes",
        "env_steps",
    ],
)
def test_every_part_of_the_state_matters(path: str, stopped: tuple[dict[str, Any], list[Metrics]]) -> None:
    whole, rows = stopped
    state = copy.deepcopy(whole)
    # Loading must not share memory with the state of another test, and the left-out part starts as in a new run.
    trainer = fresh("CartPole-v1")
    holder, name = pick(state, path)
    source, _ = pick(copy.deepcopy(trainer.state_dict()), path)
    holder[name] = source[name]
    trainer.load_state_dict(state)
    assert iterated(trainer, 2) != rows

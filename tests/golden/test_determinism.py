"""The same seed gives the same bits, another seed others, and a run that stopped goes on as if it never had."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toys import CPU, HYPE, SMALL, TINY, poisoned

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
# The warm-up ends between the second rollout of 48 steps and the third, and the buffer is full before the fourth.
REPLAYING = replace(
    CONFIG,
    reward=None,
    sac=replace(TINY.sac, batch_size=8, warm_up=100, replay_size=170, demo_share=0.5, demo_share_steps=10),
    iq=replace(TINY.iq, batch_size=8, warm_up=100, replay_size=170),
    rewards=replace(
        SMALL,
        discriminator=replace(HYPE, batch_size=4, slowing=True),
        entropy=EntropyConfig(max_references=32, window=80),
    ),
)

every_replaying_row = pytest.mark.parametrize(
    ("method", "env_id"),
    [
        ("sac", "HalfCheetah-v5"),
        ("hype", "HalfCheetah-v5"),
        ("hype-ilde", "HalfCheetah-v5"),
        ("iq-learn", "HalfCheetah-v5"),
        ("iq-learn", "CartPole-v1"),
        ("iq-learn", "ALE/Pong-v5"),
    ],
)
every_kind = pytest.mark.parametrize("env_id", ["CartPole-v1", "HalfCheetah-v5", "ALE/Pong-v5"])


def steps_of(env_id: str, steps: int, seed: int) -> Transitions:
    """Steps of a random policy (T, 2), their true reward withheld."""
    envs = make_envs(env_id, 2, seed)
    steps_taken = poisoned(random_rollout(envs, steps, seed, "test"))
    envs.close()
    return steps_taken


def fresh(env_id: str, seed: int = 0, method: str = "ilde") -> Trainer:
    config = replace(CONFIG if method == "ilde" else REPLAYING, env=env_id, seed=seed, method=method)
    return Trainer(config, make_envs(env_id, config.num_envs, seed, clip_actions=config.clip_actions), CPU)


def fitted(env_id: str, seed: int = 0, method: str = "ilde") -> Trainer:
    trainer = fresh(env_id, seed, method)
    demos = None if trainer.method.demos == "unused" else steps_of(env_id, 6, 77).flatten()
    trainer.fit(demos, steps_of(env_id, 16, 78))
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


def bits(leaf: Any) -> tuple[tuple[int, ...], bytes]:
    """Shape and bytes: a missing true reward, which is NaN, equals itself."""
    array = np.asarray(leaf)
    return array.shape, array.tobytes()


def differing(one: Trainer, other: Trainer) -> list[str]:
    """The paths at which two runs hold different bits."""
    first, second = leaves(one.state_dict()), leaves(other.state_dict())
    shared = [path for path in first if path in second]
    changed = [path for path in shared if bits(first[path]) != bits(second[path])]
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
    assert_goes_on(env_id, "ilde", 2, tmp_path)


@every_replaying_row
@pytest.mark.parametrize("stop_after", [1, 5])
def test_a_replaying_run_goes_on_as_if_it_never_had_stopped(
    method: str, env_id: str, stop_after: int, tmp_path: Path
) -> None:
    assert_goes_on(env_id, method, stop_after, tmp_path)


def assert_goes_on(env_id: str, method: str, stop_after: int, folder: Path) -> None:
    original = fitted(env_id, method=method)
    iterated(original, stop_after)
    checkpoint = write_checkpoint(folder, original.env_steps, original.state_dict(), header={})
    rows = iterated(original, 2)
    resumed = fresh(env_id, method=method)
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


@pytest.fixture(scope="module")
def stopped_replaying() -> tuple[dict[str, Any], list[Metrics]]:
    """The same for HyPE-ILDE, after its warm-up and between two rounds of its discriminator."""
    trainer = fitted("HalfCheetah-v5", method="hype-ilde")
    iterated(trainer, 5)
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
    assert_matters(path, fresh("CartPole-v1"), stopped)


@pytest.mark.parametrize(
    "path",
    [
        "learner/agent/actor",
        "learner/agent/critics",
        "learner/agent/target_critics",
        "learner/agent/log_temperature",
        "learner/agent/actor_optimiser",
        "learner/agent/critic_optimiser",
        "learner/replay",
        "learner/replay/added",
        "learner/demos",
        "learner/gradient_steps",
        "learner/generator",
        "reward/terms/gail/rounds",
        "reward/terms/gail/waiting",
        "reward/terms/entropy/seen",
    ],
)
def test_every_part_of_a_replaying_state_matters(
    path: str, stopped_replaying: tuple[dict[str, Any], list[Metrics]]
) -> None:
    assert_matters(path, fresh("HalfCheetah-v5", method="hype-ilde"), stopped_replaying)


def assert_matters(path: str, trainer: Trainer, stopped: tuple[dict[str, Any], list[Metrics]]) -> None:
    whole, rows = stopped
    # Loading must not share memory with the state of another test, and the left-out part starts as in a new run.
    state = copy.deepcopy(whole)
    holder, name = pick(state, path)
    source, _ = pick(copy.deepcopy(trainer.state_dict()), path)
    holder[name] = source[name]
    trainer.load_state_dict(state)
    assert iterated(trainer, 2) != rows

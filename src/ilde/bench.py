"""The speed of this machine: what an iteration of ILDE costs, part by part, beside the bare simulator's limit."""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle, islice
from typing import Any

import torch
from rich.table import Table

from ilde.config import Device, RunConfig, find_preset
from ilde.data import Metrics, Transitions, UserError
from ilde.envs import EnvBatch, canonical_env_id, make_envs
from ilde.envs.names import is_atari
from ilde.nets.policy import UniformPolicy
from ilde.nets.steps import WARM_UP
from ilde.prepare import choose_device, make_training_envs, random_rollout, settle
from ilde.randomness import torch_generator
from ilde.rewards.base import Encoded, encode
from ilde.rewards.compose import ScaledTerm
from ilde.trainer import Trainer

DEMO_STEPS = 200
"""A random policy's steps stand in for a demonstration: they cost what any others would."""


def bench(env: str, *, seconds: float = 3.0, num_envs: int | None = None, device: Device = "auto") -> dict[str, Any]:
    """Measure each part for about `seconds`, at least once; `fraction_of_limit` is end-to-end over raw speed."""
    if not seconds > 0:
        raise UserError(f"seconds {seconds}: measure for some time, such as 3")
    place, threads = choose_device(device), torch.get_num_threads()
    config = _configure(env, num_envs, place)
    bare = make_envs(config.env, config.num_envs, config.seed, clip_actions=True)
    envs = make_training_envs(config, place)
    # Both act in the same environments: what they see does not matter here, and hundreds of games take long to load.
    trainer, blind = (_fitted(chosen, envs, place) for chosen in (config, replace(config, method="constant")))
    try:
        settle(config, envs, place)
        acting = config.num_envs / _act(trainer, seconds)
        timed = Timed(trainer)
        works = (bare_simulation(bare, config.rollout_steps), timed.iterate, blind.iterate)
        _warm_up(works, place)
        timed.spent.clear()
        simulation, iteration, blind_iteration = _alternately(works, seconds, place)
        collecting, rewarding, learning = (timed.median(name) for name in ("collect", "reward", "learn"))
        features, terms = _reward_parts(trainer)
    finally:
        bare.close()
        envs.close()
        torch.set_num_threads(threads)
    steps = config.num_envs * config.rollout_steps
    raw = steps / simulation
    parts = {"simulator": simulation, "acting": steps / acting, "features": features, **terms, "update": learning}
    return {
        "env": config.env,
        "preset": config.preset,
        "device": torch.cuda.get_device_name() if place.type == "cuda" else "cpu",
        "cores": os.cpu_count(),
        "num_envs": config.num_envs,
        "rollout_steps": config.rollout_steps,
        "raw_steps_per_second": raw,
        "acting_steps_per_second": acting,
        "collect_seconds": collecting,
        "update_seconds": learning,
        "feature_seconds": features,
        "term_seconds": terms,
        "iteration_seconds": iteration,
        "ppo_iteration_seconds": blind_iteration,
        "steps_per_second": steps / iteration,
        "fraction_of_limit": steps / iteration / raw,
        "fraction_of_synchronous_limit": (steps / raw + learning + rewarding) / iteration,
        "reward_overhead": (iteration - blind_iteration) / (features + sum(terms.values())),
        "gpu_memory_bytes": torch.cuda.max_memory_allocated() if place.type == "cuda" else 0,
        "memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "bound_by": max(parts, key=lambda name: parts[name]),
    }


def table(result: dict[str, Any]) -> Table:
    """The measurements for a terminal."""
    where = f"{result['device']}, {result['cores']} cores"
    rollout = f"rollouts of {result['num_envs']} x {result['rollout_steps']}"
    shown = Table(title=f"{result['env']}, {rollout}", caption=where)
    shown.add_column("what")
    shown.add_column("value", justify="right")
    shown.add_row("simulator alone", f"{result['raw_steps_per_second']:,.0f} steps/s")
    shown.add_row("acting alone", f"{result['acting_steps_per_second']:,.0f} steps/s")
    shown.add_row("collecting a rollout", f"{result['collect_seconds']:.3f} s")
    shown.add_row("features of a rollout", f"{result['feature_seconds']:.3f} s")
    for name, spent in result["term_seconds"].items():
        shown.add_row(f"reward term {name}", f"{spent:.3f} s")
    shown.add_row("update of the policy", f"{result['update_seconds']:.3f} s")
    shown.add_row("a whole iteration", f"{result['iteration_seconds']:.3f} s")
    shown.add_row("without reward terms", f"{result['ppo_iteration_seconds']:.3f} s")
    shown.add_row("end to end", f"{result['steps_per_second']:,.0f} steps/s", style="bold")
    shown.add_row("of the simulator's limit", f"{result['fraction_of_limit']:.1%}", style="bold")
    shown.add_row("of simulator plus training", f"{result['fraction_of_synchronous_limit']:.1%}")
    shown.add_row("most time goes to", result["bound_by"])
    return shown


def _configure(env: str, num_envs: int | None, device: torch.device) -> RunConfig:
    env_id = canonical_env_id(env)
    config = find_preset("atari" if is_atari(env_id) else "quick")
    # What the generative model learns before interaction is no part of an iteration.
    rewards = replace(config.rewards, generative=replace(config.rewards.generative, epochs=1))
    config = replace(config, env=env_id, num_envs=config.num_envs if num_envs is None else num_envs, rewards=rewards)
    if not is_atari(env_id) or device.type == "cuda":
        return config
    # Without a GPU an iteration on images takes minutes; an eighth of it, in minibatches of equal size, tells as much.
    ppo = replace(config.ppo, num_minibatches=config.ppo.num_minibatches // 8)
    return replace(config, rollout_steps=config.rollout_steps // 8, ppo=ppo)


def _pace(work: Callable[[], object], seconds: float, device: torch.device) -> float:
    """Mean seconds of a call, from as many calls as fit into `seconds`."""
    calls, began = 0, time.perf_counter()
    while calls == 0 or time.perf_counter() - began < seconds:
        work()
        calls += 1
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return (time.perf_counter() - began) / calls


class Timed:
    """A trainer whose iterations are remembered by their parts."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.spent: list[Metrics] = []

    def iterate(self) -> None:
        """One iteration."""
        self.trainer.iterate()
        self.spent.append(self.trainer.seconds)

    def median(self, part: str) -> float:
        """Median seconds of a part."""
        return statistics.median(spent[f"time/{part}"] for spent in self.spent)


def bare_simulation(envs: EnvBatch, steps: int) -> Callable[[], object]:
    """As many steps of the bare simulator as a rollout has, with random actions: all environments, on all cores."""
    obs, policy, generator = (
        torch.from_numpy(envs.reset()),
        UniformPolicy(envs.action_space),
        torch_generator(0, "bench"),
    )
    actions = cycle([policy.act(obs, generator).action.numpy() for _ in range(64)])

    def simulate() -> None:
        for action in islice(actions, steps):
            envs.step(action)

    return simulate


def _fitted(config: RunConfig, envs: EnvBatch, device: torch.device) -> Trainer:
    trainer = Trainer(config, envs, device)
    steps: Transitions = random_rollout(envs, -(-DEMO_STEPS // envs.num_envs), config.seed, "bench")
    trainer.fit(steps.flatten().to(device), steps)
    trainer.collector.restart()
    return trainer


def _warm_up(works: Sequence[Callable[[], object]], device: torch.device) -> None:
    """On a GPU, take each until all it does is captured: a step made once in an iteration, in the last of these."""
    for work in works if device.type == "cuda" else ():
        for _ in range(WARM_UP + 1):
            work()


def _alternately(works: Sequence[Callable[[], object]], seconds: float, device: torch.device) -> list[float]:
    """Median seconds of each; they take turns, so that a machine whose speed changes changes it for all alike."""
    spent: list[list[float]] = [[] for _ in works]
    while sum(map(sum, spent)) < seconds * len(works):
        for work, times in zip(works, spent, strict=True):
            times.append(_pace(work, 0.0, device))
    return [statistics.median(times) for times in spent]


def _act(trainer: Trainer, seconds: float) -> float:
    """Seconds of one decision for all environments, as a run makes it, one group after the other."""
    actors = trainer.collector.actors

    def decide() -> None:
        for actor in actors:
            actor.restart()
            actor.begin()
            actor.finish()

    decide()  # compiles
    pace = _pace(decide, seconds, trainer.device)
    trainer.collector.restart()
    return pace


def _reward_parts(trainer: Trainer) -> tuple[float, dict[str, float]]:
    """Seconds for the features of a rollout, and for each term to learn from it and judge it."""
    reward, device = trainer.reward, trainer.device
    transitions = trainer.collector.collect().transitions
    encoded = encode(transitions, reward.space, reward.code)
    features = _pace(lambda: encode(transitions, reward.space, reward.code), 0.0, device)
    return features, {name: _term(term, encoded, device) for name, term in reward.terms.items()}


def _term(term: ScaledTerm, encoded: Encoded, device: torch.device) -> float:
    return _pace(lambda: (term.model.update(encoded), term.model.reward(encoded)), 0.0, device)

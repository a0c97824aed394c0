"""Everything before the first iteration: device, environments, demonstrations, and what is learned from them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import gymnasium as gym
import numpy as np
import torch

from ilde.allocation import keep_freed_memory
from ilde.collector import Collector
from ilde.config import Device, RunConfig, validated
from ilde.data import Metrics, Transitions, UserError
from ilde.demos import Demonstrations, resolve
from ilde.demos.bundled import findable
from ilde.demos.demonstrations import shuffle_transitions
from ilde.envs import EnvLike, make_envs
from ilde.envs.base import EnvBatch
from ilde.methods import Method, find_method
from ilde.nets.policy import UniformPolicy
from ilde.randomness import torch_generator
from ilde.rewards.expression import needs_demos, needs_features, parse_expression
from ilde.trainer import Trainer

TURNS = 4
"""Groups of games that take turns beside a GPU: with more the cores idle less, and the host has more to hand over."""
SMALLEST_IMAGE = 36
"""Pixels of a side that the policy's convolutions leave something of."""
WIDE, ASIDE = 3.0, 1.0
"""Half a range of actions, and a middle of one, in deviations of a policy that has learned nothing."""
WALK_CHUNK = 128
"""Steps of a random walk collected at a time."""


def choose_device(name: str) -> torch.device:
    """The device of that name, checked before any work."""
    if name not in get_args(Device):
        raise UserError(f"device {name!r}: is not one of {', '.join(get_args(Device))}")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("device cuda: no GPU can be used here; choose --device cpu")
    return torch.device(name)


def choose_threads(config: RunConfig, *, images: bool, device: torch.device) -> int:
    """Threads for tensors: one beside a GPU, where they would fight the simulator's, and one for small networks."""
    return config.threads or (torch.get_num_threads() if images and device.type == "cpu" else 1)


def settle(config: RunConfig, envs: EnvBatch, device: torch.device) -> None:
    """Make this process fit for the work: threads for tensors, and memory for images, which come by the megabyte."""
    images = len(envs.obs_space.shape) == 3
    torch.set_num_threads(choose_threads(config, images=images, device=device))
    if images:
        keep_freed_memory()


def random_rollout(envs: EnvBatch, steps: int, seed: int, role: str) -> Transitions:
    """A uniformly random policy's steps (T, N), from freshly reset environments."""
    policy = UniformPolicy(envs.action_space)
    return Collector(envs, policy, steps, torch_generator(seed, role), torch.device("cpu")).collect().transitions


def uses_demos(config: RunConfig) -> bool:
    """Whether a run learns from demonstrations: its method does, or a term of its reward."""
    method = find_method(config.method)
    return method.demos != "unused" or needs_demos(parse_expression(config.reward or method.reward))


def find_again(run: Path, config: RunConfig, where: str | None) -> Demonstrations | None:
    """The demonstrations of a run that goes on, if they do not lie where they did; None if nobody says so."""
    if where is not None:
        return resolve(where)
    if uses_demos(config) and not findable(config.demos or ""):
        remedy = "go on in the folder it began in, or name them with --demos"
        raise UserError(f"{run}: its demonstrations {config.demos} are not found from here; {remedy}")
    return None


def load_demos(
    config: RunConfig, method: Method, envs: EnvBatch, given: Demonstrations | None
) -> Demonstrations | None:
    """The demonstrations of a run, checked against its environment; None if the method does without."""
    if not uses_demos(config):
        return None
    if given is None and config.demos is None:
        raise UserError(f"method {method.name} learns from demonstrations; name them with --demos")
    demos = given if given is not None else resolve(config.demos or "")
    demos.check_matches(envs.env_id, envs.obs_space, envs.action_space, config.demos or "demonstrations")
    return demos


def prepare_demos(demos: Demonstrations | None, use: str, envs: EnvBatch, seed: int) -> Transitions | None:
    """What the reward models see of the demonstrations, controls included."""
    if demos is None:
        return None
    transitions = demos.transitions()
    if use == "shuffled":
        return shuffle_transitions(transitions, torch_generator(seed, "shuffle"))
    if use == "random-policy":
        return _random_walk(envs, len(transitions), seed)
    return transitions


def _random_walk(envs: EnvBatch, steps: int, seed: int) -> Transitions:
    """A uniformly random policy's steps (steps,) in the first environment, with no reward to read."""
    policy, generator = UniformPolicy(envs.action_space), torch_generator(seed, "wrong-demos")
    # A demonstration may be long and its frames large: the other environments' steps are dropped chunk by chunk.
    collector = Collector(envs, policy, min(steps, WALK_CHUNK), generator, torch.device("cpu"))
    rollouts = (collector.collect().transitions for _ in range(-(-steps // collector.steps)))
    chunks = [rollout.map(lambda x: x[:, 0].clone()) for rollout in rollouts]
    joined = {f.name: torch.cat([getattr(chunk, f.name) for chunk in chunks])[:steps] for f in fields(Transitions)}
    return Transitions(**joined | {"env_reward": torch.full((steps,), torch.nan)})


def fit(trainer: Trainer, demos: Demonstrations | None) -> Metrics:
    """Everything learned before interaction; the environments start anew afterwards."""
    config, envs, device = trainer.config, trainer.envs, trainer.device
    background = None
    if needs_features(parse_expression(config.reward or trainer.method.reward)):
        steps = max(1, config.rewards.background_steps // envs.num_envs)
        background = random_rollout(envs, steps, config.seed, "background")
    transitions = prepare_demos(demos, trainer.method.demos, envs, config.seed)
    metrics = trainer.fit(None if transitions is None else transitions.to(device), background)
    trainer.collector.restart()
    return metrics


def demonstrator_return(demos: Demonstrations | None) -> float | None:
    """What the demonstrator scores over whole episodes: measured over many, or else those of the recording.

    None where it recorded single lives only, which say nothing of a whole game, or where no rewards are known.
    """
    if demos is None:
        return None
    if (measured := demos.header.demonstrator) is not None:
        return measured.mean
    returns = demos.header.returns if demos.header.until == "episode" else ()
    return float(np.mean(returns)) if returns else None


def make_training_envs(config: RunConfig, device: torch.device, env: EnvLike | None = None) -> EnvBatch:
    """The environments of a run; beside a GPU some of the games step while actions are chosen for others."""
    groups = TURNS if device.type == "cuda" else 1
    source = config.env if env is None else env
    return make_envs(source, config.num_envs, config.seed, clip_actions=config.clip_actions, num_groups=groups)


def build(
    config: RunConfig, *, env: EnvLike | None = None, demos: Demonstrations | None = None
) -> tuple[Trainer, Demonstrations | None]:
    """A trainer that has learned nothing yet, and its demonstrations."""
    config = validated(config)
    method = find_method(config.method)
    parse_expression(config.reward or method.reward)
    device = choose_device(config.device)
    envs = make_training_envs(config, device, env)
    check_images(envs)
    settle(config, envs, device)
    demos = load_demos(config, method, envs, demos)
    trainer = Trainer(config, envs, device)
    check_replay(trainer, demos)
    return trainer, demos


def check_images(envs: EnvBatch) -> None:
    """Refuse images too small for the networks."""
    shape = envs.obs_space.shape
    if len(shape) == 3 and min(shape[1:]) < SMALLEST_IMAGE:
        small = f"images of {shape[1]} x {shape[2]} pixels; need at least {SMALLEST_IMAGE} x {SMALLEST_IMAGE}"
        raise UserError(f"{envs.env_id}: {small}: gymnasium's ResizeObservation")


def action_remark(config: RunConfig, space: gym.Space[Any]) -> str | None:
    """What stands in the way of a Gaussian policy, which begins around 0 with a deviation of about 1, unscaled."""
    if find_method(config.method).learner not in ("ppo", "bc") or not isinstance(space, gym.spaces.Box):
        return None
    bounded = np.isfinite(space.low) & np.isfinite(space.high)
    low, high = (np.where(bounded, side, 0.0) for side in (space.low, space.high))
    wide, aside = (high - low) / 2 > WIDE, np.abs(high + low) / 2 > ASIDE
    if not (wide | aside).any():
        return None
    found = next(index for index in np.ndindex(space.shape) if wide[index] or aside[index])
    return (
        f"actions of {config.method} begin around 0 with a deviation of about 1, and one goes from {low[found]:g} to "
        f"{high[found]:g}: gymnasium's RescaleAction to -1 and 1 makes it learn sooner, or at all"
    )


def check_replay(trainer: Trainer, demos: Demonstrations | None) -> None:
    """Refuse rewards that cannot be computed for what a replaying learner draws."""
    method, config = trainer.method, trainer.config
    if method.replays and trainer.reward.episodic:
        names = ", ".join(trainer.reward.episodic)
        raise UserError(f"method {method.name} replays single steps, but {names} needs whole episodes; leave it out")
    mixes = method.learner == "sac" and demos is not None and config.sac.demo_share + config.sac.final_demo_share > 0
    if mixes and "env" in trainer.reward.terms:
        raise UserError(
            "reward env: demonstrations carry no true reward; set --sac.demo-share 0 --sac.final-demo-share 0"
        )

"""The run that `kill_test.py` kills: everything a run has, in seconds."""

from __future__ import annotations

import importlib
import os
from dataclasses import replace
from pathlib import Path

import torch

from ilde.config import EvaluationConfig, RunConfig
from ilde.demos import record, save
from ilde.demos.recording import Provenance, random_policy
from ilde.envs import make_envs, simulator_versions
from ilde.launch import Progress, Silent, resume, start
from ilde.learners.iq_learn import IQLearnConfig
from ilde.learners.ppo import PPOConfig
from ilde.learners.sac import SACConfig
from ilde.nets.layers import linear, orthogonal
from ilde.randomness import numpy_generator
from ilde.rewards.build import RewardConfig
from ilde.rewards.discriminator import DiscriminatorConfig
from ilde.rewards.generative import GenerativeConfig

MAX_EPISODE = 100
"""Steps at which the final evaluation cuts: an untrained policy may never end a game."""

TINY = RunConfig(
    method="ilde",
    num_envs=2,
    checkpoint_every=2,
    device="cpu",
    threads=1,
    ppo=PPOConfig(num_epochs=2, num_minibatches=4, hidden=16),
    sac=SACConfig(batch_size=16, updates_per_step=0.1, warm_up=300, replay_size=1000, hidden=16, demo_share_steps=100),
    iq=IQLearnConfig(batch_size=8, updates_per_step=0.1, warm_up=100, replay_size=1000, hidden=16),
    rewards=RewardConfig(
        generative=GenerativeConfig(epochs=3, subsample=1),
        discriminator=DiscriminatorConfig(batch_size=64),
        hidden=16,
        background_steps=64,
    ),
    evaluation=EvaluationConfig(every=4, episodes=2, final_episodes=2, max_steps=50, final_max_steps=MAX_EPISODE),
)


def tiny_config(method: str, env: str, demos: Path, updates: int, seed: int) -> RunConfig:
    """A run of some updates; where steps are cheap, 16 of them pass a time limit of 1000."""
    steps = 16 if env.startswith("ALE/") else 64
    total = updates * steps * TINY.num_envs
    return replace(TINY, method=method, env=env, demos=str(demos), seed=seed, rollout_steps=steps, steps=total)


def record_random_policy(env: str, path: Path, seed: int) -> None:
    """One episode of a uniformly random policy: demonstrations that every environment can give."""
    envs = make_envs(env, 1, seed)
    generator = numpy_generator(seed, "recording")
    origin = Provenance(
        recorder="random", greedy=False, simulator_versions=simulator_versions(), created="", command="", seed=seed
    )
    act = random_policy(envs.action_space, generator)
    save(record(envs, act, episodes=1, until="episode", tremble=0.0, generator=generator, provenance=origin), path)
    envs.close()


class Announcer(Silent):
    """Tells the process at the other end of a pipe of every update."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe

    def progressed(self, progress: Progress) -> None:
        """Send a byte."""
        os.write(self.pipe, b".")


def train(config: RunConfig, folder: Path, pipe: int | None = None) -> None:
    """Begin the run or go on with it, to its end."""
    torch.set_num_threads(1)
    listener = Silent() if pipe is None else Announcer(pipe)
    begun = (folder / "config.json").exists()
    run = resume(folder, listener) if begun else start(config, folder, listener)
    run.train()
    run.folder.close()


def warm_up() -> None:
    """Have the tensor library import what it imports on first use: else every fork would."""
    layer = linear(2, 2, orthogonal(1.0), torch.Generator())
    torch.optim.Adam(layer.parameters())
    importlib.import_module("torch.utils.tensorboard")

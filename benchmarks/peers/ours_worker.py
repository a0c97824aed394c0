"""Our side: the trainer of `ilde train`, without logging, evaluation and checkpoints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from clock import read_settings, report

from ilde.config import RunConfig, find_preset
from ilde.envs import make_envs
from ilde.prepare import random_rollout, settle
from ilde.trainer import Trainer

CPU = torch.device("cpu")


def configure(settings: Any) -> RunConfig:
    """The settings in our words; everything else is the preset's."""
    config = find_preset("atari" if settings.env.startswith("ALE/") else "quick")
    ppo = replace(
        config.ppo,
        learning_rate=settings.learning_rate,
        anneal=False,
        num_epochs=settings.num_epochs,
        num_minibatches=settings.num_minibatches,
        clip_range=settings.clip_range,
        hidden=settings.hidden,
    )
    discriminator = replace(
        config.rewards.discriminator,
        batch_size=settings.demo_batch,
        # Our unit is a pass over the demonstrations.
        passes=max(1, settings.reward_updates * settings.demo_batch // settings.demo_steps),
        input="state-action",
    )
    return replace(
        config,
        method=settings.method,
        env=settings.env,
        device="cpu",
        threads=settings.threads,
        num_envs=settings.num_envs,
        rollout_steps=settings.rollout_steps,
        ppo=ppo,
        rewards=replace(config.rewards, discriminator=discriminator, hidden=settings.reward_hidden),
    )


def build(config: RunConfig, demo_steps: int) -> Trainer:
    """A trainer past its first fit; a random policy's steps stand in for demonstrations: they cost as much."""
    envs = make_envs(config.env, config.num_envs, config.seed, clip_actions=config.clip_actions)
    settle(config, envs, CPU)
    trainer = Trainer(config, envs, CPU)
    if config.method == "gail":
        demos = random_rollout(envs, demo_steps // config.num_envs, config.seed, "demos")
        trainer.fit(demos.flatten(), demos)
        trainer.collector.restart()
    return trainer


def main() -> None:
    settings = read_settings()
    trainer = build(configure(settings), settings.demo_steps)
    report(settings, lambda iterations: [trainer.iterate() for _ in range(iterations)], "ale-py", "mujoco")


if __name__ == "__main__":
    main()

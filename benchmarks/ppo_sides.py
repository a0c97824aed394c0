"""The two sides of `ppo_vs_sb3.py`: one task's settings, given to our PPO and to Stable-Baselines3's."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from ilde.config import RunConfig
from ilde.learners.ppo import PPOConfig
from ilde.nets.distributions import ActionDistribution, Categorical, Gaussian
from ilde.nets.policy import Decision, Policy
from ilde.prepare import build
from ilde.rewards.build import RewardConfig
from ilde.rewards.compose import ScaleConfig

if TYPE_CHECKING:
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecNormalize

Library: TypeAlias = Literal["ours", "sb3"]
LIBRARIES: tuple[Library, ...] = ("ours", "sb3")
EPISODES = 20
"""Whole episodes each trained policy is measured on."""
REPORTS = 10
"""Progress lines per run."""


@dataclass(frozen=True)
class Settings:
    """What both libraries are given."""

    env: str
    num_envs: int = 8
    rollout_steps: int = 256
    batch_size: int = 256
    num_epochs: int = 10
    learning_rate: float = 3e-4
    clip_range: float = 0.2
    discount: float = 0.99
    gae_lambda: float = 0.95
    entropy_weight: float = 0.0
    squared_error_weight: float = 0.5
    max_grad_norm: float = 0.5
    hidden: int = 64


TASKS = {
    settings.env: settings
    for settings in (
        Settings("CartPole-v1", rollout_steps=128),
        Settings("Hopper-v5"),
        Settings("Walker2d-v5"),
    )
}


@dataclass(frozen=True)
class Job:
    """One training run."""

    library: Library
    env: str
    seed: int
    steps: int

    def __str__(self) -> str:
        return f"{self.library:4} {self.env:11} seed {self.seed}"

    def file(self, out: Path) -> Path:
        """Where its outcome is kept."""
        return out / f"{self.library}-{self.env}-{self.steps}-s{self.seed}.json"

    def description(self) -> dict[str, Any]:
        """All that decides its outcome but the versions."""
        return asdict(self) | {"settings": asdict(TASKS[self.env]), "episodes": EPISODES}


class Reporter:
    """Prints a line after every tenth of a run."""

    def __init__(self, job: Job) -> None:
        self.job, self.began, self.said = job, time.perf_counter(), 0

    def __call__(self, steps: int, recent: float | None) -> None:
        """Tell of the steps so far and the mean return of recent episodes."""
        part = steps * REPORTS // self.job.steps
        if part > self.said:
            self.said = part
            speed = steps / (time.perf_counter() - self.began)
            score = "-" if recent is None else f"{recent:.1f}"
            print(f"{self.job}: {steps:>9,} steps, return {score}, {speed:,.0f} steps/s", flush=True)


def our_config(job: Job) -> RunConfig:
    """The settings in our words."""
    task = TASKS[job.env]
    return RunConfig(
        method="expert",
        env=job.env,
        steps=job.steps,
        seed=job.seed,
        num_envs=task.num_envs,
        rollout_steps=task.rollout_steps,
        clip_actions=True,
        device="cpu",
        threads=1,
        ppo=PPOConfig(
            learning_rate=task.learning_rate,
            anneal=False,
            num_epochs=task.num_epochs,
            num_minibatches=task.num_envs * task.rollout_steps // task.batch_size,
            clip_range=task.clip_range,
            clip_value=False,
            discount=task.discount,
            gae_lambda=task.gae_lambda,
            entropy_weight=task.entropy_weight,
            # Our value loss is half the squared error.
            value_weight=2 * task.squared_error_weight,
            max_grad_norm=task.max_grad_norm,
            advantages="minibatch",
            hidden=task.hidden,
            initial_action_gain=0.01,  # as SB3 has it
        ),
        # One scale, that of the total, without forgetting: what VecNormalize does.
        rewards=RewardConfig(scale=ScaleConfig(terms="none", total=True, window=1e12, discount=task.discount)),
    )


def train_ours(job: Job) -> Policy:
    """Our PPO."""
    trainer, _ = build(our_config(job))
    report = Reporter(job)
    while not trainer.done:
        metrics = trainer.iterate()
        report(trainer.env_steps, metrics.get("rollout/ep_rew_mean"))
    return trainer.learner.policy


@dataclass(frozen=True)
class TheirPolicy:
    """An SB3 policy with its observation statistics as they stood at the end of training."""

    model: PPO
    normaliser: VecNormalize

    def act(self, obs: Tensor, generator: torch.Generator, *, greedy: bool = False) -> Decision:
        """Choose actions, drawing from the given generator."""
        normalised = torch.as_tensor(self.normaliser.normalize_obs(obs.numpy()), dtype=torch.float32)
        with torch.no_grad():
            theirs = self.model.policy.get_distribution(normalised).distribution
            value = self.model.policy.predict_values(normalised).squeeze(-1)
        distribution: ActionDistribution
        if isinstance(theirs, torch.distributions.Categorical):
            distribution = Categorical.of_logits(theirs.logits)
        else:
            assert isinstance(theirs, torch.distributions.Normal)
            distribution = Gaussian(theirs.mean, theirs.stddev.log())
        action = distribution.mode() if greedy else distribution.sample(generator)
        return Decision(action, distribution.log_prob(action), value)


def their_model(task: Settings, envs: VecNormalize, seed: int) -> PPO:
    """The settings in SB3's words."""
    from stable_baselines3 import PPO

    return PPO(
        "MlpPolicy",
        envs,
        learning_rate=task.learning_rate,
        n_steps=task.rollout_steps,
        batch_size=task.batch_size,
        n_epochs=task.num_epochs,
        gamma=task.discount,
        gae_lambda=task.gae_lambda,
        clip_range=task.clip_range,
        clip_range_vf=None,
        normalize_advantage=True,
        ent_coef=task.entropy_weight,
        vf_coef=task.squared_error_weight,
        max_grad_norm=task.max_grad_norm,
        policy_kwargs={"net_arch": [task.hidden] * 2, "activation_fn": torch.nn.Tanh, "ortho_init": True},
        seed=seed,
        device="cpu",
    )


def train_theirs(job: Job) -> Policy:
    """SB3's PPO."""
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

    report = Reporter(job)

    class Progress(BaseCallback):
        def _on_step(self) -> bool:
            return True

        def _on_rollout_end(self) -> None:
            recent = [episode["r"] for episode in self.model.ep_info_buffer or ()]
            report(self.num_timesteps, float(np.mean(recent)) if recent else None)

    task = TASKS[job.env]
    envs = VecMonitor(DummyVecEnv([lambda: gym.make(job.env)] * task.num_envs))
    normaliser = VecNormalize(envs, clip_obs=10.0, clip_reward=10.0, gamma=task.discount)
    model = their_model(task, normaliser, job.seed).learn(job.steps, callback=Progress())
    return TheirPolicy(model, normaliser)

"""The GAIL of `imitation`, with the normalisations of its own documentation: running statistics in both networks."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from clock import read_settings, report
from gymnasium.envs.mujoco.hopper_v4 import HopperEnv
from imitation.algorithms.adversarial.gail import GAIL
from imitation.data.types import Transitions
from imitation.data.wrappers import RolloutInfoWrapper
from imitation.policies.base import NormalizeFeaturesExtractor
from imitation.rewards.reward_nets import BasicRewardNet
from imitation.util import logger
from imitation.util.networks import RunningNorm
from imitation.util.util import make_vec_env
from stable_baselines3 import PPO
from torch import nn


class HopperVersionFive(HopperEnv):
    """Hopper-v5, which this Gymnasium does not know: version 4, but nothing is paid for the step that falls."""

    @property
    def healthy_reward(self) -> Any:
        return float(self.is_healthy) * self._healthy_reward


gym.register("Hopper-v5", entry_point=HopperVersionFive, max_episode_steps=1000)


def random_demos(env_id: str, steps: int) -> Transitions:
    """A random policy's steps: they cost what any others would."""
    env: Any = gym.make(env_id)
    env.action_space.seed(0)
    obs, _ = env.reset(seed=0)
    rows: list[tuple[Any, ...]] = []
    for _ in range(steps):
        action = env.action_space.sample()
        next_obs, _, terminated, truncated, _ = env.step(action)
        rows.append((obs, action, next_obs, terminated))
        obs = env.reset()[0] if terminated or truncated else next_obs
    fields = [np.stack(field) for field in zip(*rows, strict=True)]
    return Transitions(obs=fields[0], acts=fields[1], next_obs=fields[2], dones=fields[3], infos=np.array([{}] * steps))


def model(settings: Any, envs: Any, seed: int = 0) -> Any:
    return PPO(
        "MlpPolicy",
        envs,
        learning_rate=settings.learning_rate,
        n_steps=settings.rollout_steps,
        batch_size=settings.num_envs * settings.rollout_steps // settings.num_minibatches,
        n_epochs=settings.num_epochs,
        clip_range=settings.clip_range,
        policy_kwargs={
            "net_arch": [settings.hidden] * 2,
            "activation_fn": nn.Tanh,
            "features_extractor_class": NormalizeFeaturesExtractor,
            "features_extractor_kwargs": {"normalize_class": RunningNorm},
        },
        seed=seed,
        device="cpu",
    )


def trainer(settings: Any, demos: Transitions, seed: int = 0) -> Any:
    envs = make_vec_env(
        settings.env,
        rng=np.random.default_rng(seed),
        n_envs=settings.num_envs,
        parallel=False,
        post_wrappers=[lambda env, _: RolloutInfoWrapper(env)],
    )
    reward_net = BasicRewardNet(
        envs.observation_space,
        envs.action_space,
        hid_sizes=(settings.reward_hidden,) * 2,
        activation=nn.Tanh,
        normalize_input_layer=RunningNorm,
    )
    return GAIL(
        demonstrations=demos,
        demo_batch_size=settings.demo_batch,
        n_disc_updates_per_round=settings.reward_updates,
        venv=envs,
        gen_algo=model(settings, envs, seed),
        reward_net=reward_net,
        disc_opt_kwargs={"lr": 3e-4},
        allow_variable_horizon=True,
        custom_logger=logger.configure(None, format_strs=[]),
    )


def main() -> None:
    settings = read_settings()
    torch.manual_seed(0)
    gail = trainer(settings, random_demos(settings.env, settings.demo_steps))
    batch = settings.num_envs * settings.rollout_steps
    report(
        settings,
        lambda iterations: gail.train(iterations * batch),
        *("imitation", "stable-baselines3", "mujoco"),
    )


if __name__ == "__main__":
    main()

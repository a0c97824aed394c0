"""Stable-Baselines3's PPO."""

from __future__ import annotations

from typing import Any

import ale_py
import gymnasium as gym
import torch
from clock import read_settings, report
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack, VecMonitor, VecNormalize
from torch import nn


class PaperCnn(BaseFeaturesExtractor):
    """The network of every side of `atari`; SB3 itself brings images to 0..1."""

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space, 512)
        self.layers = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4), nn.ReLU(),
            nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
            nn.Conv2d(64, 32, 3, 1), nn.ReLU(),
            nn.Flatten(), nn.Linear(32 * 7 * 7, 512), nn.ReLU(),
        )  # fmt: skip

    def forward(self, obs: torch.Tensor) -> Any:
        return self.layers(obs)


def atari_envs(settings: Any) -> Any:
    """Frame skip and sticky actions off in the game: the wrapper skips, and nobody else has sticky actions."""
    gym.register_envs(ale_py)
    envs = make_atari_env(
        settings.env,
        n_envs=settings.num_envs,
        seed=0,
        vec_env_cls=SubprocVecEnv if settings.vec_env == "subproc" else DummyVecEnv,
        env_kwargs={"frameskip": 1, "repeat_action_probability": 0.0},
    )
    return VecFrameStack(envs, 4)


def vector_envs(settings: Any) -> Any:
    return VecNormalize(VecMonitor(DummyVecEnv([lambda: gym.make(settings.env)] * settings.num_envs)))


def model(settings: Any, envs: Any) -> Any:
    images = len(envs.observation_space.shape) == 3
    small: dict[str, Any] = {"net_arch": [settings.hidden] * 2, "activation_fn": nn.Tanh}
    return PPO(
        "CnnPolicy" if images else "MlpPolicy",
        envs,
        learning_rate=settings.learning_rate,
        n_steps=settings.rollout_steps,
        batch_size=settings.num_envs * settings.rollout_steps // settings.num_minibatches,
        n_epochs=settings.num_epochs,
        clip_range=settings.clip_range,
        clip_range_vf=settings.clip_range if images else None,
        ent_coef=0.01 if images else 0.0,
        policy_kwargs={"features_extractor_class": PaperCnn, "net_arch": []} if images else small,
        seed=0,
        device="cpu",
    )


def main() -> None:
    settings = read_settings()
    envs = atari_envs(settings) if settings.env.startswith("ALE/") else vector_envs(settings)
    ppo = model(settings, envs)
    batch = settings.num_envs * settings.rollout_steps
    report(
        settings,
        lambda iterations: ppo.learn(iterations * batch, reset_num_timesteps=False),
        *("stable-baselines3", "ale-py", "mujoco"),
    )
    envs.close()


if __name__ == "__main__":
    main()

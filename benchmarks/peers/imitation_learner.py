"""The GAIL of `imitation` learning from a recording, then judged on whole episodes of the true reward."""

from __future__ import annotations

import json
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from clock import read_settings
from imitation.data.types import Transitions
from imitation_worker import trainer


def recorded(file: str) -> Transitions:
    """A recording that `ilde demos export --to npz` wrote."""
    arrays = np.load(file)
    return Transitions(
        obs=arrays["observations"],
        acts=arrays["actions"],
        next_obs=arrays["next_observations"],
        dones=arrays["terminals"] | arrays["timeouts"],
        infos=np.array([{}] * len(arrays["actions"])),
    )


def returns(policy: Any, env_id: str, episodes: int, *, greedy: bool) -> list[float]:
    """True returns of whole episodes."""
    env: Any = gym.make(env_id)
    totals = []
    for episode in range(episodes):
        obs, _ = env.reset(seed=1_000_003 + episode)
        total, over = 0.0, False
        while not over:
            action, _ = policy.predict(obs, deterministic=greedy)
            obs, reward, terminated, truncated, _ = env.step(action)
            total, over = total + float(reward), terminated or truncated
        totals.append(total)
    return totals


def main() -> None:
    settings = read_settings()
    torch.manual_seed(settings.seed)
    gail = trainer(settings, recorded(settings.demos), settings.seed)
    gail.train(settings.steps)
    played = {
        mode: returns(gail.policy, settings.env, settings.episodes, greedy=mode == "greedy")
        for mode in ("greedy", "sampled")
    }
    json.dump(played, sys.stdout)
    print()


if __name__ == "__main__":
    main()

"""What one update of PPO on images costs, compiled and plain, and where its time goes.

    python benchmarks/update.py --json results/update.json

The paper's networks and rollout (32 x 128, 4 epochs of 32 minibatches) on random frames; medians over some updates, in
turns. On a GPU the kernels of the compiled update are listed by their time, one line each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from ilde.config import find_preset
from ilde.data import Rollout, Transitions
from ilde.learners.ppo import PPO
from ilde.nets.policy import ActorCritic
from ilde.prepare import choose_device
from ilde.randomness import torch_generator
from ilde.runs import collect_provenance
from ilde.runs.durable import write_atomically

OBS = gym.spaces.Box(0, 255, (4, 84, 84), np.uint8)
ACTIONS = gym.spaces.Discrete(6)
SHOWN = 25
"""Kernels that are listed."""


def random_rollout(steps: int, num_envs: int, device: torch.device) -> Rollout:
    """Frames of noise, and numbers a policy might have given for them."""
    draw, shape = torch_generator(0, "frames", device), (steps, num_envs)
    obs = torch.randint(0, 256, (*shape, *OBS.shape), generator=draw, dtype=torch.uint8, device=device)
    numbers = torch.randn((3, *shape), generator=draw, device=device)
    never = torch.zeros(shape, dtype=torch.bool, device=device)
    action = torch.randint(0, int(ACTIONS.n), shape, generator=draw, device=device)
    transitions = Transitions(obs=obs, action=action, next_obs=obs.roll(-1, 0), terminated=never, env_reward=numbers[0])
    return Rollout(transitions=transitions, truncated=never, log_prob=numbers[1] * 0.01 - 1.8, value=numbers[2])


def learner(device: torch.device, *, fuse: bool, minibatches: int) -> PPO:
    """A fresh policy and its learner."""
    config = replace(find_preset("atari").ppo, fuse=fuse, num_minibatches=minibatches)
    policy = ActorCritic(OBS, ACTIONS, config.hidden, torch_generator(0, "policy")).to(device)
    return PPO(policy, config, torch_generator(0, "minibatches"))


def kernels(ppo: PPO, rollout: Rollout) -> list[tuple[str, int, float]]:
    """Names of the kernels of one update, how often each ran, and its milliseconds; the longest first."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        ppo.update(rollout, lambda seen: seen.env_reward, 0.0)
        torch.cuda.synchronize()
    count: Counter[str] = Counter()
    spent: Counter[str] = Counter()
    for event in found.events() or ():
        if str(event.device_type).endswith("CUDA"):
            count[event.name] += 1
            spent[event.name] += event.device_time / 1000.0
    return [(name, count[name], milliseconds) for name, milliseconds in spent.most_common()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num-envs", type=int, default=32)
    parser.add_argument("--steps", type=int, default=128, help="of each environment in a rollout")
    parser.add_argument("--minibatches", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    device = choose_device("auto")
    rollout = random_rollout(options.steps, options.num_envs, device)
    ways = {
        name: learner(device, fuse=name == "compiled", minibatches=options.minibatches)
        for name in ("compiled", "plain")
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.rounds + 2):  # the first two compile and capture
        for name, ppo in ways.items():
            began = time.perf_counter()
            ppo.update(rollout, lambda seen: seen.env_reward, 0.0)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            seconds[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(times[2:]) for name, times in seconds.items()}
    for name, median in medians.items():
        print(f"{name:10} {1000 * median:9.2f} ms")
    listed = kernels(ways["compiled"], rollout) if device.type == "cuda" else []
    for name, count, milliseconds in listed[:SHOWN]:
        print(f"{milliseconds:9.2f} ms {count:6} x {name[:110]}")
    if options.json:
        document: dict[str, Any] = {
            "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
            "seconds": medians,
            "kernels": listed,
            "provenance": collect_provenance(sys.argv, None, {}),
        }
        write_atomically(options.json, (json.dumps(document, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()

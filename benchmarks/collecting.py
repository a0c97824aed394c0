"""Into how many groups, on how many threads each, are games best split? Collecting beside the bare simulator.

    python benchmarks/collecting.py --env ALE/BeamRider-v5 --splits 1x16 2x8 2x16 4x8 --json results/collecting.json

A split GxT has G groups of games that take turns, each on T threads of the simulator. All splits and the bare simulator
(one group, as many threads as cores) take turns in one process, so that a machine whose speed drifts drifts for all
alike. A figure is the median over the rounds of agent steps per second; the policy is the paper's, with first weights.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ilde.bench import bare_simulation
from ilde.collector import Collector
from ilde.config import find_preset
from ilde.envs import make_envs, simulator_versions
from ilde.envs.cores import usable_cores
from ilde.nets.policy import ActorCritic
from ilde.prepare import choose_device
from ilde.randomness import torch_generator
from ilde.runs import collect_provenance
from ilde.runs.durable import write_atomically

SEED = 0
BARE = "simulator alone"


def collecting(env: str, split: str, num_envs: int, steps: int, device: torch.device) -> Callable[[], object]:
    """What collects one rollout, with games split so."""
    groups, threads = (int(part) for part in split.split("x"))
    envs = make_envs(env, num_envs, SEED, num_threads=threads, num_groups=groups)
    hidden = find_preset("atari").ppo.hidden
    policy = ActorCritic(envs.obs_space, envs.action_space, hidden, torch_generator(SEED, "policy")).to(device)
    return Collector(envs, policy, steps, torch_generator(SEED, "acting", device), device, fuse=True).collect


def measure(
    works: dict[str, Callable[[], object]], rounds: int, device: torch.device, pause: float = 0.0
) -> dict[str, list[float]]:
    """Seconds of each, in turns, after one turn that captures graphs and does not count."""
    spent: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, work in works.items():
            time.sleep(pause)
            began = time.perf_counter()
            work()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            spent[name].append(time.perf_counter() - began)
    return {name: seconds[1:] for name, seconds in spent.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="ALE/BeamRider-v5")
    parser.add_argument("--splits", nargs="+", default=["1x16", "2x8", "2x16"])
    parser.add_argument("--num-envs", type=int, default=32)
    parser.add_argument("--steps", type=int, default=128, help="of each environment in a rollout")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds of rest before each, as an update leaves them"
    )
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    device = choose_device("auto")
    torch.set_num_threads(1)  # as in training beside a GPU: torch's threads and the simulator's would fight
    bare = make_envs(options.env, options.num_envs, SEED)
    works = {BARE: bare_simulation(bare, options.steps)}
    for split in options.splits:
        works[split] = collecting(options.env, split, options.num_envs, options.steps, device)
    seconds = measure(works, options.rounds, device, options.pause)
    agent_steps = options.num_envs * options.steps
    speeds = {name: agent_steps / statistics.median(times) for name, times in seconds.items()}
    for name, speed in speeds.items():
        slowest, fastest = agent_steps / max(seconds[name]), agent_steps / min(seconds[name])
        print(f"{name:16} {speed:8,.0f} steps/s ({slowest:,.0f} to {fastest:,.0f}), {speed / speeds[BARE]:.1%}")
    if options.json:
        document: dict[str, Any] = {
            "env": options.env,
            "num_envs": options.num_envs,
            "cores": len(usable_cores()),
            "pause": options.pause,
            "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
            "steps_per_second": speeds,
            "seconds": seconds,
            "provenance": collect_provenance(sys.argv, None, simulator_versions()),
        }
        write_atomically(options.json, (json.dumps(document, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()

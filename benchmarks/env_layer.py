"""How fast do environments step? Our batches beside Gymnasium's synchronous vector environment, without any learner.

    python benchmarks/env_layer.py --seconds 3 --json results/env_layer.json

The sides take turns in one process, with the same random actions. A figure is the median over five rounds of agent
steps per second, a ratio is ours over theirs. MuJoCo: 16 copies; Atari: 32, on both sides without sticky actions,
four frames to a step, 84x84 grey, four stacked. Gymnasium's vector spends one call on each reset, in which nothing
moves; it is counted as a step, which flatters it. Ours resets within the step, seeds every episode, keeps what an
exact resume needs and checks that all numbers are finite.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

from ilde.envs import canonical_env_id, make_envs, simulator_versions
from ilde.envs.gymnasium_make import make_gym
from ilde.envs.names import is_atari
from ilde.runs import collect_provenance
from ilde.runs.durable import write_atomically

TASKS = ("Hopper-v5", "Walker2d-v5", "HumanoidStandup-v5", "HalfCheetah-v5", "ALE/Qbert-v5", "ALE/BeamRider-v5")
THEIRS, ONE_THREAD, OURS = "gymnasium", "ours, 1 thread", "ours"
SEED = 0


def atari_game(env_id: str) -> gym.Env[Any, Any]:
    game = gym.make(env_id, frameskip=1, repeat_action_probability=0.0)
    return FrameStackObservation(AtariPreprocessing(game), 4)


def open_sides(env_id: str, num_envs: int, num_threads: int | None) -> dict[str, Any]:
    """The batches to compare, each with `reset`, `step` and `close`."""
    make_one = (lambda: atari_game(env_id)) if is_atari(env_id) else (lambda: make_gym(env_id))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on spaces and versions
        theirs = SyncVectorEnv([make_one for _ in range(num_envs)])
    ours = {ONE_THREAD: 1, OURS: num_threads}
    return {THEIRS: theirs} | {name: make_envs(env_id, num_envs, SEED, num_threads=n) for name, n in ours.items()}


def random_actions(space: gym.Space[Any], num_envs: int) -> Any:
    """An endless round of the same uniform actions."""
    rng = np.random.default_rng(SEED)
    if isinstance(space, gym.spaces.Discrete):
        return cycle(rng.integers(space.n, size=(64, num_envs)))
    assert isinstance(space, gym.spaces.Box)
    return cycle(rng.uniform(space.low, space.high, size=(64, num_envs, *space.shape)).astype(np.float32))


def speed(step: Callable[[Any], object], actions: Any, num_envs: int, seconds: float) -> float:
    """Agent steps per second."""
    calls, began = 0, time.perf_counter()
    while (spent := time.perf_counter() - began) < seconds:
        step(next(actions))
        calls += 1
    return calls * num_envs / spent


def compare(env_id: str, args: argparse.Namespace) -> dict[str, Any]:
    """One row of the table."""
    num_envs = 32 if is_atari(env_id) else 16
    sides = open_sides(env_id, num_envs, args.threads)
    actions = random_actions(sides[THEIRS].single_action_space, num_envs)
    rounds: dict[str, list[float]] = {name: [] for name in sides}
    for side in sides.values():
        side.reset()
        speed(side.step, actions, num_envs, args.seconds / 10)
    for _ in range(args.rounds):
        for name, side in sides.items():
            rounds[name].append(speed(side.step, actions, num_envs, args.seconds))
    for side in sides.values():
        side.close()
    medians = {name: statistics.median(speeds) for name, speeds in rounds.items()}
    ratios = {name: medians[name] / medians[THEIRS] for name in (ONE_THREAD, OURS)}
    return {"env": env_id, "num_envs": num_envs, "steps_per_second": medians, "ratio": ratios, "rounds": rounds}


def line(row: dict[str, Any]) -> str:
    """One row for a terminal."""
    figures = "".join(f"{value:>16,.0f}" for value in row["steps_per_second"].values())
    return f"{row['env']:20}{figures}" + "".join(f"{value:>10.2f}" for value in row["ratio"].values())


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", default=list(TASKS), metavar="ENV")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a measurement (default 3)")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each side (default 5)")
    parser.add_argument("--threads", type=int, help="simulator threads of ours (default: one per core)")
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    return parser.parse_args()


def main() -> int:
    args = parse_arguments()
    rows = []
    print(f"{'steps/s':20}{THEIRS:>16}{ONE_THREAD:>16}{OURS:>16}{'1 thread':>10}{'ratio':>10}")
    for env_id in map(canonical_env_id, args.envs):
        if is_atari(env_id) and importlib.util.find_spec("cv2") is None:
            print(f"{env_id:20}not measured: Gymnasium's side needs OpenCV: pip install opencv-python-headless")
            continue
        rows.append(compare(env_id, args))
        print(line(rows[-1]), flush=True)
    if args.json:
        report = {"seconds": args.seconds, "threads": args.threads, "rows": rows}
        report |= {"provenance": collect_provenance(sys.argv, None, simulator_versions())}
        write_atomically(args.json, (json.dumps(report, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Makes the bundled demonstrations again: trains an expert for each task, then records it.

    python tools/make_demos.py hopper-v4 reacher-v4     # some tasks; all without names
    python tools/make_demos.py --dry-run                # only print the commands

Runs are kept under runs/experts: a finished one is not trained again, an unfinished one goes on. A policy file there,
such as runs/experts/krull.safetensors, stands in for a run that was made on another machine.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ilde.demos.bundled import FOLDER
from ilde.runs import RunDirectory

RUNS = Path("runs/experts")
EVALUATED = "30"
"""Whole episodes that measure each expert."""


@dataclass(frozen=True)
class Recording:
    """One bundled file: its name within the task, and what `ilde demos record` is told."""

    name: str
    settings: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """An expert and what is recorded of it."""

    name: str
    env: str
    training: tuple[str, ...]
    recordings: tuple[Recording, ...]


ONE = Recording("one-v0", ("--episodes", "1"))
TRAJECTORIES = (Recording("four-v0", ("--episodes", "4")), ONE)
GAMES = (Recording("one-life-v0", ("--until", "life")), Recording("full-v0", ("--until", "episode")))
TREMBLES = tuple(
    Recording(f"one-life-tremble-{p}-v0", ("--until", "life", "--tremble", p))
    for p in ("0.01", "0.05", "0.1", "0.3", "0.5")
)


def _mujoco(name: str, env: str, steps: int, recordings: tuple[Recording, ...] = TRAJECTORIES) -> Task:
    # Small rollouts: an expert within minutes, where the paper's 32 x 2048 needs ten million steps.
    settings = ("--preset", "quick", "--steps", str(steps), "--ppo.entropy-weight", "0")
    return Task(name, env, settings, recordings)


def _atari(name: str, env: str, *more: Recording, steps: int = 10_000_000) -> Task:
    # The paper's recipe of ten million steps, stopped where the greedy policy scores about what the paper's expert did.
    settings = ("--preset", "atari", "--steps", str(steps), "--schedule-steps", "10000000")
    return Task(name, env, settings, GAMES + more)


TASKS = (
    _mujoco("reacher-v4", "Reacher-v4", 1_000_000),
    _mujoco("hopper-v4", "Hopper-v4", 1_000_000),
    _mujoco("walker2d-v4", "Walker2d-v4", 2_000_000),
    _mujoco("humanoidstandup-v4", "HumanoidStandup-v4", 1_000_000),
    _mujoco("ant-v4", "Ant-v4", 2_000_000),
    _mujoco("hopper-v5", "Hopper-v5", 1_000_000, (ONE,)),
    _atari("beam_rider", "ALE/BeamRider-v5", *TREMBLES, steps=1_638_400),
    _atari("demon_attack", "ALE/DemonAttack-v5", steps=5_120_000),
    _atari("battle_zone", "ALE/BattleZone-v5", steps=2_048_000),
    _atari("qbert", "ALE/Qbert-v5", steps=1_843_200),
    _atari("krull", "ALE/Krull-v5", steps=614_400),
    _atari("star_gunner", "ALE/StarGunner-v5", steps=4_710_400),
)


def commands(task: Task) -> Iterator[list[str]]:
    """What remakes a task's demonstrations, in order."""
    run = RUNS / task.name
    if (made := run.with_suffix(".safetensors")).is_file():
        run = made
    elif not (run / "config.json").exists():
        yield ["train", "expert", "--env", task.env, "--seed", "0", *task.training, "--out", str(run)]
    elif RunDirectory.read(run).status.state != "finished":
        yield ["resume", str(run)]
    for recording in task.recordings:
        out = FOLDER / task.name / f"{recording.name}.npz"
        shown = out.relative_to(Path.cwd()) if out.is_relative_to(Path.cwd()) else out
        measured = ("--seed", "1", "--evaluate", EVALUATED)
        yield ["demos", "record", "--policy", str(run), *recording.settings, *measured, "--out", str(shown)]


def main() -> int:
    """Remake the named tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=[task.name for task in TASKS], metavar="TASK")
    parser.add_argument("--dry-run", action="store_true", help="print the commands, run none")
    args = parser.parse_args()
    known = {task.name: task for task in TASKS}
    if strange := set(args.tasks) - set(known):
        parser.error(f"no such task: {', '.join(sorted(strange))}; there are {', '.join(known)}")
    for task in (known[name] for name in args.tasks):
        for command in commands(task):
            print("ilde", shlex.join(command), flush=True)
            if not args.dry_run:
                (FOLDER / task.name).mkdir(parents=True, exist_ok=True)
                subprocess.run([sys.executable, "-m", "ilde", *command], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

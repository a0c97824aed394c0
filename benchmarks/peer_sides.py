"""The sides of `peers.py`: what is done, by whom, in which virtual environment, and one run of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parent.parent
WORKERS = ROOT / "benchmarks" / "peers"
VENVS = ROOT / ".peers"
LIMIT = 1800
"""Seconds after which a run counts as hanging."""

Setting: TypeAlias = dict[str, Any]
Outcome: TypeAlias = dict[str, Any]


class UnavailableError(Exception):
    """A peer that cannot be installed or run here; the message says why."""


@dataclass(frozen=True)
class Side:
    """A library: its worker, the settings to choose its fastest from, and the ratio we are to reach against it."""

    name: str
    worker: str
    variants: tuple[Setting, ...] = ({},)
    goal: float | None = None


OURS = Side("ours", "ours")
THREADS: tuple[Setting, ...] = ({"threads": 0}, {"threads": 1})
VECTORISATIONS: tuple[Setting, ...] = ({"vec_env": "dummy"}, {"vec_env": "subproc"})


@dataclass(frozen=True)
class Work:
    """What every side does alike."""

    method: str
    env: str
    num_envs: int
    rollout_steps: int
    num_epochs: int
    num_minibatches: int
    learning_rate: float
    clip_range: float
    iterations: int
    """Timed, after one to warm up."""
    hidden: int = 64
    """Units of both hidden layers of the policy on vector observations."""
    reward_hidden: int = 100
    """Units of both hidden layers of the discriminator."""
    reward_updates: int = 16
    """Discriminator steps per iteration, each on `demo_batch` transitions of either kind."""
    demo_batch: int = 128
    demo_steps: int = 1024
    threads: int = 0
    """Of torch; 0 leaves its default to a peer, and to us our own choice."""


@dataclass(frozen=True)
class Comparison:
    """One work and the peers that do it beside us."""

    name: str
    work: Work
    peers: tuple[Side, ...]


HOPPER = Work(
    method="expert",
    env="Hopper-v5",
    num_envs=16,
    rollout_steps=256,
    num_epochs=10,
    num_minibatches=16,
    learning_rate=3e-4,
    clip_range=0.2,
    iterations=5,
)
BREAKOUT = Work(
    method="expert",
    env="ALE/Breakout-v5",
    num_envs=32,
    rollout_steps=128,
    num_epochs=4,
    num_minibatches=32,
    learning_rate=2.5e-4,
    clip_range=0.1,
    iterations=2,
)
COMPARISONS = (
    Comparison(
        "atari",
        BREAKOUT,
        (Side("SB3", "sb3", VECTORISATIONS, goal=1.4), Side("CleanRL style, EnvPool", "envpool", goal=1.2)),
    ),
    Comparison("mujoco", HOPPER, (Side("SB3", "sb3", THREADS),)),
    # Version 4 of the task is the newest that the peer's old Gymnasium knows.
    Comparison(
        "gail", replace(HOPPER, method="gail", env="Hopper-v4"), (Side("imitation", "imitation", THREADS, goal=2.0),)
    ),
)


def tiny(comparison: Comparison) -> Comparison:
    """Seconds instead of minutes: shows that every side runs, not how fast, so there is no goal to reach."""
    peers = tuple(replace(peer, goal=None) for peer in comparison.peers)
    work = replace(comparison.work, num_envs=4, rollout_steps=16, num_epochs=1, num_minibatches=2, iterations=1)
    return replace(comparison, work=replace(work, demo_steps=128), peers=peers)


def set_up(worker: str) -> None:
    """A fresh virtual environment for one peer; the reason of a failure is kept beside it."""
    folder, requirements = VENVS / worker, WORKERS / f"{worker}.txt"
    failed = VENVS / f"{worker}.failed"
    failed.unlink(missing_ok=True)
    try:
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        # One build of torch for all sides, and no other is ever downloaded.
        options = ["--quiet", "-c", str(WORKERS / "torch.txt"), "-r", str(requirements)]
        _run([str(folder / "bin" / "python"), "-m", "pip", "install", *options])
    except UnavailableError as reason:
        failed.write_text(f"installation failed: {reason}\n")
        raise
    (folder / "ready").write_text(requirements.read_text())


def interpreter(worker: str) -> str:
    """The Python that runs a worker."""
    if worker == OURS.worker:
        return sys.executable
    failed, ready = VENVS / f"{worker}.failed", VENVS / worker / "ready"
    if failed.exists():
        raise UnavailableError(failed.read_text().strip())
    if not ready.exists() or ready.read_text() != (WORKERS / f"{worker}.txt").read_text():
        raise UnavailableError("not installed; run this script with --setup")
    return str(VENVS / worker / "bin" / "python")


def run_side(worker: str, work: Work, variant: Setting, *, job: str = "worker") -> Outcome:
    """One run in a process of its own; a `worker` tells its steps per second, threads and versions."""
    settings = json.dumps(asdict(work) | variant)
    printed = _run([interpreter(worker), str(WORKERS / f"{worker}_{job}.py"), settings])
    outcome: Outcome = json.loads(printed.splitlines()[-1])
    return outcome


def _run(command: list[str]) -> str:
    """Standard output of a command; its last words where it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # Threads that spin while they wait would steal the two cores from whoever works.
    environment.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise UnavailableError(str(problem)) from problem
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise UnavailableError(lines[-1].strip() if lines else f"exit status {done.returncode}")
    return done.stdout

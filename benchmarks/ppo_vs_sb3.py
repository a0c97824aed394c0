"""Is our PPO right? The method `expert` beside Stable-Baselines3's PPO, on the true reward, at equal settings.

    python benchmarks/ppo_vs_sb3.py --jobs 2

Per task: our mean over seeds must reach SB3's mean minus SB3's standard deviation over seeds. Both sides are evaluated
by one function, on the same whole episodes. Finished runs are kept under --out, so the script can be stopped and
started again. Equal on both sides: environments, rollouts, minibatches, epochs, learning rate (constant), clipping,
discounts, loss weights, gradient norm, tanh networks of two towers and their first weights, log-deviation 0, actions
clipped when executed, observations standardised and clipped at 10, rewards divided by the spread of their return. What
remains different: our statistics move once per rollout, VecNormalize's with every step; the latter clips scaled
rewards at 10, which it needs in its first steps, when it knows no spread yet.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ppo_sides import EPISODES, LIBRARIES, TASKS, Job, Library, train_ours, train_theirs

from ilde.envs import make_envs, simulator_versions
from ilde.evaluation import evaluate
from ilde.nets.policy import Policy
from ilde.randomness import torch_generator
from ilde.runs import collect_provenance
from ilde.runs.durable import write_atomically

MODES = ("sampled", "deterministic")
EVALUATION_SEED = 1_000_003


def true_returns(env: str, policy: Policy, *, greedy: bool) -> list[float]:
    """Whole episodes from the same first states, whoever plays."""
    envs = make_envs(env, EPISODES, EVALUATION_SEED, clip_actions=True)
    generator = torch_generator(EVALUATION_SEED, "evaluation")
    try:
        return list(evaluate(envs, policy, episodes=EPISODES, generator=generator, greedy=greedy).returns)
    finally:
        envs.close()


def run_job(job: Job, out: Path) -> None:
    """Train, evaluate, keep the outcome."""
    torch.set_num_threads(1)
    began = time.perf_counter()
    policy = train_ours(job) if job.library == "ours" else train_theirs(job)
    seconds = time.perf_counter() - began
    returns = {mode: true_returns(job.env, policy, greedy=mode == "deterministic") for mode in MODES}
    outcome = job.description() | {"returns": returns, "seconds": seconds}
    write_atomically(job.file(out), (json.dumps(outcome, indent=1) + "\n").encode())


def kept(job: Job, out: Path) -> dict[str, Any] | None:
    """The outcome of an earlier run of the same description."""
    if not job.file(out).exists():
        return None
    outcome: dict[str, Any] = json.loads(job.file(out).read_text())
    return outcome if job.description().items() <= outcome.items() else None


def run_in_process(job: Job, out: Path) -> None:
    """A process for each run: neither library meets the other's random numbers or threads."""
    command = [sys.executable, __file__, "--out", str(out), "--job", json.dumps(asdict(job))]
    subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})


def run_all(jobs: list[Job], out: Path, workers: int) -> None:
    """Run what has not been run before."""
    waiting = [job for job in jobs if kept(job, out) is None]
    print(f"{len(jobs)} runs, {len(jobs) - len(waiting)} of them kept from before", flush=True)
    pool = ThreadPoolExecutor(workers)
    try:
        futures = {pool.submit(run_in_process, job, out): job for job in waiting}
        for number, future in enumerate(as_completed(futures), start=1):
            future.result()
            print(f"{futures[future]}: done ({number} of {len(waiting)})", flush=True)
    finally:
        # After a failure or Ctrl-C no further run begins.
        pool.shutdown(cancel_futures=True)


def comparison(outcomes: list[dict[str, Any]], env: str, mode: str) -> dict[str, Any]:
    """One row: means and standard deviations over seeds, and whether the criterion is met."""

    def over_seeds(library: Library) -> list[float]:
        return [float(np.mean(o["returns"][mode])) for o in outcomes if (o["library"], o["env"]) == (library, env)]

    sides = {library: over_seeds(library) for library in LIBRARIES}
    row: dict[str, Any] = {"env": env, "mode": mode, "means_by_seed": sides}
    for library, means in sides.items():
        row[library] = {"mean": float(np.mean(means)), "std": float(np.std(means, ddof=1)) if len(means) > 1 else 0.0}
    row["bar"] = row["sb3"]["mean"] - row["sb3"]["std"]
    row["met"] = row["ours"]["mean"] >= row["bar"]
    return row


def print_table(rows: list[dict[str, Any]]) -> None:
    """The comparison, and the criterion for each task."""
    print(f"\n{'task':13}{'policy':15}{'ours':>18}{'SB3':>18}{'SB3 mean - std':>16}  criterion")
    for row in rows:
        ours, theirs = (f"{row[library]['mean']:.1f} ± {row[library]['std']:.1f}" for library in LIBRARIES)
        verdict = "met" if row["met"] else "MISSED"
        print(f"{row['env']:13}{row['mode']:15}{ours:>18}{theirs:>18}{row['bar']:>16.1f}  {verdict}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), metavar="ENV")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each library on each task (default 5)")
    parser.add_argument("--steps", type=int, default=500_000, help="agent steps of each run (default 500,000)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--out", type=Path, default=Path("results/ppo_vs_sb3"), help="where finished runs are kept")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    args = parse_arguments()
    if importlib.util.find_spec("stable_baselines3") is None:
        sys.exit("Stable-Baselines3 is missing: pip install -c constraints.txt stable-baselines3")
    args.out.mkdir(parents=True, exist_ok=True)
    if args.job:
        run_job(Job(**json.loads(args.job)), args.out)
        return 0
    # Seed by seed, so that a table of few seeds is there early.
    jobs = [Job(lib, env, seed, args.steps) for seed in range(args.seeds) for env in args.tasks for lib in LIBRARIES]
    run_all(jobs, args.out, args.jobs)
    outcomes = [outcome for job in jobs if (outcome := kept(job, args.out)) is not None]
    rows = [comparison(outcomes, env, mode) for env in args.tasks for mode in MODES]
    print_table(rows)
    versions = {**simulator_versions(), "stable-baselines3": version("stable-baselines3")}
    report = {"steps": args.steps, "seeds": args.seeds, "episodes": EPISODES, "comparisons": rows}
    report |= {"settings": {env: asdict(TASKS[env]) for env in args.tasks}}
    report |= {"provenance": collect_provenance(sys.argv, None, versions)}
    write_atomically(args.out.with_suffix(".json"), (json.dumps(report, indent=1) + "\n").encode())
    return 0 if all(row["met"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Run folders as training leaves them, made of chosen numbers or truly trained, and reports on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ilde.config import QUICK, RunConfig, to_dict
from ilde.launch import start
from ilde.methods import find_method
from ilde.reports.across import aggregate
from ilde.reports.comparison import compare
from ilde.reports.gathering import gather
from ilde.reports.page import Report
from ilde.rewards.expression import parse_expression
from ilde.runs import RunDirectory, RunState

STEPS = 4096
UPDATES = 20
DEMOS = "halfcheetah-v5/weak-v0:0.5"
PROVENANCE: dict[str, Any] = {
    "command": ["/home/somebody/.venv/bin/ilde", "train", "--out=/home/somebody/runs/a"],
    "started": "2026-11-16T07:29:22+00:00",
    "versions": {"python": "3.11.7", "torch": "2.11.0", "cuda": None},
    "source": {"commit": "0123456789abcdef", "dirty": True},
    "platform": "Linux",
    "cpu": "a CPU",
    "cores": 2,
    "gpu": None,
}


CHEETAH = "halfcheetah-v5/weak-v0:0.1"
"""What the small run of `cheetah_run` learns from."""


def cheetah_run(path: Path) -> None:
    """A real run of ILDE, trained for two iterations."""
    config = replace(
        QUICK,
        method="ilde",
        env="HalfCheetah-v5",
        demos=CHEETAH,
        steps=64,
        num_envs=2,
        rollout_steps=32,
        ppo=replace(QUICK.ppo, num_minibatches=2, num_epochs=1),
        rewards=replace(QUICK.rewards, generative=replace(QUICK.rewards.generative, epochs=1)),
        evaluation=replace(QUICK.evaluation, final_episodes=1, final_max_steps=4),
    )
    run = start(config, path)
    with run.folder:
        assert run.train()


def make_run(
    path: Path,
    method: str = "ilde",
    seed: int = 0,
    score: float | None = 1000.0,
    *,
    demonstrator: float = 900.0,
    state: RunState = "finished",
    recording: str = "a" * 64,
    evaluations: Sequence[float] = (),
    config: RunConfig = QUICK,
) -> Path:
    """One run; without a score it has no final evaluation."""
    row = find_method(method)
    config = replace(config, method=method, seed=seed, demos=config.demos or DEMOS)
    shown = row.demos != "unused"
    known = (
        {"demos_hash": recording, "demonstrator": demonstrator} if shown else {"demos_hash": None, "demonstrator": None}
    )
    with RunDirectory.create(path, to_dict(config), PROVENANCE | known, tensorboard=False) as run:
        _log_training(run, config, score or 0.0)
        for number, mean in enumerate(evaluations, start=1):
            run.log_evaluation(number * STEPS, _evaluation(mean, final=False))
        if score is not None:
            run.log_evaluation(UPDATES * STEPS, _evaluation(score, final=True))
            run.log_evaluation(UPDATES * STEPS, _evaluation(score / 2, final=True, greedy=False))
        run.set_status(state, UPDATES * STEPS)
    return path


def _log_training(run: RunDirectory, config: RunConfig, score: float) -> None:
    noise = np.random.default_rng(config.seed)
    terms = parse_expression(config.reward or find_method(config.method).reward)
    run.log_metrics(0, {"giril/demo_error": 0.1})
    for update in range(1, UPDATES + 1):
        shares = {f"reward/{term.name}": term.weight / (update + 1) for term in terms}
        known = {"score/raw": score * update / UPDATES + 20 * float(noise.standard_normal())} if update > 2 else {}
        run.log_metrics(update * STEPS, shares | known)
        run.log_timing(update * STEPS, {"time/steps_per_second": 1234.5678})


def _evaluation(mean: float, *, final: bool, greedy: bool = True) -> dict[str, Any]:
    return {"mean": mean, "std": 10.0, "episodes": 20, "greedy": greedy, "final": final, "returns": [mean]}


CONTROL_SCORES = {"random": -300.0, "constant": -100.0, "entropy": -200.0, "shuffled": 100.0, "wrong-demos": 0.0}


def make_study(folder: Path, *, seeds: int = 3, scores: dict[str, float] | None = None, **options: Any) -> Path:
    """ILDE, or other methods, and all controls, with seeds 10 apart in score."""
    for method, score in {**({"ilde": 1000.0} if scores is None else scores), **CONTROL_SCORES}.items():
        for seed in range(seeds):
            make_run(folder / f"{method}-{seed}", method, seed, score + 10 * seed, **options)
    return folder


def report_on(*sources: Path, title: str = "A study") -> Report:
    """Everything that is known of some runs."""
    gathered = gather(sources)
    comparisons = compare(gathered.outcomes)
    return Report(title, comparisons, aggregate(comparisons), {}, gathered.skipped)

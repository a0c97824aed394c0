"""Several seeds of one configuration, a few at a time, and a table in the end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ilde.cli.campaigns import carry_out, final_scores, outcomes, print_outcomes
from ilde.cli.printing import print_json
from ilde.evaluation import mean_interval
from ilde.experiments.grid import Cell
from ilde.experiments.local import LocalEngine, default_jobs
from ilde.prepare import build, choose_device

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ilde.config import RunConfig


def train_seeds(config: RunConfig, seeds: Sequence[int], out: Path, *, minutes: float | None, as_json: bool) -> int:
    """Train one run per seed in `out/seed-K`, or go on with them; returns 0, or the first other exit code."""
    cells = [Cell(f"seed-{seed}", replace(config, seed=seed)) for seed in seeds]
    _check(config)
    at_once = min(len(seeds), default_jobs())
    standings, code = carry_out(
        cells,
        out,
        lambda: LocalEngine(at_once),
        title=f"{len(seeds)} runs in {out}, preset {config.preset}, {at_once} at a time",
        how_to_go_on=f"the same command with --out {out} goes on",
        retries=0,
        minutes=minutes,
        as_json=as_json,
    )
    results = outcomes(standings, out)
    means = _means(results)
    if as_json:
        print_json({"runs": list(results.values()), "mean": means})
    else:
        print_outcomes(results, _mean_rows(means))
    return code


def _check(config: RunConfig) -> None:
    """Find every mistake once, here, rather than in each process."""
    choose_device(config.device)
    trainer, _ = build(replace(config, device="cpu"))
    trainer.envs.close()


def _means(results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The mean over seeds of their final scores, with its interval."""
    means = {}
    for name, greedy in (("greedy", True), ("sampled", False)):
        scores = [row["mean"] for row in final_scores(results, greedy=greedy).values()]
        if scores:
            means[name] = {"mean": sum(scores) / len(scores), "interval": list(mean_interval(scores))}
    return means


def _mean_rows(means: dict[str, Any]) -> list[list[object]]:
    if len(means) < 2:
        return []
    mean, interval = means["greedy"].values()
    return [["mean", "", None, mean, interval, None, means["sampled"]["mean"]]]

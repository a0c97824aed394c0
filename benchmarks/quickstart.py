"""Does the main job hold? ILDE and the controls at equal budget, over several seeds, on the same reset seeds.

    python benchmarks/quickstart.py --seeds 5                          # prints the table
    python benchmarks/quickstart.py --first-seed 10 --json mine.json   # and keeps what it is made from

"It learned from the demonstration" is printed only where the 95% interval of the difference to every control lies
above 0; other methods, such as `vail`, may stand beside it (`--methods`). Runs that are done are not run again, so the
script can be stopped and started.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from ilde import launch
from ilde.config import RunConfig, find_preset, override, to_dict
from ilde.envs import simulator_versions
from ilde.policies import LoadedPolicy, bundled_policy, evaluate_policy, load_policy, uniform_policy
from ilde.reports.statistics import difference_interval
from ilde.reports.writing import write_text
from ilde.runs import RunDirectory, collect_provenance

ENV = "HalfCheetah-v5"
DEMONSTRATOR = "halfcheetah-v5/weak-v0"
FRAGMENT = f"{DEMONSTRATOR}:0.5"
TRAINED = ("ilde", "constant", "entropy", "wrong-demos")
CONTROLS = (*TRAINED[1:], "random")
EPISODES = 20
RESET_SEED = 20_000


def configuration(method: str, seed: int, overrides: list[str]) -> RunConfig:
    config = dataclasses.replace(find_preset("quick"), method=method, env=ENV, demos=FRAGMENT, seed=seed)
    config = override(config, "evaluation.final-episodes", "1")
    for pair in overrides:
        config = override(config, *pair.split("=", 1))
    return config


def returns(policy: LoadedPolicy, reset_seed: int = RESET_SEED) -> dict[str, list[float]]:
    """Greedy and sampled returns on the common reset seeds."""
    modes = {"greedy": True, "sampled": False}
    return {
        name: list(evaluate_policy(policy, episodes=EPISODES, seed=reset_seed, greedy=greedy).returns)
        for name, greedy in modes.items()
    }


def run_one(method: str, seed: int, folder: Path, overrides: list[str]) -> dict[str, Any]:
    """Train one run to its end, or take it up where it stopped, and measure it."""
    out = folder / f"{method}-{seed}"
    if not (out / "config.json").exists():
        run = launch.start(configuration(method, seed, overrides), out)
    elif RunDirectory.read(out).status.state != "finished":
        run = launch.resume(out)
    else:
        run = None
    if run is not None:
        run.train()
        run.folder.close()
    return {"method": method, "seed": seed, **returns(load_policy(out))}


def summarise(rows: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Greedy mean return of each seed, by method."""
    methods = dict.fromkeys(str(row["method"]) for row in rows)
    return {m: np.array([np.mean(row["greedy"]) for row in rows if row["method"] == m]) for m in methods}


def report(rows: list[dict[str, Any]], demonstrator: dict[str, list[float]], steps: int) -> Table:
    scores, reference = summarise(rows), float(np.mean(demonstrator["greedy"]))
    sampled = {m: np.mean([np.mean(r["sampled"]) for r in rows if r["method"] == m]) for m in scores}
    table = Table(title=f"{ENV}, {steps:,} steps, greedy return over {EPISODES} episodes a seed")
    for column in ("policy", "seeds", "mean", "std", "ratio", "beat demonstrator", "ILDE minus it (95%)", "sampled"):
        table.add_column(column, justify="left" if column == "policy" else "right")
    table.add_row("demonstrator", "-", f"{reference:,.0f}", f"{np.std(demonstrator['greedy'], ddof=1):,.0f}", "1.00",
                  "-", "-", f"{np.mean(demonstrator['sampled']):,.0f}")  # fmt: skip
    for method, values in scores.items():
        low, high = difference_interval(scores["ilde"], values)
        versus = "-" if method == "ilde" else f"{low:,.0f} to {high:,.0f}"
        wins = f"{int((values > reference).sum())} of {len(values)}"
        table.add_row(method, str(len(values)), f"{values.mean():,.0f}", f"{values.std(ddof=1):,.0f}",
                      f"{values.mean() / reference:.2f}", wins, versus, f"{sampled[method]:,.0f}")  # fmt: skip
    return table


def verdict(rows: list[dict[str, Any]]) -> str:
    scores = summarise(rows)
    missing = [method for method in ("ilde", *CONTROLS) if method not in scores]
    if missing:
        return f"not shown to imitate: no runs of {', '.join(missing)}"
    overlapping = [control for control in CONTROLS if difference_interval(scores["ilde"], scores[control])[0] <= 0]
    if overlapping:
        return f"not shown to imitate: the interval of the difference to {', '.join(overlapping)} reaches 0"
    each = ", ".join(CONTROLS)
    return f"it learned from the demonstration: the interval of the difference to each of {each} lies above 0"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="how many training seeds")
    parser.add_argument("--first-seed", type=int, default=0, help="seeds from 100 up are for tuning")
    parser.add_argument("--methods", nargs="+", default=list(TRAINED))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--runs", type=Path, default=Path("runs/quickstart-benchmark"))
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all scores and where they come from")
    parser.add_argument("--set", nargs="*", default=[], metavar="FIELD=VALUE", help="settings to try")
    options = parser.parse_args()
    console = Console(width=120)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    jobs = [(method, seed) for method in options.methods for seed in seeds]
    with ProcessPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(run_one, m, s, options.runs, options.set) for m, s in jobs]
        rows = []
        for future in futures:
            rows.append(future.result())
            console.print(f"{rows[-1]['method']} seed {rows[-1]['seed']}: {np.mean(rows[-1]['greedy']):,.0f}")
    # A random policy has no training seed: fresh episodes give its spread.
    rows += [{"method": "random", "seed": s, **returns(uniform_policy(ENV), RESET_SEED + 1 + s)} for s in seeds]
    demonstrator = returns(bundled_policy(DEMONSTRATOR))
    config = configuration("ilde", options.first_seed, options.set)
    console.print(report(rows, demonstrator, config.steps))
    console.print(verdict(rows))
    document = {
        "command": " ".join(["python", *sys.argv]),
        "provenance": collect_provenance(sys.argv, None, simulator_versions()),
        "config": to_dict(config),
        "reset_seed": RESET_SEED,
        "demonstrator": demonstrator,
        "runs": rows,
        "verdict": verdict(rows),
    }
    if options.json is not None:
        write_text(options.json, json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""The paper's table of motives, measured: how stable each reward term is, how far it explores, how well it imitates.

    python tools/motivation.py runs/baselines --json results/motivation.json --markdown results/motivation.md
    python tools/motivation.py --from results/motivation.json --markdown results/motivation.md

Reads finished runs of one study (TASK/METHOD/seed-N). Stability: the deviation of final scores over seeds; one seed has
none. Exploration: the part of the space all policies of a task visit that one reaches. Imitation: how well a new
classifier tells its states from the demonstrated ones; less is closer. Each policy plays the same number of steps,
sampling its actions. A task's "notes" say of a measure why its numbers are not to be trusted; the table marks them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ilde.demos import resolve
from ilde.envs import make_envs
from ilde.experiments.paper import motivation
from ilde.policies import LoadedPolicy, load_policy, uniform_policy
from ilde.randomness import torch_generator
from ilde.reports.behaviour import States, coverage, discriminator_gap
from ilde.reports.numbers import NOTHING, plus_minus
from ilde.reports.statistics import mean_and_std
from ilde.reports.tables import WordTable
from ilde.reports.writing import publish
from ilde.runs import RunDirectory

METHODS = ("vail", "giril", "entropy", "ilde")
"""The three terms alone, and all of them together."""
NUM_ENVS = 16
RANDOM = "random"


def visited(loaded: LoadedPolicy, steps: int, seed: int) -> States:
    """States that a policy comes to, sampling its actions."""
    envs = make_envs(loaded.config.env, NUM_ENVS, seed, clip_actions=loaded.config.clip_actions)
    generator, states = torch_generator(seed, "motivation"), []
    try:
        obs = envs.reset()
        for _ in range(steps // NUM_ENVS):
            states.append(np.array(obs, np.float64))
            obs = envs.step(loaded.policy.act(torch.from_numpy(obs), generator).action.numpy()).obs
    finally:
        envs.close()
    return np.concatenate(states)


def final_scores(task: Path) -> dict[str, dict[Path, float]]:
    """The greedy scores of the finished runs of each method on one task."""
    found: dict[str, dict[Path, float]] = {}
    for method in METHODS:
        for folder in sorted((task / method).glob("seed-*[0-9]")):
            rows = RunDirectory.read(folder).evaluations.rows()
            for row in (row for row in rows if row["final"] and row["greedy"]):
                found.setdefault(method, {})[folder] = float(row["mean"])
    return found


def measure(runs: dict[str, dict[Path, float]], steps: int, seed: int) -> dict[str, Any]:
    """The three measures of each method on one task, with one value for each of its seeds."""
    first = load_policy(next(iter(runs[METHODS[0]])))
    assert first.config.demos is not None
    shown = np.concatenate([episode.obs for episode in resolve(first.config.demos).episodes]).astype(np.float64)
    states = {f"{RANDOM}/": visited(uniform_policy(first.config.env), steps, seed)}
    for method, folders in runs.items():
        states |= {f"{method}/{folder.name}": visited(load_policy(folder), steps, seed) for folder in folders}
    reached, measured = coverage(states, seed), defaultdict[str, dict[str, list[float]]](dict)
    for name, own in states.items():
        method = name.partition("/")[0]
        measured[method].setdefault("coverage", []).append(reached[name])
        measured[method].setdefault("gap", []).append(discriminator_gap(own, shown, seed))
    return {
        "env": first.config.env,
        "demos": first.config.demos,
        "env_steps": first.env_steps,
        "methods": {m: values | {"scores": list(runs.get(m, {}).values())} for m, values in measured.items()},
    }


def table(document: dict[str, Any]) -> WordTable:
    """The measures beside the paper's marks."""
    marks = motivation()
    rows = [
        (task["env"], method, *_cells(task, values), *(marks.get(method, {}).get(part, "") for part in PARTS))
        for task in document["tasks"]
        for method, values in task["methods"].items()
    ]
    measures = ("score over seeds", "coverage", "gap to the demonstration")
    columns = ("task", "reward", *measures, *(f"paper: {part}" for part in PARTS))
    notes = (*NOTES, *_doubts(document["tasks"]))
    return WordTable("The paper's table of motives (Appendix A, Table 3), measured", columns, tuple(rows), notes)


PARTS = ("stability", "exploration", "imitation")
MEASURES = ("scores", "coverage", "gap")
NOTES = (
    "score over seeds: mean ± deviation of final greedy returns; stability is a small deviation",
    "coverage: part of the space visited by anyone in the task that the final policy reaches",
    "gap: how well a new classifier tells the policy's states from the demonstrated ones, 0 not at all, 1 always",
)


DOUBTED = "†"


def _cells(task: dict[str, Any], values: dict[str, list[float]]) -> list[str]:
    doubted = task.get("notes", {})
    known = {name: plus_minus(*mean_and_std(values[name])) if values[name] else NOTHING for name in MEASURES}
    return [f"{words} {DOUBTED}" if name in doubted and words != NOTHING else words for name, words in known.items()]


def _doubts(tasks: list[dict[str, Any]]) -> list[str]:
    """What is wrong with a measure, with the tasks it is wrong on."""
    envs = defaultdict[tuple[str, str], list[str]](list)
    for task in tasks:
        for note in task.get("notes", {}).items():
            envs[note].append(task["env"])
    return [f"{DOUBTED} {name} on {', '.join(found)}: {why}" for (name, why), found in envs.items()]


def main() -> int:
    """Measure or read, then print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, nargs="?", help="folder of a study's runs")
    parser.add_argument("--from", dest="kept", type=Path, help="read what --json wrote")
    parser.add_argument("--steps", type=int, default=8000, help="states of each policy")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    if (args.study is None) == (args.kept is None):
        parser.error("give a study's folder, or --from FILE")
    if args.kept:
        document = json.loads(args.kept.read_text())
    else:
        found = [final_scores(folder) for folder in sorted(args.study.iterdir())]
        tasks = [measure(runs, args.steps, args.seed) for runs in found if len(runs) == len(METHODS)]
        command = f"python tools/motivation.py {args.study} --steps {args.steps} --seed {args.seed}"
        document = {"command": command, "tasks": tasks}
    publish(document, "Motives, measured", [table(document)], kept=args.json, words=args.markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Is our GAIL right? The method `gail` beside the GAIL of `imitation`, from the same recording, at equal settings.

    python benchmarks/peers.py --setup --works gail      # once: the peer in a virtual environment of its own
    python benchmarks/gail_vs_imitation.py --json results/gail_vs_imitation.json

Equal on both sides: task, recording, steps, rollouts, epochs, minibatches, learning rates, widths of all networks,
steps and batches of the discriminator, which sees states and actions. What remains different: each normalises as it is
used to, our policy's last layer starts near 0, and each is judged on first states of its own. The peer's Gymnasium does
not know Hopper-v5: there it is version 4 with the reward of version 5. Our mean over seeds must reach the peer's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from peer_sides import HOPPER, Work, run_side

from ilde.demos import resolve
from ilde.demos.exporting import export_demos
from ilde.envs import simulator_versions
from ilde.runs import collect_provenance
from ilde.runs.durable import write_atomically

MODES = ("greedy", "sampled")
SIDES = ("ours", "imitation")
EPISODES = 20


def work_from(recording: str) -> Work:
    """What both sides do."""
    demos = resolve(recording)
    return replace(HOPPER, method="gail", env=demos.env_id, demo_steps=sum(map(len, demos.episodes)), threads=1)


def learn(side: str, seed: int, steps: int, recording: str, file: Path) -> dict[str, list[float]]:
    """One run in a process of its own: true returns of whole episodes after training."""
    more = {"seed": seed, "steps": steps, "recording": recording, "demos": str(file), "episodes": EPISODES}
    played: dict[str, list[float]] = run_side(side, work_from(recording), more, job="learner")
    print(f"{side}, seed {seed}: greedy {statistics.mean(played['greedy']):,.0f}", flush=True)
    return played


def row(played: dict[tuple[str, int], dict[str, list[float]]], mode: str) -> dict[str, Any]:
    """Means of each seed on both sides, and whether ours reaches theirs."""
    means = {
        side: [statistics.mean(returns[mode]) for (name, _), returns in sorted(played.items()) if name == side]
        for side in SIDES
    }
    reached = statistics.mean(means["ours"]) >= statistics.mean(means["imitation"])
    return {"mode": mode, "means_by_seed": means, "reached": reached}


def main() -> int:
    """Run all seeds of both sides, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--demos", default="hopper-v5/one-v0", help="a bundled recording")
    parser.add_argument("--steps", type=int, default=500_000, help="agent steps of each run (default 500,000)")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each side (default 3, at least 2)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.seeds < 2:
        parser.error(f"--seeds {args.seeds}: one run has no deviation; choose at least 2")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        file = Path(folder) / "demos.npz"
        export_demos(resolve(args.demos), "npz", file)
        jobs = [(side, seed) for seed in range(args.seeds) for side in SIDES]
        results = pool.map(lambda job: learn(job[0], job[1], args.steps, args.demos, file), jobs)
        played = dict(zip(jobs, results, strict=True))
    rows = [row(played, mode) for mode in MODES]
    demonstrator = resolve(args.demos).header.demonstrator
    for line in rows:
        shown = {
            side: f"{statistics.mean(m):,.0f} ± {statistics.stdev(m):,.0f}" for side, m in line["means_by_seed"].items()
        }
        print(line["mode"], shown, "reached" if line["reached"] else "MISSED")
    report = {
        "demos": args.demos,
        "demonstrator": asdict(demonstrator) if demonstrator else None,
        "steps": args.steps,
        "episodes": EPISODES,
        "settings": asdict(work_from(args.demos)),
        "rows": rows,
        "provenance": collect_provenance(sys.argv, None, simulator_versions()),
    }
    if args.json:
        write_atomically(args.json, (json.dumps(report, indent=1) + "\n").encode())
    return 0 if all(line["reached"] for line in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

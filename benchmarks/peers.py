"""How fast are we? The same work done by the libraries people use today, side by side on this machine.

    python benchmarks/peers.py --setup                      # once: each peer in a virtual environment of its own
    python benchmarks/peers.py --rounds 5 --json results/peers.json

The sides take turns, each run in a process of its own. A figure is the median over rounds of agent steps per second
over whole iterations, rollout and update, after one iteration to warm up; a ratio is ours over theirs. Equal on all
sides: task, preprocessing, rollout, epochs, minibatches, widths of the networks, discriminator steps. A peer that can
be run in several ways (torch's threads, kind of vector environment) is tried in each and measured in its fastest. No
side logs, evaluates or saves; each computes its usual metrics. What remains different:

- each side normalises as it is used to: SB3 by VecNormalize with every step, `imitation` by running statistics inside
  its networks, we by statistics that move once per rollout
- the loop in CleanRL's manner counts EnvPool's reset steps, in which no game moves, as steps: that flatters it
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from peer_sides import COMPARISONS, OURS, Comparison, Outcome, Setting, Side, UnavailableError, run_side, set_up, tiny

from ilde.envs import simulator_versions
from ilde.runs import collect_provenance
from ilde.runs.durable import write_atomically


class Contest:
    """One comparison under way: in which variant each side takes part, and what was measured."""

    def __init__(self, comparison: Comparison) -> None:
        self.name, self.work = comparison.name, comparison.work
        self.sides = (OURS, *comparison.peers)
        self.variants: dict[str, Setting] = {}
        self.outcomes: dict[str, list[Outcome]] = {side.name: [] for side in self.sides}
        self.missing: dict[str, str] = {}

    def run(self, rounds: int) -> None:
        """Try the variants, then let everybody run in turn."""
        for side in self.sides:
            self._attempt(side, 0)
        for number in range(1, rounds + 1):
            for side in self.sides:
                self._attempt(side, number)

    def _attempt(self, side: Side, number: int) -> None:
        if side.name in self.missing:
            return
        try:
            if number == 0:
                self.variants[side.name] = self._fastest(side)
            else:
                outcome = self._measure(side, self.variants[side.name], f"round {number}")
                self.outcomes[side.name].append(outcome)
        except UnavailableError as reason:
            if side is OURS:
                raise
            self.missing[side.name] = str(reason)
            print(f"{self.name}: {side.name}: not available: {reason}", flush=True)

    def _fastest(self, side: Side) -> Setting:
        if len(side.variants) == 1:
            return side.variants[0]
        speeds = [self._measure(side, variant, "trial")["steps_per_second"] for variant in side.variants]
        return side.variants[speeds.index(max(speeds))]

    def _measure(self, side: Side, variant: Setting, occasion: str) -> Outcome:
        work = replace(self.work, iterations=1) if occasion == "trial" else self.work
        outcome = run_side(side.worker, work, variant)
        speed = outcome["steps_per_second"]
        print(f"{self.name}: {occasion}: {side.name}{worded(variant)}: {speed:,.0f} steps/s", flush=True)
        return outcome

    def speeds(self, side: Side) -> list[float]:
        """Steps per second of each round."""
        return [outcome["steps_per_second"] for outcome in self.outcomes[side.name]]

    def row(self, side: Side) -> dict[str, Any]:
        """What is told of one side."""
        row: dict[str, Any] = {"work": self.name, "side": side.name, "goal": side.goal}
        if side.name in self.missing:
            return row | {"not_available": self.missing[side.name]}
        ours, speeds = self.speeds(OURS), self.speeds(side)
        median = statistics.median(speeds)
        latest = {name: value for name, value in self.outcomes[side.name][-1].items() if name != "steps_per_second"}
        return row | {
            "steps_per_second": median,
            "rounds": speeds,
            "ratio": statistics.median(ours) / median,
            "ratio_by_round": [mine / theirs for mine, theirs in zip(ours, speeds, strict=True)],
            "variant": self.variants[side.name],
            **latest,
        }


def worded(variant: Setting) -> str:
    """A variant in brackets after a space, nothing where there was no choice."""
    return f" ({', '.join(f'{name} {value}' for name, value in variant.items())})" if variant else ""


def reaches_goal(row: dict[str, Any]) -> bool:
    """Whether the ratio is what it should be; a peer that was not measured proves nothing."""
    return row["goal"] is None or row.get("ratio", 0.0) >= row["goal"]


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The comparison, line by line."""
    yield f"{'work':9}{'side':25}{'steps/s':>10}{'lowest':>10}{'highest':>10}{'ratio':>8}{'by round':>14}  goal"
    for row in rows:
        head = f"{row['work']:9}{row['side']:25}"
        if "not_available" in row:
            yield f"{head}not available: {row['not_available']}"
            continue
        speeds = row["steps_per_second"], min(row["rounds"]), max(row["rounds"])
        line = head + "".join(f"{speed:>10,.0f}" for speed in speeds)
        if row["side"] != OURS.name:
            span = f"{min(row['ratio_by_round']):.2f}-{max(row['ratio_by_round']):.2f}"
            line += f"{row['ratio']:>8.2f}{span:>14}"
        if row["goal"] is not None:
            line += f"  {row['goal']}: {'reached' if reaches_goal(row) else 'MISSED'}"
        yield line + worded(row["variant"])


def set_up_peers(chosen: list[Comparison]) -> int:
    """Install what the chosen comparisons need; returns how many peers failed."""
    failures = 0
    for worker in sorted({peer.worker for comparison in chosen for peer in comparison.peers}):
        print(f"{worker}: installing", flush=True)
        try:
            set_up(worker)
        except UnavailableError as reason:
            failures += 1
            print(f"{worker}: not available: {reason}", flush=True)
    return failures


def parse_arguments() -> argparse.Namespace:
    names = [comparison.name for comparison in COMPARISONS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", nargs="+", choices=names, default=names, metavar="WORK", help=", ".join(names))
    parser.add_argument("--rounds", type=int, default=5, help="runs of each side (default 5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all figures, settings and versions there")
    parser.add_argument("--tiny", action="store_true", help="only show that every side runs, in seconds")
    parser.add_argument("--setup", action="store_true", help="install the peers, measure nothing")
    return parser.parse_args()


def main() -> int:
    args = parse_arguments()
    chosen = [comparison for comparison in COMPARISONS if comparison.name in args.works]
    if args.setup:
        return min(1, set_up_peers(chosen))
    contests = [Contest(tiny(comparison) if args.tiny else comparison) for comparison in chosen]
    for contest in contests:
        contest.run(max(1, args.rounds))
    rows = [contest.row(side) for contest in contests for side in contest.sides]
    print("", *table(rows), sep="\n")
    if args.json:
        report = {"comparisons": rows, "settings": {contest.name: asdict(contest.work) for contest in contests}}
        report |= {"tiny": args.tiny, "provenance": collect_provenance(sys.argv, None, simulator_versions())}
        write_atomically(args.json, (json.dumps(report, indent=1) + "\n").encode())
    return 0 if all(reaches_goal(row) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

"""`ilde eval`: the true return of a trained policy."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ilde.cli.printing import print_json, print_table
from ilde.cli.verbs import Verb, natural_number, whole_number

if TYPE_CHECKING:
    import torch

    from ilde.policies import LoadedPolicy

EPISODES = 20
COLUMNS = ("mean", "std", "interval", "episodes", "kinds", "demonstrator", "ratio")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="a folder that `ilde train` wrote, or a policy file")
    parser.add_argument(
        "--episodes", type=whole_number, default=EPISODES, metavar="N", help=f"whole episodes (default: {EPISODES})"
    )
    parser.add_argument(
        "--max-steps", type=whole_number, metavar="N", help="cut an episode after so many; it counts with what it had"
    )
    parser.add_argument("--sampled", action="store_true", help="sample actions rather than take the most likely")
    parser.add_argument("--seed", type=natural_number, metavar="S", help="of the episodes (default: the run's)")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"), help="where the policy runs")


def run_eval(args: argparse.Namespace) -> int:
    """Play whole episodes and print their statistics."""
    from ilde.patience import heard_by
    from ilde.policies import evaluate_policy
    from ilde.reports.numbers import counted

    loaded, device = open_policy(args.run, args.device)
    seed = loaded.config.seed if args.seed is None else args.seed
    choices = {"episodes": args.episodes, "seed": seed, "greedy": not args.sampled, "max_steps": args.max_steps}
    with heard_by(partial(print, file=sys.stderr, flush=True)):
        evaluation = evaluate_policy(loaded, **choices, device=device)
    summary = evaluation.summary(loaded.demonstrator) | {"env_steps": loaded.env_steps, "seed": seed}
    if args.json:
        print_json(summary)
    else:
        how = "sampled" if args.sampled else "greedy"
        print(f"{args.run}: {loaded.config.method} on {loaded.config.env}, {loaded.env_steps:,} steps, {how}")
        print_table(
            ("mean", "std", "95% interval", *COLUMNS[3:]),
            [[summary[column] for column in COLUMNS]],
        )
        if evaluation.capped:
            print(f"{counted(evaluation.capped, 'episode')} cut after {args.max_steps:,} steps: no score of whole ones")
    return 0


def open_policy(run: Path, device_name: str) -> tuple[LoadedPolicy, torch.device]:
    """The policy of a run on a device, with as many threads as its networks deserve."""
    import torch

    from ilde.nets.policy import ActorCritic
    from ilde.nets.soft import SoftQ
    from ilde.policies import load_policy
    from ilde.prepare import choose_device, choose_threads

    device = choose_device(device_name)
    loaded = load_policy(run, device)
    images = isinstance(loaded.policy, ActorCritic | SoftQ) and loaded.policy.images
    torch.set_num_threads(choose_threads(loaded.config, images=images, device=device))
    return loaded, device


VERBS = (
    Verb(
        "eval",
        "measure the true return of a run's policy over whole episodes",
        "ilde eval runs/mine --episodes 30 --json",
        run_eval,
        _arguments,
    ),
)

"""`ilde demos record`: demonstrations of a trained or of a random policy."""

from __future__ import annotations

import argparse
import os
import shlex
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ilde.cli.demos import print_summaries, summary
from ilde.cli.evaluate import open_policy
from ilde.cli.printing import print_json
from ilde.cli.verbs import UsageError, Verb, natural_number, whole_number

if TYPE_CHECKING:
    from ilde.demos import Demonstrations
    from ilde.demos.header import Demonstrator
    from ilde.policies import LoadedPolicy

EVALUATION_EPISODES = 20


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--env", metavar="ENV", help="the environment; a run's policy knows its own")
    parser.add_argument("--policy", required=True, metavar="RUN|random", help="a run, a policy file, or random")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="the file to write, such as mine.npz")
    parser.add_argument("--episodes", type=whole_number, default=1, metavar="N", help="to record (default: 1)")
    parser.add_argument(
        "--until", choices=("life", "episode"), default="episode", help="where each one ends (default: episode)"
    )
    parser.add_argument(
        "--tremble", type=float, default=0.0, metavar="P", help="probability of a random action (default: 0)"
    )
    parser.add_argument(
        "--fraction", type=float, default=1.0, metavar="F", help="keep the first part of each (default: 1)"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--greedy", action="store_true", help="take the most likely action (default)")
    how.add_argument("--sampled", action="store_true", help="sample actions")
    parser.add_argument("--seed", type=natural_number, default=0, metavar="S", help="of the recording (default: 0)")
    parser.add_argument(
        "--evaluate",
        type=natural_number,
        default=EVALUATION_EPISODES,
        metavar="N",
        help=f"whole episodes that measure the demonstrator; 0: none (default: {EVALUATION_EPISODES})",
    )


def run_record(args: argparse.Namespace) -> int:
    """Record, and measure whom was recorded."""
    from ilde.demos import save

    _check_numbers(args)
    check_out(args.out)
    loaded = _load(args)
    demos = _record(args, loaded, _measure(args, loaded))
    if args.fraction != 1.0:
        demos = demos.prefix(args.fraction)
    save(demos, args.out)
    row = summary(str(args.out), demos)
    if args.json:
        print_json(row)
    else:
        print_summaries([row])
    return 0


def _check_numbers(args: argparse.Namespace) -> None:
    if not 0 <= args.tremble <= 1:
        raise UsageError(f"--tremble {args.tremble}: must be a probability, from 0 to 1")
    if not 0 < args.fraction <= 1:
        raise UsageError(f"--fraction {args.fraction}: must be above 0 and at most 1")


def check_out(out: Path) -> None:
    """Before any work: the file is new and its folder can be written."""
    folder = out.absolute().parent
    if out.exists():
        raise UsageError(f"{out}: exists already; remove it or choose another --out")
    if not folder.is_dir():
        raise UsageError(f"{out}: there is no folder {folder}; make it or choose another --out")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"{out}: {folder} cannot be written; choose another --out")


def _load(args: argparse.Namespace) -> LoadedPolicy:
    from ilde.data import UserError
    from ilde.envs import canonical_env_id
    from ilde.policies import uniform_policy

    if args.policy == "random":
        if args.env is None:
            raise UsageError("a random policy needs --env")
        return uniform_policy(args.env)
    loaded, _ = open_policy(Path(args.policy), "cpu")
    if args.env is not None and canonical_env_id(args.env) != loaded.config.env:
        raise UserError(f"{args.policy}: trained on {loaded.config.env}, --env is {canonical_env_id(args.env)}")
    return loaded


def _measure(args: argparse.Namespace, loaded: LoadedPolicy) -> Demonstrator | None:
    """The demonstrator's own score, trembles included: the policy that was recorded is the one that trembles."""
    from ilde.demos.header import Demonstrator
    from ilde.nets.policy import UniformPolicy
    from ilde.policies import TremblingPolicy, evaluate_policy

    if not args.evaluate:
        return None
    trembling = TremblingPolicy(loaded.policy, UniformPolicy(loaded.action_space), args.tremble)
    played = evaluate_policy(
        replace(loaded, policy=trembling) if args.tremble else loaded,
        episodes=args.evaluate,
        seed=args.seed,
        greedy=not args.sampled,
    )
    return Demonstrator(played.mean, played.std, args.evaluate)


def _record(args: argparse.Namespace, loaded: LoadedPolicy, demonstrator: Demonstrator | None) -> Demonstrations:
    from ilde.demos.recording import Provenance, record
    from ilde.envs import make_envs, simulator_versions
    from ilde.policies import actor, describe
    from ilde.randomness import derive_seed, numpy_generator

    greedy = not args.sampled and loaded.config.method != "random"
    seed = derive_seed(args.seed, "recording") % 2**31
    envs = make_envs(loaded.config.env, 1, seed)
    provenance = Provenance(
        recorder=describe(loaded),
        greedy=greedy,
        simulator_versions=simulator_versions(),
        created=now(),
        command=typed("demos record", args.words),
        seed=seed,
        demonstrator=demonstrator,
    )
    try:
        return record(
            envs,
            actor(loaded, seed=args.seed, greedy=greedy),
            episodes=args.episodes,
            until=args.until,
            tremble=args.tremble,
            generator=numpy_generator(args.seed, "tremble"),
            provenance=provenance,
        )
    finally:
        envs.close()


def now() -> str:
    """The time, for a header."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def typed(verb: str, words: list[str]) -> str:
    """The line as typed, without the user's home folder and so without a name."""
    return shlex.join(["ilde", *verb.split(), *words]).replace(str(Path.home()), "~")


VERBS = (
    Verb(
        "demos record",
        "record demonstrations of a run's policy, or of a random one, and measure its score",
        "ilde demos record --policy runs/expert --out mine.npz --episodes 4 --tremble 0.1",
        run_record,
        _arguments,
    ),
)

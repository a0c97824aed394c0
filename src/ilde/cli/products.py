"""`ilde watch`, `ilde export`, `ilde bench`: what can be made of a run, and of a machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from ilde.cli.printing import print_json, print_rich
from ilde.cli.verbs import Verb, natural_number, whole_number


def _watch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="a folder that `ilde train` wrote")
    parser.add_argument("--video", type=Path, required=True, metavar="FILE", help="the film to write, such as out.mp4")
    parser.add_argument("--episodes", type=whole_number, default=1, metavar="N", help="whole episodes (default: 1)")
    parser.add_argument("--seed", type=natural_number, default=0, metavar="S", help="of the episodes (default: 0)")
    parser.add_argument("--max-steps", type=whole_number, metavar="N", help="cut an episode after N agent steps")


def run_watch(args: argparse.Namespace) -> int:
    """Film a policy."""
    from ilde.watching import watch

    video = watch(args.run, args.video, episodes=args.episodes, seed=args.seed, max_steps=args.max_steps)
    if args.json:
        print_json({"video": str(video)})
    else:
        print(f"wrote {video}")
    return 0


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="a folder that `ilde train` wrote")
    parser.add_argument("out", metavar="FILE", type=Path, help="the file to write, such as policy.onnx")


def run_export(args: argparse.Namespace) -> int:
    """Write a policy as ONNX."""
    from ilde.export import export_onnx

    difference = export_onnx(args.run, args.out)
    if args.json:
        print_json({"file": str(args.out), "max_abs_difference": difference})
    else:
        print(f"wrote {args.out}; differs from PyTorch by at most {difference:.2g}")
    return 0


def _bench_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--env", metavar="ENV", help="what to step (default: an Atari game, CartPole-v1 without ale-py)"
    )
    parser.add_argument("--seconds", type=float, default=3.0, metavar="S", help="to measure each part for (default: 3)")
    parser.add_argument(
        "--num-envs", type=int, metavar="N", help="environments stepped together (default: the preset's)"
    )


def run_bench(args: argparse.Namespace) -> int:
    """Measure this machine."""
    from ilde.bench import bench, table
    from ilde.envs.names import installed

    env = args.env or ("ALE/BeamRider-v5" if installed("ale_py") else "CartPole-v1")
    result = bench(env, seconds=args.seconds, num_envs=args.num_envs)
    if args.json:
        print_json(result)
    else:
        print_rich(table(result))
    return 0


VERBS = (
    Verb(
        "watch",
        "film the policy of a run, with each reward term drawn under the picture",
        "ilde watch runs/mine --video out.mp4",
        run_watch,
        _watch_arguments,
    ),
    Verb(
        "export",
        "write the policy of a run as ONNX, checked against PyTorch",
        "ilde export runs/mine policy.onnx",
        run_export,
        _export_arguments,
    ),
    Verb(
        "bench",
        "measure the steps per second of this machine, and what bounds them",
        "ilde bench --json",
        run_bench,
        _bench_arguments,
    ),
)

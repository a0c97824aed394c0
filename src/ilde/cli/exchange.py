"""`ilde demos import|export`: demonstrations of other programs, and for them."""

from __future__ import annotations

import argparse
from pathlib import Path

from ilde.cli.demos import DEMOS_HELP, print_summaries, summary
from ilde.cli.printing import print_json
from ilde.cli.record import check_out, now, typed
from ilde.cli.verbs import Verb


def _import_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="PATH", help="a file or folder, or the id of a data set in Minari's store")
    parser.add_argument("--env", required=True, metavar="ENV", help="the environment they were recorded on")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="the file to write, such as mine.npz")
    parser.add_argument(
        "--from",
        dest="source_format",
        choices=("npz", "minari", "gail-hdf5", "imitation"),
        help="the format (default: found out)",
    )


def run_import(args: argparse.Namespace) -> int:
    """Read another format, check it against the environment, write our own."""
    check_out(args.out)
    from ilde.demos import save
    from ilde.demos.importing import import_demos
    from ilde.demos.in_memory import target_of

    imported = import_demos(
        args.source,
        target_of(args.env),
        source_format=args.source_format,
        created=now(),
        command=typed("demos import", args.words),
    )
    save(imported.demos, args.out)
    row = summary(str(args.out), imported.demos)
    if args.json:
        print_json(row | {"format": imported.source_format, "notes": imported.notes})
        return 0
    for note in imported.notes:
        print(f"{args.source}: {note}")
    print_summaries([row])
    return 0


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("demos", metavar="DEMOS", help=DEMOS_HELP)
    parser.add_argument("--to", dest="target_format", required=True, choices=("minari", "npz"), help="the format")
    parser.add_argument("--out", required=True, type=Path, metavar="PATH", help="the folder (minari) or file to write")
    parser.add_argument("--env", metavar="ENV", help="check against it, and name its exact spaces in a Minari data set")


def run_export(args: argparse.Namespace) -> int:
    """Write demonstrations in another format, without loss."""
    check_out(args.out)
    from ilde.demos import resolve
    from ilde.demos.exporting import export_demos
    from ilde.demos.in_memory import target_of
    from ilde.demos.minari_export import env_spaces

    demos = resolve(args.demos)
    spaces = None
    if args.env is not None:
        target = target_of(args.env)
        demos.check_matches(target.env_id, target.obs_space, target.action_space, args.demos)
        spaces = env_spaces(target.env_id, target.obs_space, target.action_space)
    export_demos(demos, args.target_format, args.out, spaces)
    written = {"path": str(args.out), "format": args.target_format}
    if args.json:
        print_json(written | {"episodes": len(demos.episodes), "transitions": demos.num_transitions})
    else:
        print(f"wrote {args.out}: {demos.num_transitions:,} transitions in {len(demos.episodes):,} episodes")
    return 0


VERBS = (
    Verb(
        "demos import",
        "bring demonstrations of other programs into a file of ilde",
        "ilde demos import hopper.h5 --env Hopper-v5 --out hopper.npz",
        run_import,
        _import_arguments,
        details="Reads .npz files of plain arrays, Minari data sets, the HDF5 experts of old GAIL, and trajectories\n"
        "saved by `imitation`. Files may come from strangers: nothing in them is run.",
    ),
    Verb(
        "demos export",
        "write demonstrations for other programs, without loss",
        "ilde demos export halfcheetah-v5/weak-v0 --to minari --out weak-v0",
        run_export,
        _export_arguments,
    ),
)

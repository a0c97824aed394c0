"""`ilde grid`: a study, from its file to finished runs."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ilde.cli.printing import print_json, print_table
from ilde.cli.verbs import UsageError, Verb, amount, natural_number, time_argument, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ilde.experiments.engine import Engine
    from ilde.experiments.grid import Cell, Grid

RETRIES = 2


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="FILE|NAME", help="a .toml or .json file, or a bundled study such as smoke")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the study's folder (default: runs/NAME)")
    parser.add_argument("--seeds", metavar="SEEDS", help="instead of the study's own: 0..3, or a list, 0,2,5")
    engine_arguments(parser)


def engine_arguments(parser: argparse.ArgumentParser) -> None:
    """Where runs are carried out, and how often each is tried."""
    parser.add_argument("--jobs", type=whole_number, metavar="N", help="runs at a time (default: one per two cores)")
    parser.add_argument(
        "--retries",
        type=natural_number,
        default=RETRIES,
        metavar="K",
        help=f"tries after a failure, from the last checkpoint (default: {RETRIES})",
    )
    time_argument(parser)
    parser.add_argument(
        "--engine", choices=("local", "ray"), default="local", help="processes on this machine, or Ray tasks"
    )
    parser.add_argument("--address", metavar="HOST:PORT", help="ray: an existing cluster (default: a new one, here)")
    parser.add_argument("--cpus", type=amount, metavar="C", help="ray: CPUs of each run (default: 2)")
    parser.add_argument("--gpus", type=amount, metavar="G", help="ray: GPUs of each run (default: a fair part)")
    parser.add_argument("--only", nargs="+", default=(), metavar="ID", help="some of the runs: 'hopper-v4/*/seed-0'")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="show the runs and the first one's command, with --json all of them, and begin none",
    )


def run_grid(args: argparse.Namespace) -> int:
    """Carry out what is left of a study."""
    from ilde.cli.campaigns import carry_out, outcomes, print_outcomes
    from ilde.experiments.grid import check_demos, chosen, naming
    from ilde.experiments.study_files import find_study
    from ilde.settings import parse_seeds

    check_engine(args)
    grid = find_study(args.study)
    if args.seeds is not None:
        grid = replace(grid, seeds=parse_seeds(args.seeds, mark="--"))
    cells, out = chosen(grid.cells(), args.only), args.out or Path("runs") / grid.name
    with naming(args.study):
        check_demos(cells)
    if args.dry_run:
        return show(grid, cells, out, as_json=args.json)
    standings, code = carry_out(
        cells,
        out,
        lambda: make_engine(args, cells),
        title=f"{grid.name}, {len(cells)} runs in {out}",
        how_to_go_on="the same command goes on",
        retries=args.retries,
        minutes=args.minutes,
        as_json=args.json,
    )
    results = outcomes(standings, out)
    if args.json:
        runs = [{"id": name, **found} for name, found in results.items()]
        print_json({"study": grid.name, "out": str(out), "complete": code == 0, "runs": runs})
    else:
        print_outcomes(results)
    return code


def check_engine(args: argparse.Namespace) -> None:
    """Refuse what the chosen engine knows nothing of."""
    for name in ("address", "cpus", "gpus"):
        if args.engine != "ray" and getattr(args, name) is not None:
            raise UsageError(f"--{name} is for --engine ray")


def make_engine(args: argparse.Namespace, cells: Sequence[Cell]) -> Engine:
    """The engine that was asked for."""
    from ilde.experiments.local import LocalEngine, default_jobs
    from ilde.experiments.ray_engine import RayEngine

    if args.engine == "local":
        return LocalEngine(min(len(cells), args.jobs or default_jobs()))
    use_gpus = any(cell.config.device != "cpu" for cell in cells)
    return RayEngine(args.address, jobs=args.jobs, cpus=args.cpus, gpus=args.gpus, use_gpus=use_gpus)


def show(grid: Grid, cells: Sequence[Cell], out: Path, *, as_json: bool) -> int:
    """Print what would be done."""
    from ilde.experiments.folders import Reached, survey
    from ilde.settings import spelled

    found = survey(cells, out)
    states = {cell.id: "refused" if cell.id in found.refused else found.reached[cell.id].state for cell in cells}
    steps = {cell.id: found.reached.get(cell.id, Reached()).env_steps for cell in cells}
    commands = {
        cell.id: shlex.join(["ilde", "train", *spelled(cell.config), f"--out={out / cell.id}"]) for cell in cells
    }
    if as_json:
        runs = [
            {"id": name, "state": state, "env_steps": steps[name], "command": commands[name]}
            | {"message": str(found.refused.get(name, ""))}
            for name, state in states.items()
        ]
        print_json({"study": grid.name, "out": str(out), "runs": runs})
        return 0
    rows = [(cell.id, states[cell.id], steps[cell.id], cell.config.steps) for cell in cells]
    print(f"{grid.name}: {grid.description}\n" if grid.description else f"{grid.name}\n")
    print_table(("run", "state", "steps", "of"), rows)
    for name, why in found.refused.items():
        print(f"{name}: refused: {why}")
    print(f"\nthe first of {len(cells)} commands:\n  {commands[cells[0].id]}")
    return 0


VERBS = (
    Verb(
        "grid",
        "run a study: methods x tasks x seeds, resumable",
        "ilde grid smoke --jobs 2",
        run_grid,
        _arguments,
        details="Finished runs are left alone, others go on from their last checkpoint, failed ones are tried again.\n"
        "Ctrl-C saves every run; the same command goes on. docs/scaling.md: study files, engines, clusters.",
    ),
)

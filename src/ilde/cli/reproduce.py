"""`ilde reproduce`: a table of the paper, its numbers beside ours."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ilde.cli.grid import check_engine, engine_arguments, make_engine, show
from ilde.cli.printing import print_json
from ilde.cli.report import print_words, read_runs
from ilde.cli.verbs import UsageError, Verb

if TYPE_CHECKING:
    from ilde.experiments.grid import Cell, Grid
    from ilde.experiments.paper import PaperTable
    from ilde.reports.gathering import Gathered

SMALLEST = "smoke"
"""The budget where none is named."""
FOR_RUNS = (
    *("--budget", "--out", "--jobs", "--retries", "--minutes", "--engine", "--address", "--cpus", "--gpus"),
    *("--only", "--dry-run"),
)
"""Options that say something of runs to be made."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table", metavar="TABLE", help="such as atari, mujoco or lambda, or hypotheses; `list` names all"
    )
    parser.add_argument("--budget", metavar="NAME", help="smoke (minutes, the default), hours, paper")
    parser.add_argument(
        "--from", dest="sources", type=Path, nargs="+", metavar="PATH", help="run nothing: read results/"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the runs (default: runs/reproduce-BUDGET)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table as Markdown")
    engine_arguments(parser)


def run_reproduce(args: argparse.Namespace) -> int:
    """Run what a table takes, or read it, and print it beside the paper's."""
    from dataclasses import asdict

    from ilde.experiments import hypotheses
    from ilde.experiments.paper import paper_table
    from ilde.experiments.reproduction import reproduce
    from ilde.reports.tables import markdown
    from ilde.reports.writing import check_apart, check_file, write_text

    if args.table == "list":
        _refuse(args, (*FOR_RUNS, "--from", "--markdown"), "list runs and reads nothing")
        return _list(as_json=args.json)
    table = None if args.table == hypotheses.NAME else paper_table(args.table)
    _refuse_idle(args, table)
    if args.dry_run and table is not None:
        _refuse(args, ("--markdown",), "--dry-run measures nothing")
        return _show(args, table)
    if args.markdown is not None:
        check_apart({"--out": _folder(args), "--markdown": args.markdown})
        check_file(args.markdown)
    gathered, budget, code = _measure(args, table)
    outcomes, title = gathered.outcomes, hypotheses.TITLE if table is None else table.title
    words = hypotheses.judge(outcomes) if table is None else reproduce(table, outcomes)
    try:
        if args.markdown is not None and (outcomes or budget is None):  # an earlier table is worth more than none
            write_text(args.markdown, markdown(title, [words]))
    finally:  # whatever became of the file, what was measured is not lost
        if args.json:
            print_json({"table": args.table, "budget": budget} | asdict(words) | {"skipped": dict(gathered.skipped)})
        else:
            print_words(words)
    return code


def _measure(args: argparse.Namespace, table: PaperTable | None) -> tuple[Gathered, str | None, int]:
    """What the numbers are made of, the budget of runs that were made for them, and the exit code."""
    from ilde.reports.gathering import Gathered

    if table is not None and table.domain == "demonstrators":  # the recordings are measured: they come with the package
        return Gathered((), {}, {}), None, 0
    if table is None or args.sources:
        return _read(args), None, 0
    budget = args.budget or SMALLEST
    gathered, code = _carry_out(args, table, budget)
    return gathered, budget, code


def _refuse_idle(args: argparse.Namespace, table: PaperTable | None) -> None:
    """Refuse options of runs where none is made; without a table the hypotheses are judged."""
    if args.sources or table is None or table.domain == "demonstrators":
        _refuse(args, FOR_RUNS, f"{'--from' if args.sources else args.table} runs nothing")


def _refuse(args: argparse.Namespace, options: Sequence[str], why: str) -> None:
    given = {word.partition("=")[0] for word in args.words}
    idle = [option for option in options if option in given]
    if idle:
        raise UsageError(f"{', '.join(idle)}: no effect, since {why}; leave {'it' if len(idle) == 1 else 'them'} out")


def _read(args: argparse.Namespace) -> Gathered:
    """What was kept of runs: the hypotheses have none of their own."""
    from ilde.data import UserError

    if not args.sources:
        raise UserError(f"{args.table}: judged by the runs of other tables; name them, such as --from results")
    return read_runs(args.sources)


def _folder(args: argparse.Namespace) -> Path:
    """Where runs are made: those of one budget share a folder."""
    return args.out or Path("runs") / f"reproduce-{args.budget or SMALLEST}"


def _carry_out(args: argparse.Namespace, table: PaperTable, budget: str) -> tuple[Gathered, int]:
    """What came of a table's runs, and the exit code."""
    from ilde.cli.campaigns import carry_out
    from ilde.data import UserError
    from ilde.experiments.paper.studies import paper_study
    from ilde.reports.gathering import Gathered

    cells, out = _cells(args, paper_study(table.name, budget)), _folder(args)
    title = f"{table.name}, budget {budget}, {len(cells)} runs in {out}"
    going_on = "the same command goes on"
    _, code = carry_out(
        cells,
        out,
        lambda: make_engine(args, cells),
        title=title,
        how_to_go_on=going_on,
        retries=args.retries,
        minutes=args.minutes,
        as_json=args.json,
    )
    try:
        return read_runs([out]), code
    except UserError:
        if not code:
            raise
        return Gathered((), {}, {}), code  # stopped, or failed, before there was anything to read: that has been said


def _show(args: argparse.Namespace, table: PaperTable) -> int:
    """The runs of a table, and how far they are."""
    from ilde.experiments.paper.studies import paper_study

    grid = paper_study(table.name, args.budget or SMALLEST)
    return show(grid, _cells(args, grid), _folder(args), as_json=args.json)


def _cells(args: argparse.Namespace, grid: Grid) -> Sequence[Cell]:
    """The runs that were asked for, if all of them can begin."""
    from ilde.experiments.grid import check_demos, chosen

    check_engine(args)
    cells = chosen(grid.cells(), args.only)
    check_demos(cells)
    return cells


def _list(*, as_json: bool) -> int:
    from ilde.cli.printing import print_table
    from ilde.experiments.hypotheses import NAME
    from ilde.experiments.paper import paper_tables

    known = [(table.name, table.title, table.where) for table in paper_tables()]
    known.append((NAME, "The four hypotheses, judged by runs of the other tables", "Section 6"))
    if as_json:
        print_json([dict(zip(("name", "title", "where"), entry, strict=True)) for entry in known])
    else:
        print_table(("table", "what", "where"), known)
    return 0


VERBS = (
    Verb(
        "reproduce",
        "a table of the paper: its numbers beside ours",
        "ilde reproduce mujoco --budget smoke",
        run_reproduce,
        _arguments,
        details="Runs of one budget share a folder, so that tables of the same runs cost nothing more.\n"
        "`--from results` rebuilds our published tables from what was kept of the runs.",
    ),
)

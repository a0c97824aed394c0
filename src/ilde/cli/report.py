"""`ilde report`: tables of runs beside their controls, and one page of them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ilde.cli.printing import print_json, print_rich, printable
from ilde.cli.verbs import UsageError, Verb

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ilde.reports.gathering import Gathered
    from ilde.reports.page import Report
    from ilde.reports.tables import WordTable


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs",
        metavar="RUNS",
        type=Path,
        nargs="+",
        help="folders with runs or *.outcomes.json at any depth, or files of outcomes",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write one self-contained page, such as report.html")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables as Markdown")
    parser.add_argument("--outcomes", type=Path, metavar="FILE", help="write all this is made from as one small JSON")
    parser.add_argument("--title", default="Imitation report", metavar="TEXT", help="of the page")
    parser.add_argument("--sampled", action="store_true", help="compare sampled actions rather than the most likely")
    parser.add_argument("--film", action="store_true", help="show demonstrator and policies at work on the page")


def run_report(args: argparse.Namespace) -> int:
    """Read runs, compare them, and write what was asked for."""
    from ilde.cli.filming import film_tasks
    from ilde.experiments.measured import measured_tables
    from ilde.reports.across import aggregate
    from ilde.reports.comparison import compare
    from ilde.reports.page import Report
    from ilde.reports.tables import all_tables
    from ilde.reports.writing import check_apart, check_file

    if args.film and args.out is None:
        raise UsageError("--film: films stand on the page; name it with --out report.html")
    files = {"--out": args.out, "--markdown": args.markdown, "--outcomes": args.outcomes}
    check_apart(files)
    for file in filter(None, files.values()):
        check_file(file)
    gathered = read_runs(args.runs)
    comparisons = compare(gathered.outcomes, greedy=not args.sampled)
    films = film_tasks(comparisons, gathered.folders, _note) if args.film else {}
    paper = measured_tables(gathered.outcomes) if args.out else ()
    report = Report(args.title, comparisons, aggregate(comparisons), films, gathered.skipped, paper)
    tables = all_tables(report.comparisons, report.aggregates)
    written: list[Path] = []
    try:
        written.extend(_write(args, gathered, report, tables))
    finally:  # whatever became of the files, what was compared is not lost
        _tell(report, tables, written, as_json=args.json)
    return 0


def _tell(report: Report, tables: Sequence[WordTable], written: Sequence[Path], *, as_json: bool) -> None:
    """Print what was found, and the files in which it is kept."""
    from ilde.reports.documents import document

    if as_json:
        told = {"title": report.title, **document(report.comparisons, report.aggregates)}
        print_json(told | {"skipped": dict(report.skipped), "files": [str(path) for path in written]})
        return
    for table in tables:
        print_words(table)
    for path in written:
        print(f"wrote {path} ({path.stat().st_size / 1024:,.0f} KiB)")


def read_runs(sources: Sequence[Path]) -> Gathered:
    """Read all runs, with a line for each that cannot be read."""
    from rich.console import Console

    from ilde.reports.gathering import gather

    with Console(stderr=True).status("reading runs") as status:
        gathered = gather(sources, lambda name: status.update(f"reading {name}"))
    for name, reason in gathered.skipped.items():
        _note(f"skipped {name}: {reason}")
    return gathered


def _write(args: argparse.Namespace, gathered: Gathered, report: Report, tables: Sequence[WordTable]) -> Iterator[Path]:
    """Write what was asked for, file by file."""
    from ilde.reports.outcome_files import save_outcomes
    from ilde.reports.page import render
    from ilde.reports.tables import markdown
    from ilde.reports.writing import write_text

    if args.out is not None:
        write_text(args.out, render(report))
        yield args.out
    if args.markdown is not None:
        write_text(args.markdown, markdown(args.title, tables))
        yield args.markdown
    if args.outcomes is not None:
        save_outcomes(gathered.outcomes, args.outcomes)
        yield args.outcomes


def print_words(table: WordTable) -> None:
    """A table of words on the terminal."""
    from rich.table import Table
    from rich.text import Text

    print(printable(table.title))  # a table's own title would be broken at the table's width
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    ends = (0, len(table.columns) - 1)
    for number, column in enumerate(table.columns):
        drawn.add_column(column, justify="left" if number in ends else "right", overflow="fold")
    for cells in table.rows:
        drawn.add_row(*(Text(printable(cell)) for cell in cells))
    if table.columns:
        print_rich(drawn)
    for note in table.notes:
        print(f"- {printable(note)}")
    print()


def _note(message: str) -> None:
    print(printable(message), file=sys.stderr)


VERBS = (
    Verb(
        "report",
        "compare runs with their controls, and make one page of them",
        "ilde report runs/ --out report.html",
        run_report,
        _arguments,
        details="A method is said to imitate where its 95% interval lies above that of every control.",
    ),
)

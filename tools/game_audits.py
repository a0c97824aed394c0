"""What the audits of games share: their options, and from a measurement to what is kept and printed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ilde.data import UserError
from ilde.reports.tables import WordTable
from ilde.reports.writing import publish, read_kept

FOLDERS = "folders of bundled demonstrations, such as beam_rider"


def audit_parser(description: str | None, games: str = FOLDERS, *, seed: int = 0) -> argparse.ArgumentParser:
    """The options that all of them have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("games", nargs="*", help=games)
    parser.add_argument("--from", dest="kept", type=Path, help="read what --json wrote")
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    return parser


def audit(
    parser: argparse.ArgumentParser,
    title: str,
    table: Callable[[dict[str, Any]], WordTable],
    measured: Callable[[argparse.Namespace], dict[str, Any]],
) -> int:
    """Measure or read, then print."""
    args = parser.parse_args()
    if bool(args.games) == bool(args.kept):
        parser.error("name games, or give --from FILE")
    try:
        document = read_kept(args.kept, table) if args.kept else measured(args)
        publish(document, title, [table(document)], kept=args.json, words=args.markdown)
    except UserError as error:
        sys.exit(str(error))
    return 0

"""Names of code in the methods' pages, linked to the lines where they stand; run again after lines have moved.

    python tools/line_links.py            # rewrites docs/algorithms/*.md
    python tools/line_links.py --check    # says which pages are out of date

A name in backticks that stands for one class, function or method of the package becomes a link; so does a file of it.
A test keeps the pages as this writes them.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "ilde"
PAGES = ROOT / "docs" / "algorithms"

_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"\[`(?P<linked>[\w./]+)`\]\([^)]*src/ilde/[^)]*\)|(?<!\[)`(?P<bare>[\w./]+)`(?!\])")


def definitions(module: ast.Module) -> Iterator[tuple[str, int]]:
    """Classes, functions and methods of a file, with their lines."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        if isinstance(node, ast.ClassDef):
            methods = (child for child in node.body if isinstance(child, ast.FunctionDef))
            yield from ((f"{node.name}.{method.name}", method.lineno) for method in methods)


@cache
def places() -> Mapping[str, list[str]]:
    """Where each name is defined, and where each file is, as links from a page."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        inside = path.relative_to(SOURCE).as_posix()
        link = f"../../src/ilde/{inside}"
        found[inside].append(link)
        for name, line in definitions(ast.parse(path.read_text(encoding="utf-8"))):
            found[name].append(f"{link}#L{line}")
    return found


def linked(text: str) -> str:
    """The page with every name that stands for one place linked to it; code blocks stay as they are."""
    parts = _FENCE.split(text)
    return "".join(part if part.startswith("```") else _NAME.sub(_link, part) for part in parts)


def _link(match: re.Match[str]) -> str:
    name = match["linked"] or match["bare"]
    # A plain lower-case word may be a method or a setting of that name.
    telling = "/" in name or "_" in name or "." in name or name[0].isupper()
    targets = places().get(name, []) if telling else []
    return f"[`{name}`]({targets[0]})" if len(targets) == 1 else f"`{name}`"


def main() -> int:
    """Rewrite or check all pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 if a page is out of date")
    check = parser.parse_args().check
    stale = [
        path for path in sorted(PAGES.glob("*.md")) if linked(path.read_text(encoding="utf-8")) != path.read_text()
    ]
    for path in stale:
        print(path.relative_to(ROOT))
        if not check:
            path.write_text(linked(path.read_text(encoding="utf-8")), encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())

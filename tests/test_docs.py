"""The pages under docs: links lead somewhere, and names of code lead to the lines where they stand."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest
from tool_modules import load_tool

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# The theorem's algorithm is no row of the table of methods: its page has a shape of its own.
METHODS = sorted(path for path in (ROOT / "docs" / "algorithms").glob("*.md") if path.stem != "ilde-npg")

each_method = pytest.mark.parametrize("page", METHODS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def line_links() -> ModuleType:
    return load_tool("line_links")


@each_method
def test_names_of_code_lead_to_their_lines(page: Path, line_links: ModuleType) -> None:
    text = page.read_text(encoding="utf-8")
    assert line_links.linked(text) == text, "run python tools/line_links.py"
    assert re.search(r"src/ilde/\S+\.py#L\d+", text)


@each_method
def test_every_method_page_has_its_parts(page: Path) -> None:
    parts = re.findall(r"^## (\w+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert {"Our", "Run", "Results"} <= set(parts)


def test_a_name_that_stands_for_nothing_or_for_much_is_left_alone(line_links: ModuleType) -> None:
    text = "`Nowhere.at_all`, `state_dict`, `vail`, `PPO.update`\n```\nPPO.update `PPO.update`\n```\n"
    places = line_links.places()["PPO.update"]
    assert len(places) == 1
    expected = text.replace("`PPO.update`\n", f"[`PPO.update`]({places[0]})\n", 1)
    assert line_links.linked(text) == expected
    assert line_links.linked(expected) == expected


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)\s]+)\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target.partition("#")[0]).exists()]
    assert missing == []

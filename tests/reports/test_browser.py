"""The page in a real browser: laptop and phone, nothing beyond the edge, nothing on the console, nothing blank."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_outcomes import seeds
from PIL import Image

from ilde.experiments.measured import measured_tables
from ilde.reports.across import aggregate
from ilde.reports.comparison import compare
from ilde.reports.outcome_files import load_outcomes
from ilde.reports.outcomes import Outcome
from ilde.reports.page import Report, render
from ilde.reports.tables import WordTable

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LAPTOP, DESK, PHONE = 1280, 1440, 390
RESULTS = Path(__file__).parents[2] / "results"
QUIET = ("--disable-extensions", "--disable-sync", "--disable-background-networking", "--no-first-run")
MEASURE = """
addEventListener("load", () => {
  const measure = frame => {
    const page = frame.contentDocument, width = page.documentElement.clientWidth;
    const beyond = e => e.getBoundingClientRect().right > width + 1 && !e.closest(".runs, svg");
    const wider = e => e.scrollWidth > e.clientWidth + 1 && !e.closest(".runs") && !e.querySelector(".runs");
    const named = e => e.tagName + "." + e.className;
    return {
      width: page.documentElement.scrollWidth,
      beyond: [...page.querySelectorAll("section *")].filter(beyond).map(named),
      scrolled: [...page.querySelectorAll(".scroll")].filter(wider).length,
      spilled: [...page.querySelectorAll("th, td")].filter(wider).map(named),
    };
  };
  document.body.dataset.measured = JSON.stringify([...document.querySelectorAll("iframe")].map(measure));
});
"""
"""Run outside of the pages, which forbid scripts. The list of all runs may be wide, within a box of its own."""
WITHIN = {"beyond": [], "scrolled": 0, "spilled": []}


@pytest.fixture(scope="module")
def browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    return found


def visit(browser: str, page: Path, width: int, *options: str) -> subprocess.CompletedProcess[str]:
    command = (
        browser,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--enable-logging=stderr",
        *QUIET,
        f"--user-data-dir={page.parent / 'profile'}",
        f"--window-size={width},1600",
        *options,
        page.as_uri(),
    )
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)


def complaints(visited: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in visited.stderr.splitlines() if "CONSOLE" in line]


def measured(browser: str, pages: list[tuple[str, int]], folder: Path) -> Any:
    """The widths of pages and of what stands in them, each in a frame of its own: a window has a least width."""
    frames = [f'<iframe style="width:{width}px" srcdoc="{html.escape(text)}"></iframe>' for text, width in pages]
    wrapper = folder / "measured.html"
    wrapper.write_text(f"<!doctype html><body>{''.join(frames)}<script>{MEASURE}</script>")
    found = re.search(r'data-measured="([^"]*)"', visit(browser, wrapper, LAPTOP, "--dump-dom").stdout)
    assert found is not None
    return json.loads(html.unescape(found[1]))


def test_nothing_reaches_beyond_the_edge_and_what_does_is_noticed(browser: str, report: Report, tmp_path: Path) -> None:
    row = (
        "ILDE, from 10% of a/b",
        "HalfCheetah",
        "70,566 ± 75,310",
        "7,460 ± 1,000 (last four evaluations: 7,000 ± 100)",
    )
    words = WordTable("A table", ("row", "task", "paper", "ours"), ((*row[:3], "-"), row), ("a note " * 30,))
    page = render(replace(report, paper=(words,))).replace("<details>", '<details open="">')
    wide = page.replace("<h2>", '<div style="width:2000px">wide</div><h2>', 1)
    laptop, phone, beyond = measured(browser, [(page, LAPTOP), (page, PHONE), (wide, PHONE)], tmp_path)
    assert laptop == {"width": LAPTOP, **WITHIN}
    assert phone == {"width": PHONE, **WITHIN}
    assert beyond["width"] > PHONE
    assert beyond["beyond"]


def crowded() -> list[Outcome]:
    """Five seeds and all controls on two tasks, under settings with long names: every column of every table is full."""
    own = {"variant": ("rewards.curiosity_factor=0.02", "rewards.generative.log_variance_limit=4.0")}
    scores = (100_123.0, 150_001.0, 120_000.0, 90_000.0, 111_111.0)
    runs: list[Outcome] = []
    for task, digest in (("HalfCheetah-v5", "f" * 64), ("HumanoidStandup-v4", "d" * 64)):
        for method in ("ilde", "vail", "shuffled", "wrong-demos"):
            runs += seeds(method, scores, task=task, demos_hash=digest, **own)
        for method in ("constant", "entropy", "random"):
            runs += seeds(method, [-score for score in scores], task=task, **own)
    return runs


@pytest.mark.parametrize("kind", ["crowded", "published"])
def test_long_settings_and_full_columns_stay_within_every_width(browser: str, tmp_path: Path, kind: str) -> None:
    outcomes = crowded() if kind == "crowded" else load_outcomes(RESULTS / "reproduce-hours.outcomes.json")
    comparisons = compare(outcomes)
    report = Report("A study", comparisons, aggregate(comparisons), {}, {}, tuple(measured_tables(outcomes)))
    page = render(report).replace("<details>", '<details open="">')
    widths = (LAPTOP, DESK, PHONE)
    assert measured(browser, [(page, width) for width in widths], tmp_path) == [
        {"width": width, **WITHIN} for width in widths
    ]


@pytest.mark.parametrize("width", [LAPTOP, PHONE])
def test_the_page_is_drawn_without_complaint(browser: str, report: Report, tmp_path: Path, width: int) -> None:
    page, picture = tmp_path / "report.html", tmp_path / "report.png"
    page.write_text(render(report))
    assert complaints(visit(browser, page, width, f"--screenshot={picture}")) == []
    image = Image.open(picture).convert("RGB")
    assert image.size == (width, 1600)
    codes, counts = np.unique(np.asarray(image).astype(int) @ (1 << 16, 1 << 8, 1), return_counts=True)
    colours = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1)
    assert len(colours) > 200
    assert counts.max() < 0.9 * counts.sum()
    # ILDE's curve and the demonstrator's line, in the colours of either scheme.
    for light, dark in (((0xD1, 0x43, 0x2B), (0xFF, 0x7A, 0x61)), ((0xB4, 0x23, 0x5A), (0xFF, 0x7E, 0xAC))):
        assert min(np.abs(colours - colour).sum(1).min() for colour in (light, dark)) < 12


def test_the_policy_forbids_scripts_and_requests_and_the_console_says_so(
    browser: str, report: Report, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    hostile = "<img src=http://127.0.0.1:9/x.png><script>document.title = 'taken'</script>"
    page.write_text(render(report).replace("<h2>", f"{hostile}<h2>", 1))
    visited = visit(browser, page, LAPTOP, "--dump-dom")
    assert "<title>A study</title>" in visited.stdout
    assert len(complaints(visited)) == 2

"""Which tables of the paper a report shows, and which of their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from made_outcomes import seeds

from ilde.cli.main import main
from ilde.experiments.measured import measured_tables
from ilde.reports.outcome_files import save_outcomes

GAME: dict[str, Any] = {
    "task": "ALE/BeamRider-v5",
    "preset": "atari",
    "demos": "beam_rider/one-life-v0",
    "fraction": 0.1,
}
RUNS = seeds("ilde", (1800.0, 2000.0), **GAME)
CONTROL = seeds("constant", (300.0, 400.0), **GAME | {"demos": None, "fraction": 1.0})


def test_only_rows_that_were_measured_stand_beside_the_papers_numbers() -> None:
    words = measured_tables([*RUNS, *CONTROL])[0]
    assert [(row[0], row[1], row[3]) for row in words.rows] == [
        ("demonstrator", "BeamRider", "900"),
        ("ILDE", "BeamRider", "1,900 ± 141"),
        ("constant", "BeamRider", "350 ± 71"),
    ]
    assert words.rows[1][2] == "11,453 ± 2,319"
    assert not any("not run" in cell for row in words.rows for cell in row)


def test_a_table_needs_a_row_that_the_paper_printed() -> None:
    assert measured_tables(CONTROL) == ()
    assert measured_tables(seeds("ilde", (1.0, 2.0))) == ()  # HalfCheetah-v5 is no task of the paper


def test_the_page_of_a_report_shows_them(tmp_path: Path) -> None:
    for runs, shown in ((RUNS, True), (seeds("ilde", (1.0, 2.0)), False)):
        save_outcomes(runs, tmp_path / "o.json")
        assert main(["report", str(tmp_path / "o.json"), "--out", str(tmp_path / "r.html")]) == 0
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert ("Beside the paper" in page) is shown
        assert ("11,453 ± 2,319" in page) is shown

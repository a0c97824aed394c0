"""A study with everything in it, as its report shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_runs import make_run, make_study, report_on

from ilde.reports.page import Report


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three seeds of two methods and all controls, and a run that failed."""
    folder = tmp_path_factory.mktemp("study")
    make_study(folder, scores={"ilde": 1000.0, "vail": 95.0}, evaluations=(1, 500, 900))
    make_run(folder / "ilde-9", "ilde", 9, None, state="failed")
    return folder


@pytest.fixture(scope="session")
def report(study: Path) -> Report:
    return report_on(study)

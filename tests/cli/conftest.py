"""The command line as a fixture, and one tiny trained run that several tests look at."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import TINY, Ilde, run_ilde


@pytest.fixture(scope="session")
def ilde() -> Ilde:
    return run_ilde


@pytest.fixture(scope="session")
def expert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of 2,016 steps on CartPole's true reward."""
    run = tmp_path_factory.mktemp("runs") / "expert"
    result = run_ilde("train", "expert", "--env", "CartPole-v1", "--steps", "2e3", "--out", run, *TINY)
    assert result.code == 0, result.err
    return run

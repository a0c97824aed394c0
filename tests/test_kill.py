"""Runs killed with SIGKILL and resumed end as if nothing had happened; `tools/kill_test.py` is the long version."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "kill_test.py"


def killed(env: str, *, kills: int, updates: int, method: str = "ilde") -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", str(TOOL), "--json", "--env", env, "--method", method]
    command += ["--kills", str(kills), "--updates", str(updates)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    tally: dict[str, Any] = json.loads(result.stdout)[0]
    return tally


def assert_unharmed(tally: dict[str, Any], *, kills: int) -> None:
    assert tally["kills"] == kills
    assert tally["unresumable"] == 0
    assert tally["differences"] == []
    assert tally["identical"] == tally["runs"] >= 2


def test_killed_runs_end_as_if_nothing_had_happened() -> None:
    assert_unharmed(killed("CartPole-v1", kills=3, updates=10), kills=3)


def test_a_killed_run_loses_nothing_of_its_replay_buffer() -> None:
    assert_unharmed(killed("Pendulum-v1", method="hype-ilde", kills=3, updates=10), kills=3)


@pytest.mark.slow
def test_killed_atari_runs_end_as_if_nothing_had_happened() -> None:
    pytest.importorskip("ale_py")
    assert_unharmed(killed("ALE/Breakout-v5", kills=6, updates=10), kills=6)

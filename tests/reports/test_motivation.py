"""`tools/motivation.py`: the table of motives, from what was kept of it and from runs."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made_runs import DEMOS, make_run

ROOT = Path(__file__).parents[2]


def tool(*arguments: str | Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["motivation.py", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "tools" / "motivation.py"), run_name="__main__")
    assert ended.value.code == 0


@pytest.mark.parametrize(("name", "num_doubted"), [("motivation", 11), ("motivation-v4", 0)])
def test_the_published_table_is_rebuilt_byte_for_byte(
    name: str, num_doubted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, out = ROOT / "results" / f"{name}.json", tmp_path / f"{name}.md"
    tool("--from", kept, "--markdown", out, monkeypatch=monkeypatch)
    assert out.read_bytes() == (ROOT / "results" / f"{name}.md").read_bytes()
    doubted = [line for line in out.read_text(encoding="utf-8").splitlines() if "†" in line]
    assert len(doubted) == num_doubted  # ten rows and the note that tells why, or none


def test_a_study_of_one_seed_has_measures_without_deviations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for method in ("vail", "giril", "entropy", "ilde"):
        make_run(tmp_path / "halfcheetah" / method / "seed-0", method)
    make_run(tmp_path / "halfcheetah" / "vail" / "seed-1", "vail", 1, None, state="failed")
    make_run(tmp_path / "hopper" / "vail" / "seed-0", "vail")

    def loaded(*_: Any) -> SimpleNamespace:
        config = SimpleNamespace(env="HalfCheetah-v5", demos=DEMOS, clip_actions=True)
        return SimpleNamespace(config=config, env_steps=7, policy=SimpleNamespace(act=act))

    def act(obs: Any, _: Any) -> SimpleNamespace:
        return SimpleNamespace(action=obs[:, :6].clip(-1, 1).float())

    monkeypatch.setattr("ilde.policies.load_policy", loaded)
    monkeypatch.setattr("ilde.policies.uniform_policy", loaded)
    tool(tmp_path, "--steps", "320", "--markdown", tmp_path / "m.md", monkeypatch=monkeypatch)
    rows = [line for line in (tmp_path / "m.md").read_text(encoding="utf-8").splitlines() if line.startswith("| Half")]
    assert len(rows) == 5
    assert "±" not in "".join(rows)
    assert "| HalfCheetah-v5 | vail | 1,000 | " in rows[1]
    assert np.isfinite(float(rows[1].split("|")[4]))

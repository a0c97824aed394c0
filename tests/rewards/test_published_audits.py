"""Every published table of an audit is what its tool makes of the kept JSON."""

from __future__ import annotations

from pathlib import Path

import pytest
from tool_modules import ROOT, load_tool


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("curiosity_audit", "curiosity-audit"),
        ("curiosity_audit", "curiosity-noise"),
        ("dying_audit", "dying-audit"),
        ("followed_audit", "followed-audit"),
        ("model_audit", "model-audit"),
        ("points_audit", "excess-audit"),
        ("points_audit", "points-audit"),
        ("settled_audit", "settled-audit"),
        ("settled_audit", "settled-limit-audit"),
        ("term_audit", "term-audit"),
        ("worth_audit", "worth-audit"),
    ],
)
def test_a_published_table_is_rebuilt_byte_for_byte(
    tool: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, out = ROOT / "results" / f"{name}.json", tmp_path / "audit.md"
    monkeypatch.setattr("sys.argv", [f"{tool}.py", "--from", str(kept), "--markdown", str(out)])
    assert load_tool(tool).main() == 0
    assert out.read_bytes() == (ROOT / "results" / f"{name}.md").read_bytes()

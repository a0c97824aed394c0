"""`tools/curiosity_audit.py`: its distances on states worked out by hand, and its published table rebuilt."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from tool_modules import ROOT, load_tool


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    return load_tool("curiosity_audit")


def test_the_published_table_is_rebuilt_byte_for_byte(
    audit: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, out = ROOT / "results" / "curiosity-audit.json", tmp_path / "audit.md"
    monkeypatch.setattr("sys.argv", ["curiosity_audit.py", "--from", str(kept), "--markdown", str(out)])
    assert audit.main() == 0
    assert out.read_bytes() == (ROOT / "results" / "curiosity-audit.md").read_bytes()


def test_a_step_is_as_far_as_its_successor_from_the_nearest_demonstrated_one(audit: ModuleType) -> None:
    mix: Any = SimpleNamespace(space=lambda obs: obs)
    shown = SimpleNamespace(next_obs=torch.tensor([[0.0, 0.0], [10.0, 0.0]]))
    steps = SimpleNamespace(next_obs=torch.tensor([[3.0, 4.0], [10.0, 1.0], [0.0, 0.0]]))
    # Squared distances 25, 1 and 0, over two features.
    assert audit.distances(mix, shown)(steps).tolist() == pytest.approx([12.5, 0.5, 0.0], abs=1e-6)

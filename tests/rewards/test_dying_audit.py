"""`tools/dying_audit.py`: steps lined up by the end of their life, and a game audited."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
import torch
from tool_modules import load_tool

from ilde.data import UserError


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = load_tool("dying_audit")
    monkeypatch.setattr(module, "REACH", 4)
    monkeypatch.setattr(module, "BLOCK", 2)
    return module


def test_steps_are_lined_up_by_the_end_of_their_life(audit: ModuleType) -> None:
    change = torch.arange(12.0).unsqueeze(1) * torch.tensor([1.0, 100.0])
    ended = torch.zeros(12, 2, dtype=torch.bool)
    ended[[4, 7], 0] = True  # five steps, then a life too short to be looked at
    lives, moved = audit.before_ends(change, ended)
    assert (lives, moved.tolist()) == (1, [3.5, 1.5])
    ended[9, 1] = True
    lives, moved = audit.before_ends(change, ended)
    assert (lives, moved.tolist()) == (2, [(3.5 + 850) / 2, (1.5 + 650) / 2])
    with pytest.raises(UserError, match="no life of 4 steps among 0"):
        audit.before_ends(change, torch.zeros_like(ended))


def test_a_death_shows_from_its_earliest_unusual_block_on(audit: ModuleType) -> None:
    assert audit.shown(torch.tensor([1.0, 6.0, 1.0, 11.0, 1.0]), usual=2.0) == 8
    assert audit.shown(torch.tensor([1.0, 10.0]), usual=2.0) == 0


def test_a_game_is_audited(audit: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"NUM_ENVS": 2, "STEPS": 200, "PART": 50}.items():
        monkeypatch.setattr(audit, name, value)
    row = audit.measure("Qbert", seed=0)
    assert row["lives"] > 0
    assert len(row["before_the_end"]) == 2
    assert row["scoring"] > 1.0


@pytest.mark.parametrize("tool", ["curiosity_audit", "dying_audit", "points_audit"])
@pytest.mark.parametrize(("content", "answer"), [("[1]", "not what --json wrote"), (None, "No such file or directory")])
def test_a_wrong_file_is_answered_in_one_line(
    tool: str, content: str | None, answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if content is not None:
        (tmp_path / "kept.json").write_text(content)
    monkeypatch.setattr("sys.argv", [f"{tool}.py", "--from", str(tmp_path / "kept.json")])
    with pytest.raises(SystemExit, match=answer):
        load_tool(tool).main()

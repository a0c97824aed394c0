"""`tools/dying_audit.py`: steps lined up by the end of their life, and a game audited."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
from tool_modules import load_tool


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
    assert audit.before_ends(change, ended).tolist() == [3.5, 1.5]
    ended[9, 1] = True
    assert audit.before_ends(change, ended).tolist() == [(3.5 + 850) / 2, (1.5 + 650) / 2]
    assert audit.before_ends(change, torch.zeros_like(ended)).isnan().all()


def test_a_death_shows_from_its_earliest_unusual_block_on(audit: ModuleType) -> None:
    assert audit.shown(torch.tensor([1.0, 6.0, 1.0, 11.0, 1.0]), usual=2.0) == 8
    assert audit.shown(torch.tensor([1.0, 10.0]), usual=2.0) == 0
    assert audit.shown(torch.full((2,), torch.nan), usual=2.0) == 0


def test_a_game_is_audited(audit: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"NUM_ENVS": 4, "STEPS": 240, "PART": 60}.items():
        monkeypatch.setattr(audit, name, value)
    row = audit.measure("Qbert", seed=0)
    assert row["lives"] > 4
    assert len(row["before_the_end"]) == 2
    assert row["scoring"] > 1.0
    assert row == audit.measure("Qbert", seed=0)

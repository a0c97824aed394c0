"""`tools/settled_audit.py`: what is near points, and a game audited."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
import torch
from tool_modules import load_tool


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = load_tool("settled_audit")
    monkeypatch.setattr(module, "NUM_ENVS", 2)
    monkeypatch.setattr(module, "BEGINNING", 12)
    for name, value in {"NUM_ENVS": 2, "GAME": 260, "ACTION": 12}.items():
        monkeypatch.setattr(sys.modules["worth_audit"], name, value)
    return module


def test_a_step_is_near_points_from_where_it_scores(audit: ModuleType) -> None:
    scored = torch.tensor([[0, 1], [1, 0], [0, 0], [0, 0], [0, 0]], dtype=torch.bool)
    assert audit.since(scored, 2).int().tolist() == [[0, 1], [1, 1], [1, 1], [1, 0], [0, 0]]


def test_a_game_is_audited(audit: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "SETTINGS", "rewards.hidden=8 rewards.generative.epochs=1")
    monkeypatch.setattr(audit, "SPANS", (0, 1, 4))
    document = audit._measured(["qbert"], seed=0)
    (game,) = document["games"]
    ways = {"random", "held", *(f"action {k}" for k in range(6)), *(f"part {k}" for k in range(1, 5))}
    assert set(game["scoring"]) == ways
    whole, change, settled = (row["pay"] for row in game["rows"].values())
    assert set(whole) == ways
    for way in ways:  # each reading pays a part of the one before
        assert 0.0 <= settled[way] <= change[way] <= whole[way]
    assert 0.0 < settled["random"] < change["random"]
    assert game["scoring"]["part 2"] > game["scoring"]["random"] > 0.0
    rows = audit.table(document).rows
    assert [row[1] for row in rows] == ["the error whole", "1 states", "4 states"]
    assert rows[0][5] == f"1.00 ({game['scoring']['random']:.0f})"


def test_a_limit_takes_from_the_largest_alone(audit: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "SETTINGS", "rewards.hidden=8 rewards.generative.epochs=1")
    monkeypatch.setattr(audit, "SPANS", (0, 1))
    found: list[list[torch.Tensor]] = []
    for limit in (0.0, 2.0):
        worths: list[torch.Tensor] = []
        original = audit.paid

        def noted(*args: Any, original: Any = original, worths: list[torch.Tensor] = worths) -> Any:
            worths += original(*args).values()
            return original(*args)

        with monkeypatch.context() as patched:
            patched.setattr(audit, "paid", noted)
            document = audit._measured(["qbert"], 0, limit)
        found.append(worths)
    assert document["command"].endswith("--seed 0 --limit 2")
    for whole, limited in zip(*found, strict=True):
        torch.testing.assert_close(limited, whole.clamp(max=2.0 * whole.mean()))
    assert any((whole > limited).any() for whole, limited in zip(*found, strict=True))

"""`tools/points_audit.py`: returns and correlations worked out by hand, and a game audited."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
from tool_modules import load_tool


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = load_tool("points_audit")
    monkeypatch.setattr(module, "CUT", 1)
    return module


def test_returns_end_with_a_life_and_are_told_in_spreads(audit: ModuleType) -> None:
    reward = torch.tensor([[1.0], [2.0], [4.0], [8.0]])
    ended = torch.tensor([[False], [True], [False], [False]])
    # 1 + 2/2, 2 and, in the next life, 4 + 8/2; the last step is left out.
    whole = torch.tensor([2.0, 2.0, 8.0])
    torch.testing.assert_close(audit.returns(reward, ended, 0.5), whole / whole.std())


def test_what_pays_for_points_is_told_from_what_pays_for_living(audit: ModuleType) -> None:
    generator = torch.Generator().manual_seed(0)
    points = (torch.rand(2000, 4, generator=generator) < 0.05).float()
    ended = torch.rand(2000, 4, generator=generator) < 0.02
    flash = 10.0 * points + 0.1 * torch.rand(2000, 4, generator=generator)
    aligned, living = (audit.judged(paid, points, ended, 2.0) for paid in (flash, torch.full_like(points, 3.0)))
    assert aligned["points"] > 0.98 > 0.9 > aligned["points_alive"]
    assert aligned["points_alive"] < aligned["points_together"] < aligned["points"]
    assert (living["range"], living["living"]) == pytest.approx((0.0, 1.0), abs=1e-3)
    assert living["points"] == living["points_alive"] == living["points_together"]


def test_a_game_is_audited(audit: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"NUM_ENVS": 2, "ROLLOUT": 32, "ROLLOUTS": 8, "BACKGROUND": 64}.items():
        monkeypatch.setattr(audit, name, value)
    small = "rewards.hidden=8 rewards.generative.epochs=1"
    readings = {
        "far": small,
        "moving": f"{small} rewards.generative.predicts=change rewards.curiosity-factor=0.5",
    }
    rows = audit.measure("qbert", readings, seed=0)["rows"]
    assert (rows["far"]["weight"], rows["moving"]["weight"]) == (10.0, 5.0)
    assert rows["far"]["points_alive"] == rows["moving"]["points_alive"]
    assert rows["far"]["points"] != rows["moving"]["points"]


@pytest.mark.parametrize(
    ("reading", "answer"),
    [
        ("nameless", "a reading is written NAME"),
        ("mine: rewards.hidden", "name settings as NAME=VALUE"),
        ("mine: rewards.hiden=8", "did you mean hidden"),
    ],
)
def test_a_reading_that_cannot_be_is_answered_in_one_line(
    audit: ModuleType, reading: str, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["points_audit.py", "qbert", "--reading", reading])
    with pytest.raises(SystemExit, match=answer):
        audit.main()

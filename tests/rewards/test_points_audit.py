"""`tools/points_audit.py`: returns and correlations worked out by hand, and a game audited."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
import torch
from tool_modules import load_tool

from ilde.data import UserError


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
    assert all(row["reach"] > 1.0 for row in rows.values())


def test_reach_leaves_out_what_comes_before_a_death(audit: ModuleType) -> None:
    error = torch.ones(100, 4)
    error[10::20] = 3.0  # five steps of a hundred
    error[50:60, 0] = 100.0
    ended = torch.zeros(100, 4, dtype=torch.bool)
    ended[59, 0] = True
    assert audit.reach(error, ended, dying_steps=9) == 3.0
    assert audit.reach(error, ended, dying_steps=0) == 100.0


def test_a_curiosity_is_of_a_kind_by_its_range_and_by_what_it_has_to_do_with_living(audit: ModuleType) -> None:
    assert audit.kind({"range": 1.01, "living": 0.99}) == "bursts"
    assert audit.kind({"range": 0.5, "living": 0.96}) == "alive bonus"
    assert audit.kind({"range": 1.0, "living": 0.95}) == "steady"


def test_an_error_is_told_before_and_after_points(audit: ModuleType) -> None:
    error = torch.ones(100, 2)
    error[22:30], error[30:46] = 2.0, 4.0
    scored, ended = torch.zeros(100, 2), torch.zeros(100, 2, dtype=torch.bool)
    scored[30] = 1.0
    assert audit.around_points(error, scored, ended, dying_steps=0) == {"before": 2.0, "after": 4.0}
    # Where a life ends just before, or too soon after, nothing is read.
    error[22:46, 0] = 9.0
    ended[25, 0] = ended[50, 1] = True
    assert audit.around_points(error, scored, ended, dying_steps=0) == {"before": 2.0, "after": 4.0}
    assert audit.around_points(10 * error, scored, ended, dying_steps=0) == {"before": 2.0, "after": 4.0}  # in medians
    assert audit.around_points(error, scored, ended, dying_steps=5) == {}


def test_the_tables_have_a_reading_for_each_of_their_games(audit: ModuleType) -> None:
    read = {game: audit.as_tabled(game).split() for game in ("beam_rider", "qbert", "krull")}
    for words in read.values():
        assert len(words) == len({word.partition("=")[0] for word in words})
        assert {"rewards.scale.terms=all", "rewards.generative.log-variance-limit=4"} < set(words)
    assert read["beam_rider"] == read["qbert"]
    assert "rewards.generative.predicts=change" in set(read["krull"]) - set(read["qbert"])
    with pytest.raises(UserError, match="breakout: no game"):
        audit.as_tabled("breakout")


def test_the_reading_of_the_tables_is_asked_for_by_its_name(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    row = audit.judged(torch.rand(20, 2), torch.rand(20, 2).round(), torch.rand(20, 2) < 0.2, 1.0) | {"reach": 4.0}
    monkeypatch.setattr(
        audit, "measure", lambda game, readings, seed: {"game": game, "rows": dict.fromkeys(readings, row)}
    )
    kept = tmp_path / "audit.json"
    monkeypatch.setattr("sys.argv", ["points_audit.py", "qbert", "--reading", "tables", "--json", str(kept)])
    assert audit.main() == 0
    document = json.loads(kept.read_text())
    assert document["command"].endswith("qbert --seed 100 --reading tables")
    assert document["notes"][-1] == f"tables, qbert: `{audit.as_tabled('qbert')}`"
    ((game, reading, _, kind, reach, before, *_),) = audit.table(document).rows
    assert (game, reading, kind, reach, before) == ("qbert", "tables", audit.kind(row), "4", "-")


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

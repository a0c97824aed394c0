"""`tools/settled_audit.py`: what changes for good, by hand and by its definition pair by pair, and a game audited."""

from __future__ import annotations

import sys
from types import ModuleType

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


def slowly(states: torch.Tensor, ended: torch.Tensor, span: int) -> torch.Tensor:
    """The definition, pair by pair."""
    change = torch.zeros_like(states)
    for step in range(span, len(states) - span + 1):
        if ended[step - span : step + span - 1].any():
            continue
        before, after = states[step - span : step], states[step : step + span]
        pairs = (after[:, None] - before[None]).flatten(0, 1)
        one_sided = (pairs > 0).all(0) | (pairs < 0).all(0)
        change[step] = torch.where(one_sided, pairs.abs().amin(0), 0.0)
    return change


@pytest.mark.parametrize("span", [1, 2, 3, 5, 8])
def test_what_settles_is_what_every_pair_of_states_says(audit: ModuleType, span: int) -> None:
    generator = torch.Generator().manual_seed(span)
    states = torch.randn(60, 7, generator=generator).cumsum(0)
    ended = torch.rand(60, generator=generator) < 0.05
    found = audit.settled_change(states, ended, span)
    assert bool(found.any())
    assert torch.allclose(found, slowly(states, ended, span), atol=1e-6)


def test_a_counter_is_news_and_what_moves_or_flickers_is_not(audit: ModuleType) -> None:
    counter = torch.tensor([1.0] * 6 + [4.0] * 6)
    passing = torch.zeros(12).index_fill(0, torch.tensor([5, 6]), 9.0)
    flicker = torch.tensor([0.0, 9.0]).repeat(6)
    change = audit.settled_change(torch.stack([counter, passing, flicker], 1), torch.zeros(12, dtype=torch.bool), 4)
    assert change[6].tolist() == [3, 0, 0]
    assert int((change != 0).sum()) == 1


def test_nothing_settles_across_a_death_nor_where_it_cannot_be_known(audit: ModuleType) -> None:
    states, alive = torch.tensor([[0.0]] * 5 + [[1.0]] * 5), torch.zeros(10, dtype=torch.bool)
    assert audit.settled_change(states, alive, 5).flatten().tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert not audit.settled_change(states, alive.index_fill(0, torch.tensor([4]), True), 5).any()
    # The last state is still of the life that ends with it.
    assert bool(audit.settled_change(states, alive.index_fill(0, torch.tensor([9]), True), 5).any())
    assert not audit.settled_change(states, alive, 6).any()


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

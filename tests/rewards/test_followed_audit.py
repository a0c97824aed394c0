"""`tools/followed_audit.py`: what a reading pays where nobody scores, and a policy audited."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest
import torch
from tool_modules import load_tool

from ilde.data import Transitions, UserError
from ilde.nets.policy import Decision
from ilde.policies import uniform_policy


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = load_tool("followed_audit")
    monkeypatch.setattr(module, "NUM_ENVS", 2)
    monkeypatch.setattr(module, "BEGINNING", 12)
    monkeypatch.setattr(module, "STEPS", 480)
    monkeypatch.setattr(module, "STRETCH", 120)
    monkeypatch.setattr(module, "SPANS", (0, 4))
    monkeypatch.setattr(module, "SETTINGS", "rewards.hidden=8 rewards.generative.epochs=1")
    monkeypatch.setattr(sys.modules["worth_audit"], "NUM_ENVS", 2)
    return module


def test_idle_stretches_are_held_against_those_with_points(audit: ModuleType) -> None:
    points = torch.zeros(240, 2)
    points[130, 0] = 5.0  # one stretch of four
    worth = torch.ones(240, 2)
    worth[120:, 0] = 4.0
    assert audit.idle(worth, points) == (0.25, 3, 1)
    assert audit.idle(worth, torch.zeros(240, 2)) == (None, 4, 0)
    assert audit.idle(worth, torch.ones(240, 2)) == (None, 0, 4)
    assert audit.idle(torch.zeros(240, 2), points) == (None, 3, 1)  # nothing is paid anywhere
    assert audit.idle(worth[:239], points[:239])[1:] == (2, 0)  # a stretch that breaks off does not count


def test_a_policy_is_audited(audit: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "load_policy", lambda _: uniform_policy("ALE/Qbert-v5"))
    options = argparse.Namespace(games=["qbert"], policy=Path("run"), seed=0, limit=5.0)
    document = audit._measured(options)
    (game,) = document["games"]
    assert list(game["ways"]) == ["random", "sampled", "greedy"]
    for found in game["ways"].values():
        assert found["scoring"] > 0.0
        assert all(sum(row["stretches"]) == 8 for row in found["rows"].values())
    lines = audit.table(document).rows
    assert [line[1] for line in lines] == ["random"] * 2 + ["sampled"] * 2 + ["greedy"] * 2
    assert lines[1][3] == "4 states"
    assert document["command"].endswith("--policy RUN --seed 0 --limit 5")


def test_it_is_the_policys_own_play_that_is_followed(audit: ModuleType) -> None:
    class Noting:
        """Acts as it is told, and keeps what it was shown."""

        shown: ClassVar[list[torch.Tensor]] = []

        def act(self, obs: torch.Tensor, generator: torch.Generator, *, greedy: bool) -> Decision:
            self.shown.append(obs)
            count = obs.shape[0]
            return Decision(torch.full((count,), 3 if greedy else 2), torch.zeros(count), torch.zeros(count))

    envs = audit.make_envs("ALE/Qbert-v5", 2, 0)
    try:
        for greedy in (False, True):
            Noting.shown.clear()
            steps = audit.followed(Noting(), envs, torch.Generator(), greedy=greedy)
            assert steps.action.unique().tolist() == [3 if greedy else 2]
            assert torch.equal(torch.stack(Noting.shown), steps.obs)
            assert not torch.equal(steps.obs[0], steps.obs[-1])
    finally:
        envs.close()


def test_a_reading_is_limited_as_it_was_asked(audit: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []

    def noted(mix: object, steps: Transitions, spans: tuple[int, ...], limit: float) -> dict[int, torch.Tensor]:
        limits.append(limit)
        return {span: torch.rand(steps.terminated.shape) for span in spans}

    monkeypatch.setattr(audit, "load_policy", lambda _: uniform_policy("ALE/Qbert-v5"))
    monkeypatch.setattr(audit, "paid", noted)
    audit.measure("qbert", Path("run"), 0, 3.0)
    assert limits == [3.0] * 3


def test_a_policy_of_another_game_is_refused(audit: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "load_policy", lambda _: uniform_policy("ALE/Breakout-v5"))
    with pytest.raises(UserError, match=r"run: plays ALE/Breakout-v5, not ALE/Qbert-v5"):
        audit.measure("qbert", Path("run"), 0, 0.0)
    with pytest.raises(UserError, match="--policy: name the run or policy file"):
        audit._measured(argparse.Namespace(games=["qbert"], policy=None, seed=0, limit=0.0))
    with pytest.raises(UserError, match="qbert krull: a policy plays one game; name one"):
        audit._measured(argparse.Namespace(games=["qbert", "krull"], policy=Path("run"), seed=0, limit=0.0))

"""`tools/term_audit.py`: its means and worths worked out by hand, a run audited, and its published table rebuilt."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from tool_modules import ROOT, load_tool

from ilde.config import QUICK
from ilde.launch import start


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    return load_tool("term_audit")


def test_the_published_table_is_rebuilt_byte_for_byte(
    audit: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, out = ROOT / "results" / "term-audit.json", tmp_path / "audit.md"
    monkeypatch.setattr("sys.argv", ["term_audit.py", "--from", str(kept), "--markdown", str(out)])
    assert audit.main() == 0
    assert out.read_bytes() == (ROOT / "results" / "term-audit.md").read_bytes()


def play(points: list[float], deaths: list[bool]) -> Any:
    return SimpleNamespace(env_reward=torch.tensor(points), terminated=torch.tensor(deaths))


def test_means_are_over_all_steps_of_all_rollouts(audit: ModuleType) -> None:
    reward: Any = SimpleNamespace(
        breakdown=lambda seen: {"vail": seen.env_reward * 2, "entropy": torch.ones_like(seen.env_reward)}
    )
    row = audit.judged(reward, [play([1.0, 0.0, 0.0], [False, False, True]), play([3.0], [False])])
    assert row == {"vail": 2.0, "entropy": 1.0, "total": 3.0, "points": 1.0, "lives": 0.25}


def test_who_never_dies_is_worth_a_hundred_steps_and_who_dies_less(audit: ModuleType) -> None:
    assert audit.worth({"total": 2.0, "lives": 0.0}) == pytest.approx(200.0)
    # A life of one step: what that step pays.
    assert audit.worth({"total": 2.0, "lives": 1.0}) == pytest.approx(2.0)


def test_a_run_is_asked_about_all_four_kinds_of_play(
    audit: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(
        QUICK,
        method="ilde",
        env="HalfCheetah-v5",
        demos="halfcheetah-v5/weak-v0:0.1",
        steps=64,
        num_envs=2,
        rollout_steps=32,
        ppo=replace(QUICK.ppo, num_minibatches=2, num_epochs=1),
        rewards=replace(QUICK.rewards, generative=replace(QUICK.rewards.generative, epochs=1)),
        evaluation=replace(QUICK.evaluation, final_episodes=1, final_max_steps=4),
    )
    run = start(config, tmp_path / "run")
    with run.folder:
        assert run.train()
    for name, value in (("NUM_ENVS", 2), ("STEPS", 8), ("LEFT_OUT", 0)):
        monkeypatch.setattr(audit, name, value)
    kept = tmp_path / "audit.json"
    words = ["term_audit.py", str(tmp_path / "run"), "--game", "halfcheetah-v5/weak-v0", "--json", str(kept)]
    for _ in range(2):  # the second finds the first's and takes its place
        monkeypatch.setattr("sys.argv", words)
        assert audit.main() == 0
    (found,) = json.loads(kept.read_text())["runs"]
    assert list(found["rows"])[:3] == ["agent, sampling", "agent, greedy", "random"]
    assert len(found["rows"]) == 7
    for row in found["rows"].values():
        assert row["total"] == pytest.approx(sum(row[term] for term in ("vail", "giril", "entropy")))
    lives = [row["lives"] for row in found["rows"].values()]
    assert lives == [0.0, 0.0, 0.0, None, None, None, None]  # a cheetah never dies; of the recording nobody asked

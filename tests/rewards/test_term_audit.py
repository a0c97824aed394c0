"""`tools/term_audit.py`: its means and worths worked out by hand, and a run audited."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from made_runs import cheetah_run
from tool_modules import ROOT, load_tool


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    return load_tool("term_audit")


def play(points: list[float], deaths: list[bool]) -> Any:
    return SimpleNamespace(env_reward=torch.tensor(points), terminated=torch.tensor(deaths))


def test_rewards_are_means_over_what_is_judged_points_and_lives_over_everything(audit: ModuleType) -> None:
    reward: Any = SimpleNamespace(
        breakdown=lambda seen: {"vail": seen.env_reward * 2, "entropy": torch.ones_like(seen.env_reward)}
    )
    begun = (play([1.0, 0.0, 0.0], [False, False, True]), False)
    row = audit.judged(reward, [begun, (play([3.0], [False]), True)])
    assert row == {"vail": 6.0, "entropy": 1.0, "total": 7.0, "points": 1.0, "lives": 0.25}


def test_who_never_dies_is_worth_a_hundred_steps_and_who_dies_less(audit: ModuleType) -> None:
    assert audit.worth({"total": 2.0, "lives": 0.0}) == pytest.approx(200.0)
    # A life of one step: what that step pays.
    assert audit.worth({"total": 2.0, "lives": 1.0}) == pytest.approx(2.0)


def test_a_run_is_asked_about_all_four_kinds_of_play(
    audit: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cheetah_run(tmp_path / "run")
    for name, value in (("NUM_ENVS", 2), ("STEPS", 8)):
        monkeypatch.setattr(audit, name, value)
    kept = tmp_path / "audit.json"
    words = ["term_audit.py", str(tmp_path / "run"), "--game", "halfcheetah-v5/weak-v0", "--json", str(kept)]
    for seed in ("1", "2"):  # the second finds what the first measured of the same run, and takes its place
        monkeypatch.setattr("sys.argv", [*words, "--skip", "1", "--seed", seed])
        assert audit.main() == 0
    (found,) = json.loads(kept.read_text())["runs"]
    assert list(found["rows"])[:3] == ["agent, sampling", "agent, greedy", "random"]
    assert len(found["rows"]) == 7
    assert found["steps"] == {"played": 48, "judged": 32}
    for row in found["rows"].values():
        assert row["total"] == pytest.approx(sum(row[term] for term in ("vail", "giril", "entropy")))
        assert row["lives"] == 0.0  # a cheetah never dies
    monkeypatch.setattr("sys.argv", [*words[:2], "--deaths", *words[4:]])
    assert audit.main() == 0
    (both,) = json.loads(kept.read_text())["runs"]
    assert both["rows"] == found["rows"]  # asked about something else, it keeps what it knew
    assert all("points within" in stretch for stretch in both["deaths"])  # a cheetah never dies
    assert found["rows"]["demonstrator, quarter 1"]["points"] == pytest.approx(0.875, abs=0.01)  # 875 in 1,000 steps


def test_steps_are_counted_to_the_next_death(audit: ModuleType) -> None:
    ends = torch.tensor([[0, 0], [0, 1], [1, 0], [0, 0]], dtype=torch.bool)
    ahead = audit.steps_ahead(ends)
    assert ahead[:3, 0].tolist() == [2, 1, 0]
    assert ahead[:2, 1].tolist() == [1, 0]
    assert (ahead[3] > 10**6).all()


def test_steps_before_points_are_told_from_those_before_a_death(audit: ModuleType) -> None:
    ends, scored = torch.zeros(60, 1, dtype=torch.bool), torch.zeros(60, 1, dtype=torch.bool)
    ends[30], scored[5], scored[28] = True, True, True
    found = {
        title: where.flatten().nonzero().flatten().tolist() for title, where in audit.stretches(ends, scored).items()
    }
    assert found["1 to 4"] == [26, 27, 28, 29]
    assert found["20 to 39"] == list(range(11))
    assert found["20 or more, points within 5"] == [1, 2, 3, 4, 5]  # those at 28 are too near a death
    assert found["20 or more, no points within 20"] == [6, 7, 8, *range(31, 60)]


def test_runs_of_other_terms_share_a_table(audit: ModuleType) -> None:
    def run(method: str, **terms: float) -> dict[str, Any]:
        row = {**terms, "total": sum(terms.values()), "points": None, "lives": None}
        return {"env": "a", "method": method, "seed": 0, "env_steps": 1, "config": "b", "rows": {"random": row}}

    lines = audit.table({"notes": [], "runs": [run("ilde", vail=1.0, giril=2.0), run("giril", giril=3.0)]}).rows
    assert [line[2:] for line in lines] == [
        ("1.0000", "2.0000", "3.0000", "-", "-", "-"),
        ("-", "3.0000", "3.0000", "-", "-", "-"),
    ]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["nowhere", "--game", "halfcheetah-v5/weak-v0"], "nowhere"),
        (["--from", "nowhere.json"], "nowhere.json"),
        (["--from", str(ROOT / "README.md")], "README.md: not what --json wrote"),
        (["nowhere"], "2"),
        (["nowhere", "--game", "x", "--deaths"], "2"),
        (["nowhere", "--game", "x", "--rollouts", "0"], "2"),
    ],
)
def test_a_mistake_is_answered_in_one_line(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, words: list[str], answer: str
) -> None:
    monkeypatch.setattr("sys.argv", ["term_audit.py", *words])
    with pytest.raises(SystemExit) as ended:
        audit.main()
    said = str(ended.value.code)
    assert answer in said
    assert "\n" not in said

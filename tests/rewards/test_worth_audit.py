"""`tools/worth_audit.py`: what lasts and how old a step is, by hand, and a game audited."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
import torch
from tool_modules import load_tool

from ilde.envs import make_envs
from ilde.randomness import torch_generator


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = load_tool("worth_audit")
    for name, value in {"NUM_ENVS": 2, "GAME": 40, "BEGINNING": 12, "ACTION": 8, "LASTING": 4, "PARTS": 2}.items():
        monkeypatch.setattr(module, name, value)
    return module


def test_a_flash_does_not_last_and_neither_does_what_moves_on(audit: ModuleType) -> None:
    flash = torch.tensor([1.0, 1, 9, 9, 1, 9, 9, 9])
    assert audit.least_of_the_last(flash, 3).tolist() == [1, 1, 1, 1, 1, 9]
    assert not audit.least_of_the_last(torch.eye(5), 2).any()


def test_a_step_is_as_old_as_its_life(audit: ModuleType) -> None:
    ended = torch.tensor([[0, 0], [1, 0], [0, 0], [0, 1], [1, 0]], dtype=torch.bool)
    assert audit.ages(ended).tolist() == [[0, 0], [1, 1], [0, 2], [1, 3], [2, 0]]


def test_a_held_action_is_held_and_a_single_one_for_ever(audit: ModuleType) -> None:
    envs = make_envs("ALE/Qbert-v5", 2, 0, clip_actions=True)
    try:
        single = audit.play(envs, 6, 1.0, torch_generator(0, "x"), 3)
        assert bool((single.action == 3).all())
        held = audit.play(envs, 200, 20.0, torch_generator(0, "x"))
        random = audit.play(envs, 200, 1.0, torch_generator(0, "x"))
    finally:
        envs.close()
    kept, fresh = ((steps.action[1:] == steps.action[:-1]).float().mean() for steps in (held, random))
    # A new draw in one step of twenty, and one draw of six is the action that was.
    assert float(kept) == pytest.approx(1 - 5 / 6 / 20, abs=0.03)
    assert float(fresh) == pytest.approx(1 / 6, abs=0.08)


def test_a_quantile_is_what_so_many_steps_do_not_exceed(audit: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    class Told:
        """A judge that is shown its answers."""

        def deviation(self, steps: torch.Tensor) -> torch.Tensor:
            return steps

    monkeypatch.setattr(audit, "EVERY", 1)
    one, other = torch.tensor([[5.0, 0], [1, 0], [4, 9]]), torch.tensor([[2.0, 0], [3, 0]])
    assert audit.quantile([one, other], Told(), 0.75).tolist() == [4, 0]
    assert audit.quantile([one, other], Told(), 1.0).tolist() == [5, 9]


def test_a_game_is_audited(audit: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    small = "rewards.hidden=8 rewards.generative.epochs=1"
    readings = {
        "far": audit.Reading(small, lasts=False),
        "lasting": audit.Reading(small, lasts=True),
        "news": audit.Reading(small, lasts=True, beyond=0.5),
    }
    monkeypatch.setattr(audit, "READINGS", readings)
    document = audit._measured(["qbert"], seed=0)
    (game,) = document["games"]
    far, lasting, news = game["rows"].values()
    assert game["scores"][0] < game["scores"][1]
    assert set(far) == {"random", "held", *(f"action {k}" for k in range(6)), "demonstrator", "with_points"}
    assert 0.0 < news["random"] < lasting["random"]
    rows = audit.table(document).rows
    assert [row[1] for row in rows] == ["points so far", "far", "lasting", "news"]
    assert rows[2][5] == f"{lasting['demonstrator'][0] / lasting['random']:.2f}"


def test_a_file_of_another_kind_is_refused_in_one_line(
    audit: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other.json").write_text("{}")
    monkeypatch.setattr("sys.argv", ["worth_audit.py", "--from", str(tmp_path / "other.json")])
    with pytest.raises(SystemExit, match="not what --json wrote"):
        audit.main()

"""The paper's tables beside ours: what answers which entry, and in which quantity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_outcomes import outcome, seeds

from ilde.cli.main import main
from ilde.experiments.paper import paper_table
from ilde.experiments.reproduction import reproduce
from ilde.reports.crossing import crossing
from ilde.reports.gathering import gather
from ilde.reports.outcomes import Curve, FinalScore, Outcome
from ilde.reports.tables import markdown

RESULTS = Path(__file__).parents[2] / "results"
GAME: dict[str, Any] = {
    "task": "ALE/BeamRider-v5",
    "preset": "atari",
    "demos": "beam_rider/one-life-v0",
    "fraction": 0.1,
}
UNSEEN = GAME | {"demos": None, "fraction": 1.0}


def lines(table: str, outcomes: list[Outcome], label: str, task: str = "BeamRider") -> list[tuple[str, ...]]:
    words = reproduce(paper_table(table), outcomes)
    return [row[2:] for row in words.rows if row[:2] == (label, task)]


def test_the_papers_number_stands_beside_ours() -> None:
    runs = seeds("ilde", (1800.0, 2000.0, 2200.0), **GAME)
    ((paper, ours, interval, ratio, count, steps, verdict),) = lines("atari", runs, "ILDE")
    assert (paper, ours, interval) == ("11,453 ± 2,319", "2,000 ± 200", "1,503 to 2,497")
    assert (ratio, count, steps) == ("2.22", "3", "400,000")
    assert verdict.startswith(
        "above the demonstrator; no `entropy`, `random`, `constant`, `shuffled`, `wrong-demos` run"
    )


def test_what_was_not_run_is_said() -> None:
    runs = seeds("ilde", (1800.0,), **GAME)
    assert lines("atari", runs, "GIRIL") == [("8,524 ± 1,085", "-", "-", "-", "-", "-", "not run")]
    assert lines("atari", runs, "entropy")[0][-1] == "not run"


def test_a_control_stands_in_the_table_without_a_number_of_the_papers() -> None:
    runs = [*seeds("ilde", (1800.0, 1900.0), **GAME), *seeds("constant", (300.0, 400.0), **UNSEEN)]
    ((paper, ours, *_, verdict),) = lines("atari", runs, "constant")
    assert (paper, ours, verdict) == ("not in the paper", "350 ± 71", "not above the demonstrator; control")


def test_what_our_scores_rest_on_is_noted() -> None:
    runs = [*seeds("ilde", (1800.0, 1900.0), **GAME), *seeds("constant", (300.0, 400.0), **UNSEEN, env_steps=9)]
    notes = reproduce(paper_table("atari"), runs).notes
    assert "ALE/BeamRider-v5 from 10% of beam_rider/one-life-v0: a score of ours is 20 episodes, greedy" in notes
    assert any("budgets differ (9, 400,000 steps)" in note for note in notes)


def test_a_weight_is_told_by_the_reward_expression() -> None:
    runs = [outcome("ilde", 0, 700.0, **GAME, reward="vail + 2*giril + entropy"), outcome("ilde", 0, 500.0, **GAME)]
    assert [row[1] for row in lines("lambda", runs, "λ = 2")] == ["700"]
    assert [row[1] for row in lines("lambda", runs, "λ = 10")] == ["500"]
    assert [row[1] for row in lines("lambda", runs, "λ = 20")] == ["-"]


def test_noise_is_told_by_the_recording() -> None:
    shaken = GAME | {"demos": "beam_rider/one-life-tremble-0.3-v0", "demos_hash": "e" * 64}
    runs = [outcome("ilde", 0, 700.0, **shaken), outcome("ilde", 0, 900.0, **GAME)]
    found = {row[0]: row[3] for row in reproduce(paper_table("noise"), runs).rows if row[3] != "-"}
    assert sorted(found.values()) == ["700", "900", "900"]  # the demonstrator scores 900 as well


def test_a_run_on_another_recording_says_so() -> None:
    runs = [
        outcome("ilde", 0, 700.0, **GAME | {"demos": "mine.npz", "demos_hash": "e" * 64}),
        outcome("ilde", 0, 600.0, **GAME | {"fraction": 0.5, "demos_hash": "d" * 64}),
        outcome("ilde", 0, 900.0, **GAME),
    ]
    assert [row[1] for row in lines("atari", runs, "ILDE")] == ["900"]
    assert [row[1] for row in lines("atari", runs, "ILDE, from 10% of mine.npz")] == ["700"]
    assert [row[1] for row in lines("atari", runs, "ILDE, from 50% of beam_rider/one-life-v0")] == ["600"]


def test_giril_is_the_measure_on_the_same_recording_and_budget_only() -> None:
    def crossed(method: str, at: int, **changes: Any) -> Outcome:
        return outcome(
            method, 0, 950.0, **GAME | changes, evaluations=Curve((1, at, at + 1, at + 2), (0.0, *[950.0] * 3))
        )

    other = {"demos": "mine.npz", "demos_hash": "e" * 64}
    runs = [crossed("ilde", 200), crossed("giril", 100, **other), crossed("giril", 100, env_steps=9)]
    assert lines("efficiency-vs-giril", runs, "ILDE")[0][1] == "no GIRIL at these steps"
    assert lines("efficiency-vs-giril", [*runs, crossed("giril", 400)], "ILDE")[0][1] == "50.00%"
    never = outcome("giril", 0, 1.0, **GAME)
    assert lines("efficiency-vs-giril", [*runs, never], "ILDE")[0][1] == "GIRIL never"


def test_the_papers_last_four_evaluations_stand_beside_our_score() -> None:
    task: dict[str, Any] = {"task": "Hopper-v4", "demos": "hopper-v4/four-v0", "fraction": 1.0, "preset": "mujoco"}
    runs = [outcome("ilde", seed, 3000.0 + seed, **task, last_points=500.0 + seed) for seed in (0, 2)]
    ((_, ours, *_),) = lines("mujoco", runs, "ILDE", "Hopper")
    assert ours == "3,001 ± 1 (last four evaluations: 501 ± 1)"
    ((_, ours, *_),) = lines("mujoco", [*runs, outcome("ilde", 3, 3002.0, **task)], "ILDE", "Hopper")
    assert "last four" not in ours


def test_scores_of_cut_episodes_are_not_held_against_the_demonstrator() -> None:
    runs = seeds("ilde", (1800.0, 2000.0), **GAME | {"greedy": FinalScore(1800.0, 1.0, 1, capped=1)})
    words = reproduce(paper_table("atari"), runs)
    ((_, ours, _, ratio, *_, verdict),) = lines("atari", runs, "ILDE")
    assert (ours, ratio) == ("1,800 ± 0", "-")
    assert verdict == "episodes cut short: not shown to imitate"
    assert any("episodes were cut short" in note for note in words.notes)
    assert any(note.endswith("a score of ours is 1 episode, greedy") for note in words.notes)
    assert lines("normalised", runs, "ILDE")[0][1] == "-"


def test_a_normalised_table_holds_ratios() -> None:
    runs = seeds("ilde", (1800.0, 2700.0), **GAME)
    ((_, ours, *_),) = lines("normalised", runs, "ILDE")
    assert ours == "2.50 ± 0.71"


def test_a_method_has_passed_its_demonstrator_when_it_stays_above() -> None:
    up = Curve((100, 200, 300, 400), (950.0, 800.0, 900.0, 1000.0))
    assert crossing([outcome("ilde", 0, 1.0, evaluations=up)], 900.0) == 300
    assert crossing([outcome("ilde", 0, 1.0, evaluations=up)], 700.0) == 100
    assert crossing([outcome("ilde", 0, 1.0, evaluations=up)], 1100.0) is None
    # The mean curve of two seeds is read, at the steps both have.
    low = Curve((100, 200, 300, 400), (0.0, 0.0, 900.0, 900.0))
    pair = [outcome("ilde", 0, 1.0, evaluations=up), outcome("ilde", 1, 1.0, evaluations=low)]
    assert crossing(pair, 900.0) == 300
    assert crossing([outcome("ilde", 0, 1.0)], 900.0) is None


def test_efficiency_is_a_part_of_the_papers_budget() -> None:
    up = Curve((1_000_000, 2_000_000, 3_000_000, 4_000_000), (0.0, 950.0, 950.0, 950.0))
    late = Curve((1_000_000, 2_000_000, 3_000_000, 4_000_000), (0.0, 0.0, 0.0, 950.0))
    runs = [outcome("ilde", 0, 950.0, **GAME, evaluations=up), outcome("giril", 0, 950.0, **GAME, evaluations=late)]
    assert lines("efficiency", runs, "ILDE")[0][:2] == ("11.48%", "4.00% (2,000,000 steps)")
    assert lines("efficiency-vs-giril", runs, "ILDE")[0][1] == "50.00%"
    assert lines("efficiency", [outcome("ilde", 0, 1.0, **GAME)], "ILDE")[0][1] == "never"


def test_recordings_are_measured_themselves() -> None:
    assert lines("demo-lengths", [], "One-life demonstration: length") == [("702", "658")]
    assert lines("demo-lengths", [], "One-life demonstration: length", "StarGunner") == [("118", "304")]


def test_a_figure_shows_scores_along_the_way() -> None:
    curve = Curve((100_000, 200_000, 400_000), (10.0, 20.0, 40.0))
    words = reproduce(paper_table("atari-curves"), [outcome("ilde", 3, 1.0, **GAME, training=curve)])
    assert words.rows == (("ilde, seed 3", "ALE/BeamRider-v5", "400,000", "10", "10", "20", "20", "40"),)


@pytest.mark.parametrize("kept", sorted((RESULTS / "tables").glob("*.md")), ids=lambda path: path.stem)
def test_our_published_tables_are_rebuilt_byte_for_byte(kept: Path) -> None:
    table = paper_table(kept.stem)
    outcomes = gather(sorted(RESULTS.rglob("*.outcomes.json"))).outcomes
    assert markdown(table.title, [reproduce(table, outcomes)]) == kept.read_text(encoding="utf-8")


def test_the_published_report_of_the_baselines_is_rebuilt_byte_for_byte(tmp_path: Path) -> None:
    out = tmp_path / "baselines.md"
    assert main(["report", str(RESULTS / "baselines.outcomes.json"), "--markdown", str(out)]) == 0
    assert out.read_bytes() == (RESULTS / "baselines.md").read_bytes()


def test_the_verb_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "atari.md"
    assert main(["reproduce", "atari", "--from", str(RESULTS), "--markdown", str(out)]) == 0
    assert "70,566 ± 75,310" in capsys.readouterr().out
    assert out.read_bytes() == (RESULTS / "tables" / "atari.md").read_bytes()


def test_an_unknown_table_is_answered_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "atary"]) == 2
    assert "did you mean atari?" in capsys.readouterr().err.lower()

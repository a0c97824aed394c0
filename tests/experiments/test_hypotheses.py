"""What scores say of the paper's hypotheses, and what they do not."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from made_outcomes import STEPS, outcome, seeds

from ilde.cli.main import main
from ilde.experiments.hypotheses import TITLE, Verdict, in_all, judge, verdict_on
from ilde.experiments.paper import hypotheses
from ilde.experiments.paper.claims import Expected
from ilde.reports.gathering import gather
from ilde.reports.outcomes import FinalScore, Outcome
from ilde.reports.tables import markdown

RESULTS = Path(__file__).parents[2] / "results"
CLEAR = (990.0, 1000.0, 1010.0)
"""Scores above the demonstrator's 900."""


def verdicts(outcomes: list[Outcome], prediction: str) -> list[str]:
    """Of the tasks that ran."""
    ran = {run.task for run in outcomes}
    return [row[-1] for row in judge(outcomes).rows if row[2] == prediction and row[1].split(" ")[0] in ran]


@pytest.mark.parametrize(
    ("interval", "expected", "verdict"),
    [
        ((1.0, 2.0), "above", "borne out"),
        ((-2.0, -1.0), "above", "contradicted"),
        ((-2.0, -1.0), "below", "borne out"),
        ((1.0, 2.0), "below", "contradicted"),
        ((-1.0, 2.0), "above", "undecided"),
        ((-math.inf, math.inf), "below", "undecided"),
        (None, "above", "undecided"),
        ((1.0, 2.0), "equal", "contradicted"),
        # No number of seeds proves that two are equal.
        ((-1.0, 1.0), "equal", "undecided"),
    ],
)
def test_an_interval_decides(interval: tuple[float, float] | None, expected: Expected, verdict: Verdict) -> None:
    assert verdict_on(interval, expected) == verdict


def test_imitation_has_failed_below_half_of_the_demonstrator_only() -> None:
    prediction = "vail below 50% of the demonstrator"
    assert verdicts(seeds("vail", (300.0, 310.0, 290.0)), prediction) == ["borne out"]
    assert verdicts(seeds("vail", (890.0, 880.0, 885.0)), prediction) == ["contradicted"]
    assert verdicts(seeds("vail", (400.0, 500.0, 450.0)), prediction) == ["undecided"]


def test_a_method_is_held_against_another_at_equal_steps_only() -> None:
    prediction = "ilde above ilde-no-bonus"
    runs = seeds("ilde", CLEAR)
    assert verdicts([*runs, *seeds("ilde-no-bonus", (500.0, 510.0))], prediction) == ["borne out"]
    late = seeds("ilde-no-bonus", (500.0, 510.0), env_steps=2 * STEPS)
    assert verdicts([*runs, *late], prediction) == ["not run (no ilde-no-bonus with these steps)"]
    assert verdicts(runs, prediction) == ["not run (no ilde-no-bonus with these steps)"]


def test_what_makes_a_verdict_doubtful_is_said() -> None:
    single = [*seeds("ilde", CLEAR), outcome("ilde-no-bonus", 0, 500.0)]
    assert verdicts(single, "ilde above ilde-no-bonus") == ["undecided (one seed)"]
    assert verdicts([outcome("giril", 0, 2000.0)], "giril above demonstrator") == ["undecided (one seed)"]
    weighted = [outcome("ilde", 0, 2000.0, reward="vail + 2*giril + entropy")]
    assert "vail + 2*giril + entropy; no ilde-no-bonus" in verdicts(weighted, "ilde above ilde-no-bonus")[0]
    tuned = seeds("ilde-no-bonus", (500.0, 510.0), variant=("ppo.discount=0.9",))
    assert verdicts([*seeds("ilde", CLEAR), *tuned], "ilde above ilde-no-bonus") == ["undecided (settings differ)"]
    cut = [replace(run, greedy=FinalScore(1000.0 + run.seed, 1.0, 1, capped=1)) for run in seeds("giril", CLEAR)]
    assert verdicts(cut, "giril above demonstrator") == ["undecided (episodes cut short)"]
    theirs = [
        replace(run, greedy=FinalScore(500.0 + run.seed, 1.0, 1, capped=1)) for run in seeds("ilde-no-bonus", CLEAR)
    ]
    short = "undecided (episodes of ilde-no-bonus cut short)"
    assert verdicts([*seeds("ilde", CLEAR), *theirs], "ilde above ilde-no-bonus") == [short]
    even = "undecided (seeds without any spread)"
    assert verdicts(seeds("giril", (1000.0, 1000.0)), "giril above demonstrator") == [even]
    below_zero = seeds("giril", CLEAR, demonstrator=-5.0)
    assert verdicts(below_zero, "giril above demonstrator") == ["borne out"]  # no ratio is needed to be above
    half = seeds("vail", CLEAR, demonstrator=-5.0)
    assert "not positive" in verdicts(half, "vail below 50% of the demonstrator")[0]


def test_a_method_with_another_reward_is_not_what_its_name_says() -> None:
    prediction = "ilde above ilde-no-bonus"
    weighted = seeds("ilde", CLEAR, reward="vail + 2*giril + entropy")
    (verdict,) = verdicts([*weighted, *seeds("ilde-no-bonus", (500.0, 510.0))], prediction)
    assert verdict == "undecided (vail + 2*giril + entropy; settings differ)"
    alike = seeds("ilde", (990.0, 500.0, 510.0))
    both = [*weighted, *alike, *seeds("ilde-no-bonus", (500.0, 510.0))]
    assert "from fragments undecided (1 undecided" in next(n for n in judge(both).notes if prediction in n)
    opponent = seeds("ilde-no-bonus", (500.0, 510.0), reward="vail + 2*giril")
    (verdict,) = verdicts([*seeds("ilde", CLEAR), *opponent], prediction)
    assert "no ilde-no-bonus with these steps" in verdict


def test_every_hypothesis_is_summed_up() -> None:
    chance, *notes = judge(seeds("vail", (300.0, 310.0, 290.0))).notes
    assert "decided by chance" in chance
    assert len(notes) == sum(len(hypothesis.trials) for hypothesis in hypotheses())
    said = "from fragments borne out (1 borne out, 6 not run); from whole episodes not run (4 not run)"
    assert notes[0].endswith(f"will fail with limited demonstrations. vail below 50% of the demonstrator: {said}")
    assert all("from fragments not run (" in note for note in notes[1:])


def test_a_task_counts_once_however_many_rows_it_has() -> None:
    rows = [*seeds("vail", (300.0, 310.0, 290.0)), *seeds("vail", (200.0, 210.0), env_steps=2 * STEPS)]
    first = judge(rows).notes[1]
    assert "from fragments borne out (1 borne out, 6 not run)" in first
    other = seeds("vail", (890.0, 880.0, 885.0), env_steps=4 * STEPS)
    assert "(1 borne out, 1 contradicted, 6 not run)" in judge([*rows, *other]).notes[1]


def test_fragments_and_whole_episodes_are_counted_apart() -> None:
    whole = {"fraction": 1.0, "demos_hash": "e" * 64}
    runs = [*seeds("vail", (300.0, 310.0, 290.0)), *seeds("vail", (890.0, 880.0, 885.0), **whole)]
    first = judge(runs).notes[1]
    assert "from fragments borne out (1 borne out, " in first
    assert "from whole episodes contradicted (1 contradicted, " in first


def test_what_the_paper_tried_and_we_did_not_is_listed() -> None:
    def missing(outcomes: list[Outcome]) -> list[str]:
        rows = judge(outcomes).rows
        return [row[1] for row in rows if row[2] == "giril above demonstrator" and row[-1] == "not run"]

    game = "ALE/Qbert-v5 from 10% of qbert/one-life-v0"
    nothing = missing(seeds("vail", CLEAR))
    assert game in nothing
    assert "Hopper-v4 from hopper-v4/four-v0" in nothing
    assert len(nothing) == 10
    ran = seeds("giril", CLEAR, task="ALE/Qbert-v5", demos="qbert/one-life-v0", fraction=0.1)
    assert missing(ran) == [name for name in nothing if name != game]


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        (["borne out", "undecided"], "borne out"),
        (["contradicted", "not run"], "contradicted"),
        (["contradicted", "borne out", "borne out"], "borne out and contradicted"),
        (["undecided", "not run"], "undecided"),
        (["not run"], "not run"),
    ],
)
def test_no_vote_is_taken_over_tasks(verdicts: list[Verdict], whole: str) -> None:
    assert in_all(verdicts) == whole


def test_seeds_for_tuning_decide_nothing() -> None:
    tuned = [replace(run, seed=run.seed + 100) for run in seeds("vail", (300.0, 310.0, 290.0))]
    assert verdicts(tuned, "vail below 50% of the demonstrator") == []
    assert judge(tuned).notes[0] == "left out: 3 runs on seeds from 100 up, which are for tuning"


def test_the_halves_of_a_hypothesis_are_told_apart() -> None:
    notes = judge([*seeds("ilde", CLEAR), *seeds("ilde-no-imitation", (500.0, 510.0))]).notes
    first, second = (note for note in notes if note.startswith("H4"))
    assert "ilde above ilde-no-imitation: from fragments borne out" in first
    assert "wrong-demos equal ilde-no-imitation: from fragments not run" in second


def test_the_published_verdicts_are_rebuilt_byte_for_byte() -> None:
    outcomes = gather(sorted(RESULTS.rglob("*.outcomes.json"))).outcomes
    assert markdown(TITLE, [judge(outcomes)]) == (RESULTS / "hypotheses.md").read_text(encoding="utf-8")


def test_the_verb_asks_for_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "hypotheses"]) == 2
    assert capsys.readouterr().err.startswith("ilde: hypotheses: judged by the runs of other tables; name them")
    assert main(["reproduce", "hypotheses", "--from", str(RESULTS)]) == 0
    assert "H4" in capsys.readouterr().out

"""Who stands in which table, and what may be said of whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from made_outcomes import BEATEN, STEPS, controls, outcome, seeds

from ilde.reports.comparison import CONTROLS, Comparison, compare
from ilde.reports.outcomes import FinalScore, Outcome
from ilde.reports.rows import Row, Verdict
from ilde.reports.tables import difference_table


def only(outcomes: Sequence[Outcome], **options: Any) -> Comparison:
    (comparison,) = compare(outcomes, **options)
    return comparison


def row_of(comparison: Comparison, label: str) -> Row:
    return next(row for row in comparison.rows if row.label == label)


def verdict_of(outcomes: Sequence[Outcome], label: str = "ilde", **options: Any) -> Verdict:
    verdict = row_of(only(outcomes, **options), label).verdict
    assert verdict is not None
    return verdict


def test_a_row_says_what_its_seeds_say() -> None:
    row = row_of(only(seeds("ilde", (800, 1000, 1200))), "ilde")
    assert (row.mean, row.std, row.ratio, row.beat_demonstrator) == (1000, 200, pytest.approx(10 / 9), 2)
    # Student's quantile for two degrees of freedom is 4.3027, the standard error 200 / sqrt(3).
    assert row.interval == pytest.approx((1000 - 496.83, 1000 + 496.83), abs=0.01)
    assert (row.env_steps, row.seeds, row.other, row.iqm) == (STEPS, (0, 1, 2), 900, 1000)


def test_a_method_above_every_control_imitates() -> None:
    verdict = verdict_of(seeds("ilde", (990, 1000, 1010)) + controls())
    assert verdict.imitates
    assert str(verdict) == "imitates"


def test_a_control_whose_difference_may_be_nothing_is_named() -> None:
    verdict = verdict_of(seeds("ilde", (90, 120, 110)) + controls())
    assert not verdict.imitates
    assert str(verdict) == "not shown to imitate (shuffled)"


def test_a_method_below_a_control_does_not_imitate() -> None:
    assert verdict_of(seeds("ilde", (-999, -1000, -1001)) + controls()).overlapping == CONTROLS


def test_a_row_whose_interval_overlaps_a_controls_is_not_shown_though_the_difference_is_above_zero() -> None:
    spread = seeds("constant", (-450.0, -190.0, -10.0))
    comparison = only(seeds("hype-ilde", (290, 790, 1020)) + controls(leave_out=("constant", "shuffled")) + spread)
    row = row_of(comparison, "hype-ilde")
    (difference,) = [d for d in row.differences if d.control == "constant"]
    assert difference.interval[0] > 0
    assert (difference.apart, difference.overlaps, difference.shown) == (False, True, False)
    assert row.verdict is not None
    assert "constant" in row.verdict.overlapping
    words = difference_table(comparison)
    assert words is not None
    assert [note for note in words.notes if "the two intervals overlap" in note and "hype-ilde (" in note]


def test_a_missing_control_is_named() -> None:
    verdict = verdict_of(seeds("ilde", (990, 1000, 1010)) + controls(leave_out=("entropy", "random")))
    assert str(verdict) == "no `entropy`, `random` run: not shown to imitate"


def test_overlapping_and_missing_controls_are_both_named() -> None:
    verdict = verdict_of(seeds("ilde", (90, 120, 110)) + controls(leave_out=("entropy",)))
    assert str(verdict) == "not shown to imitate (shuffled); no `entropy` run"


def test_the_controls_that_are_required_can_be_chosen() -> None:
    runs = seeds("ilde", (990, 1000, 1010)) + controls(leave_out=("entropy",))
    assert verdict_of(runs, controls=("constant",)).imitates


def test_one_seed_claims_nothing() -> None:
    comparison = only([outcome("ilde", 0, 1e6), *controls()])
    row = row_of(comparison, "ilde")
    assert str(row.verdict) == "one seed has no interval: not shown to imitate"
    assert (row.std, row.interval, row.iqm_interval) == (None, None, None)
    assert "one seed has no interval, and nothing is claimed of it: ilde" in comparison.notes


def test_a_control_with_one_seed_shows_nothing() -> None:
    runs = seeds("ilde", (990, 1000, 1010)) + controls(leave_out=("constant",)) + [outcome("constant", 0, -100)]
    assert str(verdict_of(runs)) == "not shown to imitate (constant with one seed)"


def test_equal_scores_of_all_seeds_make_nothing_certain() -> None:
    flat = [run for method in BEATEN for run in seeds(method, (0.0, 0.0))]
    verdict = verdict_of(seeds("ilde", (1.0, 1.0)) + flat, controls=("constant",))
    assert str(verdict) == "not shown to imitate (constant without any spread)"


def test_a_control_of_cut_episodes_shows_nothing() -> None:
    cut = seeds("constant", (-100, -101), greedy=FinalScore(-100.0, 1.0, 20, capped=20))
    runs = seeds("ilde", (990, 1000, 1010)) + controls(leave_out=("constant",)) + cut
    assert str(verdict_of(runs)) == "episodes cut short: not shown to imitate"


def test_a_control_counts_only_at_the_rows_budget() -> None:
    runs = seeds("ilde", (990, 1000, 1010)) + controls(leave_out=("constant",))
    late = seeds("constant", (-100, -101), env_steps=2 * STEPS)
    comparison = only(runs + late)
    verdict = row_of(comparison, "ilde").verdict
    assert str(verdict) == "`constant` with other steps only: not shown to imitate"
    assert any(note.startswith("budgets differ (400,000, 800,000 steps)") for note in comparison.notes)
    assert verdict_of(runs + seeds("constant", (-100, -101), env_steps=STEPS + 4096)).imitates


def test_a_random_policy_and_a_method_without_steps_know_no_budget() -> None:
    runs = controls(leave_out=("random",)) + seeds("random", (-300, -301), env_steps=0)
    assert verdict_of(runs + seeds("ilde", (990, 1000))).imitates
    assert verdict_of(runs + seeds("vail", (990, 1000), env_steps=0), "vail").imitates


def test_a_method_without_steps_is_held_against_the_strongest_budget_of_a_control() -> None:
    early, late = seeds("constant", (-100, -101), env_steps=100), seeds("constant", (989, 991), env_steps=2 * STEPS)
    runs = controls(leave_out=("constant",)) + seeds("bc", (990, 1000, 1010), env_steps=0)
    for weak, strong in ((early, late), (late, early)):
        swapped = [replace(run, env_steps=o.env_steps) for run, o in zip(late, strong, strict=True)]
        others = [replace(run, env_steps=o.env_steps) for run, o in zip(early, weak, strict=True)]
        assert str(verdict_of(runs + swapped + others, "bc")) == "not shown to imitate (constant)"


def test_a_row_is_held_against_controls_with_its_own_settings() -> None:
    own = {"variant": ("ppo.discount=0.9",)}
    runs = controls() + controls(leave_out=("random",), **own)
    good = [
        replace(o, greedy=FinalScore(5000.0 + o.seed, 1.0, 20)) if o.method == "constant" and o.variant else o
        for o in runs
    ]
    comparison = only(good + seeds("ilde", (990, 1000, 1010)) + seeds("ilde", (990, 1000, 1010), **own))
    assert str(row_of(comparison, "ilde (ppo.discount=0.9)").verdict) == "not shown to imitate (constant)"
    assert str(row_of(comparison, "ilde").verdict) == "imitates"
    assert not any("other settings" in note for note in comparison.notes)


def test_controls_with_other_settings_are_told() -> None:
    comparison = only(seeds("ilde", (990, 1000), variant=("ppo.discount=0.9",)) + controls())
    assert (
        "held against controls with other settings: ilde (ppo.discount=0.9) (entropy, constant, shuffled, wrong-demos)"
        in comparison.notes
    )


def test_settings_of_all_rows_are_told_once() -> None:
    comparison = only(seeds("ilde", (1, 2), variant=("a=1", "b=2")) + seeds("vail", (1, 2), variant=("a=1",)))
    assert comparison.settings == ("preset quick", "a=1")
    assert [row.label for row in comparison.rows] == ["ilde (b=2)", "vail"]


def test_the_usual_preset_of_a_method_goes_without_saying() -> None:
    comparison = only(
        seeds("hype", (1, 2), preset="replay") + seeds("ilde", (1, 2)) + seeds("vail", (1, 2), preset="mujoco")
    )
    assert comparison.settings == ()
    assert [row.label for row in comparison.rows] == ["ilde", "vail (preset mujoco)", "hype"]


def test_another_reward_makes_another_row() -> None:
    comparison = only(seeds("ilde", (1, 2)) + seeds("ilde", (3, 4), reward="vail + 2*giril"))
    assert [row.label for row in comparison.rows] == ["ilde", "ilde (vail + 2*giril)"]


def test_another_budget_makes_another_row() -> None:
    comparison = only(seeds("ilde", (1, 2)) + seeds("ilde", (3, 4), env_steps=2 * STEPS))
    assert [row.label for row in comparison.rows] == ["ilde (400,000 steps)", "ilde (800,000 steps)"]


def test_only_methods_that_see_demonstrations_are_judged() -> None:
    comparison = only(seeds("ilde", (1, 2)) + seeds("e3b", (1, 2)) + seeds("expert", (1, 2)) + controls())
    kinds = {row.method: row.kind for row in comparison.rows}
    assert kinds == {"ilde": "method", "e3b": "unguided", **dict.fromkeys(CONTROLS, "control"), "expert": "reference"}
    assert [row.method for row in comparison.rows if row.verdict is not None] == ["ilde"]


def test_a_control_with_another_reward_is_no_control() -> None:
    comparison = only(seeds("constant", (1, 2), reward="vail", demos_hash="f" * 64) + seeds("ilde", (1, 2)))
    assert [row.kind for row in comparison.rows] == ["method", "method"]
    assert verdict_of(seeds("ilde", (1, 2)) + seeds("constant", (1, 2), reward="vail")).missing == CONTROLS


def test_runs_without_demonstrations_stand_in_every_table_of_their_environment() -> None:
    other = {"demos_hash": "e" * 64, "demos": "c/d", "demonstrator": 50.0}
    elsewhere = seeds("ilde", (1, 2), task="Hopper-v5", demos_hash="d" * 64)
    runs = seeds("ilde", (1, 2)) + seeds("ilde", (3, 4), **other) + seeds("random", (0, 1)) + elsewhere
    tables = {c.title: [row.method for row in c.rows] for c in compare(runs)}
    assert tables == {
        "HalfCheetah-v5 from 50% of a/b": ["ilde", "random"],
        "HalfCheetah-v5 from 50% of c/d": ["ilde", "random"],
        "Hopper-v5 from 50% of a/b": ["ilde"],
    }


def test_runs_without_any_demonstrations_have_a_table_too() -> None:
    assert only(seeds("expert", (1, 2))).title == "HalfCheetah-v5"


def test_runs_that_broke_off_are_left_out_and_named() -> None:
    failed = outcome("ilde", 7, None, state="failed", env_steps=100)
    unmeasured = outcome("ilde", 8, None)
    comparison = only([*seeds("ilde", (1, 2)), failed, unmeasured])
    assert row_of(comparison, "ilde").seeds == (0, 1)
    assert comparison.notes[0] == (
        "not in the table: ilde seed 7 (failed at 100 of 400,000 steps), "
        "ilde seed 8 (finished without a final evaluation)"
    )


def test_a_seed_counts_once() -> None:
    twice = outcome("ilde", 0, 5.0, run="copy")
    comparison = only([*seeds("ilde", (5.0, 6.0)), twice])
    assert row_of(comparison, "ilde").scores == (5.0, 6.0)
    assert "seeds that stand in the table already were left out: ilde-0" in comparison.notes


def test_few_episodes_are_told() -> None:
    runs = [replace(o, greedy=FinalScore(1.0 + o.seed, 0.0, 1)) for o in seeds("ilde", (1, 2))]
    assert "final scores are means over as few as 1 episode a seed" in only(runs).notes


def test_episodes_that_mostly_end_at_the_time_limit_are_told() -> None:
    limited = seeds("ilde", (1, 2), greedy=FinalScore(1.0, 1.0, 20, truncated=20, length=900.0))
    half = seeds("vail", (1, 2), greedy=FinalScore(1.0, 1.0, 20, truncated=10))
    assert only(limited + half).notes[-1] == (
        "episodes that ended at the time limit: ilde (40 of 40, 900 steps each on average)"
    )
    assert only(limited + seeds("vail", (1, 2))).notes[-1] == "every episode ended at the time limit"
    assert not any("time limit" in note for note in only(half + seeds("ilde", (1, 2))).notes)


def test_a_policy_whose_episodes_are_mostly_alike_is_told() -> None:
    alike = seeds("ilde", (1, 2), greedy=FinalScore(1.0, 1.0, 20, kinds=10), sampled=FinalScore(1.0, 1.0, 20, kinds=20))
    unlike = seeds("vail", (1, 2), greedy=FinalScore(1.0, 1.0, 20, kinds=11))
    assert "many episodes are alike in return and length: ilde (20 kinds among 40)" in only(alike + unlike).notes
    assert not any("alike" in note for note in only(unlike + seeds("ilde", (1, 2))).notes)
    assert not any("alike" in note for note in only(alike, greedy=False).notes)


def test_notes_are_about_the_actions_that_are_compared() -> None:
    long = FinalScore(1.0, 1.0, 1, truncated=1)
    runs = seeds("ilde", (1, 2), greedy=long, sampled=FinalScore(1.0, 1.0, 20, truncated=0))
    assert {"final scores are means over as few as 1 episode a seed", "every episode ended at the time limit"} <= set(
        only(runs).notes
    )
    assert not any("as few as" in note or "time limit" in note for note in only(runs, greedy=False).notes)


def test_the_other_actions_are_shown_where_every_seed_has_them() -> None:
    one, two = seeds("ilde", (1000, 1020))
    assert row_of(only([one, two]), "ilde").other == 910
    assert row_of(only([one, replace(two, sampled=None)]), "ilde").other is None


def test_there_are_no_ratios_to_a_demonstrator_that_is_not_above_zero() -> None:
    comparison = only(seeds("ilde", (-5, -4), demonstrator=-4.05))
    assert row_of(comparison, "ilde").ratio is None
    assert any("no ratios" in note for note in comparison.notes)


def test_sampled_actions_can_be_compared_instead() -> None:
    row = row_of(only(seeds("ilde", (990, 1000, 1010)), greedy=False), "ilde")
    assert (row.mean, row.other) == (900, 1000)


def test_the_difference_tells_interval_and_chance() -> None:
    comparison = only(seeds("ilde", (1.0, 3.0)) + seeds("constant", (-1.0, 1.0)))
    (difference,) = row_of(comparison, "ilde").differences
    assert (difference.control, difference.mean) == ("constant", 2.0)
    assert difference.interval == pytest.approx((2 - 6.0849, 2 + 6.0849), abs=1e-3)
    assert difference.probability == 0.875  # three wins and a tie of four


def test_everything_is_the_same_again() -> None:
    runs = seeds("ilde", (900, 1800)) + seeds("constant", (450, 450)) + seeds("vail", (900, 900))
    assert compare(runs) == compare(list(reversed(runs)))
    interval = row_of(compare(runs)[0], "ilde").iqm_interval
    assert interval == row_of(compare(runs)[0], "ilde").iqm_interval

"""When a row passes its demonstrator, and on which of its curves that is read."""

from __future__ import annotations

from dataclasses import replace

from made_outcomes import outcome

from ilde.reports.crossing import Crossing, crossing, curve_read
from ilde.reports.thinned import Curve, curve, lows

STEPS = (100, 200, 300, 400)
HIGH, LOW = Curve(STEPS, (1000.0,) * 4), Curve(STEPS, (0.0,) * 4)


def test_one_seed_without_evaluations_makes_all_seeds_be_read_by_training_scores() -> None:
    evaluated = replace(outcome("ilde", 0, 1.0), evaluations=HIGH, training=LOW)
    unevaluated = replace(outcome("ilde", 1, 1.0), training=Curve(STEPS, (0.0, 0.0, 850.0, 850.0)))
    # Read one by one, the mean would be that of 1000 and 850, above 900.
    assert curve_read([evaluated, unevaluated]) == "training scores"
    assert crossing([evaluated, unevaluated], 900.0) is None


def test_evaluations_are_read_where_every_seed_has_them() -> None:
    runs = [replace(outcome("ilde", seed, 1.0), evaluations=HIGH, training=LOW) for seed in range(2)]
    assert curve_read(runs) == "evaluations"
    assert crossing(runs, 900.0) == Crossing(100, 100)
    assert crossing(runs, 900.0, "training scores") is None
    assert crossing(runs, None) is None


def test_a_few_evaluations_make_no_curve() -> None:
    run = replace(outcome("ilde", 0, 1.0), evaluations=Curve(STEPS[:3], (1000.0,) * 3), training=LOW)
    assert curve_read([run]) == "training scores"
    assert crossing([run], 900.0) is None


def test_a_method_has_passed_its_demonstrator_when_it_stays_above() -> None:
    up = replace(outcome("ilde", 0, 1.0), evaluations=Curve(STEPS, (950.0, 800.0, 900.0, 1000.0)))
    assert crossing([up], 900.0) == Crossing(300, 100)
    assert crossing([up], 700.0) == Crossing(100, 100)
    assert crossing([up], 1100.0) is None
    # The mean curve of two seeds is read, at the steps both have.
    low = replace(outcome("ilde", 1, 1.0), evaluations=Curve(STEPS, (0.0, 0.0, 900.0, 900.0)))
    assert crossing([up, low], 900.0) == Crossing(300, 100)
    assert crossing([outcome("ilde", 0, 1.0)], 900.0) is None


def test_a_dip_between_two_points_that_were_kept_counts() -> None:
    rows = [{"env_steps": step, "score": 1000.0} for step in range(1, 1001)]
    rows[594]["score"] = 0.0
    run = replace(outcome("ilde", 0, 1.0), training=curve(rows, "score"), lows=lows(rows, "score"))
    assert min(run.training.values) == 1000.0
    found = crossing([run], 900.0)
    assert found is not None
    assert 595 < found.env_steps <= 595 + 2 * found.spacing
    assert crossing([replace(run, lows=Curve())], 900.0) == Crossing(1, 1)


def test_a_record_that_kept_dips_and_one_that_did_not_are_read_alike() -> None:
    rows = [{"env_steps": step, "score": 1000.0} for step in range(1, 1001)]
    rows[594]["score"] = 0.0
    new = replace(outcome("ilde", 0, 1.0), training=curve(rows, "score"), lows=lows(rows, "score"))
    old = replace(new, lows=Curve())
    short = replace(old, training=Curve(STEPS, (1000.0,) * 4))
    assert curve_read([new]) == curve_read([new], [new]) == curve_read([new], [short]) == "lowest training scores"
    assert curve_read([new], [old]) == curve_read([old]) == curve_read([short]) == "training scores"
    assert crossing([new], 900.0, curve_read([new], [old])) == crossing([old], 900.0)


def test_the_lowest_scores_of_several_seeds_make_no_mean() -> None:
    # Two seeds, one of them low at every other row, the other at the rows between: their mean is 100 throughout.
    seeds = [
        [{"env_steps": step, "score": 200.0 * ((step + shift) % 2)} for step in range(1, 400)] for shift in range(2)
    ]
    runs = [
        replace(outcome("ilde", k, 1.0), training=curve(rows, "score"), lows=lows(rows, "score"))
        for k, rows in enumerate(seeds)
    ]
    assert curve_read(runs) == "training scores"
    assert crossing(runs, 100.0) == Crossing(1, 1)
    assert crossing(runs[:1], 100.0) is None


def test_a_curve_that_was_not_thinned_has_no_other_lows() -> None:
    rows = [{"env_steps": step, "score": float(step)} for step in range(100)]
    assert lows(rows, "score") == Curve()
    assert len(curve(rows, "score").values) == 100

"""When a row passes its demonstrator, and on which of its curves that is read."""

from __future__ import annotations

from dataclasses import replace

from made_outcomes import outcome

from ilde.reports.crossing import crossing, curve_read
from ilde.reports.outcomes import Curve

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
    assert crossing(runs, 900.0) == 100
    assert crossing(runs, None) is None


def test_a_few_evaluations_make_no_curve() -> None:
    run = replace(outcome("ilde", 0, 1.0), evaluations=Curve(STEPS[:3], (1000.0,) * 3), training=LOW)
    assert curve_read([run]) == "training scores"
    assert crossing([run], 900.0) is None

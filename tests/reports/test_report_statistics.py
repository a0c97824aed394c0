"""Statistics by hand, by brute force, and against SciPy's."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from ilde.reports.statistics import (
    FEWEST,
    bootstrap_interval,
    difference_interval,
    improvement,
    improvement_interval,
    iqm,
    mean_and_std,
    pooled_iqm,
    scores_of,
)


def drawn(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(3.0, 2.0, size)


def generator() -> np.random.Generator:
    return np.random.default_rng(7)


def test_mean_and_sample_deviation_by_hand() -> None:
    # Squares of the distances to 5: 9 + 1 + 1 + 9 = 20, over n - 1 = 3.
    assert mean_and_std([2.0, 4.0, 6.0, 8.0]) == (5.0, pytest.approx(math.sqrt(20 / 3)))


def test_one_seed_has_no_deviation() -> None:
    assert mean_and_std([3.0]) == (3.0, None)


def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end() -> None:
    assert iqm(scores_of([100, 1, 2, 3, 4, 5, 6, -100])) == (2 + 3 + 4 + 5) / 4
    # Of five a quarter is one and a bit: one goes at each end.
    assert iqm(scores_of([5, 1, 2, 3, 99])) == (2 + 3 + 5) / 3
    assert iqm(scores_of([1, 2, 9])) == 4


@pytest.mark.parametrize("size", range(1, 20))
def test_the_interquartile_mean_is_scipys_trimmed_mean(size: int) -> None:
    values = drawn(size)
    assert iqm(values) == pytest.approx(stats.trim_mean(values, 0.25))


def test_pooling_joins_the_tasks_before_it_trims() -> None:
    assert pooled_iqm([scores_of([0, 1]), scores_of([2, 99])]) == 1.5


def test_the_probability_of_improvement_of_disjoint_samples_is_one_and_of_equal_ones_a_half() -> None:
    low, high = scores_of([1, 2, 3]), scores_of([4, 5])
    assert improvement([high], [low]) == 1
    assert improvement([low], [high]) == 0
    assert improvement([scores_of([2, 2])], [scores_of([2, 2, 2])]) == 0.5


def test_the_probability_of_improvement_counts_pairs() -> None:
    ours, theirs = drawn(7, 1), drawn(5, 2)
    pairs = [float(a > b) + 0.5 * float(a == b) for a, b in itertools.product(ours, theirs)]
    assert improvement([ours], [theirs]) == pytest.approx(sum(pairs) / 35)


def test_the_probability_of_improvement_is_averaged_over_tasks_whatever_their_seeds() -> None:
    won, lost = scores_of([5, 6]), scores_of([0, 0, 0, 0, 0, 0])
    base = scores_of([1, 1])
    assert improvement([won, lost], [base, base]) == 0.5


def test_the_bootstrap_of_a_constant_makes_nothing_certain() -> None:
    assert bootstrap_interval(pooled_iqm, [np.full(5, 2.0), np.full(6, 2.0)], generator()) is None


def test_the_bootstrap_agrees_with_all_resamples_of_a_small_sample() -> None:
    values = scores_of([0, 1, 5, 7, 12])
    resampled = [sum(sorted(chosen)[1:4]) / 3 for chosen in itertools.product(values, repeat=5)]
    expected = np.percentile(resampled, (2.5, 97.5), method="inverted_cdf")
    assert bootstrap_interval(pooled_iqm, [values], generator(), resamples=20_000) == pytest.approx(tuple(expected))
    means = [sum(chosen) / 5 for chosen in itertools.product(values, repeat=5)]
    found = bootstrap_interval(lambda strata: strata[0].mean(-1), [values], generator(), resamples=20_000)
    assert found == pytest.approx(tuple(np.percentile(means, (2.5, 97.5), method="inverted_cdf")))


def test_the_bootstrap_resamples_within_tasks() -> None:
    # Were seeds drawn from all tasks together, the mean would wander by tens.
    low, high = scores_of([0, 0, 0, 0.1, 0.1]), scores_of([100, 100, 100, 100.1, 100.1])
    interval = bootstrap_interval(pooled_iqm, [low, high], generator())
    assert interval is not None
    assert 50 <= interval[0] <= interval[1] <= 50.1


def test_the_bootstrap_is_the_same_for_the_same_generator_only() -> None:
    strata = [drawn(5)]
    first, same = (bootstrap_interval(pooled_iqm, strata, generator()) for _ in range(2))
    assert first == same != bootstrap_interval(pooled_iqm, strata, np.random.default_rng(8))


@pytest.mark.parametrize("size", range(1, FEWEST))
def test_a_task_with_few_seeds_has_no_bootstrap_interval(size: int) -> None:
    few, enough = drawn(size), drawn(FEWEST, 1)
    assert bootstrap_interval(pooled_iqm, [enough, few], generator()) is None
    assert improvement_interval([enough], [few], generator()) is None
    assert improvement_interval([few], [enough], generator()) is None
    assert bootstrap_interval(pooled_iqm, [enough, enough], generator()) is not None


def test_the_interval_of_the_probability_of_improvement_holds_it() -> None:
    ours, theirs = [drawn(10, 3)], [drawn(10, 4) - 1]
    interval = improvement_interval(ours, theirs, generator())
    assert interval is not None
    assert 0 <= interval[0] < improvement(ours, theirs) < interval[1] <= 1


def test_that_samples_are_disjoint_makes_nothing_certain() -> None:
    assert improvement_interval([drawn(6) + 100], [drawn(6, 1)], generator()) is None


@pytest.mark.parametrize(("ours", "theirs"), [(3, 3), (5, 2), (2, 20)])
def test_the_difference_interval_is_welchs(ours: int, theirs: int) -> None:
    mine, other = drawn(ours, 5), 10 * drawn(theirs, 6)
    expected = stats.ttest_ind(mine, other, equal_var=False).confidence_interval(0.95)
    assert difference_interval(mine, other) == pytest.approx((expected.low, expected.high))


def test_the_difference_interval_by_hand() -> None:
    # Means 2 and 0, variances 2 and 2 over n = 2: standard error sqrt(2), 2 degrees of freedom, quantile 4.3027.
    low, high = difference_interval([1.0, 3.0], [-1.0, 1.0])
    assert (low, high) == pytest.approx((2 - 4.30265 * math.sqrt(2), 2 + 4.30265 * math.sqrt(2)), abs=1e-4)


def test_scores_without_any_spread_make_nothing_certain() -> None:
    assert difference_interval([2.0, 2.0], [1.5, 1.5, 1.5]) == (-math.inf, math.inf)
    assert math.isfinite(difference_interval([2.0, 2.0], [1.5, 1.5, 1.6])[0])


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e77, 1e99])
def test_the_difference_interval_does_not_depend_on_the_unit(unit: float) -> None:
    mine, other = np.array([1.0, 3.0, 4.0]), np.array([0.0, 0.5])
    low, high = difference_interval(mine, other)
    assert difference_interval(mine * unit, other * unit) == pytest.approx((low * unit, high * unit))


def test_a_single_seed_bounds_no_difference() -> None:
    assert difference_interval([1e9], [0.0, 1.0]) == (-math.inf, math.inf)
    assert difference_interval([1e9, 1e9], [0.0]) == (-math.inf, math.inf)


def test_the_same_runs_in_two_tasks_are_no_further_evidence() -> None:
    scores = drawn(7)
    once = bootstrap_interval(pooled_iqm, [scores], generator())
    alike = bootstrap_interval(lambda strata: iqm(strata[1]), [scores, scores], generator(), runs=["a", "a"])
    assert alike == once
    mean = bootstrap_interval(lambda strata: (strata[0] - strata[1]).mean(-1), [scores, scores], generator())
    assert mean is not None  # drawn apart they differ, drawn together they never do
    together = bootstrap_interval(
        lambda strata: (strata[0] - strata[1]).mean(-1), [scores, scores], generator(), runs=["a", "a"]
    )
    assert together is None
    apart = improvement_interval([scores, scores], [scores, scores + 1], generator())
    shared = improvement_interval([scores, scores], [scores, scores + 1], generator(), our_runs=["a", "a"])
    assert apart is not None
    assert shared is not None
    assert shared[1] - shared[0] > apart[1] - apart[0]


def test_equal_scores_make_nothing_certain_however_they_round() -> None:
    assert difference_interval([3.3] * 3, [1.1] * 3) == (-math.inf, math.inf)
    low, high = difference_interval([3.3] * 3, [1.0, 1.1, 1.2])
    assert low < 2.2 < high

"""Measures of behaviour: what they must say of states whose relation is known."""

from __future__ import annotations

import numpy as np
import pytest

from ilde.reports.behaviour import coverage, discriminator_gap


def states(low: float, high: float, count: int = 2000, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, (count, 3))


def test_equals_reach_the_same_and_everything() -> None:
    reached = coverage({"one": states(0, 1), "other": states(0, 1, seed=1)}, 0)
    assert reached["one"] == pytest.approx(reached["other"], abs=0.06)
    assert min(reached.values()) > 0.8


def test_who_stays_in_a_corner_reaches_its_own_part_of_the_space() -> None:
    reached = coverage({"wide": states(0, 1), "narrow": states(0, 0.2, seed=1)}, 0)
    assert reached["wide"] > 0.9
    assert reached["narrow"] < 0.05
    apart = coverage({"here": states(0, 1), "there": states(5, 6, seed=1)}, 0)
    assert apart["here"] == pytest.approx(0.5, abs=0.07)


OTHERS = {
    "nobody": {},
    "a crowd in the same corner": {f"crowd-{n}": states(0, 0.1, seed=10 + n) for n in range(6)},
    "a crowd elsewhere": {f"crowd-{n}": states(0.8, 0.9, seed=10 + n) for n in range(6)},
    "others who are everywhere": {f"wide-{n}": states(0, 1, seed=10 + n) for n in range(3)},
    "some of each": {"crowd": states(0, 0.1, seed=10), "far": states(2, 3, seed=11), "wide": states(0, 1, seed=12)},
}


@pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)
def test_who_is_everywhere_reaches_more_than_who_stays_whatever_the_others_do(others: dict[str, np.ndarray]) -> None:
    reached = coverage({"spread": states(0, 1), "stays": states(0, 0.1, seed=1), **others}, 0)
    assert reached["spread"] > 2 * reached["stays"]


def test_a_crowd_makes_nobody_reach_more() -> None:
    apart = {"here": states(0, 1), "there": states(0.5, 2, seed=1)}
    alone = coverage(apart, 0)
    crowded = coverage(apart | {f"there-{n}": apart["there"] for n in range(5)}, 0)
    for name, part in alone.items():
        assert crowded[name] == pytest.approx(part, abs=0.06)


def test_a_feature_that_never_changes_does_not_matter() -> None:
    still = {name: np.column_stack([s, np.full(len(s), 7.0)]) for name, s in {"one": states(0, 1)}.items()}
    assert coverage(still, 0)["one"] > 0.8


def test_coverage_does_not_depend_on_units_or_on_how_long_one_played() -> None:
    one, other = states(0, 1), states(0.5, 1.5, seed=1)
    plain = coverage({"one": one, "other": other}, 0)
    scaled = coverage({"one": one * [1, 50, 1], "other": other * [1, 50, 1]}, 0)
    assert scaled == pytest.approx(plain)
    longer = coverage({"one": np.concatenate([one, states(0, 1, 4000, seed=2)]), "other": other}, 0)
    assert longer["one"] == pytest.approx(plain["one"], abs=0.05)


def test_the_gap_is_nothing_between_equals_and_one_between_strangers() -> None:
    assert discriminator_gap(states(0, 1), states(0, 1, seed=1), 0) < 0.08
    assert discriminator_gap(states(0, 1), states(2, 3, seed=1), 0) > 0.99


def test_the_gap_estimates_the_total_variation() -> None:
    half_shared = states(0, 1), states(0, 1, seed=1) + np.array([0.5, 0, 0])
    assert discriminator_gap(*half_shared, 0) == pytest.approx(0.5, abs=0.08)


def test_a_seed_gives_one_answer() -> None:
    pair = states(0, 1), states(0.3, 1.3, seed=1)
    assert discriminator_gap(*pair, 3) == discriminator_gap(*pair, 3)

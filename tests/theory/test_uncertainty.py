from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import minimize

from ilde.theory.uncertainty import FiniteClass, LinearClass, TabularClass, ball_minimiser, net_class


def visits_of(shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 6, shape).astype(float)


def nets() -> FiniteClass:
    grid = np.array(list(product((-1.0, 0.0, 1.0), repeat=2)))
    inputs = np.random.default_rng(0).normal(size=(3, 2, 2))
    return net_class(inputs, grid, bound=2.0)


def test_the_tabular_closed_form_is_what_search_finds() -> None:
    bound = 3.0
    corners = np.array(list(product((-bound, 0.0, bound), repeat=4))).reshape(-1, 2, 2)
    visits = visits_of((2, 2))
    found = FiniteClass(corners, bound).uncertainty(visits)
    np.testing.assert_allclose(TabularClass(2, 2, bound).uncertainty(visits), found, rtol=1e-12)


def test_the_linear_closed_form_is_what_search_finds() -> None:
    rng = np.random.default_rng(1)
    features, bound = rng.dirichlet(np.ones(2), size=(3, 2)), 1.5
    exact = LinearClass(features, bound)
    # The difference of two parameters fills a ball of twice the radius; opposite points of the sphere attain its rim.
    angles = np.linspace(0, 2 * np.pi, 600, endpoint=False)
    sphere = exact.radius * np.stack([np.cos(angles), np.sin(angles)])
    members = np.moveaxis(features @ sphere, -1, 0)
    visits = visits_of((3, 2), seed=1)
    found = FiniteClass(members, bound).uncertainty(visits)
    assert np.all(found <= exact.uncertainty(visits) + 1e-12)
    np.testing.assert_allclose(found, exact.uncertainty(visits), rtol=1e-4)


def test_the_search_over_nets_is_the_definition() -> None:
    members, visits = nets(), visits_of((3, 2))
    best = np.zeros((3, 2))
    for f, g in combinations(members.values, 2):
        best = np.maximum(best, (f - g) ** 2 / (np.sum(visits * (f - g) ** 2) + members.bound**2))
    np.testing.assert_allclose(members.uncertainty(visits), np.sqrt(best))


def test_a_richer_class_is_less_certain() -> None:
    members, visits = nets(), visits_of((3, 2))
    some = FiniteClass(members.values[::3], members.bound)
    everything = TabularClass(3, 2, members.bound)
    assert np.all(some.uncertainty(visits) <= members.uncertainty(visits))
    assert np.all(members.uncertainty(visits) <= everything.uncertainty(visits))


def classes() -> list[TabularClass | LinearClass | FiniteClass]:
    features = np.random.default_rng(0).dirichlet(np.ones(3), size=(3, 2))
    return [TabularClass(3, 2, 2.0), LinearClass(features, 2.0), nets()]


@pytest.mark.parametrize("values", classes(), ids=lambda values: type(values).__name__)
def test_more_data_never_makes_anything_less_certain(values: TabularClass | LinearClass | FiniteClass) -> None:
    visits = visits_of((3, 2))
    for cell in np.ndindex(3, 2):
        more = visits.copy()
        more[cell] += 1
        assert np.all(values.uncertainty(more) <= values.uncertainty(visits) + 1e-12)
        assert (
            values.uncertainty(more)[cell] < values.uncertainty(visits)[cell] or values.uncertainty(visits)[cell] == 0
        )


@pytest.mark.parametrize("values", classes(), ids=lambda values: type(values).__name__)
def test_dimension_and_covering_number_grow(values: TabularClass | LinearClass | FiniteClass) -> None:
    dimensions = [values.eluder_dimension(samples) for samples in (1, 5, 25, 100)]
    covers = [values.log_covering_number(radius) for radius in (4.0, 1.0, 0.25, 0.05)]
    assert dimensions == sorted(dimensions)
    assert covers == sorted(covers)
    assert covers[0] < covers[-1]


def test_the_tabular_dimension_is_that_of_the_best_sequence() -> None:
    values = TabularClass(2, 1, 1.0)
    # Five samples on two pairs: three on one, two on the other. min(1, 4) + 1/1.25 + 1/2.25, and 1 + 1/1.25.
    assert values.eluder_dimension(5) == pytest.approx(2 + 2 / 1.25 + 1 / 2.25)
    corners = np.array(list(product((-1.0, 0.0, 1.0), repeat=2))).reshape(-1, 2, 1)
    assert FiniteClass(corners, 1.0).eluder_dimension(5) == pytest.approx(values.eluder_dimension(5))


def test_the_linear_dimension_bounds_a_greedy_sequence() -> None:
    values = LinearClass(np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 2)), 1.0)
    visits, total = np.zeros((4, 2)), 0.0
    for _ in range(50):
        uncertainty = values.uncertainty(visits)
        widest = np.unravel_index(uncertainty.argmax(), visits.shape)
        total += min(1.0, float(uncertainty[widest]) ** 2)
        visits[widest] += 1
    assert total <= values.eluder_dimension(50)


@pytest.mark.parametrize("radius", [0.3, 100.0])
def test_least_squares_in_the_ball_is_the_constrained_minimum(radius: float) -> None:
    rng = np.random.default_rng(0)
    eigenvalues, target = np.array([0.5, 1.0, 3.0]), rng.normal(size=3)
    found = ball_minimiser(eigenvalues, target, radius)
    checked = minimize(
        lambda w: float(w @ (eigenvalues * w) - 2 * w @ target),
        np.zeros(3),
        constraints=({"type": "ineq", "fun": lambda w: radius**2 - w @ w},),
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(found, checked.x, atol=1e-5)


def test_regressions_recover_the_truth_from_much_data() -> None:
    features = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 2))
    measures = np.random.default_rng(1).dirichlet(np.ones(4), size=3)
    counts, v = 1e6 * (features @ measures), np.array([1.0, -1.0, 0.5, 0.0])
    truth = features @ measures @ v
    np.testing.assert_allclose(LinearClass(features, 1.0).regression(counts)(v), truth, atol=1e-9)
    np.testing.assert_allclose(TabularClass(4, 2, 1.0).regression(counts)(v), truth, atol=1e-9)
    members = FiniteClass(np.stack([truth + 0.3, truth, -truth]), 1.0)
    np.testing.assert_allclose(members.regression(counts)(v), truth)

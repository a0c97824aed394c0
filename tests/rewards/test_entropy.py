"""The k-nearest-neighbour bonus: four points by hand, duplicates, hard numbers, and the definition."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import references
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import generator

from ilde.rewards import entropy
from ilde.rewards.base import Encoded
from ilde.rewards.entropy import CELLS, EntropyConfig, StateEntropy, kth_neighbor_distance

# A 3-4-5 triangle at the origin, and one point far off: 0 to 1 is 3, 0 to 2 is 4, 1 to 2 is 5, 0 to 3 is 10.
FOUR = torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0], [0.0, -10.0]])


@pytest.fixture(params=["tree", "products"], autouse=True, scope="module")
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Everything holds however candidates are sought."""
    usual, entropy.TREE_FEATURES = entropy.TREE_FEATURES, 10**6 if request.param == "tree" else 0
    yield request.param
    entropy.TREE_FEATURES = usual


def encoded(features: torch.Tensor) -> Encoded:
    batch = features.shape[:-1]
    never = torch.zeros(batch, dtype=torch.bool)
    return Encoded(features, torch.zeros(*batch, 1), features, never, torch.zeros(batch), never)


def term(seed: int = 0, **config: int) -> StateEntropy:
    return StateEntropy(EntropyConfig(**config), generator(seed))


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (1, [3.0, 3.0, 4.0, 10.0]),
        (2, [4.0, 5.0, 5.0, math.hypot(3, 10)]),
        (3, [10.0, math.hypot(3, 10), 14.0, 14.0]),
        (9, [10.0, math.hypot(3, 10), 14.0, 14.0]),
    ],
)
def test_the_kth_neighbour_of_four_points_by_hand(k: int, expected: list[float]) -> None:
    torch.testing.assert_close(kth_neighbor_distance(FOUR, FOUR, k), torch.tensor(expected))


def test_the_bonus_is_the_logarithm_of_one_plus_the_distance_in_the_batch_shape() -> None:
    bonus = term(num_neighbors=1)
    bonus.update(encoded(FOUR.view(2, 2, 2)))
    expected = [[math.log(4), math.log(4)], [math.log(5), math.log(11)]]
    torch.testing.assert_close(bonus.reward(encoded(FOUR.view(2, 2, 2))), torch.tensor(expected))


def test_a_state_outside_the_references_has_no_self_to_leave_out() -> None:
    query = torch.tensor([[0.0, 1.0]])
    assert float(kth_neighbor_distance(query, FOUR, 1)) == 1.0
    assert float(kth_neighbor_distance(query, FOUR, 2)) == 3.0


def test_a_duplicate_is_a_neighbour_at_distance_zero() -> None:
    twice = torch.cat([FOUR, FOUR[:1]])
    assert kth_neighbor_distance(twice, twice, 1).tolist() == [0.0, 3.0, 4.0, 10.0, 0.0]
    assert kth_neighbor_distance(twice, twice, 2)[0] == 3.0
    assert kth_neighbor_distance(torch.zeros(20, 4), torch.zeros(20, 4), 3).tolist() == [0.0] * 20


def test_near_duplicates_far_from_the_origin_keep_their_distances() -> None:
    # Spaced by 2^-10 around 1000: exact in float32, and lost altogether in |x|^2 - 2xy + |y|^2.
    line = torch.stack([1000 + torch.arange(40) / 1024, torch.full((40,), -1000.0)], 1)
    expected = references.kth_distance(line, line, 3)
    np.testing.assert_allclose(kth_neighbor_distance(line, line, 3).numpy(), expected, rtol=1e-4)
    assert expected.min() == 2 / 1024


def test_two_tight_clusters_at_the_edges_of_the_feature_space_keep_their_distances() -> None:
    # Both within the clipped feature space [-5, 5]; spread 0.001: the third neighbour came out up to 4 times too far.
    near = 0.001 * torch.randn(400, 3, generator=generator(0))
    points = torch.cat([near[:200] + 4.9, near[200:] - 4.9])
    expected = references.kth_distance(points, points, 3)
    np.testing.assert_allclose(kth_neighbor_distance(points, points, 3).numpy(), expected, rtol=1e-4)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-6), (torch.float32, 1e-4)])
@settings(max_examples=30, deadline=None)
@given(
    size=st.integers(2, 40),
    features=st.integers(1, 6),
    k=st.integers(1, 6),
    seed=st.integers(0, 2**20),
    offset=st.sampled_from([0.0, 1.0, 300.0]),
    grid=st.booleans(),
)
def test_the_bonus_equals_its_definition(
    dtype: torch.dtype, tolerance: float, size: int, features: int, k: int, seed: int, offset: float, grid: bool
) -> None:
    points = torch.randn(size, features, generator=generator(seed), dtype=dtype)
    # On a grid there are many duplicates and ties.
    points = (points.round() if grid else points) + offset
    bonus = term(num_neighbors=k)
    bonus.update(encoded(points.unsqueeze(1)))
    theirs = np.log1p(references.kth_distance(points, points, k))
    np.testing.assert_allclose(bonus.reward(encoded(points)).numpy(), theirs, rtol=tolerance, atol=tolerance)


def test_blocks_of_any_height_give_the_same_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    points = torch.randn(50, 3, generator=generator())
    whole = kth_neighbor_distance(points, points, 3)
    monkeypatch.setitem(CELLS, "cpu", 120)
    torch.testing.assert_close(kth_neighbor_distance(points, points, 3), whole)


def test_a_large_rollout_is_thinned_to_random_references_without_repeats() -> None:
    points = torch.arange(100.0).view(50, 2, 1)
    chosen = []
    for seed in (0, 0, 1):
        bonus = term(seed, max_references=10)
        bonus.update(encoded(points))
        assert bonus.references is not None
        chosen.append(bonus.references.flatten().tolist())
    assert len(set(chosen[0])) == 10
    assert chosen[0] == chosen[1] != chosen[2]


def test_before_the_first_rollout_it_says_what_it_needs() -> None:
    with pytest.raises(RuntimeError, match="needs a rollout first"):
        term().reward(encoded(FOUR))


def test_a_window_reaches_back_over_several_rollouts() -> None:
    bonus = term(window=5)
    for first in (0.0, 3.0, 6.0):
        bonus.update(encoded(first + torch.arange(3.0).view(3, 1, 1)))
    assert bonus.references is not None
    assert bonus.references.flatten().tolist() == [4.0, 5.0, 6.0, 7.0, 8.0]


def test_the_window_is_part_of_the_state() -> None:
    one, other = term(window=50, max_references=4), term(1, window=50, max_references=4)
    one.update(encoded(torch.randn(9, 2, 3, generator=generator(1))))
    other.load_state_dict(one.state_dict())
    query = encoded(torch.randn(256, 3, generator=generator(2)))
    for bonus in (one, other):
        bonus.update(encoded(torch.randn(9, 2, 3, generator=generator(3))))
    assert torch.equal(one.reward(query), other.reward(query))
    assert one.reward(query).shape == (256,)


@pytest.mark.parametrize("features", [1, 2, 11, 12, 13, 40])
def test_tree_and_products_lead_to_the_same_bits(features: int, monkeypatch: pytest.MonkeyPatch) -> None:
    points = torch.randn(300, features, generator=generator(features))
    points[100:140] = points[:40]
    distances = []
    for limit in (0, 10**6):
        monkeypatch.setattr(entropy, "TREE_FEATURES", limit)
        distances.append(kth_neighbor_distance(points[:200], points, 3))
    assert torch.equal(*distances)


def test_with_few_features_a_tree_is_asked_and_with_many_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    plant = entropy.cKDTree
    monkeypatch.setattr(entropy, "cKDTree", lambda points: asked.append(points.shape[1]) or plant(points))
    monkeypatch.setattr(entropy, "TREE_FEATURES", 12)
    for features in (11, 12, 13, 300):
        points = torch.randn(20, features, generator=generator())
        kth_neighbor_distance(points, points, 3)
    assert asked == [11, 12]


def test_what_is_not_finite_is_left_for_the_guard_to_name() -> None:
    points = torch.randn(20, 2, generator=generator())
    points[3, 1] = torch.nan
    assert not kth_neighbor_distance(points, points, 3).isfinite().all()

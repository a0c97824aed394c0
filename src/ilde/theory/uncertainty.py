"""Value classes F: their least squares, the generalised-Eluder uncertainty D_F, dim_T(F) and covering numbers.

With f_1, f_2 ranging over the class, D_F^2(z; D) is the largest (f_1(z) - f_2(z))^2 / (sum_D (f_1 - f_2)^2 + gamma).
For tabular and linear classes it has a closed form; for a finite class, such as nets with parameters on a grid, it is
found by search over all pairs. gamma is the square of the values' bound, as in the theorem: D_F has no unit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma

from ilde.theory.mdp import Array

Regression: TypeAlias = Callable[[Array], Array]
"""From next values (S,) to the least-squares f-hat (S, A)."""


class ValueClass(Protocol):
    """A class of functions of (s, a) with values in [-bound, bound]."""

    @property
    def bound(self) -> float:
        """The largest value."""

    def regression(self, counts: Array) -> Regression:
        """Least squares on transitions, given as their counts (S, A, S)."""

    def uncertainty(self, visits: Array) -> Array:
        """(S, A): D_F, not its square, after visits (S, A)."""

    def eluder_dimension(self, samples: int) -> float:
        """dim_T(F) for T samples."""

    def log_covering_number(self, radius: float) -> float:
        """The logarithm of the size of a sup-norm cover."""


@dataclass(frozen=True)
class TabularClass:
    """All functions of (s, a) into [-bound, bound]."""

    num_states: int
    num_actions: int
    bound: float

    def regression(self, counts: Array) -> Regression:
        """The mean next value of each pair; 0, the centre of the minimisers, where it was never visited."""
        means = counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1.0)
        return lambda next_value: means @ next_value

    def uncertainty(self, visits: Array) -> Array:
        """1 / sqrt(n + 1/4): two functions may differ by 2 * bound at one pair and agree everywhere else."""
        return 1.0 / np.sqrt(visits + 0.25)

    def eluder_dimension(self, samples: int) -> float:
        """Exact: the visits spread evenly, because the j-th visit of a pair adds less than the one before."""
        pairs = self.num_states * self.num_actions
        each, more = divmod(samples, pairs)
        return (pairs - more) * _capped_sum(each) + more * _capped_sum(each + 1)

    def log_covering_number(self, radius: float) -> float:
        """One grid of cells of width 2 * radius for each pair."""
        return self.num_states * self.num_actions * float(np.log(max(np.ceil(self.bound / radius), 1.0)))


def _capped_sum(visits: int) -> float:
    """The sum of min(1, 1 / (j + 1/4)) for j from 0 to visits - 1."""
    return min(visits, 1) + (float(digamma(visits + 0.25) - digamma(1.25)) if visits > 1 else 0.0)


@dataclass(frozen=True)
class LinearClass:
    """f = <features, w> with w in the l2 ball of radius sqrt(d) * bound: it realises every P V of a linear process."""

    features: Array
    """(S, A, d), of l2 norm at most 1."""
    bound: float

    @property
    def dimension(self) -> int:
        """d."""
        return int(self.features.shape[-1])

    @property
    def radius(self) -> float:
        """Of the ball of parameters."""
        return float(np.sqrt(self.dimension)) * self.bound

    def regression(self, counts: Array) -> Regression:
        """The least-squares parameters of least norm, or where these leave the ball, the best ones on its sphere."""
        flat = self.features.reshape(-1, self.dimension)
        eigenvalues, basis = np.linalg.eigh(flat.T @ (counts.sum(axis=-1).reshape(-1, 1) * flat))
        cross = basis.T @ flat.T @ counts.reshape(len(flat), -1)  # (d, S)
        turned = self.features @ basis
        return lambda next_value: turned @ ball_minimiser(eigenvalues, cross @ next_value, self.radius)

    def uncertainty(self, visits: Array) -> Array:
        """The elliptical norm: the supremum is attained where the parameters differ by twice the radius."""
        flat = self.features.reshape(-1, self.dimension)
        regularised = flat.T @ (visits.reshape(-1, 1) * flat) + np.eye(self.dimension) / (4 * self.dimension)
        squares = np.sum(flat * np.linalg.solve(regularised, flat.T).T, axis=-1)
        return np.asarray(np.sqrt(squares).reshape(visits.shape))

    def eluder_dimension(self, samples: int) -> float:
        """The elliptical-potential bound 2 d log(1 + 4 T): an upper bound, not the supremum."""
        return 2 * self.dimension * float(np.log1p(4 * samples))

    def log_covering_number(self, radius: float) -> float:
        """Of the ball of parameters in the l2 norm, which covers the functions in the sup norm."""
        return self.dimension * float(np.log1p(2 * self.radius / radius))


def ball_minimiser(eigenvalues: Array, target: Array, radius: float) -> Array:
    """argmin of w' diag(eigenvalues) w - 2 w' target over ||w|| <= radius; of several, the one of least norm."""
    seen = eigenvalues > 1e-10 * max(float(eigenvalues.max()), 1.0)
    w = np.where(seen, target, 0.0) / np.where(seen, eigenvalues, 1.0)
    if np.linalg.norm(w) <= radius:
        return w

    def excess(multiplier: float) -> float:
        return float(np.linalg.norm(target / (eigenvalues + multiplier)) - radius)

    # On the sphere the minimiser is a ridge solution whose multiplier lies below ||target|| / radius.
    multiplier = brentq(excess, 1e-12, float(np.linalg.norm(target)) / radius + 1e-9)
    return np.asarray(target / (eigenvalues + multiplier))


@dataclass(frozen=True)
class FiniteClass:
    """Finitely many functions, searched pair by pair."""

    values: Array
    """(F, S, A)."""
    bound: float

    def regression(self, counts: Array) -> Regression:
        """The member with the least squared error."""
        visits = counts.sum(axis=-1)
        squares = np.einsum("sa,fsa->f", visits, self.values**2)

        def predict(next_value: Array) -> Array:
            losses = squares - 2 * np.einsum("sa,fsa->f", counts @ next_value, self.values)
            return np.asarray(self.values[losses.argmin()])

        return predict

    def uncertainty(self, visits: Array) -> Array:
        """By search over all pairs of members."""
        flat = self.values.reshape(len(self.values), -1)
        largest = np.zeros(flat.shape[1])
        for first in range(len(flat) - 1):
            squares = (flat[first + 1 :] - flat[first]) ** 2
            largest = np.maximum(largest, (squares / (squares @ visits.ravel() + self.bound**2)[:, None]).max(axis=0))
        return np.sqrt(largest).reshape(visits.shape)

    def eluder_dimension(self, samples: int) -> float:
        """Of the greedy sequence, which asks each time where the class is least certain: a lower bound."""
        visits = np.zeros(self.values.shape[1:])
        total = 0.0
        for _ in range(samples):
            uncertainty = self.uncertainty(visits)
            widest = np.unravel_index(uncertainty.argmax(), visits.shape)
            total += min(1.0, float(uncertainty[widest]) ** 2)
            visits[widest] += 1
        return total

    def log_covering_number(self, radius: float) -> float:
        """Of the greedy cover: an upper bound."""
        left = self.values.reshape(len(self.values), -1)
        size = 0
        while len(left):
            left = left[np.abs(left - left[0]).max(axis=1) > radius]
            size += 1
        return float(np.log(size))


def net_class(inputs: Array, weights: Array, bound: float) -> FiniteClass:
    """One hidden layer of two tanh units, bound * tanh(w.x) mixed with bound * tanh(v.x); both vectors from a grid.

    Args:
        inputs: (S, A, dimensions).
        weights: (G, dimensions), the grid of weight vectors.
    """
    units = bound * np.tanh(np.einsum("sad,gd->gsa", inputs, weights))
    first, second = np.triu_indices(len(weights))
    return FiniteClass(0.5 * (units[first] + units[second]), bound)

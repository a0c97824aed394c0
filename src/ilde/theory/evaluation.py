"""Algorithm 2: optimistic policy evaluation (OPE)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ilde.theory.mdp import Array, Mdp, Trajectories
from ilde.theory.uncertainty import Regression, ValueClass


@dataclass(frozen=True)
class SplitData:
    """Line 1: the trajectories in H disjoint parts; step h is learned from the h-th part alone."""

    regressions: tuple[Regression, ...]
    uncertainty: Array
    """(H, S, A): D_F."""

    @classmethod
    def of(cls, mdp: Mdp, values: ValueClass, data: Trajectories) -> SplitData:
        """Count each part's transitions; the count is all that least squares and D_F need."""
        part = len(data) // mdp.horizon
        shape = mdp.kernel.shape[1:]
        regressions, uncertainties = [], []
        for h in range(mdp.horizon):
            own = slice(h * part, (h + 1) * part)
            cells = (data.states[own, h], data.actions[own, h], data.states[own, h + 1])
            counts = np.bincount(np.ravel_multi_index(cells, shape), minlength=int(np.prod(shape)))
            transitions = counts.astype(np.float64).reshape(shape)
            regressions.append(values.regression(transitions))
            uncertainties.append(values.uncertainty(transitions.sum(axis=-1)))
        return cls(tuple(regressions), np.stack(uncertainties))


def optimistic_evaluation(
    policy: Array, data: SplitData, reward: Array, bonus_constant: float, step_bound: float
) -> Array:
    """Q (H, S, A) of a policy, no smaller than the truth wherever the bonus covers the regression's error.

    Args:
        reward: (H, S, A), r + lambda L.
        bonus_constant: c; the bonus is c times D_F times the largest value of the step after.
        step_bound: the largest |r + lambda L|. The paper clips at H, which is below the truth once this exceeds 1;
            with i steps left no policy earns more than i times this, and clipping there keeps optimism.
    """
    horizon = len(policy)
    q = np.empty_like(policy)
    v = np.zeros(policy.shape[1])
    for h in reversed(range(horizon)):
        left = (horizon - h) * step_bound
        bonus = bonus_constant * (left - step_bound) * data.uncertainty[h]
        q[h] = np.clip(data.regressions[h](v) + reward[h] + bonus, -left, left)
        v = np.sum(policy[h] * q[h], axis=-1)
    return q

"""The intrinsic reward: how far a transition model fitted to the demonstrations is from the truth, exactly.

The paper's fit minimises sum_j E_{x ~ P(. | s_j, a_j)} L(x, s'_j), which is linear in P: a minimiser is a point mass.
So the fitted model is a predicted successor for each pair, and L(s, a) is its expected distance to the true successor.
The distance is the squared one between positions, capped at 1: between different states of a grid it is 1.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from ilde.theory.mdp import Array, Indices, Mdp, Trajectories

ModelClass: TypeAlias = Literal["tabular", "displacement"]
UNKNOWN = -1


def distances(mdp: Mdp) -> Array:
    """(S, S): the capped squared distance of each pair of states."""
    difference = mdp.positions[:, None, :] - mdp.positions[None, :, :]
    return np.asarray(np.minimum(1.0, np.sum(difference**2, axis=-1)))


def fit_transitions(mdp: Mdp, demos: Trajectories, model: ModelClass) -> Indices:
    """(S, A): the predicted successor; UNKNOWN where the demonstrations leave every prediction equally good."""
    s, a, t = demos.states[:, :-1].ravel(), demos.actions.ravel(), demos.states[:, 1:].ravel()
    counts = np.zeros((mdp.num_states, mdp.num_actions, mdp.num_states))
    np.add.at(counts, (s, a, t), 1.0)
    if model == "tabular":
        losses = counts @ distances(mdp)  # (s, a, prediction)
        return np.where(counts.any(axis=-1), losses.argmin(axis=-1), UNKNOWN)
    return _fit_displacements(mdp, counts)


def _fit_displacements(mdp: Mdp, counts: Array) -> Indices:
    """One displacement for each action, shared by all states: the model that generalises along a corridor."""
    between = mdp.positions[None, :, :] - mdp.positions[:, None, :]
    offsets = np.unique(between.reshape(-1, mdp.positions.shape[1]), axis=0)
    # Of equally good displacements the first wins: let it be the smallest.
    offsets = offsets[np.argsort(np.sum(offsets**2, axis=-1), kind="stable")]
    moved = mdp.positions[None, :, :] + offsets[:, None, :]  # (offset, s, dimensions)
    gaps = np.sum((moved[:, :, None, :] - mdp.positions[None, None, :, :]) ** 2, axis=-1)
    predicted = gaps.argmin(axis=-1)  # (offset, s): beyond the border, the nearest state
    losses = np.einsum("sat,ost->oa", counts, distances(mdp)[predicted])
    known = counts.any(axis=(0, 2))
    return np.where(known, predicted[losses.argmin(axis=0)].T, UNKNOWN)


def intrinsic_reward(mdp: Mdp, predicted: Indices) -> Array:
    """(H, S, A): the expected distance of the predicted to the true successor; 1, the most, where unknown."""
    rows = distances(mdp)[np.maximum(predicted, 0)]  # (S, A, S)
    expected = np.einsum("hsat,sat->hsa", mdp.kernel, rows)
    return np.where(predicted == UNKNOWN, 1.0, expected)

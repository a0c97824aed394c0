"""The decision processes of the study: a chain with a rarely reached end, a grid, random ones, and linear ones."""

from __future__ import annotations

import numpy as np

from ilde.theory.mdp import Array, Mdp, one_hot_features


def random_mdp(num_states: int, num_actions: int, horizon: int, concentration: float, rng: np.random.Generator) -> Mdp:
    """Every successor distribution is drawn from a Dirichlet law; small concentrations are nearly deterministic."""
    rows = rng.dirichlet(np.full(num_states, concentration), size=(num_states, num_actions))
    return _stationary(rows, horizon, np.eye(num_states), one_hot_features(num_states, num_actions))


def chain_mdp(corridor: int, room: int, num_actions: int, horizon: int, slip: float) -> Mdp:
    """A corridor, and at its far end a room where every step is a toss-up.

    The last action climbs one cell, the others lose 1, 2, ... cells; with probability `slip` another action happens.
    The corridor's dynamics are alike everywhere, so a model of displacements learns them from any part of it: only the
    room stays unpredictable, and only a long run of the one right action reaches it.
    """
    size = corridor + room
    moves = [-1 - a for a in range(num_actions - 1)] + [1]
    chances = np.where(np.eye(num_actions, dtype=bool), 1 - slip, slip / (num_actions - 1))
    rows = np.zeros((size, num_actions, size))
    for s in range(corridor):
        for b, move in enumerate(moves):
            rows[s, :, max(s + move, 0)] += chances[:, b]
    rows[corridor:, :, corridor:] = 1.0 / room
    return _stationary(rows, horizon, np.arange(size, dtype=float)[:, None], one_hot_features(size, num_actions))


def grid_mdp(side: int, room: int, horizon: int, slip: float) -> Mdp:
    """A square walked in four directions from one corner; in the room at the other corner every step is a toss-up."""
    cells = np.array([(x, y) for x in range(side) for y in range(side)])
    index = {tuple(cell): s for s, cell in enumerate(cells.tolist())}
    noisy = [s for s, cell in enumerate(cells) if cell.min() >= side - room]
    moves = np.array([(1, 0), (-1, 0), (0, 1), (0, -1)])
    rows = np.zeros((len(cells), len(moves), len(cells)))
    for s, cell in enumerate(cells):
        targets = [index[tuple(np.clip(cell + move, 0, side - 1).tolist())] for move in moves]
        for a in range(len(moves)):
            for b, target in enumerate(targets):
                rows[s, a, target] += 1 - slip if a == b else slip / (len(moves) - 1)
    rows[noisy] = 0.0
    rows[np.ix_(noisy, range(len(moves)), noisy)] = 1.0 / len(noisy)
    return _stationary(rows, horizon, cells.astype(float), one_hot_features(len(cells), len(moves)))


def linear_mdp(num_states: int, num_actions: int, dimension: int, horizon: int, rng: np.random.Generator) -> Mdp:
    """Successors are a mixture of `dimension` laws with the features as weights: P(s' | s, a) = phi . psi(s')."""
    features = rng.dirichlet(np.full(dimension, 0.3), size=(num_states, num_actions))
    measures = rng.dirichlet(np.full(num_states, 0.3), size=dimension)
    return _stationary(features @ measures, horizon, np.eye(num_states), features)


def _stationary(rows: Array, horizon: int, positions: Array, features: Array) -> Mdp:
    return Mdp(np.broadcast_to(rows, (horizon, *rows.shape)).copy(), 0, positions, features)

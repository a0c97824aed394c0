"""What policies do, whatever they score: how much of the space each reaches, and how well its states can be told from
a demonstrator's.

Both are measured on states that were held out: a policy never covers a state because it is its own, and a
classifier is judged on states it was not fitted to. Left out: images, where neither means much without features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from ilde.nets.layers import linear, mlp, orthogonal
from ilde.nets.policy import SQRT2
from ilde.randomness import numpy_generator, torch_generator

States: TypeAlias = NDArray[np.float64]
"""One row for each state."""

AGAIN = 0.99
"""The part of its own states that every visitor comes back to within the radius."""
EDGES = (0.01, 0.99)
"""Quantiles of a visitor's states between which a feature is said to be visited."""
FITTING_STEPS = 500
BATCH = 128
WIDTH = 64


def coverage(visited: Mapping[str, States], seed: int) -> dict[str, float]:
    """For each visitor, the part of the space visited by any of them that it reaches.

    Everybody puts half of its states into the pool, equally many, and reaches with the other half. What is counted is a
    net over the pool, whose points lie more than one radius apart: a place counts once, however many crowd there.
    """
    widths = _widths(list(visited.values()))
    halves = {name: _halves(states / widths, seed, name) for name, states in visited.items()}
    fewest = min(len(shown) for shown, _ in halves.values())
    trees = {name: cKDTree(kept[:fewest]) for name, (_, kept) in halves.items()}
    own = [trees[name].query(shown[:fewest])[0] for name, (shown, _) in halves.items()]
    radius = max(float(np.quantile(distances, AGAIN)) for distances in own)
    pool = np.concatenate([shown[:fewest] for shown, _ in halves.values()])
    net = _net(pool[numpy_generator(seed, "behaviour-net").permutation(len(pool))], radius)
    return {name: float(np.mean(tree.query(net)[0] <= radius)) for name, tree in trees.items()}


def _widths(visitors: Sequence[States]) -> States:
    """How wide each feature was visited by all together; quantiles of each, so that no crowd has a larger say."""
    edges = np.array([np.quantile(states, EDGES, axis=0) for states in visitors])
    widths: States = edges[:, 1].max(0) - edges[:, 0].min(0)
    return np.where(widths > 0, widths, 1.0)


def _net(states: States, radius: float) -> States:
    """Some of the states, no two within the radius of each other and no other state beyond it."""
    tree, free, net = cKDTree(states), np.ones(len(states), bool), []
    for number, state in enumerate(states):
        if free[number]:
            net.append(state)
            free[tree.query_ball_point(state, radius)] = False
    return np.array(net)


def discriminator_gap(visited: States, shown: States, seed: int) -> float:
    """How well a new classifier tells the two apart: 0 not at all, 1 always (twice its balanced accuracy, less one).

    It estimates from below the total variation between the two distributions of states.
    """
    halves = [_halves(states, seed, name) for name, states in (("visited", visited), ("shown", shown))]
    fitted = [torch.from_numpy(first).float() for first, _ in halves]
    judged = [torch.from_numpy(second).float() for _, second in halves]
    together = torch.cat(fitted)
    mean, spread = together.mean(0), together.std(0) + 1e-8
    classifier = _classifier([(states - mean) / spread for states in fitted], seed)
    with torch.no_grad():
        right = [
            ((classifier((states - mean) / spread).squeeze(-1) > 0) == bool(label)).float().mean()
            for label, states in enumerate(judged)
        ]
    return max(0.0, float(sum(right)) - 1.0)


def _halves(states: States, seed: int, name: str) -> tuple[States, States]:
    """The states in a random order, cut in the middle."""
    order = numpy_generator(seed, f"behaviour-{name}").permutation(len(states))
    middle = len(states) // 2
    return states[order[:middle]], states[order[middle:]]


def _classifier(groups: list[torch.Tensor], seed: int) -> nn.Module:
    """A small network whose sign says which group a state is of; each batch holds as many of either."""
    generator = torch_generator(seed, "behaviour-classifier")
    net = mlp((groups[0].shape[1], WIDTH, WIDTH), nn.ReLU, orthogonal(SQRT2), generator)
    net.append(linear(WIDTH, 1, orthogonal(1.0), generator))
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-4)
    label = torch.arange(2.0).repeat_interleave(BATCH)
    for _ in range(FITTING_STEPS):
        rows = [states[torch.randint(len(states), (BATCH,), generator=generator)] for states in groups]
        loss = binary_cross_entropy_with_logits(net(torch.cat(rows)).squeeze(-1), label)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return net

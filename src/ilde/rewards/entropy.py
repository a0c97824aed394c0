"""The state-entropy bonus: b(s) = log(1 + distance to the k-th nearest other state of the rollout)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from scipy.spatial import cKDTree
from torch import Tensor

from ilde.data import Metrics
from ilde.rewards.base import Encoded

SPARE = 5
"""Candidates beyond k whose exact distances are compared: the matrix form only ranks roughly."""
CELLS = {"cpu": 2**24, "cuda": 2**26}
"""Largest block of the distance matrix, and of gathered candidates, held at once; a GPU wants few large ones."""

TREE_FEATURES = 12
"""Features up to which a CPU seeks candidates in a tree: with few it looks at few states, with many at nearly all."""


@dataclass(frozen=True)
class EntropyConfig:
    """The term `entropy`."""

    num_neighbors: int = 3
    """k of the paper, which does not give it; the state itself does not count."""
    max_references: int = 4096
    """References drawn from a larger rollout; a rollout up to this size is used whole."""
    window: int = 0
    """Latest states the references are drawn from, over as many rollouts as it takes; 0 takes the latest rollout's."""


Seek: TypeAlias = Callable[[Tensor], Tensor]
"""Indices (B, C) of the references nearest to each query (B, F), roughly in order."""


def kth_neighbor_distance(query: Tensor, references: Tensor, k: int) -> Tensor:
    """Distance (Q,) from each query (Q, F) to its k-th nearest reference (R, F), one exact match counting as itself.

    Candidates are sought first, in whichever way is faster; their distances are then taken as norms of differences.
    """
    num_candidates = min(k + 1 + SPARE, len(references))
    rows = max(1, CELLS[query.device.type] // max(len(references), num_candidates * references.shape[1]))
    seek = (_in_a_tree if _suits_a_tree(query, references) else _by_products)(references, num_candidates)
    distances = []
    for block in query.split(rows):
        nearest = (references[seek(block)] - block.unsqueeze(1)).norm(dim=-1).sort(-1).values
        own = (nearest[:, :1] == 0).long()
        rank = (own + (k - 1)).clamp(max=num_candidates - 1)
        distances.append(nearest.gather(1, rank).squeeze(1))
    return torch.cat(distances)


def _by_products(references: Tensor, count: int) -> Seek:
    """By the matrix form; it loses digits for near-duplicates far from the origin: so around the mean, in float64."""
    centre = references.double().mean(0)
    centred = references.double() - centre
    squares = centred.square().sum(-1)

    def seek(block: Tensor) -> Tensor:
        score = squares - 2.0 * ((block.double() - centre) @ centred.T)
        return score.topk(count, largest=False).indices

    return seek


def _in_a_tree(references: Tensor, count: int) -> Seek:
    tree = cKDTree(references.numpy())

    def seek(block: Tensor) -> Tensor:
        _, indices = tree.query(block.numpy(), k=count, workers=torch.get_num_threads())
        return torch.from_numpy(indices).view(len(block), count)

    return seek


def _suits_a_tree(query: Tensor, references: Tensor) -> bool:
    few = query.device.type == "cpu" and references.shape[1] <= TREE_FEATURES
    return few and bool(query.isfinite().all() and references.isfinite().all())


class StateEntropy:
    """The term `entropy`; its references are states of the latest rollout, or of the latest few."""

    episodic = False

    def __init__(self, config: EntropyConfig, generator: torch.Generator) -> None:
        self.config, self.generator = config, generator
        self.references: Tensor | None = None
        self._seen: Tensor | None = None

    def fit(self, demos: Encoded) -> Metrics:
        """Nothing to learn from demonstrations."""
        return {}

    def update(self, rollout: Encoded) -> Metrics:
        """Take the rollout's states as references, beside earlier ones within the window."""
        states = rollout.features.flatten(0, rollout.terminated.ndim - 1)
        if self.config.window:
            known = [states] if self._seen is None else [self._seen.to(states.device), states]
            states = self._seen = torch.cat(known)[-self.config.window :]
        if len(states) > self.config.max_references:
            drawn = torch.randperm(len(states), generator=self.generator)[: self.config.max_references]
            states = states[drawn.to(states.device)]
        self.references = states
        return {}

    @torch.no_grad()
    def reward(self, batch: Encoded) -> Tensor:
        """log(1 + distance) of each state."""
        if self.references is None:
            raise RuntimeError("the entropy bonus needs a rollout first")
        query = batch.features.flatten(0, batch.terminated.ndim - 1)
        distance = kth_neighbor_distance(query, self.references, self.config.num_neighbors)
        return distance.log1p().view(batch.terminated.shape)

    def state_dict(self) -> dict[str, Any]:
        """Randomness and window; the references are taken anew from every rollout before they are used."""
        return {"generator": self.generator.get_state(), "seen": self._seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.generator.set_state(state["generator"])
        self._seen = state["seen"]

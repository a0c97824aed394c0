"""The state-entropy bonus: b(s) = log(1 + distance to the k-th nearest other state of the rollout)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ilde.data import Metrics
from ilde.rewards.base import Encoded

SPARE = 5
"""Candidates beyond k whose exact distances are compared: the matrix form only ranks roughly."""
CELLS = {"cpu": 2**24, "cuda": 2**26}
"""Largest block of the distance matrix, and of gathered candidates, held at once; a GPU wants few large ones."""


@dataclass(frozen=True)
class EntropyConfig:
    """The term `entropy`."""

    num_neighbors: int = 3
    """k of the paper, which does not give it; the state itself does not count."""
    max_references: int = 4096
    """References drawn from a larger rollout; a rollout up to this size is used whole."""
    window: int = 0
    """Latest states the references are drawn from, over as many rollouts as it takes; 0 takes the latest rollout's."""


def kth_neighbor_distance(query: Tensor, references: Tensor, k: int) -> Tensor:
    """Distance (Q,) from each query (Q, F) to its k-th nearest reference (R, F), one exact match counting as itself.

    The matrix form loses digits for near-duplicates far from the origin, so it only picks candidates, around the mean
    and in float64; their distances are then taken as norms of differences.
    """
    centre = references.double().mean(0)
    centred = references.double() - centre
    squares = centred.square().sum(-1)
    num_candidates = min(k + 1 + SPARE, len(references))
    rows = max(1, CELLS[query.device.type] // max(len(references), num_candidates * references.shape[1]))
    distances = []
    for block in query.split(rows):
        score = squares - 2.0 * ((block.double() - centre) @ centred.T)
        candidate = score.topk(num_candidates, largest=False).indices
        nearest = (references[candidate] - block.unsqueeze(1)).norm(dim=-1).sort(-1).values
        own = (nearest[:, :1] == 0).long()
        rank = (own + (k - 1)).clamp(max=num_candidates - 1)
        distances.append(nearest.gather(1, rank).squeeze(1))
    return torch.cat(distances)


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

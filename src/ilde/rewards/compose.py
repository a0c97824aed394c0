"""The reward a learner maximises: a weighted sum of terms, each on its own scale.

total = sum_i weight_i * term_i / scale_i, divided by the total's own scale; features are computed once for all terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from ilde.data import Metrics, Rollout, Transitions
from ilde.nets.features import FeatureSpace
from ilde.rewards.base import ActionCode, FollowsEpisodes, RewardModel, encode, read_numbers
from ilde.rewards.expression import TermName
from ilde.rewards.scaling import ReturnScale


@dataclass(frozen=True)
class ScaleConfig:
    """How terms are brought on one footing before they are weighted and summed."""

    terms: Literal["all", "exploration", "novelty", "none"] = "exploration"
    """Which terms are divided by the spread of their own return: all, all but the imitation terms, all but these and
    the true reward, or none."""
    total: bool = True
    """Divide the sum by the spread of its return, so that the clipped critic can follow."""
    window: float = 1e6
    """Samples the spreads remember."""
    discount: float = 0.99
    """Of the returns whose spread is taken."""


@dataclass(frozen=True)
class ScaledTerm:
    """One summand: its model, its weight, and the spread it is divided by (None: taken as it is)."""

    model: RewardModel
    weight: float
    scale: ReturnScale | None


class RewardMix:
    """A reward expression at work."""

    def __init__(
        self,
        terms: dict[TermName, ScaledTerm],
        space: FeatureSpace | None,
        code: ActionCode,
        total_scale: ReturnScale | None,
    ) -> None:
        self.terms, self.space, self.code, self.total_scale = terms, space, code, total_scale
        self._latest: tuple[Transitions, Tensor] | None = None

    @property
    def episodic(self) -> list[TermName]:
        """The terms that need whole episodes in time order, so that no replayed batch can be judged."""
        return [name for name, term in self.terms.items() if term.model.episodic]

    def fit(self, demos: Transitions | None, background: Transitions) -> Metrics:
        """Set the feature space from a random policy's states and the demonstrations, then let each term learn."""
        observations = [background.obs] if demos is None else [background.obs, demos.obs, demos.next_obs]
        if self.space is not None:
            self.space.fit(*observations)
        metrics: Metrics = {}
        if demos is not None:
            encoded = encode(demos, self.space, self.code)
            for term in self.terms.values():
                metrics |= term.model.fit(encoded)
        return metrics

    def update(self, rollout: Rollout) -> Metrics:
        """Let the terms learn from a rollout, then move the scales."""
        encoded = encode(rollout.transitions, self.space, self.code, rollout.ended)
        metrics: Metrics = {}
        numbers: dict[str, Tensor] = {}
        total = torch.zeros_like(rollout.value)
        for name, term in self.terms.items():
            metrics |= term.model.update(encoded)
            raw = term.model.reward(encoded)
            if term.scale is not None:
                term.scale.update(raw, rollout.ended)
            share = _weighted(raw, term)
            total = total + share
            numbers |= {f"reward/{name}": share.mean(), f"reward/{name}_raw": raw.mean()}
            numbers |= {f"reward/{name}_std": share.std()}
        if self.total_scale is not None:
            self.total_scale.update(total, rollout.ended)
        total = self._scaled(total)
        self._latest = (rollout.transitions, total)
        numbers["reward/total"] = total.mean()
        return metrics | read_numbers(numbers)

    def reward(self, transitions: Transitions) -> Tensor:
        """The reward of each transition; the latest rollout's is remembered, since `update` had to compute it."""
        if self._latest is not None and transitions is self._latest[0]:
            return self._latest[1]
        shares = self.breakdown(transitions)
        return self._scaled(torch.stack(list(shares.values())).sum(0))

    def breakdown(self, transitions: Transitions) -> dict[TermName, Tensor]:
        """Each term's weighted share, before the total's scale."""
        encoded = encode(transitions, self.space, self.code)
        return {name: _weighted(term.model.reward(encoded), term) for name, term in self.terms.items()}

    def _scaled(self, total: Tensor) -> Tensor:
        return total if self.total_scale is None else total / self.total_scale.divisor

    def state_dict(self) -> dict[str, Any]:
        """Feature space, terms and scales."""
        return {
            "space": None if self.space is None else self.space.state_dict(),
            "terms": {name: term.model.state_dict() for name, term in self.terms.items()},
            "scales": {name: t.scale.state_dict() for name, t in self.terms.items() if t.scale is not None},
            "total_scale": None if self.total_scale is None else self.total_scale.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self._latest = None
        if self.space is not None:
            self.space.load_state_dict(state["space"])
        for name, term in self.terms.items():
            term.model.load_state_dict(state["terms"][name])
            if term.scale is not None:
                term.scale.load_state_dict(state["scales"][name])
        if self.total_scale is not None:
            self.total_scale.load_state_dict(state["total_scale"])

    def begin_episodes(self) -> None:
        """Forget the open episodes, where they could not be taken up again."""
        for part in (self.total_scale, *(p for term in self.terms.values() for p in (term.model, term.scale))):
            if isinstance(part, FollowsEpisodes):
                part.begin_episodes()


def _weighted(raw: Tensor, term: ScaledTerm) -> Tensor:
    return raw * term.weight if term.scale is None else raw * (term.weight / term.scale.divisor)

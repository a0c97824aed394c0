"""The reward player: a class of linear rewards, its projection, and the gradient of the empirical imitation loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ilde.theory.mdp import Array, Indices, Mdp, Trajectories

Shape: TypeAlias = Literal["box", "ball"]
Weighting: TypeAlias = Literal["trajectory", "decision"]


@dataclass(frozen=True)
class RewardClass:
    """r(s, a) = <features(s, a), theta> with theta in the box [-1, 1]^d or in the unit l2 ball: a symmetric class."""

    features: Array
    """(S, A, d), of l1 norm (box) or l2 norm (ball) at most 1, so that |r| <= 1."""
    shape: Shape = "box"

    @property
    def dimension(self) -> int:
        """d."""
        return int(self.features.shape[-1])

    @property
    def diameter(self) -> float:
        """The largest l2 distance of two parameters; the paper assumes O(1), for the box it grows with sqrt(d)."""
        return 2.0 * self.dimension**0.5 if self.shape == "box" else 2.0

    def reward(self, theta: Array) -> Array:
        """(S, A)."""
        return self.features @ theta

    def project(self, theta: Array) -> Array:
        """The nearest parameters of the class."""
        if self.shape == "box":
            return np.clip(theta, -1.0, 1.0)
        return theta / max(1.0, float(np.linalg.norm(theta)))

    def support(self, direction: Array) -> float:
        """max over the class of <theta, direction>: the l1 or the l2 norm."""
        return float(np.linalg.norm(direction, ord=1 if self.shape == "box" else 2))

    def best(self, direction: Array) -> Array:
        """Parameters that attain `support`."""
        if self.shape == "box":
            return np.sign(direction)
        return direction / max(float(np.linalg.norm(direction)), 1e-300)

    def expectation(self, occupancy: Array) -> Array:
        """(..., d): the expected sum of features of occupancies (..., H, S, A), so that J(pi, r) = <theta, this>."""
        return np.asarray(np.tensordot(occupancy.sum(axis=-3), self.features, axes=2))


def demo_expectation(rewards: RewardClass, demos: Trajectories) -> Array:
    """The mean sum of features of demonstrations: the expert's half of the gradient."""
    return np.asarray(rewards.features[demos.states[:, :-1], demos.actions].sum(axis=1).mean(axis=0))


@dataclass(frozen=True)
class WeightedFeatures:
    """The learner's half of the gradient of L-hat, from trajectories of another policy than the present one."""

    rewards: RewardClass
    cells: Indices
    """(N, H): the flat index of each visited (h, s, a)."""
    weighting: Weighting

    @classmethod
    def of(cls, mdp: Mdp, rewards: RewardClass, data: Trajectories, weighting: Weighting) -> WeightedFeatures:
        """Index the visited cells once; every later policy only looks them up."""
        steps = np.arange(mdp.horizon)
        cells = (steps * mdp.num_states + data.states[:, :-1]) * mdp.num_actions + data.actions
        return cls(rewards, cells, weighting)

    def ratios(self, log_policy: Array, log_behaviour: Array) -> Array:
        """(N, H): the weight of each step: the ratio of its whole trajectory, or of its own past only.

        One product per trajectory, inside the sum over trajectories; the paper's display has it outside.
        """
        past = np.asarray(np.multiply.accumulate(np.exp(log_policy - log_behaviour).ravel()[self.cells], axis=1))
        return past if self.weighting == "decision" else np.broadcast_to(past[:, -1:], past.shape)

    def expectation(self, log_policy: Array, log_behaviour: Array) -> Array:
        """(d,): the importance-weighted mean sum of features; unbiased for a policy that did not see the data."""
        pairs = self.rewards.features.shape[0] * self.rewards.features.shape[1]
        weights = self.ratios(log_policy, log_behaviour)
        visits = np.bincount((self.cells % pairs).ravel(), weights.ravel(), minlength=pairs) / len(self.cells)
        return visits @ self.rewards.features.reshape(pairs, -1)

"""Finite-horizon decision processes that are small enough for exact answers: occupancies, values, optimal policies.

A policy is an array (H, S, A) of action probabilities, a reward an array that broadcasts to (H, S, A). Policies may
carry leading batch dimensions in `occupancy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Mdp:
    """Known dynamics without a reward; every episode starts in one state, as in the paper."""

    kernel: Array
    """(H, S, A, S): the probability of each successor."""
    start: int
    positions: Array
    """(S, dimensions): where each state lies; the curiosity measures distances between states here."""
    features: Array
    """(S, A, d): what rewards, and in a linear process values, are linear in; one-hot in a tabular one."""

    @property
    def horizon(self) -> int:
        """H."""
        return int(self.kernel.shape[0])

    @property
    def num_states(self) -> int:
        """S."""
        return int(self.kernel.shape[1])

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.kernel.shape[2])

    @cached_property
    def thresholds(self) -> Array:
        """(H, S * A * S): the cumulative probabilities of each row, shifted by the row's number; see `draw`."""
        rows = self.kernel.reshape(self.horizon, -1, self.num_states)
        return np.stack([cumulative_rows(step) for step in rows])


@dataclass(frozen=True)
class Trajectories:
    """Whole episodes of one policy."""

    states: Indices
    """(N, H + 1), the state after the last action included."""
    actions: Indices
    """(N, H)."""

    def __len__(self) -> int:
        return len(self.actions)


def one_hot_features(num_states: int, num_actions: int) -> Array:
    """(S, A, S * A): each pair is its own feature."""
    pairs = num_states * num_actions
    return np.eye(pairs).reshape(num_states, num_actions, pairs)


def state_features(num_states: int, num_actions: int) -> Array:
    """(S, A, S): each state is a feature, whatever the action."""
    return np.broadcast_to(np.eye(num_states)[:, None, :], (num_states, num_actions, num_states)).copy()


def uniform_policy(mdp: Mdp) -> Array:
    """Every action alike."""
    return np.full((mdp.horizon, mdp.num_states, mdp.num_actions), 1.0 / mdp.num_actions)


def occupancy(mdp: Mdp, policy: Array) -> Array:
    """(..., H, S, A): the probability of being at (s, a) at step h under a policy (..., H, S, A)."""
    result = np.empty_like(policy)
    state = np.zeros((*policy.shape[:-3], mdp.num_states))
    state[..., mdp.start] = 1.0
    for h in range(mdp.horizon):
        result[..., h, :, :] = state[..., None] * policy[..., h, :, :]
        flat = result[..., h, :, :].reshape(*policy.shape[:-3], -1)
        state = flat @ mdp.kernel[h].reshape(-1, mdp.num_states)
    return result


def evaluate(mdp: Mdp, policy: Array, reward: Array) -> tuple[Array, Array]:
    """The true Q (H, S, A) and V (H + 1, S) of a policy, by backward induction."""
    q = np.empty_like(policy)
    v = np.zeros((mdp.horizon + 1, mdp.num_states))
    rewards = np.broadcast_to(reward, policy.shape)
    for h in reversed(range(mdp.horizon)):
        q[h] = rewards[h] + mdp.kernel[h] @ v[h + 1]
        v[h] = np.sum(policy[h] * q[h], axis=-1)
    return q, v


def optimal_policy(mdp: Mdp, reward: Array, temperature: float = 0.0) -> Array:
    """The best policy for a reward; with a temperature, the best one for reward plus temperature times entropy."""
    policy = uniform_policy(mdp)
    rewards = np.broadcast_to(reward, policy.shape)
    v = np.zeros(mdp.num_states)
    for h in reversed(range(mdp.horizon)):
        q = rewards[h] + mdp.kernel[h] @ v
        if temperature > 0:
            policy[h] = softmax(q / temperature, axis=-1)
            v = temperature * logsumexp(q / temperature, axis=-1)
        else:
            policy[h] = np.eye(mdp.num_actions)[q.argmax(axis=-1)]
            v = q.max(axis=-1)
    return policy


def cumulative_rows(rows: Array) -> Array:
    """The cumulative sums of each row plus the row's number, end to end: one ascending array for all rows."""
    sums = np.cumsum(rows, axis=-1)
    sums[:, -1] = 1.0  # against a last sum a rounding error below 1
    return (sums + np.arange(len(rows))[:, None]).ravel()


def draw(thresholds: Array, row: Indices, width: int, rng: np.random.Generator) -> Indices:
    """One column of each named row, by its probabilities."""
    found = np.searchsorted(thresholds, row + rng.random(len(row)), side="right")
    return np.asarray(np.minimum(found - row * width, width - 1))


def sample(mdp: Mdp, policy: Array, episodes: int, rng: np.random.Generator) -> Trajectories:
    """Play whole episodes with one policy."""
    states = np.empty((episodes, mdp.horizon + 1), dtype=np.int64)
    actions = np.empty((episodes, mdp.horizon), dtype=np.int64)
    states[:, 0] = mdp.start
    for h in range(mdp.horizon):
        actions[:, h] = draw(cumulative_rows(policy[h]), states[:, h], mdp.num_actions, rng)
        pair = states[:, h] * mdp.num_actions + actions[:, h]
        states[:, h + 1] = draw(mdp.thresholds[h], pair, mdp.num_states, rng)
    return Trajectories(states, actions)

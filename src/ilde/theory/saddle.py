"""The saddle point pi*: a linear program over occupancy measures.

min over mu of max over theta of <theta, phi(mu_E) - phi(mu)> - lambda <L, mu>. For the box the inner maximum is an l1
norm and the whole is one program. For the ball it is an l2 norm, approached from below by tangent planes until the gap
between the program's value and the true one is closed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from ilde.theory.mdp import Array, Mdp, occupancy
from ilde.theory.rewards import RewardClass

GAP = 1e-6
"""What tangent planes may leave open; the program itself is solved to about 1e-7."""
MAX_PLANES = 500


@dataclass(frozen=True)
class Saddle:
    """The policy pi* and what the regret needs of it."""

    policy: Array
    expectation: Array
    """phi(mu*), the sum of features."""
    curiosity: float
    """Int(pi*)."""
    value: float
    """max over r of l(pi*, r)."""


def solve_saddle(mdp: Mdp, rewards: RewardClass, expert: Array, intrinsic: Array, curiosity_weight: float) -> Saddle:
    """pi* for an expert's sum of features and an intrinsic reward (H, S, A)."""
    solve = _solve_box if rewards.shape == "box" else _solve_ball
    mu = solve(mdp, rewards, expert, -curiosity_weight * intrinsic.ravel())
    policy = policy_of(mu.reshape(intrinsic.shape))
    # Through the policy and back, so that rounding of the program never shows up as a gain no policy has.
    exact = occupancy(mdp, policy)
    expectation, curiosity = rewards.expectation(exact), float(np.sum(exact * intrinsic))
    return Saddle(policy, expectation, curiosity, rewards.support(expert - expectation) - curiosity_weight * curiosity)


def policy_of(mu: Array) -> Array:
    """The policy of an occupancy measure (H, S, A); uniform where it never comes."""
    mass = np.maximum(mu, 0.0)
    total = mass.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(total > 1e-12, mass / np.maximum(total, 1e-12), 1.0 / mu.shape[-1]))


def flow_constraints(mdp: Mdp) -> tuple[csr_array, Array]:
    """What leaves a state at step h is what arrived there: rows (h, s), columns (h, s, a)."""
    horizon, states, actions = mdp.kernel.shape[:3]
    block = states * actions
    rows = np.zeros((horizon * states, horizon * block))
    leaves = np.kron(np.eye(states), np.ones(actions))
    for h in range(horizon):
        rows[h * states : (h + 1) * states, h * block : (h + 1) * block] = leaves
        if h:
            arrives = mdp.kernel[h - 1].reshape(block, states).T
            rows[h * states : (h + 1) * states, (h - 1) * block : h * block] = -arrives
    right = np.zeros(horizon * states)
    right[mdp.start] = 1.0
    return csr_array(rows), right


def _feature_rows(mdp: Mdp, rewards: RewardClass) -> Array:
    """(d, H * S * A): the sum of features as a function of the occupancy."""
    return np.tile(rewards.features.reshape(-1, rewards.dimension).T, mdp.horizon)


def _solve_box(mdp: Mdp, rewards: RewardClass, expert: Array, cost: Array) -> Array:
    """Variables mu >= 0 and x >= |phi(mu_E) - phi(mu)|."""
    flow, right = flow_constraints(mdp)
    phi, d = _feature_rows(mdp, rewards), rewards.dimension
    upper = np.block([[-phi, -np.eye(d)], [phi, -np.eye(d)]])
    equal = csr_array(np.hstack([flow.toarray(), np.zeros((flow.shape[0], d))]))
    solved = linprog(
        np.concatenate([cost, np.ones(d)]),
        A_ub=csr_array(upper),
        b_ub=np.concatenate([-expert, expert]),
        A_eq=equal,
        b_eq=right,
        method="highs",
    )
    assert solved.success, solved.message
    return np.asarray(solved.x[: len(cost)])


def _solve_ball(mdp: Mdp, rewards: RewardClass, expert: Array, cost: Array) -> Array:
    """Variables mu >= 0 and t >= <theta_i, phi(mu_E) - phi(mu)> for each tangent plane theta_i so far."""
    flow, right = flow_constraints(mdp)
    equal = csr_array(np.hstack([flow.toarray(), np.zeros((flow.shape[0], 1))]))
    phi = _feature_rows(mdp, rewards)
    planes = [np.zeros(rewards.dimension)]
    best, least = np.zeros(len(cost)), np.inf
    for _ in range(MAX_PLANES):
        thetas = np.stack(planes)
        solved = linprog(
            np.append(cost, 1.0),
            A_ub=np.hstack([-thetas @ phi, -np.ones((len(thetas), 1))]),
            b_ub=-thetas @ expert,
            A_eq=equal,
            b_eq=right,
            method="highs",
        )
        assert solved.success, solved.message
        mu = solved.x[:-1]
        gap = expert - phi @ mu
        value = rewards.support(gap) + float(cost @ mu)
        if value < least:
            best, least = mu, value
        if least - solved.fun <= GAP * max(1.0, abs(least)):
            break
        planes.append(rewards.best(gap))
    return best

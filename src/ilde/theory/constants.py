"""The theorem's constants, and the same exponents with the constants scaled down to what a computer can play."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ilde.theory.uncertainty import ValueClass


@dataclass(frozen=True)
class Schedule:
    """What Algorithm 1 is run with."""

    iterations: int
    """K."""
    batch: int
    """N, a multiple of the horizon."""
    period: int
    """m."""
    policy_step_size: float
    """eta."""
    reward_step_size: float
    """eta_theta."""
    bonus_constant: float
    """c in b_h = c * (range of V_{h+1}) * D_F; it has no unit."""

    @property
    def episodes(self) -> int:
        """T as it is really played: N * ceil(K / m)."""
        return self.batch * math.ceil(self.iterations / self.period)


@dataclass(frozen=True)
class Scale:
    """Factors on the theorem's constants; the exponents of T stay."""

    bonus: float = 0.1
    """c0, in place of the theorem's c."""
    policy_step: float = 1.0
    reward_step: float = 1.0
    period: float = 1.0
    episodes_per_iteration: float = 10.0
    """kappa in K = (T / kappa)^(2/3); the theorem has H^2 dim_T(F) log N."""


def bonus_constant(values: ValueClass, horizon: int, batch: int, delta: float) -> float:
    """The paper's constant over its H: c = sqrt(8 log(H N_F(eps) / delta) + 4 eps N / H^2 + 1), with gamma = H^2.

    The cover's radius is eps = 1 / N where values are bounded by H, so here bound / H as much.
    """
    log_term = math.log(horizon / delta) + values.log_covering_number(values.bound / horizon / batch)
    return math.sqrt(8 * log_term + 4 / horizon**2 + 1)


def theorem_schedule(values: ValueClass, horizon: int, num_actions: int, episodes: float, delta: float) -> Schedule:
    """K, N, m, eta and c as the theorem sets them for T episodes; m is floored, and then raised to 1."""
    log_actions = math.sqrt(math.log(num_actions))
    dimension = values.eluder_dimension(math.ceil(episodes))
    batch = 2.0
    for _ in range(100):  # N appears in its own covering number
        complexity = dimension * values.log_covering_number(values.bound / horizon / batch)
        iterations = math.ceil((episodes / (horizon**2 * complexity)) ** (2 / 3))
        before, batch = batch, math.ceil(iterations * horizon * complexity / log_actions)
        if abs(batch - before) < 1e-9 * batch:
            break
    whole = math.ceil(batch / horizon) * horizon
    return Schedule(
        iterations,
        whole,
        max(1, math.floor(math.sqrt(iterations) / (horizon * log_actions))),
        log_actions / (values.bound * math.sqrt(iterations)),
        1.0 / (horizon * math.sqrt(iterations)),
        bonus_constant(values, horizon, whole, delta),
    )


def regret_bound(values: ValueClass, horizon: int, schedule: Schedule) -> float:
    """H^(8/3) (dim_T(F) log N)^(1/3) T^(2/3): the theorem's bound without its hidden logarithms."""
    dimension = values.eluder_dimension(schedule.episodes)
    complexity = dimension * values.log_covering_number(values.bound / horizon / schedule.batch)
    return float(horizon ** (8 / 3) * complexity ** (1 / 3) * schedule.episodes ** (2 / 3))


def scaled_schedule(
    values: ValueClass, horizon: int, num_actions: int, diameter: float, episodes: float, scale: Scale
) -> Schedule:
    """K ~ T^(2/3), m ~ K^(1/2), N = m T / K, eta and eta_theta ~ K^(-1/2): the theorem's exponents.

    Args:
        diameter: of the reward class; the best step of projected ascent is proportional to it.
    """
    root = (episodes / scale.episodes_per_iteration) ** (1 / 3)
    log_actions = math.sqrt(math.log(num_actions))
    period = max(1, math.floor(scale.period * root / (horizon * log_actions)))
    # To the nearest whole number of batches: rounded up, the few batches of a small T would tilt the fitted exponent.
    batches = max(1, round(root**2 / period))
    return Schedule(
        batches * period,
        math.ceil(episodes / batches / horizon) * horizon,
        period,
        scale.policy_step * log_actions / (values.bound * root),
        scale.reward_step * diameter / (2 * horizon * root),
        scale.bonus,
    )

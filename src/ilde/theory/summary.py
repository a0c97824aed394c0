"""Outcomes in numbers: means over seeds, the fitted exponent and its interval, and what the theorem would ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ilde.theory.constants import regret_bound, theorem_schedule
from ilde.theory.mdp import Array, Mdp
from ilde.theory.presets import StudyConfig, build_game, value_class
from ilde.theory.study import DELTA, Outcome
from ilde.theory.uncertainty import ValueClass

RESAMPLES = 4000
QUANTITIES = ("regret", "saddle_regret", "iterate_regret", "policy_term", "reward_term")


def slopes(episodes: Array, regrets: Array) -> Array:
    """(...,): the least-squares slopes on log-log axes of rows (..., sizes); NaN where a row is not positive."""
    x = np.log(episodes) - np.log(episodes).mean()
    positive = np.all(regrets > 0, axis=-1)
    y = np.log(np.where(regrets > 0, regrets, 1.0))
    return np.where(positive, y @ x / (x @ x), np.nan)


def slope(episodes: Array, regrets: Array) -> float:
    """The least-squares slope of one row."""
    return float(slopes(episodes, regrets))


def exponent(outcomes: Sequence[Outcome], quantity: str) -> dict[str, Any]:
    """The slope of the mean over seeds against T, with a 95% interval from resampled seeds."""
    sizes = sorted({outcome.job.episodes for outcome in outcomes})
    columns = [[outcome for outcome in outcomes if outcome.job.episodes == size] for size in sizes]
    played = np.array([column[0].episodes for column in columns], dtype=float)
    table = np.array([[getattr(outcome, quantity) for outcome in column] for column in columns])
    rng = np.random.default_rng(0)
    # Runs of different T are independent, so each T resamples its own seeds.
    drawn = rng.integers(table.shape[1], size=(RESAMPLES, *table.shape))
    fits = slopes(played, np.take_along_axis(table[None], drawn, axis=2).mean(axis=2))
    return {
        "exponent": slope(played, table.mean(axis=1)),
        "interval": [float(bound) for bound in np.quantile(fits, (0.025, 0.975))],
        "last_decade": slope(played[played >= played[-1] / 11], table[played >= played[-1] / 11].mean(axis=1)),
    }


def mean_interval(samples: Array) -> list[float]:
    """The mean of a few samples with its 95% interval from Student's law: [mean, low, high]."""
    from scipy.stats import t

    mean, spread = float(samples.mean()), float(samples.std(ddof=1)) if len(samples) > 1 else 0.0
    width = float(t.ppf(0.975, max(len(samples) - 1, 1))) * spread / len(samples) ** 0.5
    return [mean, mean - width, mean + width]


def points(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """One row for each variant and T: every quantity per episode, with its interval."""
    rows: dict[tuple[str, float], list[Outcome]] = {}
    for outcome in outcomes:
        rows.setdefault((outcome.job.label, outcome.job.episodes), []).append(outcome)
    return [_point(label, group) for (label, _), group in rows.items()]


def _point(label: str, group: Sequence[Outcome]) -> dict[str, Any]:
    first = group[0]
    per_episode = {
        name: mean_interval(np.array([getattr(outcome, name) / outcome.episodes for outcome in group]))
        for name in QUANTITIES
    }
    return {
        "variant": label,
        "episodes": first.episodes,
        "seeds": len(group),
        "schedule": asdict(first.schedule),
        **per_episode,
        "mixture_error": mean_interval(np.array([outcome.mixture_error for outcome in group])),
        "demo_error": mean_interval(np.array([outcome.demo_error for outcome in group])),
    }


def theorem_table(config: StudyConfig, mdp: Mdp) -> list[dict[str, Any]]:
    """What the theorem's own constants ask for, over T."""
    values = value_class(config, mdp, config.curiosity_weight)
    return [_theorem_row(values, mdp, 10.0**power) for power in (4, 6, 8, 10, 12, 14, 16)]


def _theorem_row(values: ValueClass, mdp: Mdp, episodes: float) -> dict[str, Any]:
    schedule = theorem_schedule(values, mdp.horizon, mdp.num_actions, episodes, DELTA)
    return {
        "episodes": episodes,
        "played": schedule.episodes,
        **asdict(schedule),
        # A policy can lose at most 2 H in the paper's units, in which the value of an episode is at most H.
        "bound_over_trivial": regret_bound(values, mdp.horizon, schedule) / (2 * mdp.horizon * schedule.episodes),
    }


def summarise(config: StudyConfig, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The study as one JSON document."""
    game = build_game(config)
    full = [outcome for outcome in outcomes if outcome.job.variant == "full"]
    stated = exponent(full, "regret")
    return {
        "preset": config.name,
        "exponent": stated["exponent"],
        "interval": stated["interval"],
        "exponents": {name: exponent(full, name) for name in QUANTITIES},
        "mixture_exponent": exponent(full, "mixture_error"),
        "saddle": {"value": game.saddle.value, "curiosity": game.saddle.curiosity},
        "points": points(outcomes),
        "theorem": theorem_table(config, game.mdp),
    }

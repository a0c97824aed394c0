"""Outcomes of runs that never were, made of chosen numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from made_runs import PROVENANCE

from ilde.methods import find_method
from ilde.reports.outcomes import FinalScore, Outcome
from ilde.reports.thinned import Curve

STEPS = 400_000
BEATEN = {"random": -300.0, "constant": -100.0, "entropy": -200.0, "shuffled": 100.0, "wrong-demos": 0.0}


def outcome(method: str, seed: int, score: float | None, **changes: Any) -> Outcome:
    uses = find_method(method).demos != "unused"
    plain = Outcome(
        run=f"{method}-{seed}",
        task="HalfCheetah-v5",
        method=method,
        reward=find_method(method).reward,
        preset="quick",
        variant=(),
        seed=seed,
        env_steps=STEPS,
        planned_steps=STEPS,
        state="finished",
        demos="a/b" if uses else None,
        fraction=0.5 if uses else 1.0,
        demos_hash="f" * 64 if uses else None,
        demonstrator=900.0 if uses else None,
        greedy=None if score is None else FinalScore(score, 1.0, 20),
        sampled=None if score is None else FinalScore(score - 100, 1.0, 20),
        last_points=None,
        training=Curve(),
        evaluations=Curve(),
        terms={},
        steps_per_second=None,
        provenance=PROVENANCE,
    )
    return replace(plain, **changes)


def seeds(method: str, scores: Sequence[float], **changes: Any) -> list[Outcome]:
    return [outcome(method, seed, score, **changes) for seed, score in enumerate(scores)]


def controls(spread: float = 10.0, leave_out: Sequence[str] = (), **changes: Any) -> list[Outcome]:
    return [
        run
        for method, score in BEATEN.items()
        if method not in leave_out
        for run in seeds(method, (score - spread, score, score + spread), **changes)
    ]

"""Many runs of Algorithm 1 over T, seeds and ablations, in parallel processes; each is scored by the study's own game.

The outcome of a run depends on its job alone, so the number of processes changes nothing but the time.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias, assert_never

import numpy as np

from ilde.theory.constants import Schedule, bonus_constant, scaled_schedule
from ilde.theory.mdp import sample
from ilde.theory.npg import Learner, Run, natural_policy_gradient
from ilde.theory.presets import StudyConfig, build_game, value_class
from ilde.theory.regret import Game, decompose, moments, regret, saddle_regret
from ilde.theory.rewards import demo_expectation

Variant: TypeAlias = Literal["full", "no-bonus", "theorem-bonus", "no-curiosity", "no-reuse", "demos", "imitation"]
"""What is changed: b = 0, the theorem's own b, lambda = 0 for the learner, m = 1, few demonstrations, lambda = 0."""

ABLATIONS: tuple[Variant, ...] = ("no-bonus", "theorem-bonus", "no-curiosity", "no-reuse", "imitation")
DELTA = 0.05
"""The theorem's failure probability, in its own constants."""
SAFE_PATH = "PYTHONSAFEPATH"

Progress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True)
class Job:
    """One run."""

    variant: Variant
    episodes: float
    seed: int
    demos: int | None = None
    """How many demonstrations the reward player has; None: the expert's exact occupancy."""

    @property
    def label(self) -> str:
        """The variant in words."""
        return f"{self.demos} demos" if self.variant == "demos" else self.variant


@dataclass(frozen=True)
class Outcome:
    """What one run came to; all regrets are sums over the episodes really played."""

    job: Job
    schedule: Schedule
    episodes: int
    regret: float
    """As the paper states it, over the policies that were played."""
    saddle_regret: float
    """What the proof bounds, over the policies that were played."""
    iterate_regret: float
    """As stated, with every iterate in place of the played ones, at N / m episodes each."""
    policy_term: float
    """I1 + lambda I3, of the iterates."""
    reward_term: float
    """I2, of the iterates."""
    mixture_error: float
    """max over r of l(mixture, r), less the saddle value."""
    demo_error: float
    """epsilon_E: how far the demonstrations' value is from the expert's, for the worst reward."""


def jobs_of(config: StudyConfig) -> list[Job]:
    """Every run of a study."""
    jobs = [Job("full", t, seed) for t in config.episodes for seed in range(config.num_seeds)]
    for t in config.ablation_episodes:
        for seed in range(config.num_seeds):
            jobs += [Job(variant, t, seed) for variant in ABLATIONS]
            jobs += [Job("demos", t, seed, count) for count in config.demo_counts]
    return jobs


def run_study(config: StudyConfig, processes: int, progress: Progress) -> list[Outcome]:
    """All outcomes, in the order of `jobs_of`."""
    jobs = jobs_of(config)
    outcomes: dict[Job, Outcome] = {}
    # The longest first, so that no process ends up alone with one.
    for outcome in _outcomes(config, sorted(jobs, key=lambda job: -job.episodes), processes):
        outcomes[outcome.job] = outcome
        progress(len(outcomes), len(jobs))
    return [outcomes[job] for job in jobs]


def _outcomes(config: StudyConfig, jobs: Sequence[Job], processes: int) -> Iterator[Outcome]:
    if processes == 1:
        yield from (run_job(config, job) for job in jobs)
        return
    # Spawned, because a forked child of a process with threads may hang.
    with _safe_path():
        pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))
        futures = [pool.submit(run_job, config, job) for job in jobs]
    with pool:
        try:
            yield from (future.result() for future in as_completed(futures))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def _safe_path() -> Iterator[None]:
    """Processes begun meanwhile load Python's own modules, whatever lies in the current folder; ours are told them."""
    former = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if former is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = former


@lru_cache(maxsize=4)
def _game(config: StudyConfig, curiosity_weight: float | None) -> Game:
    return build_game(config, curiosity_weight)


def run_job(config: StudyConfig, job: Job) -> Outcome:
    """Play one run and score it."""
    game = _game(config, 0.0 if job.variant == "imitation" else None)
    rng = np.random.default_rng((job.seed, round(job.episodes)))
    learner, schedule = prepare(config, game, job, rng)
    return score(game, job, learner, schedule, natural_policy_gradient(learner, schedule, rng))


def prepare(config: StudyConfig, game: Game, job: Job, rng: np.random.Generator) -> tuple[Learner, Schedule]:
    """The learner and the schedule of a job."""
    weight = 0.0 if job.variant == "no-curiosity" else game.curiosity_weight
    values = value_class(config, game.mdp, weight)
    demos = game.expert_expectation
    if job.demos is not None:
        demos = demo_expectation(game.rewards, sample(game.mdp, game.expert, job.demos, rng))
    learner = Learner(game.mdp, game.rewards, values, demos, game.intrinsic, weight)
    mdp = game.mdp
    schedule = scaled_schedule(values, mdp.horizon, mdp.num_actions, game.rewards.diameter, job.episodes, config.scale)
    match job.variant:
        case "no-bonus":
            return learner, replace(schedule, bonus_constant=0.0)
        case "theorem-bonus":
            return learner, replace(schedule, bonus_constant=bonus_constant(values, mdp.horizon, schedule.batch, DELTA))
        case "no-reuse":
            per_iteration = -(-schedule.batch // (schedule.period * mdp.horizon)) * mdp.horizon
            return learner, replace(schedule, period=1, batch=per_iteration)
        case "full" | "no-curiosity" | "demos" | "imitation":
            return learner, schedule
        case _:
            assert_never(job.variant)


def score(game: Game, job: Job, learner: Learner, schedule: Schedule, run: Run) -> Outcome:
    """Exact regrets of a run."""
    iterates = moments(game, run.policies)
    even = np.full(schedule.iterations, schedule.episodes / schedule.iterations)
    terms = decompose(game, iterates, run.thetas, even)
    return Outcome(
        job,
        schedule,
        schedule.episodes,
        regret(game, iterates, run.played),
        saddle_regret(game, iterates, run.played),
        regret(game, iterates, even),
        terms.policy,
        terms.reward,
        saddle_regret(game, iterates, even) / schedule.episodes,
        game.rewards.support(learner.demos - game.expert_expectation),
    )

"""From a configuration to a finished run: builds the parts, drives the loop, keeps the folder.

The loop itself is `trainer.py`; here are logging, evaluation, checkpoints and stopping. A run killed anywhere goes on
from its last checkpoint as if nothing had happened.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch

from ilde.config import RunConfig, from_dict, to_dict
from ilde.data import Metrics, UserError
from ilde.demos import Demonstrations
from ilde.envs import EnvLike, simulator_versions
from ilde.evaluation import Evaluation, StoppedError, never, return_ratio
from ilde.learners.replay import row_bytes
from ilde.learners.replaying import ReplayLearner
from ilde.patience import heard_by
from ilde.policies import measure
from ilde.prepare import build, demonstrator_return, find_again, fit
from ilde.runs import RunDirectory, collect_provenance
from ilde.trainer import Trainer


@dataclass(frozen=True)
class Progress:
    """One iteration, as a display sees it."""

    env_steps: int
    total_steps: int
    metrics: Metrics
    steps_per_second: float
    evaluation_share: float
    """Part of the time so far spent on evaluation."""

    @property
    def seconds_left(self) -> float:
        """Time to the end at the present speed."""
        return max(0, self.total_steps - self.env_steps) / max(self.steps_per_second, 1e-9)


class Listener(Protocol):
    """Whoever wants to hear how a run goes."""

    def noted(self, message: str) -> None:
        """Something worth a line happened."""

    def progressed(self, progress: Progress) -> None:
        """An iteration was done."""

    def evaluated(self, env_steps: int, evaluation: Evaluation) -> None:
        """The true reward was measured."""


class Silent:
    """Hears nothing."""

    def noted(self, message: str) -> None:
        """Ignore."""

    def progressed(self, progress: Progress) -> None:
        """Ignore."""

    def evaluated(self, env_steps: int, evaluation: Evaluation) -> None:
        """Ignore."""


class Evaluator:
    """Measures the true reward of a policy under training."""

    def __init__(self, config: RunConfig, source: EnvLike) -> None:
        self.config, self.source = config, source

    def __call__(
        self,
        trainer: Trainer,
        episodes: int,
        max_steps: int | None,
        *,
        greedy: bool,
        stop: Callable[[], bool] = never,
    ) -> Evaluation:
        """Play whole episodes with the present policy; raises `StoppedError` as soon as `stop` says so."""
        return measure(
            trainer.learner.policy,
            self.source,
            self.config,
            episodes=episodes,
            seed=self.config.seed,
            greedy=greedy,
            max_steps=max_steps,
            device=trainer.device,
            stop=stop,
            spaces=(trainer.envs.obs_space, trainer.envs.action_space),
        )


class Run:
    """A trainer, its folder and whoever listens."""

    def __init__(
        self,
        trainer: Trainer,
        folder: RunDirectory,
        evaluator: Evaluator,
        demonstrator: float | None,
        listener: Listener,
    ) -> None:
        self.trainer, self.folder, self.evaluator = trainer, folder, evaluator
        self.demonstrator, self.listener = demonstrator, listener
        self.start_clock()

    def start_clock(self) -> None:
        """Measure speed from here on."""
        self._began = time.perf_counter()
        self._evaluating = 0.0
        self._first_step = self.trainer.env_steps

    @property
    def evaluation_share(self) -> float:
        """Part of the time so far spent on evaluation."""
        return self._evaluating / max(time.perf_counter() - self._began, 1e-9)

    def train(self, stop: Callable[[], bool] = never) -> bool:
        """Iterate to the end, or until `stop` says so; returns whether the run is complete."""
        try:
            self._evaluate_on_the_way(stop)  # a run that was stopped in an evaluation, or before it, still owes it
            while not self.trainer.done:
                self._log(self.trainer.iterate())
                if stop():
                    raise StoppedError
                self._evaluate_on_the_way(stop)
                if self.trainer.done or self.trainer.updates % self.trainer.config.checkpoint_every == 0:
                    self.save()
            self._evaluate_at_the_end(stop)
        except StoppedError:
            self.save()
            self.folder.set_status("interrupted", self.trainer.env_steps, "stopped on request")
            return False
        self.folder.set_status("finished", self.trainer.env_steps)
        return True

    def save(self) -> None:
        """Checkpoint everything."""
        header = {"resume_mode": self.trainer.envs.resume_mode}
        self.folder.save(self.trainer.env_steps, self.trainer.state_dict(), header)

    def _log(self, metrics: Metrics) -> None:
        steps = self.trainer.env_steps
        metrics |= scores(metrics, self.demonstrator)
        self.folder.log_metrics(steps, metrics)
        elapsed = time.perf_counter() - self._began
        speed = (steps - self._first_step) / max(elapsed - self._evaluating, 1e-9)
        self.folder.log_timing(steps, {**self.trainer.seconds, "time/steps_per_second": speed, "time/elapsed": elapsed})
        self.listener.progressed(Progress(steps, self.trainer.config.steps, metrics, speed, self.evaluation_share))

    def _evaluate_on_the_way(self, stop: Callable[[], bool]) -> None:
        """Measure where it is due, unless it was measured before a resume."""
        config, trainer = self.trainer.config.evaluation, self.trainer
        if not config.every or not trainer.updates or trainer.updates % config.every:
            return
        if not any(
            row["env_steps"] == trainer.env_steps and not row["final"] for row in self.folder.evaluations.rows()
        ):
            self._evaluate(config.episodes, config.max_steps or None, stop, greedy=config.greedy)

    def _evaluate_at_the_end(self, stop: Callable[[], bool]) -> None:
        """Greedy and sampled, whole episodes; what was measured before a kill is not measured again."""
        known = {row["greedy"] for row in self.folder.evaluations.rows() if row["final"]}
        config = self.trainer.config.evaluation
        for greedy in (True, False):
            if greedy not in known:
                self._evaluate(config.final_episodes, config.final_max_steps or None, stop, greedy=greedy, final=True)

    def _evaluate(
        self, episodes: int, max_steps: int | None, stop: Callable[[], bool], *, greedy: bool, final: bool = False
    ) -> None:
        began = time.perf_counter()
        with heard_by(self.listener.noted):
            evaluation = self.evaluator(self.trainer, episodes, max_steps, greedy=greedy, stop=stop)
        self.folder.log_evaluation(self.trainer.env_steps, evaluation.row(self.demonstrator, final=final))
        self.listener.evaluated(self.trainer.env_steps, evaluation)
        self._evaluating += time.perf_counter() - began


def scores(metrics: Metrics, demonstrator: float | None) -> Metrics:
    """The true training score under its public names, alone and against the demonstrator's."""
    raw = metrics.get("rollout/ep_rew_mean")
    if raw is None:
        return {}
    ratio = return_ratio(raw, demonstrator)
    return {"score/raw": raw} | ({} if ratio is None else {"score/vs_expert": ratio})


def start(config: RunConfig, out: Path, listener: Listener | None = None) -> Run:
    """Begin a new run in a new folder."""
    trainer, demos = build(config)
    provenance = collect_provenance(sys.argv, demos.content_hash if demos else None, simulator_versions())
    provenance |= {"demonstrator": demonstrator_return(demos)}
    with ExitStack() as undo:
        undo.callback(trainer.envs.close)
        folder = RunDirectory.create(out, to_dict(config), provenance, required_bytes=_checkpoint_bytes(trainer))
        undo.enter_context(folder)
        run = _ready(trainer, demos, folder, listener or Silent())
        undo.pop_all()
    return run


def resume(path: Path, listener: Listener | None = None, demos_now: str | None = None) -> Run:
    """Go on exactly where a run stopped; `demos_now` says where its demonstrations lie, if not where they did."""
    with ExitStack() as undo:
        folder = undo.enter_context(RunDirectory.open(path))
        folder.require_named_env()
        folder.require_checkpoints()
        config = with_its_threads(from_dict(RunConfig, folder.config), folder.provenance)
        trainer, demos = build(config, demos=find_again(path, config, demos_now))
        undo.callback(trainer.envs.close)
        check_demos_unchanged(folder.provenance, demos, config)
        run = _ready(trainer, demos, folder, listener or Silent())
        undo.pop_all()
    return run


def _ready(trainer: Trainer, demos: Demonstrations | None, folder: RunDirectory, listener: Listener) -> Run:
    run = Run(trainer, folder, Evaluator(trainer.config, trainer.config.env), demonstrator_return(demos), listener)
    listener.noted(f"run {folder.path}")  # not before: a mistake is answered by its own line alone
    checkpoint = folder.load_latest()
    if checkpoint is None:
        listener.noted("learning from the demonstrations" if demos else "starting")
        folder.rewind(-1)
        with heard_by(listener.noted), failures_noted(run):
            folder.log_metrics(0, fit(trainer, demos))
            run.save()
    else:
        if checkpoint.note:
            listener.noted(checkpoint.note)
        check_same_kind_of_device(trainer, checkpoint.state)
        listener.noted("playing the open episodes again; for games on few cores that takes minutes")
        trainer.load_state_dict(checkpoint.state)
        folder.rewind(trainer.env_steps)
        if trainer.envs.resume_mode != "exact":
            listener.noted(f"resume mode {trainer.envs.resume_mode}: open episodes were dropped and are not counted")
        listener.noted(f"going on from {trainer.env_steps:,} steps")
    folder.set_status("running", trainer.env_steps)
    run.start_clock()
    return run


@contextmanager
def failures_noted(run: Run) -> Iterator[None]:
    """Say in the folder too that a run failed, and why."""
    try:
        yield
    except Exception as error:
        # On a full disk the status cannot be written either; the first error is the one to show.
        with suppress(UserError):
            run.folder.set_status("failed", run.trainer.env_steps, " ".join(str(error).split()))
        raise


def with_its_threads(config: RunConfig, provenance: dict[str, Any]) -> RunConfig:
    """As many threads as the run began with, however many cores there are: on a CPU, sums depend on them."""
    return replace(config, threads=config.threads or provenance.get("threads", 0))


def check_demos_unchanged(provenance: dict[str, Any], demos: Demonstrations | None, config: RunConfig) -> None:
    """Refuse to go on with other demonstrations than a run began with."""
    if demos is not None and provenance.get("demos_hash") != demos.content_hash:
        name = config.demos or "demos"
        raise UserError(f"{name}: not the demonstrations this run began with; restore them to go on with it")


def check_same_kind_of_device(trainer: Trainer, state: dict[str, Any]) -> None:
    """Refuse to go on from random numbers that this device cannot draw, before anything is played again for minutes."""
    if len(state["collector"]["generator"]) == len(trainer.collector.generator.get_state()):
        return
    here, there = ("a GPU", "a CPU") if trainer.device.type == "cuda" else ("a CPU", "a GPU")
    raise UserError(f"this run was begun on {there}, whose random numbers {here} cannot go on with; resume it there")


def _checkpoint_bytes(trainer: Trainer) -> int:
    """Room for three checkpoints, of a guessed size: the networks with their optimisers, and all that is replayed."""
    parameters = sum(p.numel() for net in _networks(trainer) for p in net.parameters())
    learner, config = trainer.learner, trainer.config
    rows = min(learner.replay.capacity, config.steps) if isinstance(learner, ReplayLearner) else 0
    return 3 * (12 * parameters + rows * row_bytes(trainer.envs.obs_space))


def _networks(trainer: Trainer) -> list[torch.nn.Module]:
    models = [getattr(term.model, "net", None) for term in trainer.reward.terms.values()]
    return [net for net in (*models, trainer.learner.policy) if isinstance(net, torch.nn.Module)]

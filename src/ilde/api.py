"""The library in one class: demonstrations in, a policy out, on any Gymnasium environment.

What the command line does with a run directory, this does in memory; `save` and `load` go between the two.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import gymnasium as gym
import numpy as np
import torch

from ilde.arguments import DemosLike, require_kinds, whole_number
from ilde.config import Device, RunConfig, find_preset, from_dict, to_dict, usual_preset
from ilde.data import Metrics, UserError
from ilde.demos import Demonstrations
from ilde.demos import load as load_demos
from ilde.demos import save as save_demos
from ilde.envs import EnvLike, canonical_env_id, simulator_versions
from ilde.envs.base import Array
from ilde.envs.names import is_atari
from ilde.evaluation import Evaluation
from ilde.interrupts import interrupts_held
from ilde.launch import (
    Evaluator,
    Listener,
    Progress,
    Silent,
    check_demos_unchanged,
    check_same_kind_of_device,
    scores,
    with_its_threads,
)
from ilde.nets.policy import Policy
from ilde.prepare import action_remark, build, demonstrator_return, fit
from ilde.randomness import torch_generator
from ilde.runs import RunDirectory, collect_provenance

OWN_DEMOS = "demos.npz"
"""Demonstrations without a file of their own are kept beside the run."""


class Imitator:
    """Learns to act in an environment from demonstrations.

    Args:
        env: an id, a function that builds one environment, or a vector environment.
        demos: what to learn from; None for methods that do without.
        method: a row of `ilde.METHODS`; `ilde` if neither this nor `config` names one.
        seed: decides every random number.
        preset: where the settings come from; `atari` for Atari ids, otherwise `replay` or `quick` by the method.
        config: all settings, in place of a preset; whatever else is given here replaces its own. Those of `evaluation`
            are for runs of the command line: `learn` never evaluates.
        reward: an expression instead of the method's own, such as `vail + 2*giril`.
        device: where networks live: auto, cpu or cuda.
    """

    def __init__(
        self,
        env: EnvLike,
        demos: DemosLike | None = None,
        method: str | None = None,
        *,
        seed: int | None = None,
        preset: str | None = None,
        config: RunConfig | None = None,
        reward: str | None = None,
        device: Device | None = None,
    ) -> None:
        if config is not None and preset is not None:
            raise UserError(f"preset {preset!r} and config: give one of them")
        require_kinds(env, demos, config)
        settings = config or find_preset(preset or _usual_preset(env, method))
        settings = replace(
            settings,
            method=method or settings.method,
            seed=settings.seed if seed is None else whole_number("seed", seed, least=0),
            reward=settings.reward if reward is None else reward,
            device=device or settings.device,
            num_envs=env.num_envs if isinstance(env, gym.vector.VectorEnv) else settings.num_envs,
        )
        if demos is not None:
            settings = replace(settings, demos=None if isinstance(demos, Demonstrations) else str(demos))
        in_memory = demos if isinstance(demos, Demonstrations) else None
        self._source = canonical_env_id(env) if isinstance(env, str) else env
        self._trainer, self._demos = build(settings, env=self._source, demos=in_memory)
        self._trainer.config = replace(settings, env=self._trainer.envs.env_id)
        if remark := action_remark(settings, self._trainer.envs.action_space):
            warnings.warn(remark, stacklevel=2)
        self._fitted = False
        self._broken_off = False
        """Whether an earlier call ended in the middle of a fit or an update."""
        self._rows: list[tuple[int, Metrics]] = []
        self._final: dict[bool, Evaluation] = {}
        self._evaluations: list[dict[str, Any]] = []
        """What a loaded run had measured."""
        self._generator = torch_generator(settings.seed, "predicting", self._trainer.device)

    @property
    def config(self) -> RunConfig:
        """All settings."""
        return self._trainer.config

    @property
    def env_steps(self) -> int:
        """Agent steps learned from so far."""
        return self._trainer.env_steps

    @property
    def policy(self) -> Policy:
        """The policy as it stands, on its device."""
        return self._trainer.learner.policy

    @property
    def demonstrator(self) -> float | None:
        """What the demonstrator scores."""
        return demonstrator_return(self._demos)

    def learn(self, total_timesteps: float, listener: Listener | None = None) -> Self:
        """Learn for this many agent steps, rounded up to whole rollouts.

        The learning rate falls over all steps asked for so far: a second call raises it again, then lets it fall.
        Ctrl-C takes effect after the update in progress, and a further call goes on; a second one, or one while the
        reward is fitted before the first update, breaks off at once, and this object learns no more.
        """
        total_timesteps = whole_number("total_timesteps", total_timesteps)
        if self._broken_off:
            remedy = "save what was learned and load it, for new games" if self._fitted else "make a new Imitator"
            raise UserError(f"an earlier call was broken off in the middle of learning; {remedy}")
        trainer, listener = self._trainer, listener or Silent()
        # What was measured of the end is no longer what is.
        self._final, self._evaluations = {}, [row for row in self._evaluations if not row["final"]]
        trainer.config = replace(trainer.config, steps=trainer.env_steps + total_timesteps)
        if not self._fitted:
            self._rows.append((0, self._unbroken(lambda: fit(trainer, self._demos))))
            self._fitted = True
        first, began = trainer.env_steps, time.perf_counter()
        while not trainer.done:
            with interrupts_held():
                metrics = self._unbroken(trainer.iterate)
                metrics |= scores(metrics, self.demonstrator)
                self._rows.append((trainer.env_steps, metrics))
            speed = (trainer.env_steps - first) / max(time.perf_counter() - began, 1e-9)
            listener.progressed(Progress(trainer.env_steps, trainer.config.steps, metrics, speed, 0.0))
        return self

    def _unbroken(self, learn: Callable[[], Metrics]) -> Metrics:
        """Learn, and remember if that breaks off: simulators may then stand in the middle of a step."""
        self._broken_off = True
        metrics = learn()
        self._broken_off = False
        return metrics

    def predict(
        self, obs: Any, deterministic: bool = True, *, state: None = None, episode_start: object = None
    ) -> tuple[Array, None]:
        """The action for an observation, or the actions for a batch.

        `state`, `episode_start` and the second value are there for code that is written for recurrent policies too,
        such as Stable-Baselines3's `evaluate_policy`; nothing is remembered from one step to the next.
        """
        space = self._trainer.envs.obs_space
        given = np.asarray(obs)
        single = given.shape == space.shape
        if not single and given.shape[1:] != space.shape:
            raise UserError(
                f"observation of shape {given.shape}; the environment gives {space.shape}, alone or in a batch"
            )
        if not np.can_cast(given.dtype, space.dtype, "same_kind"):
            raise UserError(f"observation of {given.dtype}; the environment gives {space.dtype}")
        # A copy: a tensor cannot promise to leave the caller's array alone.
        batch = torch.from_numpy(np.array(given[None] if single else given, dtype=space.dtype)).to(self._trainer.device)
        action: Array = self.policy.act(batch, self._generator, greedy=deterministic).action.cpu().numpy()
        actions = self._trainer.envs.action_space
        if self.config.clip_actions and isinstance(actions, gym.spaces.Box):
            action = np.clip(action, actions.low, actions.high)
        return (action[0] if single else action), None

    def evaluate(
        self, episodes: int = 20, greedy: bool = True, env: EnvLike | None = None, max_steps: int | None = None
    ) -> Evaluation:
        """True returns of whole episodes, in environments of their own; `env` names others than those of training.

        An episode that is longer than `max_steps` counts with the return it had by then. The latest evaluations in the
        training environment, greedy and sampled, are saved with the run.
        """
        source = self._source if env is None else env
        if isinstance(source, gym.vector.VectorEnv):
            raise UserError(
                "evaluation plays in environments of its own: pass env, an id or a function that builds one"
            )
        episodes = whole_number("episodes", episodes)
        limit = None if max_steps is None else whole_number("max_steps", max_steps)
        evaluation = Evaluator(self.config, source)(self._trainer, episodes, limit, greedy=greedy)
        if env is None:
            self._final[greedy] = evaluation
        return evaluation

    def save(self, path: str | Path) -> Path:
        """Write a new run directory; where `env` was an id, `ilde eval`, `watch` and `resume` go on with it."""
        path, trainer = Path(path), self._trainer
        if not self._fitted:
            raise UserError(f"{path}: nothing learned yet; call learn first")
        config, demos = trainer.config, self._demos
        in_memory = demos is not None and config.demos is None
        if in_memory:
            config = replace(config, demos=str((path / OWN_DEMOS).absolute()))
        provenance = collect_provenance(sys.argv, demos.content_hash if demos else None, simulator_versions())
        provenance |= {"demonstrator": self.demonstrator, "own_env": not isinstance(self._source, str)}
        with RunDirectory.create(path, to_dict(config), provenance) as folder:
            if in_memory and demos is not None:
                save_demos(demos, path / OWN_DEMOS)
            for env_steps, metrics in self._rows:
                folder.log_metrics(env_steps, metrics)
            for row in self._evaluations:
                if not (row["final"] and row["greedy"] in self._final):
                    values = {name: value for name, value in row.items() if name != "env_steps"}
                    folder.log_evaluation(row["env_steps"], values)
            for evaluation in self._final.values():
                folder.log_evaluation(trainer.env_steps, evaluation.row(self.demonstrator, final=True))
            folder.save(trainer.env_steps, trainer.state_dict(), {"resume_mode": trainer.envs.resume_mode})
            folder.set_status("finished" if trainer.done else "interrupted", trainer.env_steps)
        return path

    @classmethod
    def load(cls, path: str | Path, env: EnvLike | None = None, demos: DemosLike | None = None) -> Self:
        """Take up a run directory where it stands.

        Args:
            path: the folder.
            env: needed where it was not an id.
            demos: what the run learned from, where it does not lie any more where it did.
        """
        folder = RunDirectory.read(Path(path))
        folder.require_checkpoints()
        checkpoint = folder.load_latest()
        if checkpoint is None:
            raise UserError(f"{path}: no checkpoint yet; `ilde resume {path}` goes on with it")
        if env is None and folder.provenance.get("own_env"):
            raise UserError(f"{path}: made with an environment of your own; pass it as env")
        config, kept = with_its_threads(from_dict(RunConfig, folder.config), folder.provenance), Path(path) / OWN_DEMOS
        if isinstance(env, gym.vector.VectorEnv) and env.num_envs != config.num_envs:
            raise UserError(f"{path}: learned in {config.num_envs} environments at once, env has {env.num_envs}")
        own = load_demos(kept) if kept.exists() and demos is None else demos
        agent = cls(config.env if env is None else env, own, config=config)
        check_demos_unchanged(folder.provenance, agent._demos, agent.config)
        trainer = agent._trainer
        if set(checkpoint.state["collector"]["envs"]) != set(trainer.envs.state()):
            kinds = "an id, a function that builds one, or a vector environment"
            raise UserError(f"{path}: made with another kind of environment; pass env as it was then, {kinds}")
        check_same_kind_of_device(trainer, checkpoint.state)
        trainer.load_state_dict(checkpoint.state)
        agent._fitted = True
        agent._evaluations = [row for row in folder.evaluations.rows() if row["env_steps"] <= agent.env_steps]
        for row in folder.metrics.rows():
            metrics = {name: value for name, value in row.items() if name != "env_steps" and value is not None}
            agent._rows += [(row["env_steps"], metrics)] if row["env_steps"] <= agent.env_steps else []
        return agent

    def export(self, path: str | Path) -> float:
        """Write the greedy policy as ONNX; returns its largest difference from PyTorch on random observations."""
        # Here, because onnx is an optional extra and slow to import.
        from ilde.export import export_policy

        envs, config = self._trainer.envs, self.config
        facts = {"env": config.env, "method": config.method, "env_steps": str(self.env_steps)}
        return export_policy(
            self.policy, envs.obs_space, envs.action_space, Path(path), clip_actions=config.clip_actions, facts=facts
        )

    def close(self) -> None:
        """Free the environments."""
        self._trainer.envs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        config = self.config
        return f"<Imitator: {config.method} on {config.env}, seed {config.seed}, {self.env_steps:,} steps>"


def _usual_preset(env: EnvLike, method: str | None) -> str:
    atari = isinstance(env, str) and is_atari(canonical_env_id(env))
    return usual_preset(method or RunConfig.method, atari=atari)

"""Collecting rollouts: the policy acts, the environments step, the true successors are kept."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ilde.acting import Actor, decider
from ilde.data import Metrics, Rollout, Transitions
from ilde.envs.base import Array, EnvBatch, Score, ShowsFrames, Step, Turns
from ilde.nets.policy import Decision, Policy

RECENT = 100
"""Whole episodes over which training scores are averaged."""


class OneGroup:
    """A batch that steps as a whole, seen as one group: a step begun is taken when its outcome is asked for."""

    def __init__(self, envs: EnvBatch) -> None:
        self.envs = envs
        self.groups: tuple[slice, ...] = (slice(0, envs.num_envs),)

    def begin(self, group: int, action: Array) -> None:
        """Remember the action."""
        self.action = action

    def finish(self, group: int) -> Step:
        """Take the step."""
        return self.envs.step(self.action)


class Collector:
    """Steps a batch of environments with a policy; its buffers are reused, so a rollout lives until the next one.

    Groups of environments take turns: while one steps in the background, actions are chosen for the next and the
    outcome of the last is stored. A batch that knows no groups is one group.

    Args:
        fuse: beside a GPU, compile what chooses the actions into few kernels.
    """

    def __init__(
        self,
        envs: EnvBatch,
        policy: Policy,
        steps: int,
        generator: torch.Generator,
        device: torch.device,
        *,
        fuse: bool = False,
    ) -> None:
        self.envs, self.policy, self.steps, self.generator, self.device = envs, policy, steps, generator, device
        self.recent: deque[float] = deque(maxlen=RECENT)
        self.episodes = 0
        self._turns: Turns = envs if isinstance(envs, Turns) else OneGroup(envs)
        first = np.array(envs.reset())
        # What the policy saw at each step, and would see after the last.
        self._seen = torch.empty((steps + 1, *first.shape), dtype=torch.from_numpy(first).dtype, device=device)
        self._buffers = self._allocate()
        decide = decider(policy, generator, device, fuse=fuse)
        self.actors = [
            Actor(
                decide,
                first[group],
                self._seen[:, group],
                {name: self._buffers[name][:, group] for name in Decision._fields},
                frames=isinstance(envs, ShowsFrames),
                generator=generator,
            )
            for group in self._turns.groups
        ]
        self._last: list[tuple[int, int, Array]] = []
        batch = (steps, envs.num_envs)
        self._outcomes = {
            "env_reward": np.zeros(batch, dtype=np.float32),
            "terminated": np.zeros(batch, dtype=bool),
            "truncated": np.zeros(batch, dtype=bool),
        }

    def _allocate(self) -> dict[str, Tensor]:
        batch = (self.steps, self.envs.num_envs)
        action_shape = self.envs.action_space.shape or ()
        action_type = torch.float32 if action_shape else torch.int64

        def empty(*shape: int, dtype: torch.dtype) -> Tensor:
            return torch.empty((*batch, *shape), dtype=dtype, device=self.device)

        return {
            "next_obs": torch.empty_like(self._seen[1:]),
            "action": empty(*action_shape, dtype=action_type),
            "log_prob": empty(dtype=torch.float32),
            "value": empty(dtype=torch.float32),
        }

    def restart(self) -> None:
        """Start all episodes anew."""
        self._see(self.envs.reset())

    def _see(self, obs: Array) -> None:
        """Begin with other observations."""
        for actor, envs in zip(self.actors, self._turns.groups, strict=True):
            actor.see(obs[envs])

    def collect(self) -> Rollout:
        """One rollout (steps, num_envs) of on-policy experience."""
        self._last = []
        for group, actor in enumerate(self.actors):
            actor.restart()
            actor.begin()
            self._turns.begin(group, actor.finish())
        for t in range(self.steps):
            for group, actor in enumerate(self.actors):
                step, goes_on = self._turns.finish(group), t + 1 < self.steps
                actor.show(step.obs, fresh=[score.env - self._turns.groups[group].start for score in step.scores])
                if goes_on:
                    actor.begin()
                self._store(t, group, step)  # while a GPU decides
                if goes_on:
                    self._turns.begin(group, actor.finish())
        for actor in self.actors:
            actor.stop()
        return self._rollout()

    def _store(self, t: int, group: int, step: Step) -> None:
        """Keep the outcome of a group's step."""
        envs = self._turns.groups[group]
        if step.next_obs is not step.obs:
            ended = np.flatnonzero(step.terminated | step.truncated)
            self._last += [(t, envs.start + int(row), step.next_obs[row]) for row in ended]
        for name, outcome in (
            ("env_reward", step.reward),
            ("terminated", step.terminated),
            ("truncated", step.truncated),
        ):
            self._outcomes[name][t, envs] = outcome
        self._count(step.scores)

    def _successors(self) -> Tensor:
        """What each step led to: what was seen next, but for the last observations of episodes."""
        successors = self._buffers["next_obs"]
        successors.copy_(self._seen[1:])
        if self._last:
            times, envs, last = zip(*self._last, strict=True)
            successors[list(times), list(envs)] = torch.from_numpy(np.stack(last)).to(self.device)
        return successors

    def _count(self, scores: tuple[Score, ...]) -> None:
        self.episodes += len(scores)
        self.recent.extend(score.total for score in scores)

    def _rollout(self) -> Rollout:
        outcomes = {name: torch.from_numpy(values).to(self.device) for name, values in self._outcomes.items()}
        data = self._buffers | outcomes | {"obs": self._seen[:-1], "next_obs": self._successors()}
        names = ("obs", "action", "next_obs", "terminated", "env_reward")
        return Rollout(
            transitions=Transitions(**{name: data[name] for name in names}),
            truncated=data["truncated"],
            log_prob=data["log_prob"],
            value=data["value"],
        )

    def metrics(self) -> Metrics:
        """True scores of recent whole episodes: for people to read, never for a learner."""
        if not self.recent:
            return {"rollout/episodes": float(self.episodes)}
        return {"rollout/ep_rew_mean": float(np.mean(self.recent)), "rollout/episodes": float(self.episodes)}

    def state_dict(self) -> dict[str, Any]:
        """Environments, randomness and counters."""
        return {
            "envs": self.envs.state(),
            "generator": self.generator.get_state(),
            "recent": list(self.recent),
            "episodes": self.episodes,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self._see(self.envs.restore(state["envs"]))
        self.generator.set_state(state["generator"])
        self.recent = deque(state["recent"], maxlen=RECENT)
        self.episodes = state["episodes"]

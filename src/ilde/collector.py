"""Collecting rollouts: the policy acts, the environments step, the true successors are kept."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ilde.data import Metrics, Rollout, Transitions
from ilde.envs.base import Array, EnvBatch, Score, ShowsFrames, Step, Turns
from ilde.nets.policy import Policy
from ilde.nets.steps import Inputs, make_step

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
    outcome of the last is stored. A batch that knows no groups is one group. Whatever is chosen and kept for a group at
    one time is one small step, so that beside a GPU the host has little to do before a group can go on.
    """

    def __init__(
        self, envs: EnvBatch, policy: Policy, steps: int, generator: torch.Generator, device: torch.device
    ) -> None:
        self.envs, self.policy, self.steps, self.generator, self.device = envs, policy, steps, generator, device
        self.recent: deque[float] = deque(maxlen=RECENT)
        self.episodes = 0
        self._turns: Turns = envs if isinstance(envs, Turns) else OneGroup(envs)
        self._proceed = [
            make_step(partial(self._act, group), device, generator) for group in range(len(self._turns.groups))
        ]
        self._time = [torch.zeros(1, dtype=torch.int64, device=device) for _ in self._turns.groups]
        # Where frames follow each other, the newest is all that is news; the others are in what the policy saw before.
        self._one_by_one = isinstance(envs, ShowsFrames)
        first = torch.from_numpy(np.array(envs.reset()))
        self._before = torch.empty_like(first if self._one_by_one else first[:0], device=device)
        news = first[:, -1:] if self._one_by_one else first
        self._news = torch.empty_like(news, device=device, memory_format=torch.contiguous_format)
        # Where a GPU is, news and choices travel through pinned memory; it is free again once the actions are known.
        self._staged = self._news if device.type == "cpu" else torch.empty_like(self._news, device="cpu").pin_memory()
        self._see(first)
        # What the policy saw at each step, and would see after the last.
        self._seen = torch.empty((steps + 1, *first.shape), dtype=first.dtype, device=device)
        self._buffers = self._allocate()
        self._chosen = torch.empty_like(self._buffers["action"][0], device="cpu", pin_memory=device.type == "cuda")
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
        self._see(torch.from_numpy(self.envs.reset()))

    def _see(self, obs: Tensor) -> None:
        """Begin with other observations."""
        if self._one_by_one:
            self._before[:, 1:] = obs[:, :-1].to(self.device)
            obs = obs[:, -1:]
        self._news.copy_(obs)

    def collect(self) -> Rollout:
        """One rollout (steps, num_envs) of on-policy experience."""
        groups = range(len(self._turns.groups))
        self._last = []
        for group in groups:
            self._time[group].zero_()
            self._begin(group)
        for t in range(self.steps):
            for group in groups:
                step = self._turns.finish(group)
                self._show(group, step)
                if t + 1 < self.steps:
                    self._begin(group)
                # Not before: while this is stored, the group steps again.
                self._store(t, group, step)
        for group in groups:
            envs = self._turns.groups[group]
            self._seen[-1, envs] = self._sight(envs)
        return self._rollout()

    def _begin(self, group: int) -> None:
        """Choose a group's actions and let it step."""
        action, chosen = self._proceed[group](())["action"], self._chosen[self._turns.groups[group]]
        chosen.copy_(action, non_blocking=True)
        if self.device.type == "cuda":
            torch.cuda.current_stream().synchronize()
        self._turns.begin(group, chosen.numpy())

    def _act(self, group: int, _: Inputs) -> dict[str, Tensor]:
        """Choose actions for what a group sees now, and keep both at the group's time, which goes on."""
        envs, time = self._turns.groups[group], self._time[group]
        sight = self._sight(envs)
        decision = self.policy.act(sight, self.generator)._asdict()
        for kept, value in ((self._seen, sight), *((self._buffers[name], value) for name, value in decision.items())):
            kept[:, envs].index_copy_(0, time, value.unsqueeze(0))
        if self._one_by_one:
            self._before[envs] = sight
        time += 1
        return decision

    def _sight(self, envs: slice) -> Tensor:
        """What a group sees now."""
        news = self._news[envs]
        return torch.cat((self._before[envs, 1:], news), 1) if self._one_by_one else news

    def _show(self, group: int, step: Step) -> None:
        """Send what a group sees to where the policy is."""
        envs, first = self._turns.groups[group], self._turns.groups[group].start
        self._staged[envs].numpy()[:] = step.obs[:, -1:] if self._one_by_one else step.obs
        if self._staged is not self._news:
            self._news[envs].copy_(self._staged[envs], non_blocking=True)
        if self._one_by_one:
            for score in step.scores:  # a new game: what came before its newest frame is not what was seen
                frames = torch.from_numpy(step.obs[score.env - first, :-1])
                self._before[score.env, 1:] = frames.to(self.device)

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
        self._see(torch.from_numpy(self.envs.restore(state["envs"])))
        self.generator.set_state(state["generator"])
        self.recent = deque(state["recent"], maxlen=RECENT)
        self.episodes = state["episodes"]

"""Collecting rollouts: the policy acts, the environments step, the true successors are kept."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ilde.data import Metrics, Rollout, Transitions
from ilde.envs.base import EnvBatch, Score, Step
from ilde.nets.policy import Policy

RECENT = 100
"""Whole episodes over which training scores are averaged."""


class Collector:
    """Steps a batch of environments with a policy; its buffers are reused, so a rollout lives until the next one."""

    def __init__(
        self, envs: EnvBatch, policy: Policy, steps: int, generator: torch.Generator, device: torch.device
    ) -> None:
        self.envs, self.policy, self.steps, self.generator, self.device = envs, policy, steps, generator, device
        self.recent: deque[float] = deque(maxlen=RECENT)
        self.episodes = 0
        self._obs = self._to_device(envs.reset())
        self._buffers = self._allocate()

    def _to_device(self, array: Any) -> Tensor:
        return torch.from_numpy(np.asarray(array)).to(self.device)

    def _allocate(self) -> dict[str, Tensor]:
        batch = (self.steps, self.envs.num_envs)
        obs = self._obs
        action_shape = self.envs.action_space.shape or ()
        action_type = torch.float32 if action_shape else torch.int64

        def empty(*shape: int, dtype: torch.dtype) -> Tensor:
            return torch.empty((*batch, *shape), dtype=dtype, device=self.device)

        return {
            "obs": empty(*obs.shape[1:], dtype=obs.dtype),
            "next_obs": empty(*obs.shape[1:], dtype=obs.dtype),
            "action": empty(*action_shape, dtype=action_type),
            "log_prob": empty(dtype=torch.float32),
            "value": empty(dtype=torch.float32),
            "env_reward": empty(dtype=torch.float32),
            "terminated": empty(dtype=torch.bool),
            "truncated": empty(dtype=torch.bool),
        }

    def restart(self) -> None:
        """Start all episodes anew."""
        self._obs = self._to_device(self.envs.reset())

    def collect(self) -> Rollout:
        """One rollout (steps, num_envs) of on-policy experience."""
        for t in range(self.steps):
            decision = self.policy.act(self._obs, self.generator)
            step = self.envs.step(decision.action.cpu().numpy())
            self._buffers["obs"][t] = self._obs
            self._buffers["action"][t] = decision.action
            self._buffers["log_prob"][t] = decision.log_prob
            self._buffers["value"][t] = decision.value
            self._store(t, step)
            self._count(step.scores)
        return self._rollout()

    def _store(self, t: int, step: Step) -> None:
        self._obs = self._to_device(step.obs)
        successor = self._buffers["next_obs"][t]
        successor.copy_(self._obs)
        # Only where an episode ended does the successor differ from what the policy sees next: send those rows alone.
        for row in np.flatnonzero(step.terminated | step.truncated):
            successor[row] = self._to_device(step.next_obs[row])
        self._buffers["env_reward"][t] = self._to_device(step.reward.astype(np.float32))
        self._buffers["terminated"][t] = self._to_device(step.terminated)
        self._buffers["truncated"][t] = self._to_device(step.truncated)

    def _count(self, scores: tuple[Score, ...]) -> None:
        self.episodes += len(scores)
        self.recent.extend(score.total for score in scores)

    def _rollout(self) -> Rollout:
        names = ("obs", "action", "next_obs", "terminated", "env_reward")
        return Rollout(
            transitions=Transitions(**{name: self._buffers[name] for name in names}),
            truncated=self._buffers["truncated"],
            log_prob=self._buffers["log_prob"],
            value=self._buffers["value"],
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
        self._obs = self._to_device(self.envs.restore(state["envs"]))
        self.generator.set_state(state["generator"])
        self.recent = deque(state["recent"], maxlen=RECENT)
        self.episodes = state["episodes"]

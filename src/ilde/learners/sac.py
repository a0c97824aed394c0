"""Soft actor-critic on replayed transitions, part of each batch drawn from the demonstrations.

Twin critics, learned temperature, soft targets. The reward of every drawn transition is computed anew, since rewards
learn between updates; within one update they stand still, so many of its batches are drawn and judged at once. Left
out: annealing, n-step returns, continuous actions from images.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import torch
from torch import Tensor

from ilde.data import Metrics, Transitions
from ilde.learners.base import RewardFunction
from ilde.learners.guard import FiniteGuard
from ilde.learners.replay import joined
from ilde.learners.replaying import ReplayLearner, drawn_at_once
from ilde.learners.soft import AgentConfig, SoftAgent


@dataclass(frozen=True)
class SACConfig:
    """Settings of SAC; discount, target rate, networks, batches and shares are HyPE's."""

    learning_rate: float = 3e-4
    """Of actor, critics and temperature."""
    batch_size: int = 256
    """Transitions per gradient step."""
    discount: float = 0.98
    """gamma: what a reward is worth one step later."""
    target_rate: float = 0.02
    """tau of SAC: how far the target critics move with each gradient step."""
    updates_per_step: float = 1.0
    """Gradient steps per environment step."""
    warm_up: int = 5000
    """First environment steps, with uniformly random actions and no learning."""
    replay_size: int = 1_000_000
    """Latest transitions that are kept."""
    hidden: int = 256
    """Units of each hidden layer."""
    temperature: float | None = None
    """Fixed weight of the entropy; learned if not given."""
    initial_temperature: float = 1.0
    """Where a learned temperature starts."""
    demo_share: float = 0.2
    """First part of each batch that comes from the demonstrations; 0 mixes none in."""
    final_demo_share: float = 0.1
    """The part at the end of the schedule and after it."""
    demo_share_steps: int = 200_000
    """Gradient steps over which the part moves, linearly, from the first to the final."""


def demo_share(config: SACConfig, gradient_steps: int) -> float:
    """The part of a batch that comes from the demonstrations."""
    done = min(1.0, gradient_steps / max(1, config.demo_share_steps))
    return config.demo_share + done * (config.final_demo_share - config.demo_share)


def soft_target(reward: Tensor, terminated: Tensor, next_value: Tensor, discount: float) -> Tensor:
    """reward + discount * V(s'), the future being worth nothing where the episode terminated."""
    return reward + discount * next_value * ~terminated


def critic_loss(q: Tensor, target: Tensor) -> Tensor:
    """Half the squared error, summed over critics; `q` is (critics, B)."""
    return 0.5 * (q - target).square().mean(-1).sum()


class SAC(ReplayLearner[SoftAgent]):
    """The learner `sac`."""

    offline = False

    def __init__(
        self,
        obs_space: gym.spaces.Box,
        action_space: gym.Space[object],
        config: SACConfig,
        weights: torch.Generator,
        generator: torch.Generator,
        device: torch.device,
    ) -> None:
        agent = AgentConfig(
            hidden=config.hidden,
            num_critics=2,
            learning_rate=config.learning_rate,
            actor_learning_rate=config.learning_rate,
            target_rate=config.target_rate,
            temperature=config.initial_temperature if config.temperature is None else config.temperature,
            learn_temperature=config.temperature is None,
        )
        self.config, self.gradient_steps = config, 0
        self._at_once = drawn_at_once(config.batch_size, obs_space)
        super().__init__(
            SoftAgent(obs_space, action_space, agent, weights, device), config, action_space, generator, device
        )

    def _take_steps(self, count: int, reward: RewardFunction) -> Metrics:
        share, total = demo_share(self.config, self.gradient_steps) if len(self.demos) else 0.0, 0.0
        self._averages.restart()
        for first in range(0, count, self._at_once):
            drawn = min(self._at_once, count - first)
            total += drawn * self._learn_from(self._draw(drawn, round(share * self.config.batch_size)), reward)
        self.gradient_steps += count
        return self._averages.read(count, "train") | {"train/reward": total / count, "replay/demo_share": share}

    def _learn_from(self, batches: Transitions, reward: RewardFunction) -> float:
        """A gradient step from each batch; returns their mean reward."""
        rewards, guard = reward(batches), FiniteGuard()
        guard.watch("reward", rewards)
        guard.check()
        shape = (len(rewards), 2, self.config.batch_size, self.agent.noise_width)
        noise = torch.randn(shape, generator=self.generator).to(self.device)
        inputs = (
            batches.obs,
            self.agent.actor.scaled(batches.action),
            batches.next_obs,
            batches.terminated,
            rewards,
            noise,
        )
        for step in range(len(rewards)):
            self._step(tuple(x[step] for x in inputs))
        return float(rewards.mean())

    def _draw(self, count: int, num_demos: int) -> Transitions:
        """Batches (count, batch_size) in which the demonstrations come first."""
        replayed = self.replay.sample((count, self.config.batch_size - num_demos), self.generator)
        if not num_demos:
            return replayed
        shown = self.demos.sample((count, num_demos), self.generator)
        return joined(shown, replayed)

    def _learn(self, batch: tuple[Tensor, ...]) -> dict[str, Tensor]:
        obs, action, next_obs, terminated, reward, noise = batch
        with torch.no_grad():
            next_value = self.agent.value(next_obs, noise[0], target=True)
            target = soft_target(reward, terminated, next_value, self.config.discount)
        q = self.agent.critics(obs, action)
        loss = critic_loss(q, target)
        self.agent.fit_critics(loss)
        parts = {"critic_loss": loss.detach(), "q_mean": q.detach().mean()}
        self._averages.add(parts | self.agent.improve(obs, noise[1]))
        return {}

    def state_dict(self) -> dict[str, Any]:
        """The place on the schedule of shares beside the rest."""
        return super().state_dict() | {"gradient_steps": self.gradient_steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        super().load_state_dict(state)
        self.gradient_steps = state["gradient_steps"]

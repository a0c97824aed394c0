"""IQ-Learn: a soft Q function whose own implied reward r = Q(s, a) - discount V(s') is high on demonstrations.

Minimises -E_demo[r] + (value term) + chi_weight E[r^2]: imitation without a discriminator. Soft Q for discrete actions,
actor and critic for continuous ones; from demonstrations alone, or with replayed steps of the policy beside them. Left
out: divergences other than chi^2, the gradient penalty, imitation from states alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

import gymnasium as gym
import torch
from torch import Tensor

from ilde.data import Metrics, Transitions
from ilde.learners.base import RewardFunction
from ilde.learners.replay import joined
from ilde.learners.replaying import ReplayLearner, drawn_at_once
from ilde.learners.soft import AgentConfig, Judged
from ilde.learners.soft_q import Agent, build_agent
from ilde.patience import counted


@dataclass(frozen=True)
class IQLearnConfig:
    """Settings of IQ-Learn; the defaults are its authors' for HalfCheetah from one demonstration."""

    online: bool = True
    """Act, and set the policy's own steps beside the demonstrations; otherwise learn from these alone, without a step
    in the environment."""
    offline_steps: int = 20_000
    """Gradient steps when not online."""
    learning_rate: float = 3e-4
    """Of the values."""
    actor_learning_rate: float = 3e-5
    """Of the actor (continuous actions only)."""
    batch_size: int = 256
    """Demonstrated transitions per gradient step; online as many of the policy's beside them."""
    discount: float = 0.99
    """gamma: what a reward is worth one step later."""
    temperature: float = 0.01
    """Weight of the entropy, fixed."""
    value_term: Literal["value", "value-demos", "initial"] = "value"
    """E[V(s) - discount V(s')] over all states or over those of the demonstrations, or (1 - discount) E_demo[V(s)].
    Its authors take the first for HalfCheetah and Ant, the last for Hopper and Walker2d."""
    chi_weight: float = 0.5
    """Weight of the squared reward: 1 / (4 alpha) of IQ-Learn."""
    chi_on: Literal["all", "demos"] = "all"
    """Which transitions the squared reward is taken over."""
    target: bool = True
    """Take V(s') from a target network, without gradient; otherwise from the network itself, with gradient."""
    target_rate: float = 0.005
    """How far the target network moves with each gradient step."""
    updates_per_step: float = 1.0
    """Gradient steps per environment step, online."""
    warm_up: int = 1000
    """First environment steps, with uniformly random actions and no learning."""
    replay_size: int = 500_000
    """Latest transitions of the policy that are kept."""
    hidden: int = 256
    """Units of each hidden layer on vector observations."""


def iq_loss(
    judged: Judged, terminated: Tensor, num_demos: int, config: IQLearnConfig
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of a batch whose first `num_demos` transitions are demonstrated, and its parts."""
    future = config.discount * judged.next_value * ~terminated
    reward, gain = judged.q - future, judged.value - future
    match config.value_term:
        case "value":
            value_loss = gain.mean()
        case "value-demos":
            value_loss = gain[:num_demos].mean()
        case "initial":
            value_loss = (1.0 - config.discount) * judged.value[:num_demos].mean()
        case _:
            assert_never(config.value_term)
    shown = reward[:, :num_demos]
    demo_reward = shown.mean()
    chi_loss = config.chi_weight * (reward if config.chi_on == "all" else shown).square().mean()
    parts = {"demo_reward": demo_reward, "value_loss": value_loss, "chi_loss": chi_loss, "value": judged.value.mean()}
    if num_demos < reward.shape[1]:
        parts["policy_reward"] = reward[:, num_demos:].mean()
    loss = value_loss + chi_loss - demo_reward
    return loss, {name: part.detach() for name, part in (parts | {"loss": loss}).items()}


class IQLearn(ReplayLearner[Agent]):
    """The learner `iq-learn`; the reward function is never asked."""

    def __init__(
        self,
        obs_space: gym.spaces.Box,
        action_space: gym.Space[object],
        config: IQLearnConfig,
        weights: torch.Generator,
        generator: torch.Generator,
        device: torch.device,
    ) -> None:
        agent = AgentConfig(
            hidden=config.hidden,
            num_critics=1,
            learning_rate=config.learning_rate,
            actor_learning_rate=config.actor_learning_rate,
            target_rate=config.target_rate,
            temperature=config.temperature,
            learn_temperature=False,
        )
        self.config = config
        self._at_once = drawn_at_once(2 * config.batch_size, obs_space)
        super().__init__(
            build_agent(obs_space, action_space, agent, weights, device), config, action_space, generator, device
        )

    @property
    def offline(self) -> bool:
        """Whether demonstrations are all there is."""
        return not self.config.online

    def fit(self, demos: Transitions) -> Metrics:
        """Keep the demonstrations; if they are all there is, learn from them."""
        super().fit(demos)
        return self._take_steps(self.config.offline_steps) if self.offline else {}

    def _take_steps(self, count: int, reward: RewardFunction | None = None) -> Metrics:
        self._averages.restart()
        for first in counted(count, "iq-learn", "gradient steps", stride=self._at_once):
            drawn = min(self._at_once, count - first)
            batches = self._draw(drawn)
            shape = (drawn, 3, batches.terminated.shape[-1], self.agent.noise_width)
            noise = torch.randn(shape, generator=self.generator).to(self.device)
            inputs = (batches.obs, batches.action, batches.next_obs, batches.terminated, noise)
            for step in range(drawn):
                self._step(tuple(x[step] for x in inputs))
        return self._averages.read(count, "iq")

    def _draw(self, count: int) -> Transitions:
        """So many batches, in each of which the demonstrations come first."""
        shape = (count, self.config.batch_size)
        shown = self.demos.sample(shape, self.generator)
        return shown if self.offline else joined(shown, self.replay.sample(shape, self.generator))

    def _learn(self, batch: tuple[Tensor, ...]) -> dict[str, Tensor]:
        obs, action, next_obs, terminated, noise = batch
        judged = self.agent.judge(obs, action, next_obs, noise[:2], target=self.config.target)
        loss, parts = iq_loss(judged, terminated, self.config.batch_size, self.config)
        self.agent.fit_critics(loss)
        self._averages.add(parts | self.agent.improve(obs, noise[2]))
        return {}

"""Proximal policy optimisation as the paper's ancestors run it; one minibatch step is one CUDA graph on a GPU.

Advantages are normalised once over the rollout, the value loss is clipped with the policy's own range, the learning
rate falls linearly. Left out: recurrent policies, annealed clipping, early stopping by divergence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from ilde.data import Metrics, Rollout, Transitions
from ilde.learners.averages import Averages
from ilde.learners.base import RewardFunction
from ilde.learners.descent import Descent
from ilde.learners.guard import FiniteGuard
from ilde.learners.returns import generalised_advantage
from ilde.nets.policy import ActorCritic
from ilde.nets.steps import Inputs, fused, make_step


@dataclass(frozen=True)
class PPOConfig:
    """Settings of PPO; the defaults are the paper's for Atari."""

    learning_rate: float = 2.5e-4
    """Of policy and value; the first one, where it falls."""
    anneal: bool = True
    """Let the learning rate fall linearly to 0 over the schedule."""
    num_epochs: int = 4
    """Passes over each rollout."""
    num_minibatches: int = 32
    """Gradient steps of one pass: how many parts a rollout is cut into, not how large they are."""
    clip_range: float = 0.1
    """epsilon of PPO, for the policy and for the value."""
    clip_value: bool = True
    """Clip the value's move as well."""
    discount: float = 0.99
    """gamma: what a reward is worth one step later."""
    gae_lambda: float = 0.95
    """lambda of generalised advantage estimation: 0 trusts the values alone, 1 the rewards seen."""
    endless: bool = False
    """Let returns go on into the next life or episode, of rewards less their mean over the rollout: living on is then
    worth nothing in itself, which a reward that is never negative would pay for before anything else."""
    entropy_weight: float = 0.01
    """Weight of the entropy of actions, which keeps them varied."""
    value_weight: float = 0.5
    """Weight of half the squared value error."""
    max_grad_norm: float = 0.5
    """Longer gradients, over all weights together, are cut to this length."""
    advantages: Literal["rollout", "minibatch", "raw"] = "rollout"
    """Over what advantages are normalised."""
    fuse: bool = True
    """On a GPU, compile loss, descent and acting into few kernels; the same numbers to float tolerance."""
    hidden: int = 100
    """Units of each hidden layer on vector observations."""
    initial_log_std: float = 0.0
    """Logarithm of the first spread of continuous actions."""
    initial_action_gain: float = 1.0
    """Gain of the last layer's first weights for continuous actions; near 0 the first mean action is 0 everywhere."""


class Batch(NamedTuple):
    """What one minibatch step needs, flat."""

    obs: Tensor
    action: Tensor
    log_prob: Tensor
    value: Tensor
    advantage: Tensor
    target: Tensor


def normalised(advantage: Tensor, eps: float = 1e-5) -> Tensor:
    """Zero mean, unit deviation."""
    return (advantage - advantage.mean()) / (advantage.std() + eps)


def ppo_loss(policy: ActorCritic, batch: Batch, config: PPOConfig) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of one minibatch and its parts."""
    distribution, value = policy(batch.obs)
    advantage = normalised(batch.advantage, 1e-8) if config.advantages == "minibatch" else batch.advantage
    log_ratio = distribution.log_prob(batch.action) - batch.log_prob
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - config.clip_range, 1 + config.clip_range)
    policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
    value_error = (value - batch.target).square()
    if config.clip_value:
        near = batch.value + (value - batch.value).clamp(-config.clip_range, config.clip_range)
        value_error = torch.max(value_error, (near - batch.target).square())
    value_loss = 0.5 * value_error.mean()
    entropy = distribution.entropy().mean()
    loss = policy_loss + config.value_weight * value_loss - config.entropy_weight * entropy
    parts = {
        "policy_gradient_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": entropy,
        "approx_kl": (ratio - 1 - log_ratio).mean(),
        "clip_fraction": ((ratio - 1).abs() > config.clip_range).float().mean(),
    }
    return loss, {name: part.detach() for name, part in parts.items()}


class PPO:
    """The learner `ppo`."""

    offline = False

    def __init__(self, policy: ActorCritic, config: PPOConfig, generator: torch.Generator) -> None:
        self._policy, self.config, self.generator = policy, config, generator
        self.device = next(policy.parameters()).device
        self.learning_rate = torch.tensor(config.learning_rate, device=self.device)
        self._descend = Descent(
            policy.parameters(),
            self.learning_rate,
            max_norm=config.max_grad_norm,
            eps=1e-5,
            packed=config.fuse and self.device.type == "cuda",
        )
        self._loss = fused(ppo_loss, self.device) if config.fuse else ppo_loss
        self._step = make_step(self._learn, self.device)
        self._advantage = make_step(self._estimate, self.device)
        self._held: tuple[Tensor, ...] = ()
        self._averages = Averages()

    @property
    def policy(self) -> ActorCritic:
        """The policy under training."""
        return self._policy

    @property
    def explorer(self) -> ActorCritic:
        """The policy under training."""
        return self._policy

    def fit(self, demos: Transitions) -> Metrics:
        """Demonstrations reach the policy through the reward alone."""
        return {}

    def update(self, rollout: Rollout, reward: RewardFunction, progress: float) -> Metrics:
        """Some epochs of minibatches over one rollout."""
        guard = FiniteGuard()
        rewards = reward(rollout.transitions)
        guard.watch("reward", rewards)
        if self.config.anneal:
            self.learning_rate.fill_(self.config.learning_rate * max(0.0, 1.0 - progress))
        batch = self._batch(rollout, rewards)
        guard.watch("advantage", batch.advantage)
        guard.check()
        self._hold(batch)
        minibatches = self._minibatches(len(batch.value))
        self._averages.restart()
        for index in minibatches:
            self._step((index,))
        metrics = self._averages.read(len(minibatches), "train")
        self.policy.observe(rollout.transitions.flatten().obs)
        return metrics | self._diagnostics(batch) | {"train/learning_rate": float(self.learning_rate)}

    def _batch(self, rollout: Rollout, reward: Tensor) -> Batch:
        transitions = rollout.transitions
        terminated, ended = transitions.terminated, rollout.ended
        if self.config.endless:
            reward, terminated, ended = reward - reward.mean(), torch.zeros_like(terminated), rollout.truncated
        seen = (reward, rollout.value, self._next_value(rollout), terminated, ended)
        advantage = self._advantage(seen)["advantage"]
        target = advantage + rollout.value
        if self.config.advantages == "rollout":
            advantage = normalised(advantage)
        flat = transitions.flatten()
        rest = (rollout.log_prob, rollout.value, advantage, target)
        return Batch(flat.obs, flat.action, *(x.flatten() for x in rest))

    def _estimate(self, seen: Inputs) -> dict[str, Tensor]:
        reward, value, next_value, terminated, ended = seen
        advantage = generalised_advantage(
            reward,
            value,
            next_value,
            terminated=terminated,
            ended=ended,
            discount=self.config.discount,
            gae_lambda=self.config.gae_lambda,
        )
        return {"advantage": advantage}

    def _next_value(self, rollout: Rollout) -> Tensor:
        """Values of the true successors: the next step's own value, except after the last step and at time limits."""
        next_value = rollout.value.roll(-1, 0)
        apart = rollout.truncated.clone()
        apart[-1] = True
        next_value[apart] = self.policy.value(rollout.transitions.next_obs[apart])
        return next_value

    def _minibatches(self, size: int) -> list[Tensor]:
        # The remainder is dropped, so that every step has one shape.
        count = min(size, self.config.num_minibatches)
        width = size // count
        index: list[Tensor] = []
        for _ in range(self.config.num_epochs):
            order = torch.randperm(size, generator=self.generator).to(self.device)
            index += order[: count * width].split(width)
        return index

    def _hold(self, batch: Batch) -> None:
        """Put the rollout where the step reads it, its numbers side by side; a captured step reads nowhere else."""
        fresh = (batch.obs, batch.action, torch.stack(batch[2:], -1))
        if self.device.type == "cpu":
            self._held = fresh
        elif not self._held:
            self._held = tuple(x.clone() for x in fresh)
        else:
            for held, new in zip(self._held, fresh, strict=True):
                held.copy_(new)

    def _learn(self, minibatch: tuple[Tensor, ...]) -> dict[str, Tensor]:
        (index,) = minibatch
        obs, action, numbers = (x[index] for x in self._held)
        loss, parts = self._loss(self.policy, Batch(obs, action, *numbers.unbind(-1)), self.config)
        norm = self._descend(loss)
        self._averages.add(parts | {"loss": loss.detach(), "gradient_norm": norm})
        return {}

    def _diagnostics(self, batch: Batch) -> Metrics:
        unexplained = (batch.target - batch.value).var() / batch.target.var().clamp(min=1e-12)
        metrics = {"train/explained_variance": 1.0 - float(unexplained), "train/value_mean": float(batch.value.mean())}
        if self.policy.log_std is not None:
            metrics["train/std"] = float(self.policy.log_std.detach().exp().mean())
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """Policy with its observation statistics, optimiser, randomness."""
        return {
            "policy": self.policy.state_dict(),
            "optimiser": self._descend.state_dict(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.policy.load_state_dict(state["policy"])
        self._descend.load_state_dict(state["optimiser"])
        self.generator.set_state(state["generator"])

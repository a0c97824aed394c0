"""The loop: collect, let the reward learn, let the policy learn.

Data flow one way. Everything a run depends on is in `state_dict`, so that a run can stop and go on anywhere.
"""

from __future__ import annotations

import time
from typing import Any, assert_never

import torch

from ilde.collector import Collector
from ilde.config import RunConfig
from ilde.data import Metrics, Transitions
from ilde.envs.base import EnvBatch
from ilde.learners.base import Learner, NoLearning
from ilde.learners.cloning import Cloning
from ilde.learners.iq_learn import IQLearn
from ilde.learners.ppo import PPO
from ilde.learners.sac import SAC
from ilde.methods import find_method
from ilde.nets.policy import ActorCritic, UniformPolicy
from ilde.randomness import torch_generator
from ilde.rewards.build import build_reward


class Trainer:
    """One run: a reward, a learner and a collector that feeds both."""

    def __init__(self, config: RunConfig, envs: EnvBatch, device: torch.device) -> None:
        self.config, self.envs, self.device = config, envs, device
        self.method = find_method(config.method)
        self.reward = build_reward(
            config.reward or self.method.reward,
            config.rewards,
            envs.obs_space,
            envs.action_space,
            num_envs=envs.num_envs,
            clip_actions=config.clip_actions,
            seed=config.seed,
            device=device,
        )
        self.learner = self._build_learner()
        self.collector = Collector(
            envs,
            self.learner.explorer,
            config.rollout_steps,
            torch_generator(config.seed, "acting", device),
            device,
            fuse=config.ppo.fuse,
        )
        self.env_steps = 0
        self.updates = 0
        self.seconds: Metrics = {}

    def _build_learner(self) -> Learner:
        config, spaces = self.config, (self.envs.obs_space, self.envs.action_space)
        generator, weights = (torch_generator(config.seed, role) for role in ("minibatches", "policy"))
        match self.method.learner:
            case "ppo":
                return PPO(self._build_policy(), config.ppo, generator)
            case "sac":
                return SAC(*spaces, config.sac, weights, generator, self.device)
            case "iq-learn":
                return IQLearn(*spaces, config.iq, weights, generator, self.device)
            case "bc":
                return Cloning(self._build_policy(), config.cloning, generator)
            case "none":
                return NoLearning(UniformPolicy(self.envs.action_space).to(self.device))
            case _:
                assert_never(self.method.learner)

    def _build_policy(self) -> ActorCritic:
        return ActorCritic(
            self.envs.obs_space,
            self.envs.action_space,
            self.config.ppo.hidden,
            torch_generator(self.config.seed, "policy"),
            initial_log_std=self.config.ppo.initial_log_std,
            initial_action_gain=self.config.ppo.initial_action_gain,
        ).to(self.device)

    def fit(self, demos: Transitions | None, background: Transitions | None) -> Metrics:
        """Everything that is learned before interaction; `background` gives features their scale, if there are any."""
        metrics = {} if background is None else self.reward.fit(demos, background)
        return metrics if demos is None else metrics | self.learner.fit(demos)

    def iterate(self) -> Metrics:
        """One iteration of the algorithm."""
        began = time.perf_counter()
        rollout = self.collector.collect()
        collected = time.perf_counter()
        metrics = self.reward.update(rollout)
        rewarded = time.perf_counter()
        metrics |= self.learner.update(rollout, self.reward.reward, self.progress)
        learned = time.perf_counter()
        self.env_steps += len(rollout.transitions)
        self.updates += 1
        self.seconds = {
            "time/collect": collected - began,
            "time/reward": rewarded - collected,
            "time/learn": learned - rewarded,
        }
        return metrics | self.collector.metrics()

    @property
    def progress(self) -> float:
        """The place on the learning-rate schedule, from 0 to 1."""
        return self.env_steps / (self.config.schedule_steps or self.config.steps)

    @property
    def done(self) -> bool:
        """Whether the run has had its steps, or needs none."""
        return self.learner.offline or self.env_steps >= self.config.steps

    def state_dict(self) -> dict[str, Any]:
        """Everything the next iteration depends on."""
        return {
            "reward": self.reward.state_dict(),
            "learner": self.learner.state_dict(),
            "collector": self.collector.state_dict(),
            "env_steps": self.env_steps,
            "updates": self.updates,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.reward.load_state_dict(state["reward"])
        self.learner.load_state_dict(state["learner"])
        self.collector.load_state_dict(state["collector"])
        if self.envs.resume_mode != "exact":
            self.reward.begin_episodes()
        self.env_steps, self.updates = state["env_steps"], state["updates"]

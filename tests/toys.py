"""Small batches, environments and demonstrations; every number in them is drawn from a named seed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

import gymnasium as gym
import numpy as np
import torch

from ilde.config import RunConfig
from ilde.data import Rollout, Transitions
from ilde.demos import Demonstrations, Episode, Header
from ilde.learners.iq_learn import IQLearnConfig
from ilde.learners.ppo import PPOConfig
from ilde.learners.sac import SACConfig
from ilde.prepare import build, fit
from ilde.rewards.build import RewardConfig, build_reward
from ilde.rewards.compose import RewardMix
from ilde.rewards.discriminator import DiscriminatorConfig
from ilde.rewards.dynamics import DynamicsConfig
from ilde.rewards.elliptical import EllipticalConfig
from ilde.rewards.generative import GenerativeConfig
from ilde.trainer import Trainer

Kind: TypeAlias = Literal["vector", "continuous", "image"]
"""Vectors with three actions, vectors with a continuous action in two dimensions, 84x84 images with three actions."""
KINDS: tuple[Kind, ...] = ("vector", "continuous", "image")
CPU = torch.device("cpu")

SMALL = RewardConfig(
    generative=GenerativeConfig(epochs=3, subsample=1, batch_size=8),
    dynamics=DynamicsConfig(epochs=3, subsample=1, batch_size=8),
    discriminator=DiscriminatorConfig(batch_size=4, passes=2),
    elliptical=EllipticalConfig(width=4, batch_size=8),
    hidden=16,
    background_steps=32,
)
"""Reward settings under which fitting and updating take milliseconds."""


def spaces(kind: Kind) -> tuple[gym.spaces.Box, gym.Space[Any]]:
    """Observation and action space."""
    images = gym.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    obs = images if kind == "image" else gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    return obs, gym.spaces.Box(-1.0, 1.0, (2,), np.float32) if kind == "continuous" else gym.spaces.Discrete(3)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def transitions(kind: Kind, *batch: int, seed: int = 0) -> Transitions:
    """Random steps whose successor depends on state and action; an eighth of them terminate."""
    draw = generator(seed)
    if kind == "continuous":
        action = torch.randn(*batch, 2, generator=draw)
        move = action.clamp(-1, 1)
    else:
        action = torch.randint(3, batch, generator=draw)
        move = torch.stack([action - 1.0, 1.0 - action], -1)
    if kind == "image":
        obs = torch.randint(256, (*batch, 4, 84, 84), generator=draw, dtype=torch.uint8)
        next_obs = (obs + 40 * action.to(torch.uint8)[..., None, None, None]).to(torch.uint8)
    else:
        obs = torch.randn(*batch, 2, generator=draw)
        next_obs = 0.5 * obs + move
    ends = torch.rand(batch, generator=draw) < 0.125
    return Transitions(obs, action, next_obs, ends, torch.randn(batch, generator=draw))


def rollout(kind: Kind, steps: int = 6, envs: int = 3, seed: int = 1) -> Rollout:
    """Random steps in time order, with both kinds of ending; successors are not chained to the next step."""
    draw = generator(seed + 1000)
    batch = transitions(kind, steps, envs, seed=seed)
    truncated = (torch.rand(steps, envs, generator=draw) < 0.125) & ~batch.terminated
    log_prob = -torch.rand(steps, envs, generator=draw)
    return Rollout(batch, truncated, log_prob, torch.randn(steps, envs, generator=draw))


def poisoned(batch: Transitions) -> Transitions:
    """The same steps, with a true reward that ruins whatever touches it."""
    return replace(batch, env_reward=torch.full_like(batch.env_reward, torch.nan))


def reward_mix(expression: str, kind: Kind = "vector", seed: int = 0, config: RewardConfig = SMALL) -> RewardMix:
    """A reward that has learned nothing yet."""
    return build_reward(
        expression, config, *spaces(kind), num_envs=3, clip_actions=True, seed=seed, device=CPU
    )  # fmt: skip


class Toy(gym.Env[Any, Any]):
    """An environment whose observation is one short vector and whose actions are few."""

    observation_space: Any = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space: Any = gym.spaces.Discrete(2)
    steps: int

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        self.begin()
        return self.observe(), {}

    def begin(self) -> None:
        """Draw what an episode starts with."""
        self.mark = float(self.np_random.choice([-1.0, 1.0]))

    def observe(self) -> Any:
        """Nothing to see."""
        return np.zeros(1, np.float32)


class ConstantReward(Toy):
    """Probe 1, the value: one step, worth 1."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observe(), 1.0, True, False, {}


class SeenReward(Toy):
    """Probe 2, the value of an observation: one step, worth the -1 or +1 that is seen."""

    def observe(self) -> Any:
        return np.array([self.mark], np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observe(), self.mark, True, False, {}


class LateReward(Toy):
    """Probe 3, discounting: two steps, seen as 0 and 1; only the second is worth 1."""

    def observe(self) -> Any:
        return np.array([self.steps], np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return self.observe(), float(self.steps == 2), self.steps == 2, False, {}


class ChosenReward(Toy):
    """Probe 4, the policy: one step, worth +1 for action 1 and -1 for action 0."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observe(), 1.0 if action == 1 else -1.0, True, False, {}


class MatchedReward(SeenReward):
    """Probe 5, policy and value together: +1 for action 1 where +1 is seen and action 0 where -1 is, else -1."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observe(), 1.0 if (action == 1) == (self.mark > 0) else -1.0, True, False, {}


class Corridor(Toy):
    """A walk on [0, 1] from 0, `stride` at a time, for 30 steps; a step is worth the place it leads to.

    Action 0 goes back, 1 stays, 2 goes on; a continuous action is the step in strides.
    """

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)

    def __init__(self, *, continuous: bool = False, stride: float = 0.1) -> None:
        self.continuous, self.stride = continuous, stride
        self.action_space = gym.spaces.Box(-1.0, 1.0, (1,)) if continuous else gym.spaces.Discrete(3)

    def begin(self) -> None:
        self.place = 0.0

    def observe(self) -> Any:
        return np.array([self.place], np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        move = float(action[0]) if self.continuous else int(action) - 1
        self.place = min(max(self.place + self.stride * move, 0.0), 1.0)
        self.steps += 1
        return self.observe(), self.place, False, self.steps == 30, {}


def continuous_corridor() -> Corridor:
    return Corridor(continuous=True)


def recorded(env: Corridor, actions: list[Any]) -> Demonstrations:
    """One episode of a corridor under the given actions."""
    first, _ = env.reset()
    steps = [env.step(action) for action in actions]
    reward = np.array([step[1] for step in steps])
    episode = Episode(
        obs=np.stack([first, *(step[0] for step in steps)]),
        action=np.array(actions, dtype=env.action_space.dtype),
        reward=reward,
        trembled=np.zeros(len(actions), dtype=bool),
        terminated=False,
        truncated=steps[-1][3],
    )
    header = Header(
        env_id="Corridor", simulator_versions={}, recorder="by hand", seeds=(None,), returns=(float(reward.sum()),),
        lives=(0,), until="episode", greedy=True, tremble=0.0, created="2025-01-01", command="",
    )  # fmt: skip
    return Demonstrations("Corridor", (episode,), header)


def corridor_demos(*, continuous: bool = False) -> Demonstrations:
    """Down the corridor in ten steps, then waiting at its end: 30 steps."""
    on, stay = ([1.0], [0.0]) if continuous else (2, 1)
    return recorded(Corridor(continuous=continuous), [on] * 10 + [stay] * 20)


HYPE = DiscriminatorConfig(
    learning_rate=3e-3, batch_size=32, input="state-action", reward_form="logit", loss="linear", gradient_penalty=10.0,
    penalty_norm=0.4, rollouts=2, slowing=False,
)  # fmt: skip
"""A discriminator as HyPE has it, for a demonstration of 30 steps."""

TINY = RunConfig(
    method="expert",
    steps=10_000,
    num_envs=8,
    rollout_steps=32,
    device="cpu",
    ppo=PPOConfig(
        learning_rate=1e-2, anneal=False, num_epochs=4, num_minibatches=4, clip_range=0.2, clip_value=False, hidden=16
    ),
    sac=SACConfig(
        learning_rate=3e-3, batch_size=32, target_rate=0.05, updates_per_step=0.125, warm_up=256, replay_size=4096,
        hidden=32, initial_temperature=0.1, demo_share_steps=400,
    ),
    iq=IQLearnConfig(
        learning_rate=3e-3, actor_learning_rate=3e-3, batch_size=32, offline_steps=300, target_rate=0.05,
        updates_per_step=0.125, warm_up=256, replay_size=4096, hidden=32,
    ),
    rewards=replace(
        SMALL,
        generative=GenerativeConfig(learning_rate=3e-3, epochs=300, subsample=1, action_weight=0.01),
        dynamics=DynamicsConfig(learning_rate=3e-3, epochs=300, subsample=1),
        elliptical=EllipticalConfig(),
        hidden=32,
        background_steps=1024,
    ),
)  # fmt: skip
"""A run whose iterations take hundredths of a second."""


def corridor_trainer(method: str, *, continuous: bool = False, stride: float = 0.1, **changes: Any) -> Trainer:
    """A trainer on the corridor that has learned all that comes before interaction."""
    config = replace(TINY, method=method, **changes)
    env = partial(Corridor, continuous=continuous, stride=stride)
    trainer, demos = build(config, env=env, demos=corridor_demos(continuous=continuous))
    fit(trainer, demos)
    return trainer

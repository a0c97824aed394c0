"""The configuration of a run: frozen, one sentence per field, presets, a JSON round trip.

A field is named by its dotted path on the command line (`--ppo.learning-rate 1e-4`).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ilde.data import UserError
from ilde.fields import check_types, did_you_mean
from ilde.fields import from_dict as from_dict
from ilde.fields import override as override
from ilde.fields import to_dict as to_dict
from ilde.learners.cloning import CloningConfig
from ilde.learners.iq_learn import IQLearnConfig
from ilde.learners.ppo import PPOConfig
from ilde.learners.sac import SACConfig
from ilde.limits import check_limits
from ilde.methods import find_method
from ilde.rewards.build import RewardConfig
from ilde.rewards.compose import ScaleConfig
from ilde.rewards.discriminator import DiscriminatorConfig
from ilde.rewards.dynamics import DynamicsConfig
from ilde.rewards.entropy import EntropyConfig
from ilde.rewards.generative import GenerativeConfig
from ilde.rewards.simple import EnvRewardConfig

Device: TypeAlias = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True)
class EvaluationConfig:
    """When and how the true reward is measured; it never reaches a learner."""

    every: int = 200
    """Updates between evaluations; 0 evaluates at the end only."""
    episodes: int = 10
    """Whole episodes per evaluation."""
    final_episodes: int = 30
    """Whole episodes at the end of the run."""
    max_steps: int = 0
    """Cut an episode of the evaluations along the way after this many agent steps; 0 never cuts."""
    final_max_steps: int = 0
    """The same at the end: only for trials whose scores mean nothing."""
    greedy: bool = True
    """Take the most likely action."""


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run's numbers."""

    method: str = "ilde"
    """A row of the methods table."""
    env: str = "HalfCheetah-v5"
    """A Gymnasium id; an ALE id names the game only."""
    demos: str | None = None
    """A bundled name or a path, with an optional `:0.1` for the first tenth of each episode."""
    reward: str | None = None
    """Replaces the method's reward expression."""
    steps: int = 1_000_000
    """Agent steps in all."""
    schedule_steps: int | None = None
    """Agent steps over which the learning rate falls to 0; `steps` if not given."""
    seed: int = 0
    """Decides every random number of the run."""
    preset: str = "quick"
    """Where the other settings came from."""
    num_envs: int = 16
    """N of the rollout: environments stepped together."""
    rollout_steps: int = 256
    """T of the rollout: steps of each environment per update."""
    clip_actions: bool = True
    """Clip continuous actions to the space's bounds before execution; the paper's numbers need them unclipped."""
    checkpoint_every: int = 20
    """Updates between checkpoints."""
    device: Device = "auto"
    """Where networks live; `auto` takes a GPU if there is one."""
    threads: int = 0
    """Threads of the tensor library on CPU; 0 chooses by the size of the networks."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    sac: SACConfig = field(default_factory=SACConfig)
    iq: IQLearnConfig = field(default_factory=IQLearnConfig)
    cloning: CloningConfig = field(default_factory=CloningConfig)
    rewards: RewardConfig = field(default_factory=RewardConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)


@dataclass(frozen=True)
class Preset:
    """A named starting point."""

    name: str
    summary: str
    config: RunConfig


ATARI = RunConfig(
    preset="atari",
    env="ALE/Qbert-v5",
    steps=50_000_000,
    num_envs=32,
    rollout_steps=128,
    checkpoint_every=250,
    ppo=PPOConfig(),
    # Without a step in the environment: what IQ-Learn's own Atari script comes to, whose loss sees demonstrations only.
    iq=IQLearnConfig(
        online=False,
        learning_rate=1e-4,
        batch_size=64,
        temperature=1e-3,
        value_term="value-demos",
        target=False,
        replay_size=100_000,
    ),
    rewards=RewardConfig(
        env=EnvRewardConfig(form="sign"),
        generative=GenerativeConfig(epochs=1000, subsample=4, action_weight=100.0),
        dynamics=DynamicsConfig(epochs=1000, subsample=4),
        hidden=1024,
    ),
    evaluation=EvaluationConfig(every=200, episodes=10, final_episodes=30),
)

# A stalling greedy policy can play 27,000 steps a game: along the way the curve comes from whole training games.
ATARI_SHORT = dataclasses.replace(
    ATARI,
    preset="atari-short",
    steps=4_000_000,
    schedule_steps=50_000_000,
    evaluation=EvaluationConfig(every=244, episodes=10, final_episodes=30, max_steps=4500),
)

MUJOCO = RunConfig(
    preset="mujoco",
    env="Hopper-v4",
    steps=10_000_000,
    num_envs=32,
    rollout_steps=2048,
    clip_actions=False,
    checkpoint_every=6,
    ppo=PPOConfig(learning_rate=3e-4, num_epochs=10, entropy_weight=0.0),
    rewards=RewardConfig(
        generative=GenerativeConfig(epochs=10_000, subsample=20, action_weight=0.01, true_action_share=0.5),
        dynamics=DynamicsConfig(epochs=10_000, subsample=20),
    ),
    evaluation=EvaluationConfig(every=6, episodes=10, final_episodes=30),
)

QUICK_PLAIN = RunConfig(
    preset="quick-plain",
    steps=400_000,
    ppo=PPOConfig(
        learning_rate=3e-4,
        num_epochs=10,
        num_minibatches=16,
        clip_range=0.2,
        entropy_weight=0.01,
        clip_value=False,
        initial_action_gain=0.01,
    ),
    rewards=RewardConfig(
        generative=GenerativeConfig(epochs=400, subsample=1, action_weight=0.01, true_action_share=0.5),
        dynamics=DynamicsConfig(epochs=400, subsample=1),
        discriminator=DiscriminatorConfig(passes=2, input="state-action"),
        entropy=EntropyConfig(max_references=1024),
        curiosity_factor=0.2,
    ),
    evaluation=EvaluationConfig(every=0, episodes=10, final_episodes=20),
)

# A discriminator that must not be steep shows a way towards the demonstrator from afar, and on beyond it; the penalty
# bounds its logit already, so that the bottleneck may be wider (ADR 15).
QUICK = dataclasses.replace(
    QUICK_PLAIN,
    preset="quick",
    rewards=dataclasses.replace(
        QUICK_PLAIN.rewards,
        discriminator=dataclasses.replace(
            QUICK_PLAIN.rewards.discriminator, bottleneck_weight=0.1, gradient_penalty=10.0
        ),
    ),
)

# Discriminator, batches and shares as in HyPE's code for Hopper; a round of the discriminator every 4,992 steps.
REPLAY = RunConfig(
    preset="replay",
    steps=300_000,
    num_envs=4,
    rollout_steps=16,
    checkpoint_every=500,
    rewards=dataclasses.replace(
        QUICK.rewards,
        discriminator=DiscriminatorConfig(
            learning_rate=8e-4,
            batch_size=4096,
            input="state-action",
            reward_form="logit",
            loss="linear",
            gradient_penalty=10.0,
            penalty_norm=0.4,
            rollouts=78,
            slowing=True,
        ),
        entropy=EntropyConfig(max_references=256, window=10_000),
        scale=ScaleConfig(terms="novelty", total=False),
        hidden=256,
    ),
    evaluation=QUICK.evaluation,
)

PRESETS: tuple[Preset, ...] = (
    Preset("quick", "small machines: 16 x 256 rollouts, minutes on two cores", QUICK),
    Preset("quick-plain", "the same without a gradient penalty, as our baselines were measured", QUICK_PLAIN),
    Preset("atari", "the paper's Atari settings: 32 x 128 rollouts, 50M steps", ATARI),
    Preset(
        "atari-short",
        "the same for short budgets: 10 capped games every million steps, 30 whole ones at the end",
        ATARI_SHORT,
    ),
    Preset("replay", "learners with a replay buffer: 64 gradient steps for 4 x 16 steps, 300k steps", REPLAY),
    Preset("mujoco", "the paper's MuJoCo settings: 32 x 2048 rollouts, 10M steps", MUJOCO),
)


def find_preset(name: str) -> RunConfig:
    """The configuration of that name."""
    for preset in PRESETS:
        if preset.name == name:
            return preset.config
    raise UserError(f"unknown preset {name!r}; {did_you_mean(name, [p.name for p in PRESETS])}")


def usual_preset(method: str, *, atari: bool) -> str:
    """The preset of a run that names none."""
    if atari:
        return "atari"
    return "replay" if find_method(method).replays else "quick"


def _check_curiosity(curiosity: GenerativeConfig, rollout: int | None) -> None:
    """Raise where it could pay nothing; `rollout` is its length, if rewards are given by rollouts."""
    dying, settled = curiosity.dying_steps, curiosity.settled_steps
    if rollout is not None and dying >= rollout:
        raise UserError(f"rewards.generative.dying_steps: {dying} of a rollout of {rollout}; name fewer")
    if rollout is not None and 2 * settled > rollout:
        sides = f"{settled} before and from a step, in a rollout of {rollout}"
        raise UserError(f"rewards.generative.settled_steps: {sides}; name at most half of it")
    if 0 < curiosity.surprise_limit <= curiosity.surprise_floor:
        limits = f"a limit of {curiosity.surprise_limit:g} and a floor of {curiosity.surprise_floor:g}"
        raise UserError(f"rewards.generative.surprise_limit: {limits} leave nothing to pay; raise the limit")


def validated(config: RunConfig) -> RunConfig:
    """The configuration itself, if its values are of the right types and its numbers make sense."""
    check_types(config)
    check_limits(config)
    method, batch = find_method(config.method), config.num_envs * config.rollout_steps
    if config.reward is not None and not method.rewarded:
        raise UserError(f"reward: method {method.name} asks for none, so that another changes nothing; leave it out")
    if config.ppo.num_minibatches > batch and method.learner == "ppo":
        count = config.ppo.num_minibatches
        raise UserError(f"ppo.num_minibatches: {count} of a rollout of {batch} steps; at most one for each step")
    _check_curiosity(config.rewards.generative, config.rollout_steps if method.learner == "ppo" else None)
    return config

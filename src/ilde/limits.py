"""Which numbers a configuration may hold: one law per setting, by its dotted path."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from ilde.data import UserError

_AT_LEAST_ONE = (
    "steps",
    "num_envs",
    "rollout_steps",
    "checkpoint_every",
    "ppo.num_epochs",
    "ppo.num_minibatches",
    "ppo.hidden",
    "sac.batch_size",
    "sac.replay_size",
    "sac.hidden",
    "iq.batch_size",
    "iq.replay_size",
    "iq.hidden",
    "iq.offline_steps",
    "cloning.batch_size",
    "cloning.epochs",
    "cloning.patience",
    "rewards.hidden",
    "rewards.background_steps",
    "rewards.generative.batch_size",
    "rewards.generative.subsample",
    "rewards.dynamics.batch_size",
    "rewards.dynamics.subsample",
    "rewards.discriminator.batch_size",
    "rewards.discriminator.passes",
    "rewards.discriminator.rollouts",
    "rewards.discriminator.subsample",
    "rewards.entropy.num_neighbors",
    "rewards.entropy.max_references",
    "rewards.elliptical.width",
    "rewards.elliptical.batch_size",
    "rewards.scale.window",
    "evaluation.episodes",
    "evaluation.final_episodes",
)
_NOT_NEGATIVE = (
    "seed",
    "threads",
    "sac.warm_up",
    "sac.updates_per_step",
    "sac.demo_share_steps",
    "iq.warm_up",
    "iq.updates_per_step",
    "iq.chi_weight",
    "rewards.discriminator.gradient_penalty",
    "rewards.discriminator.penalty_norm",
    "rewards.discriminator.logit_limit",
    "rewards.entropy.window",
    "rewards.generative.dying_steps",
    "rewards.generative.log_variance_limit",
    "rewards.generative.settled_steps",
    "rewards.generative.surprise_limit",
    "rewards.generative.surprise_floor",
    "evaluation.every",
    "evaluation.max_steps",
    "evaluation.final_max_steps",
    "rewards.features.clip",
    "rewards.generative.epochs",
    "rewards.dynamics.epochs",
    "rewards.elliptical.passes",
)
_POSITIVE = (
    "ppo.learning_rate",
    "ppo.clip_range",
    "ppo.max_grad_norm",
    "ppo.initial_action_gain",
    "sac.learning_rate",
    "sac.temperature",
    "sac.initial_temperature",
    "iq.learning_rate",
    "iq.actor_learning_rate",
    "iq.temperature",
    "cloning.learning_rate",
    "rewards.curiosity_factor",
    "rewards.features.floor",
    "rewards.generative.learning_rate",
    "rewards.dynamics.learning_rate",
    "rewards.discriminator.learning_rate",
    "rewards.elliptical.learning_rate",
    "rewards.elliptical.ridge",
)
_SHARES = (
    "ppo.discount",
    "ppo.gae_lambda",
    "sac.discount",
    "sac.target_rate",
    "sac.demo_share",
    "sac.final_demo_share",
    "iq.discount",
    "iq.target_rate",
    "cloning.held_out",
    "rewards.scale.discount",
    "rewards.generative.true_action_share",
    "rewards.dynamics.forward_share",
)


def check_limits(config: object) -> None:
    """Raise, naming the setting, if a number makes no sense; None stands for a number found elsewhere."""
    rules: tuple[tuple[tuple[str, ...], Callable[[float], bool], str], ...] = (
        (_AT_LEAST_ONE, lambda value: value >= 1, "be at least 1"),
        (_NOT_NEGATIVE, lambda value: value >= 0, "not be negative"),
        (_POSITIVE, lambda value: value > 0, "be positive"),
        (_SHARES, lambda value: 0 <= value <= 1, "lie in [0, 1]"),
    )
    for paths, holds, law in rules:
        for path in paths:
            value = attrgetter(path)(config)
            if value is not None and not holds(value):
                raise UserError(f"{path}: must {law}, received {value}")

"""GIRIL: curiosity beyond the demonstrations, as the error of a generative model of them.

A conditional VAE learns s' from (z, s), where z encodes the action between s and s'; it is trained on the
demonstrations before interaction and then frozen. The reward is its error when it is given the action really taken:
small where the policy moves as the demonstrator did, large beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from ilde.nets.layers import linear, mlp, xavier
from ilde.rewards.base import Encoded, tame_exp
from ilde.rewards.pretrained import FitConfig, Surprise
from ilde.rewards.settled import settled_change

Predicts: TypeAlias = Literal["successor", "change"]


@dataclass(frozen=True)
class GenerativeConfig(FitConfig):
    """The VAE of the term `giril` and how it is fitted."""

    action_weight: float = 100.0
    """alpha of the paper: weight of recognising the action from (s, s')."""
    latent_weight: float = 1.0
    """Weight of KL(q(z | s, s') || N(0, I))."""
    log_variance_limit: float = 0.0
    """Bound of the code's log-variance, which it nears smoothly; 0 sets none. With thousands of features the first
    steps of a fit may throw it so far that the noise of the code ruins what follows; 4 is enough to prevent that."""
    true_action_share: float = 0.0
    """Part of the reconstruction error taken from the action itself instead of its code. The reward decodes from the
    action; with the paper's small action_weight on continuous tasks the code never comes to mean it."""
    predicts: Predicts = "successor"
    """What the decoder gives: the successor's features, or what is to be added to the state's, at first nothing. The
    decoder of GIRIL's images is shown the state again before its last layer, so that it need not draw what stays; the
    paper's layers for features leave that out, and cannot give back a state unlike the demonstrated ones."""
    dying_steps: int = 0
    """Steps before a termination that are paid no more than the usual, the median of their rollout (of what settles,
    its mean): some games show a death long before they count it, and nothing is more surprising than that. The last so
    many steps of a rollout are treated alike, for nobody knows yet what comes of them."""
    surprise_limit: float = 0.0
    """Largest error that is paid, in medians over the rollout; 0 sets none. A flash of the whole screen, or a scene the
    model draws wildly wrong, may otherwise pay more than anything that can be played for. Of what settles it counts in
    means, unpaid ends of the rollout among them: where less than one step in so many settles anything, a change is paid
    in proportion to how many of the rollout's steps do."""
    surprise_floor: float = 0.0
    """What is not paid of every error, in the same: 0 pays it whole, 1 only what exceeds the usual. An error that is
    never 0 pays for living on, wherever that is, before it pays for anything that happens there."""
    settled_steps: int = 0
    """Above 0, of each feature's error only that part is paid by which so many states from a step on differ from as
    many before it, all from all and within the episode: what moves or flickers changes back, a counter does not.
    Nothing is paid so close to an end of the rollout that nobody knows."""
    shared: bool = False
    """Pay every environment the mean over all of them, step by step, as GIRIL's public code does: whoever lives on is
    paid for what the others see, so that hardly more than survival is rewarded. For comparison, not for use."""


class TransitionVAE(nn.Module):
    """encode_action: (s, s') -> z; decode_next: (z, s) -> s' (paper, "atari_mlp_arch" and "mujoco_mlp_arch")."""

    def __init__(
        self,
        features: int,
        actions: int,
        hidden: int,
        activation: type[nn.Module],
        generator: torch.Generator,
        predicts: Predicts = "successor",
    ) -> None:
        super().__init__()
        self.predicts = predicts
        self.encoder = mlp((2 * features, hidden, hidden), activation, xavier, generator)
        self.mean_head = linear(hidden, actions, xavier, generator)
        self.log_var_head = linear(hidden, actions, xavier, generator)
        self.decoder = mlp((actions + features, hidden, hidden), activation, xavier, generator)
        self.next_head = linear(hidden, features, xavier, generator)
        if predicts == "change":
            nn.init.zeros_(self.next_head.weight)

    def encode_action(self, features: Tensor, next_features: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log-variance of z."""
        units = self.encoder(torch.cat([features, next_features], -1))
        return self.mean_head(units), self.log_var_head(units)

    def decode_next(self, action: Tensor, features: Tensor) -> Tensor:
        """The expected successor's features."""
        decoded: Tensor = self.next_head(self.decoder(torch.cat([action, features], -1)))
        return decoded + features if self.predicts == "change" else decoded


def latent_kl(mean: Tensor, log_var: Tensor) -> Tensor:
    """KL(N(mean, exp(log_var)) || N(0, I)), summed over dimensions, in nats."""
    return 0.5 * (mean.square() + tame_exp(log_var) - 1.0 - log_var).sum(-1)


def bounded(log_var: Tensor, limit: float) -> Tensor:
    """The log-variance within its limit; near 0 nothing moves."""
    return limit * torch.tanh(log_var / limit) if limit else log_var


def ending_within(terminated: Tensor, steps: int, ended: Tensor | None = None) -> Tensor:
    """Where (T, N) a termination follows within so many steps, as far as the rollout tells.

    Args:
        ended: where episodes ended for either reason, since what follows a time limit is another episode's.
    """
    goes_on = ~(terminated if ended is None else ended)
    soon = terminated.clone()
    for _ in range(steps):
        soon[:-1] |= soon[1:] & goes_on[:-1]
    return soon


def unsettled(ended: Tensor, steps: int) -> Tensor:
    """Where (T, N) a rollout breaks off within so many steps, in the middle of the episode."""
    found, goes_on = torch.zeros_like(ended), torch.ones_like(ended[0])
    for step in reversed(range(max(0, len(ended) - steps), len(ended))):
        goes_on = goes_on & ~ended[step]
        found[step] = goes_on
    return found


class GenerativeReward(Surprise):
    """The term `giril`."""

    name = "giril"
    net: TransitionVAE
    config: GenerativeConfig

    def __init__(
        self, net: TransitionVAE, config: GenerativeConfig, generator: torch.Generator, *, discrete: bool
    ) -> None:
        super().__init__(net, config, generator)
        self.discrete = discrete
        # Neither what the others saw at that step, nor what came next, nor what is usual is among drawn steps.
        relative = config.surprise_limit > 0 or config.surprise_floor > 0
        self.episodic = config.shared or config.dying_steps > 0 or config.settled_steps > 0 or relative

    def draw(self, count: int) -> tuple[Tensor, ...]:
        """What makes a code of its mean and variance."""
        return (torch.randn((count, self.net.mean_head.out_features), generator=self.generator),)

    def loss(self, batch: Encoded, *noise: Tensor) -> Tensor:
        """Negative evidence bound per transition plus the action term, averaged over the batch."""
        mean, log_var = self.net.encode_action(batch.features, batch.next_features)
        log_var = bounded(log_var, self.config.log_variance_limit)
        code = mean + tame_exp(0.5 * log_var) * noise[0]
        share = self.config.true_action_share
        error = (1.0 - share) * self._half_squared_error(code, batch)
        if share:
            error = error + share * self._half_squared_error(batch.action, batch)
        loss = error.mean() + self.config.latent_weight * latent_kl(mean, log_var).mean()
        return loss + self.config.action_weight * self._action_error(code, mean, batch.action)

    def _half_squared_error(self, action: Tensor, batch: Encoded) -> Tensor:
        return 0.5 * (self.net.decode_next(action, batch.features) - batch.next_features).square().sum(-1)

    def _action_error(self, code: Tensor, mean: Tensor, action: Tensor) -> Tensor:
        # Discrete: z holds the action's logits. Continuous: its mean is the action.
        return cross_entropy(code, action.argmax(-1)) if self.discrete else mse_loss(mean, action)

    @torch.no_grad()
    def reward(self, batch: Encoded) -> Tensor:
        """The error, 0 where the episode terminated, within what is set; or its mean over a rollout's environments."""
        reward = super().reward(batch)
        if reward.ndim != 2:  # not in time order (T, N)
            return reward
        # Hardly a step settles anything: the median of all is 0.
        usual = reward.mean() if self.config.settled_steps else reward.median()
        steps = self.config.dying_steps
        if self.config.surprise_limit:
            reward = reward.clamp(max=self.config.surprise_limit * usual)
        if steps:
            doubtful = ending_within(batch.terminated, steps, batch.ended) | unsettled(batch.ended, steps)
            reward = torch.where(doubtful, reward.clamp(max=usual), reward)
        if self.config.surprise_floor:
            reward = (reward - self.config.surprise_floor * usual).clamp(min=0.0)
        return reward.mean(1, keepdim=True).expand_as(reward) if self.config.shared else reward

    def error(self, batch: Encoded) -> Tensor:
        """Mean squared error of the predicted successor; along a rollout, if asked, of what settles alone."""
        missed = self.net.decode_next(batch.action, batch.features) - batch.next_features
        if self.config.settled_steps and batch.terminated.ndim == 2:
            missed = torch.minimum(
                missed.abs(), settled_change(batch.next_features, batch.ended, self.config.settled_steps)
            )
        return missed.square().mean(-1)

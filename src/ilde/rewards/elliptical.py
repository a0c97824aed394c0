"""E3B: novelty within the episode, as the elliptical bonus of a state against the states before it.

b(s) = phi(s)^T C^-1 phi(s), where C is `ridge` times the identity plus the sum of phi phi^T over the episode's earlier
states. The inverse is kept for each environment, moved by one rank a step, and starts anew with each episode, whose
first state pays nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from ilde.data import Metrics
from ilde.nets.layers import linear, mlp, xavier
from ilde.randomness import minibatches
from ilde.rewards.base import INPUT_LIMIT, Encoded
from ilde.rewards.dynamics import recognition_error


@dataclass(frozen=True)
class EllipticalConfig:
    """The term `e3b`."""

    features: Literal["inverse", "shared"] = "inverse"
    """phi: `inverse` is an encoder that learns, on the rollouts, to recognise the action between two states; `shared`
    is the frozen features of all terms, projected at random where there are more than `width` of them."""
    width: int = 32
    """Numbers in phi(s); time and memory grow with its square."""
    ridge: float = 0.1
    """lambda of the E3B paper: the smaller, the more a direction not yet seen in the episode pays."""
    learning_rate: float = 3e-4
    """Of the inverse model, by Adam."""
    batch_size: int = 256
    """Transitions per step of the inverse model."""
    passes: int = 1
    """Passes of the inverse model over each rollout; 0 leaves the encoder random."""


def _inputs(features: Tensor) -> Tensor:
    # A state of a hundred million spreads would leave an inverse with negative directions, and soon without digits.
    return features.clamp(-INPUT_LIMIT, INPUT_LIMIT)


class InverseModel(nn.Module):
    """encoder: s -> phi; recogniser: (phi, phi') -> a, the logits where actions are discrete."""

    def __init__(
        self, features: int, actions: int, *, width: int, hidden: int, activation: type[nn.Module],
        generator: torch.Generator,
    ) -> None:  # fmt: skip
        super().__init__()
        self.encoder = nn.Sequential(
            mlp((features, hidden), activation, xavier, generator), linear(hidden, width, xavier, generator)
        )
        self.recogniser = nn.Sequential(
            mlp((2 * width, hidden), activation, xavier, generator), linear(hidden, actions, xavier, generator)
        )

    def recognise(self, batch: Encoded) -> Tensor:
        """The action that led from each state to its successor."""
        pair = torch.cat([self.encoder(_inputs(x)) for x in (batch.features, batch.next_features)], -1)
        action: Tensor = self.recogniser(pair)
        return action


def _length_keeping(weight: Tensor, generator: torch.Generator) -> object:
    return nn.init.normal_(weight, std=len(weight) ** -0.5, generator=generator)


class Projection(nn.Module):
    """encoder: s -> phi, fixed: at random to fewer numbers, so that lengths are kept on average, or unchanged."""

    def __init__(self, features: int, *, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.encoder: nn.Module = nn.Identity()
        if features > width:
            self.encoder = linear(features, width, _length_keeping, generator)
        self.requires_grad_(False)


def fresh_inverse(states: Tensor, ridge: float) -> Tensor:
    """C^-1 (..., F, F) before an episode's first state, for states (..., F)."""
    width = states.shape[-1]
    return (torch.eye(width, dtype=states.dtype, device=states.device) / ridge).expand(*states.shape, width)


def elliptical_bonus(states: Tensor, ended: Tensor, inverse: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """Bonuses (T, N) of states (T, N, F) in time order, from C^-1 (N, F, F) before them, and C^-1 after them."""
    fresh = fresh_inverse(states[0], ridge)
    # The first state was not chosen. Paid the most of all, it would make the critic, which cannot tell the first visit
    # from the next, send the policy back to where episodes begin.
    first = (inverse == fresh).flatten(1).all(-1)
    bonuses = []
    for state, end in zip(states.unsqueeze(-1), ended, strict=True):
        moved = inverse @ state
        bonus = state.mT @ moved
        inverse = torch.where(end[:, None, None], fresh, inverse - moved @ moved.mT / (1.0 + bonus))
        bonuses.append(bonus.flatten())
    unchosen = torch.cat([first[None], ended[:-1]])
    return torch.stack(bonuses).masked_fill(unchosen, 0.0), inverse


class Latest(NamedTuple):
    """The latest rollout: phi of its states (T, N, F), and their bonuses (T, N)."""

    states: Tensor
    bonus: Tensor


class EllipticalBonus:
    """The term `e3b`; episodes go on from one rollout to the next."""

    episodic = True

    def __init__(
        self, net: InverseModel | Projection, config: EllipticalConfig, generator: torch.Generator, *, discrete: bool
    ) -> None:
        self.net, self.config, self.generator, self.discrete = net, config, generator, discrete
        self.optimiser: torch.optim.Optimizer | None = None
        if isinstance(net, InverseModel):
            self.optimiser = torch.optim.Adam(net.parameters(), lr=config.learning_rate, fused=True)
        self.inverse: Tensor | None = None
        self.latest: Latest | None = None

    def fit(self, demos: Encoded) -> Metrics:
        """Nothing to learn from demonstrations."""
        return {}

    def update(self, rollout: Encoded) -> Metrics:
        """Let the encoder learn, then follow the episodes through the rollout."""
        metrics = self._learn(rollout.flatten())
        states = self._embed(rollout)
        before = fresh_inverse(states[0], self.config.ridge) if self.inverse is None else self.inverse.to(states)
        bonus, self.inverse = elliptical_bonus(states, rollout.ended, before, self.config.ridge)
        self.latest = Latest(states, bonus.float())
        return metrics | {"e3b/bonus_mean": float(bonus.mean()), "e3b/feature_norm": float(states.norm(dim=-1).mean())}

    def begin_episodes(self) -> None:
        """Forget what the open episodes have seen."""
        self.inverse = None

    def _learn(self, steps: Encoded) -> Metrics:
        if self.optimiser is None or not isinstance(self.net, InverseModel):
            return {}
        losses = []
        for _ in range(self.config.passes):
            for index in minibatches(len(steps), self.config.batch_size, self.generator, steps.features.device):
                batch = steps[index]
                loss = recognition_error(self.net.recognise(batch), batch.action, discrete=self.discrete)
                self.optimiser.zero_grad(set_to_none=True)
                loss.backward()
                self.optimiser.step()
                losses.append(loss.detach())
        return {"e3b/inverse_loss": float(torch.stack(losses).mean())} if losses else {}

    @torch.no_grad()
    def _embed(self, batch: Encoded) -> Tensor:
        states: Tensor = self.net.encoder(_inputs(batch.features))
        return states.double()

    @torch.no_grad()
    def reward(self, batch: Encoded) -> Tensor:
        """The bonus of each state.

        The latest rollout, known by its states, has the bonuses its episodes gave it. In any other batch of several
        dimensions the first is time, and each column begins a new episode. With a single dimension no order is known,
        and each state is judged as if its episode had seen nothing like it.
        """
        states = self._embed(batch)
        if self.latest is not None and torch.equal(states, self.latest.states):
            return self.latest.bonus
        if batch.ended.ndim == 1:
            return (states.square().sum(-1) / self.config.ridge).float()
        columns = states.flatten(1, -2)
        fresh = fresh_inverse(columns[0], self.config.ridge)
        bonus, _ = elliptical_bonus(columns, batch.ended.flatten(1), fresh, self.config.ridge)
        return bonus.view(batch.ended.shape).float()

    def state_dict(self) -> dict[str, Any]:
        """Networks, optimiser, randomness, and the open episodes."""
        return {
            "net": self.net.state_dict(),
            "optimiser": None if self.optimiser is None else self.optimiser.state_dict(),
            "generator": self.generator.get_state(),
            "inverse": self.inverse,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.net.load_state_dict(state["net"])
        if self.optimiser is not None:
            self.optimiser.load_state_dict(state["optimiser"])
        self.generator.set_state(state["generator"])
        self.inverse, self.latest = state["inverse"], None

"""Adversarial imitation: a discriminator between demonstrations and the policy (GAIL), and its variational form (VAIL).

Convention: a high logit means expert. With a bottleneck the code z is one-dimensional and is the logit itself, so
D = sigmoid(z), z ~ N(mu(s), sigma(s)^2) while learning and z = mu(s) for the reward. The loss is
E_demo[-log D] + E_policy[-log(1 - D)] + bottleneck_weight * (KL_mixture - information_limit), whose sign the paper's
main text inverts. Left out: the dual ascent on the weight, which nearly coincides with weight 1 for this shape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from ilde.data import Metrics
from ilde.nets.layers import linear, mlp, xavier
from ilde.nets.steps import Inputs, make_step_by_size
from ilde.randomness import minibatches
from ilde.rewards.base import INPUT_LIMIT, Encoded, read_numbers, subsampled, tame_exp


@dataclass(frozen=True)
class DiscriminatorConfig:
    """Both adversarial terms; `vail` has the bottleneck, `gail` has not."""

    learning_rate: float = 3e-4
    """Of the discriminator."""
    batch_size: int = 128
    """Demonstration states per step; as many policy states stand beside them."""
    passes: int = 1
    """Passes over the demonstrations per iteration."""
    subsample: int = 1
    """Every how many-th demonstrated transition is kept, from a random offset; all where none would be left."""
    input: Literal["state", "state-action"] = "state"
    """The paper's layer widths leave no room for actions: state only."""
    reward_form: Literal["softplus", "logit", "neg-log-d"] = "softplus"
    """softplus is -log(1 - D), always positive; logit is log D - log(1 - D); neg-log-d is log D, always negative."""
    logit_limit: float = 0.0
    """Largest size of a logit that is paid; 0 sets none. States unlike all that were compared are held back by nothing
    but their limited features, and one that is far off outweighs a rollout."""
    bottleneck_weight: float = 1.0
    """beta of the paper (vail only)."""
    information_limit: float = 0.2
    """I_c of the paper, in nats; with a fixed weight it shifts the loss and no gradient (vail only)."""
    loss: Literal["cross-entropy", "linear"] = "cross-entropy"
    """linear is the difference of the mean logits, which only a gradient penalty bounds (HyPE)."""
    gradient_penalty: float = 0.0
    """Weight of the penalty on gradient norms other than `penalty_norm` between demonstrations and policy."""
    penalty_norm: float = 1.0
    """The gradient norm that costs nothing."""
    rollouts: int = 1
    """Rollouts between two rounds of learning; a round compares the demonstrations with all of them."""
    slowing: bool = False
    """Divide the learning rate by the number of the round, so that the reward comes to rest."""


class Judgement(NamedTuple):
    """The code of each state before sampling; `log_std` is None without a bottleneck."""

    logit: Tensor
    log_std: Tensor | None


class Discriminator(nn.Module):
    """features -> hidden -> hidden, split in halves: one gives mu, the other sigma (paper, "atari_mlp_arch")."""

    def __init__(
        self, inputs: int, hidden: int, activation: type[nn.Module], *, bottleneck: bool, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.trunk = mlp((inputs, hidden, hidden), activation, xavier, generator)
        self.mean_units = hidden // 2 if bottleneck else hidden
        self.mean_head = linear(self.mean_units, 1, xavier, generator)
        self.log_std_head = linear(hidden - self.mean_units, 1, xavier, generator) if bottleneck else None

    def forward(self, x: Tensor) -> Judgement:
        """Judge inputs (B, F)."""
        units = self.trunk(x)
        logit = self.mean_head(units[..., : self.mean_units]).squeeze(-1)
        if self.log_std_head is None:
            return Judgement(logit, None)
        return Judgement(logit, self.log_std_head(units[..., self.mean_units :]).squeeze(-1))


def bottleneck_kl(judgement: Judgement) -> Tensor:
    """KL(N(mu, sigma^2) || N(0, 1)) of each code, in nats."""
    assert judgement.log_std is not None
    return 0.5 * (judgement.logit.square() + tame_exp(2 * judgement.log_std) - 1.0) - judgement.log_std


def _code(judgement: Judgement, noise: Tensor) -> Tensor:
    """A draw of each code."""
    assert judgement.log_std is not None
    return judgement.logit + tame_exp(judgement.log_std) * noise


def imitation_reward(logit: Tensor, form: str) -> Tensor:
    """The reward of a logit; every form increases with it."""
    if form == "softplus":
        return softplus(logit)
    return logit if form == "logit" else -softplus(-logit)


def discrimination_loss(expert: Tensor, policy: Tensor, form: str) -> Tensor:
    """-E log D(expert) - E log(1 - D(policy)), or the difference of the logits themselves."""
    if form == "linear":
        return policy.mean() - expert.mean()
    return softplus(-expert).mean() + softplus(policy).mean()


class AdversarialReward:
    """The terms `gail` and `vail`."""

    episodic = False

    def __init__(self, net: Discriminator, config: DiscriminatorConfig, generator: torch.Generator) -> None:
        self.net, self.config, self.generator = net, config, generator
        self.device = next(net.parameters()).device
        on_gpu = self.device.type == "cuda"
        # A captured step reads its learning rate from the device.
        rate = torch.tensor(config.learning_rate, device=self.device) if on_gpu else config.learning_rate
        self.optimiser = torch.optim.Adam(net.parameters(), lr=rate, fused=True, capturable=on_gpu)
        self.demos: Tensor | None = None
        self.rounds = 0
        self._waiting: list[Tensor] = []
        self._step = make_step_by_size(self._learn, self.device)

    def _inputs(self, batch: Encoded) -> Tensor:
        features = batch.features.clamp(-INPUT_LIMIT, INPUT_LIMIT)
        return features if self.config.input == "state" else torch.cat([features, batch.action], -1)

    def fit(self, demos: Encoded) -> Metrics:
        """Keep the demonstrations to compare with, or every few of them."""
        if self.config.subsample > 1:
            demos = subsampled(demos, self.config.subsample, self.generator, least=1)
        self.demos = self._inputs(demos)
        return {}

    def update(self, rollout: Encoded) -> Metrics:
        """Once enough rollouts have come, some passes over the demonstrations."""
        self._waiting.append(self._inputs(rollout.flatten()))
        if len(self._waiting) < self.config.rollouts:
            return {}
        policy, self._waiting = torch.cat(self._waiting), []
        self.rounds += 1
        self._pace()
        return self._compare(policy)

    def _pace(self) -> None:
        """Set the learning rate of this round, in place where a captured step reads it."""
        rate = self.config.learning_rate / (max(1, self.rounds) if self.config.slowing else 1)
        group = self.optimiser.param_groups[0]
        group["lr"] = group["lr"].fill_(rate) if isinstance(group["lr"], Tensor) else rate

    def _compare(self, policy: Tensor) -> Metrics:
        """Some passes over the demonstrations, each batch beside as many states of the policy."""
        if self.demos is None:
            raise RuntimeError("the discriminator was never given demonstrations")
        totals: dict[str, Tensor] = {}
        steps = 0
        for _ in range(self.config.passes):
            for index in minibatches(len(self.demos), self.config.batch_size, self.generator, policy.device):
                drawn = torch.randint(len(policy), (len(index),), generator=self.generator).to(policy.device)
                demos = self.demos[index]
                for name, value in self._step((demos, policy[drawn], *self._noise(demos))).items():
                    totals[name] = totals.get(name, torch.zeros_like(value)) + value
                steps += 1
        return read_numbers({f"disc/{name}": total / steps for name, total in totals.items()})

    def _learn(self, batch: Inputs) -> dict[str, Tensor]:
        demos, policy, *noise = batch
        loss, statistics = self._objective(demos, policy, noise)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        return statistics | {"loss": loss.detach()}

    def loss(self, demos: Tensor, policy: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The objective on one batch each of demonstration and policy inputs."""
        return self._objective(demos, policy, self._noise(demos))

    def _noise(self, demos: Tensor) -> list[Tensor]:
        """Whatever a step draws, drawn before it, for a captured one cannot: codes of both sides, then a mixture."""
        count, bottleneck = len(demos), self.net.log_std_head is not None
        drawn = [torch.randn(count, generator=self.generator) for _ in range(2 * bottleneck)]
        if self.config.gradient_penalty:
            drawn.append(torch.rand((count, 1), generator=self.generator))
        return [noise.to(demos) for noise in drawn]

    def _objective(self, demos: Tensor, policy: Tensor, noise: Sequence[Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        expert, learner = self.net(demos), self.net(policy)
        codes = expert.logit, learner.logit
        if expert.log_std is not None:
            codes = _code(expert, noise[0]), _code(learner, noise[1])
        loss = discrimination_loss(*codes, self.config.loss)
        statistics = {
            "disc_acc": ((expert.logit > 0).float().mean() + (learner.logit <= 0).float().mean()).detach() / 2,
            "expert_logit": expert.logit.detach().mean(),
            "policy_logit": learner.logit.detach().mean(),
        }
        if expert.log_std is not None:
            kl = 0.5 * bottleneck_kl(expert).mean() + 0.5 * bottleneck_kl(learner).mean()
            loss = loss + self.config.bottleneck_weight * (kl - self.config.information_limit)
            statistics["bottleneck_kl"] = kl.detach()
        if self.config.gradient_penalty:
            loss = loss + self.config.gradient_penalty * self._gradient_penalty(demos, policy, noise[-1])
        return loss, statistics

    def _gradient_penalty(self, demos: Tensor, policy: Tensor, mix: Tensor) -> Tensor:
        between = (mix * demos + (1 - mix) * policy).requires_grad_(True)
        (gradient,) = torch.autograd.grad(self.net(between).logit.sum(), between, create_graph=True)
        penalty: Tensor = (gradient.norm(2, dim=-1) - self.config.penalty_norm).square().mean()
        return penalty

    def judge(self, batch: Encoded) -> Judgement:
        """What the discriminator makes of each transition."""
        judgement: Judgement = self.net(self._inputs(batch))
        return judgement

    @torch.no_grad()
    def reward(self, batch: Encoded) -> Tensor:
        """The reward of the mean code: no sampling."""
        limit = self.config.logit_limit or math.inf
        return imitation_reward(self.judge(batch).logit.clamp(-limit, limit), self.config.reward_form)

    def state_dict(self) -> dict[str, Any]:
        """Network, optimiser, demonstrations' place in line, randomness, rollouts that wait for their round."""
        return {
            "net": self.net.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "generator": self.generator.get_state(),
            "demos": self.demos,
            "rounds": self.rounds,
            "waiting": list(self._waiting),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.net.load_state_dict(state["net"])
        rate = self.optimiser.param_groups[0]["lr"]
        self.optimiser.load_state_dict(state["optimiser"])
        self.optimiser.param_groups[0]["lr"] = rate
        self.generator.set_state(state["generator"])
        self.demos = None if state["demos"] is None else state["demos"].to(self.device)
        self.rounds, self._waiting = state["rounds"], [inputs.to(self.device) for inputs in state["waiting"]]
        self._pace()

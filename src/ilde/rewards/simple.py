"""Terms that do not learn: the true reward (for experts only) and a constant (the survival control)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ilde.rewards.base import Encoded, Unlearned


@dataclass(frozen=True)
class EnvRewardConfig:
    """The environment's own reward: what an expert maximises, and no imitator may see."""

    form: Literal["raw", "sign"] = "raw"
    """`sign` is the usual clipping of Atari experts."""


class EnvReward(Unlearned):
    """The term `env`."""

    def __init__(self, config: EnvRewardConfig) -> None:
        self.config = config

    def reward(self, batch: Encoded) -> Tensor:
        """The true reward, or its sign."""
        return batch.env_reward.sign() if self.config.form == "sign" else batch.env_reward


class Constant(Unlearned):
    """The term `constant`: one per step, so that staying alive is all that pays."""

    def reward(self, batch: Encoded) -> Tensor:
        """Ones."""
        return torch.ones_like(batch.env_reward)

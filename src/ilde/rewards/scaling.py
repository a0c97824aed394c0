"""Reward scales: a term is divided by the standard deviation of its own discounted return.

The deviation is taken along time in each environment. Left out: subtracting a mean, which would change what an
episode's length is worth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ilde.nets.moments import RunningMoments


class ReturnScale:
    """The running spread of a reward's discounted return; `window` samples long, so that early outliers fade."""

    def __init__(self, num_envs: int, discount: float, window: float) -> None:
        self.discount = discount
        self.accumulated = np.zeros(num_envs)
        self.moments = RunningMoments((), window)

    def update(self, reward: Tensor, ended: Tensor) -> None:
        """Run the filter over a rollout (T, N) and move the spread."""
        rewards, goes_on = reward.double().cpu().numpy(), ~ended.cpu().numpy()
        returns, decay = np.empty_like(rewards), self.discount * goes_on
        accumulated = self.accumulated * self.discount
        for t in range(len(rewards)):
            np.add(accumulated, rewards[t], out=returns[t])
            np.multiply(returns[t], decay[t], out=accumulated)
        self.accumulated = np.where(goes_on[-1], returns[-1], 0.0)
        self.moments.update(torch.from_numpy(returns.ravel()))

    def begin_episodes(self) -> None:
        """Forget the returns of the open episodes, not their spread."""
        self.accumulated = np.zeros_like(self.accumulated)

    @property
    def divisor(self) -> float:
        """What the reward is divided by: never so little that a return without spread would exceed 100."""
        return max(float(self.moments.std), 0.01 * abs(float(self.moments.mean)), 1e-8)

    def state_dict(self) -> dict[str, Any]:
        """Accumulators and moments."""
        return {"accumulated": self.accumulated, "moments": self.moments.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.accumulated = np.asarray(state["accumulated"]).copy()
        self.moments.load_state_dict(state["moments"])

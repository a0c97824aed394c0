"""Generalised advantage estimation with both kinds of ending."""

from __future__ import annotations

import torch
from torch import Tensor


def generalised_advantage(
    reward: Tensor,
    value: Tensor,
    next_value: Tensor,
    *,
    terminated: Tensor,
    ended: Tensor,
    discount: float,
    gae_lambda: float,
) -> Tensor:
    """Advantages (T, N).

    `next_value` is the value of each step's true successor. A terminated step has no future; any ended step, truncated
    ones included, passes nothing back from the episode that follows it.
    """
    delta = reward + discount * next_value * ~terminated - value
    decay = discount * gae_lambda * ~ended
    advantage = torch.zeros_like(reward)
    carried = torch.zeros_like(reward[0])
    for t in range(len(reward) - 1, -1, -1):
        carried = delta[t] + decay[t] * carried
        advantage[t] = carried
    return advantage

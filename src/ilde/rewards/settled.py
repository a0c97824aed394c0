"""What changes for good along a rollout: whatever moves, flickers or flashes changes back, a counter does not."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def of_runs(values: Tensor, steps: int, pick: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """What `pick` makes of each run of so many of (T, ...), for every run that is whole."""
    width = 1
    while width < steps:
        shift = min(width, steps - width)
        values, width = pick(values[:-shift], values[shift:]), width + shift
    return values


def settled_change(states: Tensor, ended: Tensor, span: int) -> Tensor:
    """By how much all states from each step on differ from all before it, so many on either side.

    Args:
        states: after each step (T, ..., F)
        ended: where an episode ended with a step (T, ...); what reaches beyond one, or beyond the first and last step,
            is 0
        span: how many states
    """
    change = torch.zeros_like(states)
    if len(states) < 2 * span:
        return change
    least, most = (of_runs(states, span, pick) for pick in (torch.minimum, torch.maximum))
    gap = torch.maximum(least[span:] - most[:-span], least[:-span] - most[span:]).clamp(min=0.0)
    one_episode = ~of_runs(ended[:-1], 2 * span - 1, torch.logical_or)
    change[span : len(states) - span + 1] = gap * one_episode.unsqueeze(-1)
    return change

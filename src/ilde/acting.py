"""Acting for a group of environments: what they see is brought to the policy, and what it decides is kept.

All that happens for a group at one time is one small step over memory that stays where it is: beside a GPU it is one
launch, and the host has little to do before the environments can go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import torch
from torch import Tensor

from ilde.envs.base import Array
from ilde.nets.policy import ActorCritic, Decision, Policy
from ilde.nets.steps import Inputs, fused, make_step

Decide: TypeAlias = Callable[[Tensor], Decision]
"""Chooses one action for each observation (B, ...)."""


def decider(policy: Policy, generator: torch.Generator, device: torch.device, *, fuse: bool) -> Decide:
    """A policy that acts by chance; beside a GPU compiled into few kernels, if it is to be fused and can be."""
    if not (fuse and isinstance(policy, ActorCritic)):
        return lambda obs: policy.act(obs, generator)
    choose = fused(ActorCritic.choose, device)
    return lambda obs: choose(policy, obs, policy.noise(len(obs), generator))


class Actor:
    """Acts for one group.

    Args:
        decide: the policy.
        first: what the environments see at first (B, ...).
        seen: where observations are kept, a row for each time and one for what follows the last (T + 1, B, ...).
        kept: where each part of a decision is kept (T, B, ...).
        frames: an observation is its latest frames, so that the newest is all that is news.
        generator: what `decide` draws from.
    """

    def __init__(
        self,
        decide: Decide,
        first: Array,
        seen: Tensor,
        kept: dict[str, Tensor],
        *,
        frames: bool,
        generator: torch.Generator,
    ) -> None:
        self.decide, self.seen, self.kept, self.frames = decide, seen, kept, frames
        device, on_gpu = seen.device, seen.is_cuda
        self._time = torch.zeros(1, dtype=torch.int64, device=device)
        self._step = make_step(self._act, device, generator)
        self._unanswered = False
        # What was seen at the last decision: all but its oldest frame is seen again.
        self._before = torch.empty_like(seen[0]) if frames else None
        # News and choices travel through pinned memory. It is free again once the actions are known, and after the last
        # row once anything else was read from the device, as every rollout's end does.
        news = seen[0, :, -1:] if frames else seen[0]
        self._news = torch.empty(news.shape, dtype=news.dtype, device=device)
        self._staged = torch.empty(news.shape, dtype=news.dtype, pin_memory=True) if on_gpu else self._news
        self._arrived = self._staged.numpy()
        self._chosen = torch.empty_like(kept["action"][0], device="cpu", pin_memory=on_gpu)
        self._actions = self._chosen.numpy()
        self.see(first)

    def see(self, obs: Array) -> None:
        """Begin with other observations, whatever was seen before."""
        self.show(obs, fresh=range(len(obs)))

    def show(self, obs: Array, fresh: Iterable[int] = ()) -> None:
        """What the environments see next; in the `fresh` ones its frames do not follow those before."""
        self._unanswered = False
        self._arrived[:] = obs[:, -1:] if self.frames else obs
        if self._staged is not self._news:
            self._news.copy_(self._staged, non_blocking=True)
        if self._before is not None:
            for row in fresh:
                self._before[row, 1:] = torch.from_numpy(obs[row, :-1]).to(self._before.device)

    def restart(self) -> None:
        """Keep what follows from the first row on; a decision nothing came of, for a rollout broke off, is unmade."""
        self._time.zero_()
        if self._unanswered and self._before is not None:
            self._before[:, 1:] = self._before[:, :-1].clone()
        self._unanswered = False

    def begin(self) -> None:
        """Ask for a decision about what is seen now; it is kept, and so is what was seen."""
        action = self._step(())["action"]
        self._unanswered = True  # not before: a decision that failed has moved nothing
        self._chosen.copy_(action, non_blocking=True)

    def finish(self) -> Array:
        """The actions decided on; the next decision overwrites them."""
        if self.seen.is_cuda:
            torch.cuda.current_stream(self.seen.device).synchronize()
        return self._actions

    def stop(self) -> None:
        """Keep what is seen now without a decision, in the last row."""
        self.seen[-1] = self._sight()

    def _sight(self) -> Tensor:
        return self._news if self._before is None else torch.cat((self._before[:, 1:], self._news), 1)

    def _act(self, _: Inputs) -> dict[str, Tensor]:
        sight = self._sight()
        decision = self.decide(sight)._asdict()
        for rows, value in ((self.seen, sight), *((self.kept[name], value) for name, value in decision.items())):
            rows.index_copy_(0, self._time, value.unsqueeze(0).to(rows.dtype))
        if self._before is not None:
            self._before.copy_(sight)
        self._time += 1
        return decision

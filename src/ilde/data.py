"""The records that flow through one training step; the shape laws live here and nowhere else.

Everything is frozen. A reward is computed from `Transitions` and passed on as a value: nothing is ever written back
into a rollout. Only the `env` reward term and the evaluation may read `env_reward`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # the tables of methods and errors need these records, but no tensors
    import torch
    from torch import Tensor

Metrics: TypeAlias = dict[str, float]
"""Scalars of one iteration, named as people know them (`train/approx_kl`, `reward/vail`)."""


class UserError(Exception):
    """A mistake the user can mend: shown as one line, without a traceback."""

    exit_code = 2


class HindranceError(UserError):
    """What stands in the way now and may not soon: a folder that is taken, a full disk."""

    exit_code = 75
    """As in sysexits: the same command may go through later."""


class ShapeError(ValueError):
    """A record was built from tensors that do not share their leading dimensions."""


@dataclass(frozen=True)
class Transitions:
    """Steps of an environment; all leading dimensions are the batch.

    `next_obs` is the true successor, never the first observation after a reset. `terminated` is the end of the decision
    process (in Atari also a lost life); a time limit is not a termination.
    """

    obs: Tensor
    action: Tensor
    next_obs: Tensor
    terminated: Tensor
    env_reward: Tensor

    def __post_init__(self) -> None:
        batch = self.terminated.shape
        for field in fields(self):
            shape = getattr(self, field.name).shape
            if shape[: len(batch)] != batch:
                raise ShapeError(f"{field.name} has shape {tuple(shape)}; its batch must be {tuple(batch)}")
        if self.obs.shape != self.next_obs.shape:
            raise ShapeError(f"obs {tuple(self.obs.shape)} and next_obs {tuple(self.next_obs.shape)} differ")

    @property
    def batch_shape(self) -> torch.Size:
        """The shape every reward for these transitions has."""
        return self.terminated.shape

    def __len__(self) -> int:
        return self.terminated.numel()

    def map(self, transform: Callable[[Tensor], Tensor]) -> Transitions:
        """The same record with every tensor transformed."""
        return replace(self, **{f.name: transform(getattr(self, f.name)) for f in fields(self)})

    def flatten(self) -> Transitions:
        """Merge all batch dimensions into one."""
        ndim = self.terminated.ndim
        return self.map(lambda x: x.flatten(0, ndim - 1))

    def __getitem__(self, index: Tensor) -> Transitions:
        return self.map(lambda x: x[index])

    def to(self, device: torch.device) -> Transitions:
        """The same record on another device."""
        return self.map(lambda x: x.to(device))


@dataclass(frozen=True)
class Rollout:
    """One rollout in time order: every tensor is (rollout_steps, num_envs, ...)."""

    transitions: Transitions
    truncated: Tensor
    log_prob: Tensor
    value: Tensor

    def __post_init__(self) -> None:
        batch = self.transitions.batch_shape
        if len(batch) != 2:
            raise ShapeError(f"a rollout is (steps, envs); received a batch of shape {tuple(batch)}")
        for name in ("truncated", "log_prob", "value"):
            if getattr(self, name).shape != batch:
                raise ShapeError(f"{name} has shape {tuple(getattr(self, name).shape)}; expected {tuple(batch)}")

    @property
    def ended(self) -> Tensor:
        """Where an episode ended, for either reason."""
        return self.transitions.terminated | self.truncated

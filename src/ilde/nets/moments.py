"""Running mean and variance, merged batch by batch in float64."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class RunningMoments(nn.Module):
    """Mean and variance of everything seen, or of about the last `window` samples."""

    mean: Tensor
    var: Tensor
    count: Tensor

    def __init__(self, shape: tuple[int, ...], window: float = float("inf")) -> None:
        super().__init__()
        self.window = window
        self.register_buffer("mean", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("var", torch.ones(shape, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))

    @torch.no_grad()
    def update(self, batch: Tensor) -> None:
        """Merge a batch (B, *shape); old samples fade once there are more than `window`."""
        values = batch.to(torch.float64)
        mean, var, size = values.mean(0), values.var(0, correction=0), values.shape[0]
        total = self.count + size
        delta = mean - self.mean
        merged = self.var * self.count + var * size + delta.square() * self.count * size / total
        self.mean.copy_(self.mean + delta * size / total)
        self.var.copy_(merged / total)
        self.count.copy_(total.clamp(max=self.window))

    @property
    def std(self) -> Tensor:
        """The standard deviation in float64."""
        return self.var.sqrt()


class Standardise(nn.Module):
    """(x - mean) / std, clipped: observation normalisation that travels with the policy."""

    def __init__(self, shape: tuple[int, ...], clip: float = 10.0) -> None:
        super().__init__()
        self.moments = RunningMoments(shape)
        self.clip = clip

    def forward(self, x: Tensor) -> Tensor:
        """Normalise with the statistics as they stand; they move only in `observe`."""
        mean, std = self.moments.mean.float(), (self.moments.var + 1e-8).sqrt().float()
        return ((x - mean) / std).clamp(-self.clip, self.clip)

    def observe(self, batch: Tensor) -> None:
        """Move the statistics."""
        self.moments.update(batch)

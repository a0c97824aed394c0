"""The state space in which all reward terms work: frozen features, standardised once.

Images go through a random, frozen convolutional extractor to 5184 features; vectors are their own features. Both are
standardised with statistics of a random policy and the demonstrations, taken before training: a handful of correlated
demonstration frames alone would leave most features with no spread at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ilde.nets.layers import conv, orthogonal
from ilde.nets.moments import RunningMoments

CHUNK = 1024
"""Images embedded at a time on a GPU, to bound memory, and whose moments are merged at a time on any device."""
CHUNK_OF_A_THREAD = 32
"""Images embedded at a time by each thread of a CPU: what passes between the layers then stays in its cache."""


class ConvExtractor(nn.Module):
    """84 -> 41 -> 20 -> 9 by three 3x3 convolutions of stride 2: 64 x 9 x 9 = 5184 features."""

    def __init__(self, channels: int, generator: torch.Generator) -> None:
        super().__init__()
        init = orthogonal(math.sqrt(2.0))
        self.layers = nn.Sequential(
            conv(channels, 32, kernel=3, stride=2, init=init, generator=generator),
            nn.LeakyReLU(),
            conv(32, 32, kernel=3, stride=2, init=init, generator=generator),
            nn.LeakyReLU(),
            conv(32, 64, kernel=3, stride=2, init=init, generator=generator),
            nn.LeakyReLU(),
            nn.Flatten(),
        )
        self.requires_grad_(False)

    def forward(self, obs: Tensor) -> Tensor:
        """Features (B, F) of images in 0..255."""
        with _full_precision():
            features: Tensor = self.layers(obs.float() / 255.0)
        return features


@contextmanager
def _full_precision() -> Iterator[None]:
    """No short floats within convolutions: with them a state's features on a GPU depend on how many it comes with, and
    a discriminator could tell demonstrations from rollouts by the size of their batches."""
    cudnn: Any = torch.backends.cudnn
    full: tuple[Any, str, object] = (cudnn, "allow_tf32", False)
    try:
        usual = cudnn.allow_tf32
    except RuntimeError:  # somebody has set it operation by operation, which the older name cannot describe
        full, usual = (cudnn.conv, "fp32_precision", "ieee"), cudnn.conv.fp32_precision
    setattr(*full)
    try:
        yield
    finally:
        setattr(*full[:2], usual)


@dataclass(frozen=True)
class FeatureConfig:
    """How features are put on one scale."""

    clip: float = 5.0
    """Largest size of a standardised feature, in spreads; 0 sets no limit, so that what neither the demonstrations nor
    chance ever showed stays as surprising as it is."""
    floor: float = 0.01
    """Smallest spread a feature is given, as a part of the median spread."""


class FeatureSpace(nn.Module):
    """`f` of the paper: fixed, shared by every term, standardised and clipped."""

    mean: Tensor
    inverse_std: Tensor

    def __init__(
        self, obs_shape: tuple[int, ...], generator: torch.Generator, config: FeatureConfig | None = None
    ) -> None:
        super().__init__()
        self.obs_shape, self.config = obs_shape, config or FeatureConfig()
        self.extract: nn.Module = ConvExtractor(obs_shape[0], generator) if len(obs_shape) == 3 else nn.Flatten()
        self.size = int(self.extract(torch.zeros(1, *obs_shape)).shape[1])
        self.register_buffer("mean", torch.zeros(self.size))
        self.register_buffer("inverse_std", torch.ones(self.size))

    @torch.no_grad()
    def fit(self, *observations: Tensor) -> None:
        """Take the scale of each feature from these observations (each (B, *obs_shape))."""
        moments = RunningMoments((self.size,)).to(self.mean.device)
        for obs in observations:
            for chunk in obs.flatten(0, -len(self.obs_shape) - 1).split(CHUNK):
                moments.update(self._extract(chunk.to(self.mean.device)))
        std = moments.std
        # A feature that never moved would turn its first twitch into an outlier.
        floor = self.config.floor * std[std > 0].median() if bool((std > 0).any()) else torch.ones_like(std[0])
        self.mean.copy_(moments.mean)
        self.inverse_std.copy_(1.0 / std.clamp(min=float(floor)))

    @torch.no_grad()
    def forward(self, obs: Tensor) -> Tensor:
        """Standardised features: (..., *obs_shape) to (..., F)."""
        batch = obs.shape[: -len(self.obs_shape)]
        flat = obs.reshape(-1, *self.obs_shape)
        standardised = (self._extract(flat) - self.mean) * self.inverse_std
        limit = self.config.clip or math.inf
        return standardised.clamp(-limit, limit).view(*batch, self.size)

    def _extract(self, flat: Tensor) -> Tensor:
        """Features (B, F) before standardising, of all vectors at once or of some images at a time."""
        if not isinstance(self.extract, ConvExtractor):
            vectors: Tensor = self.extract(flat)
            return vectors
        size = CHUNK_OF_A_THREAD * torch.get_num_threads() if flat.device.type == "cpu" else CHUNK
        # In parts of like size: a single image left over would take another way through a CPU, and round differently.
        parts = flat.tensor_split(max(1, -(-len(flat) // size)))
        return torch.cat([self.extract(part) for part in parts])

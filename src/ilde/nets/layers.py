"""Layers with explicit initialisation: no weight is ever drawn from a global generator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

import torch
from torch import Tensor, nn

Initialiser: TypeAlias = Callable[[Tensor, torch.Generator], object]


def orthogonal(gain: float) -> Initialiser:
    """Orthogonal weights, as the policy networks of this family use."""
    return lambda weight, generator: nn.init.orthogonal_(weight, gain, generator=generator)


def xavier(weight: Tensor, generator: torch.Generator) -> object:
    """Xavier weights, as the generative reward models of this family use."""
    return nn.init.xavier_uniform_(weight, generator=generator)


def _initialised(layer: nn.Linear | nn.Conv2d, init: Initialiser, generator: torch.Generator) -> None:
    init(layer.weight, generator)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


def linear(inputs: int, outputs: int, init: Initialiser, generator: torch.Generator) -> nn.Linear:
    """A dense layer with zero bias."""
    layer = nn.utils.skip_init(nn.Linear, inputs, outputs)
    assert isinstance(layer, nn.Linear)
    _initialised(layer, init, generator)
    return layer


def conv(
    inputs: int, outputs: int, *, kernel: int, stride: int, init: Initialiser, generator: torch.Generator
) -> nn.Conv2d:
    """A convolution without padding, with zero bias."""
    layer = nn.utils.skip_init(nn.Conv2d, inputs, outputs, kernel, stride)
    assert isinstance(layer, nn.Conv2d)
    _initialised(layer, init, generator)
    return layer


def can_fold(layer: nn.Conv2d, height: int, width: int) -> bool:
    """Whether `folded_conv` takes images of this size."""
    return all(side % layer.stride[0] == 0 for side in (height, width, *layer.kernel_size))


def folded_conv(layer: nn.Conv2d, images: Tensor) -> Tensor:
    """What the layer gives, with each stride x stride block of pixels folded into channels first.

    A kernel of 8 x 8 at stride 4 over 4 channels is one of 2 x 2 at stride 1 over 64: the same products, but enough
    channels to keep the matrix units of a GPU busy.
    """
    stride = layer.stride[0]
    return nn.functional.conv2d(_folded(images, stride), _folded(layer.weight, stride), layer.bias)


def _folded(x: Tensor, block: int) -> Tensor:
    """(B, C, H, W) to (B, block * block * C, H / block, W / block), channels last in memory."""
    batch, channels, height, width = x.shape
    blocks = x.view(batch, channels, height // block, block, width // block, block).permute(0, 2, 4, 3, 5, 1)
    return blocks.reshape(batch, height // block, width // block, -1).permute(0, 3, 1, 2)


def mlp(
    widths: Sequence[int], activation: Callable[[], nn.Module], init: Initialiser, generator: torch.Generator
) -> nn.Sequential:
    """Dense layers of the given widths, an activation after each."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [linear(inputs, outputs, init, generator), activation()]
    return nn.Sequential(*layers)

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


def mlp(
    widths: Sequence[int], activation: Callable[[], nn.Module], init: Initialiser, generator: torch.Generator
) -> nn.Sequential:
    """Dense layers of the given widths, an activation after each."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [linear(inputs, outputs, init, generator), activation()]
    return nn.Sequential(*layers)

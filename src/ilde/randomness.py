"""Explicit randomness: every consumer draws from its own generator, named by its role."""

from __future__ import annotations

import zlib

import numpy as np
import torch
from torch import Tensor


def derive_seed(seed: int, role: str) -> int:
    """A 63-bit seed for one role of a run; different roles never share a stream."""
    words = np.random.SeedSequence((seed, zlib.crc32(role.encode()))).generate_state(2, np.uint32)
    return (int(words[0]) << 31) ^ int(words[1])


def torch_generator(seed: int, role: str, device: torch.device | str = "cpu") -> torch.Generator:
    """A torch generator for one role, on the device whose tensors it fills."""
    return torch.Generator(device=device).manual_seed(derive_seed(seed, role))


def numpy_generator(seed: int, role: str) -> np.random.Generator:
    """A NumPy generator for one role."""
    return np.random.default_rng(derive_seed(seed, role))


def minibatches(size: int, batch: int, generator: torch.Generator, device: torch.device) -> tuple[Tensor, ...]:
    """A random partition of range(size); the last part may be smaller, so a tiny set is never dropped."""
    order: Tensor = torch.randperm(size, generator=generator).to(device)
    return tuple(order.split(batch))

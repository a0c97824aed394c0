"""Non-finite numbers stop a run in the update they appear in, named, before anything is saved."""

from __future__ import annotations

import torch
from torch import Tensor


class NonFiniteError(FloatingPointError):
    """A tensor held NaN or infinity."""


class FiniteGuard:
    """Collects one flag per tensor on the device and reads them once, so that no minibatch waits for the host."""

    def __init__(self) -> None:
        self._flags: dict[str, Tensor] = {}

    def watch(self, name: str, tensor: Tensor) -> None:
        """Remember whether this tensor, or any other watched under its name, is finite."""
        finite = torch.isfinite(tensor).all()
        known = self._flags.get(name)
        self._flags[name] = finite if known is None else known & finite

    def check(self) -> None:
        """Raise, naming the tensors, if any was not finite."""
        if not self._flags:
            return
        finite = torch.stack(list(self._flags.values())).tolist()
        broken = [name for name, fine in zip(self._flags, finite, strict=True) if not fine]
        self._flags = {}
        if broken:
            raise NonFiniteError(f"not finite: {', '.join(broken)}; nothing of this update was saved")

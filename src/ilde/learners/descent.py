"""One step down the gradient: its length is limited, then Adam moves the weights.

On a GPU all weights lie side by side, so that the whole step is a handful of kernels: Adam's own visits 65,536 weights
with each block, which leaves most of a large GPU idle. A checkpoint is the same either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ilde.nets.steps import fused

BETAS = (0.9, 0.999)
ALIGNMENT = 64
"""Every tensor begins at a multiple of so many numbers: kernels read aligned memory faster, or not at all."""


def adam_step(
    weight: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    count: Tensor,
    learning_rate: Tensor,
    max_norm: float,
    eps: float,
) -> Tensor:
    """Move weights, moments and count in place; returns the length the gradient had."""
    norm: Tensor = torch.linalg.vector_norm(gradient)
    gradient = gradient * (max_norm / (norm + 1e-6)).clamp(max=1.0)
    count.add_(1.0)
    mean.lerp_(gradient, 1.0 - BETAS[0])
    square.lerp_(gradient.square(), 1.0 - BETAS[1])
    bias, square_bias = ((1.0 - beta ** count.double()).float() for beta in BETAS)
    weight.sub_(learning_rate / bias * mean / (square.sqrt() / square_bias.sqrt() + eps))
    return norm


class Descent:
    """Limits the gradient of some weights and takes Adam's steps.

    Args:
        parameters: the weights, on their device already.
        learning_rate: read anew with every step, so that it can be changed in place.
        max_norm: the largest length of the gradient, over all weights.
        eps: of Adam.
        packed: lay the weights side by side, and compile the step where that can be done.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        learning_rate: Tensor,
        *,
        max_norm: float,
        eps: float,
        packed: bool,
    ) -> None:
        self.parameters, self.learning_rate, self.max_norm, self.eps = list(parameters), learning_rate, max_norm, eps
        device = learning_rate.device
        self._adam = torch.optim.Adam(
            self.parameters, lr=learning_rate, betas=BETAS, eps=eps, fused=True, capturable=device.type == "cuda"
        )
        self._packed = packed
        if packed:
            self._step = fused(adam_step, device)
            self._gaps = [p.new_zeros(-p.numel() % ALIGNMENT) for p in self.parameters]
            self._weight = self._side_by_side([p.detach() for p in self.parameters])
            for parameter, part in zip(self.parameters, self._parts(self._weight), strict=True):
                parameter.data = part
            self._mean, self._square = (torch.zeros_like(self._weight) for _ in range(2))
            self._count = torch.zeros((), device=device)
            self._share_state()

    def __call__(self, loss: Tensor) -> Tensor:
        """One step; returns the length of the whole gradient before it was limited."""
        if not self._packed:
            self._adam.zero_grad(set_to_none=True)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(self.parameters, self.max_norm)
            self._adam.step()
            return norm.detach()
        gradient = self._side_by_side(torch.autograd.grad(loss, self.parameters))
        return self._step(
            self._weight,
            gradient,
            self._mean,
            self._square,
            self._count,
            self.learning_rate,
            self.max_norm,
            self.eps,
        )

    def _side_by_side(self, tensors: Iterable[Tensor]) -> Tensor:
        pairs = zip(tensors, self._gaps, strict=True)
        return torch.cat([part for tensor, gap in pairs for part in (tensor.flatten(), gap)])

    def _parts(self, flat: Tensor) -> Iterator[Tensor]:
        """Each weight's part of what lies side by side."""
        widths = [p.numel() + gap.numel() for p, gap in zip(self.parameters, self._gaps, strict=True)]
        for parameter, part in zip(self.parameters, flat.split(widths), strict=True):
            yield part[: parameter.numel()].view(parameter.shape)

    def _share_state(self) -> None:
        """Let Adam's state, which is saved and loaded, be the moments that lie side by side."""
        moments = zip(self.parameters, self._parts(self._mean), self._parts(self._square), strict=True)
        for parameter, mean, square in moments:
            self._adam.state[parameter] = {"step": self._count, "exp_avg": mean, "exp_avg_sq": square}

    def state_dict(self) -> dict[str, Any]:
        """Adam's, whichever way the steps are taken."""
        state: dict[str, Any] = self._adam.state_dict()
        # Adam counts the steps of each weight apart, and would count a shared number once for each.
        kept = {key: values | {"step": values["step"].clone()} for key, values in state["state"].items()}
        return state | {"state": kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        ours = {name: self._adam.param_groups[0][name] for name in ("lr", "capturable")}
        self._adam.load_state_dict(state)
        self._adam.param_groups[0].update(ours)  # whatever device it was saved on
        if not self._packed:
            return
        saved = [self._adam.state[p] for p in self.parameters]
        if all(saved):  # nothing is saved of an Adam that has not taken a step
            self._mean.copy_(self._side_by_side(s["exp_avg"] for s in saved))
            self._square.copy_(self._side_by_side(s["exp_avg_sq"] for s in saved))
            self._count.copy_(saved[0]["step"])
        else:
            for held in (self._mean, self._square, self._count):
                held.zero_()
        self._share_state()

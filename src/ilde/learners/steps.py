"""A small step of fixed shapes, run eagerly or as a captured CUDA graph: the same numbers in one launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

Inputs: TypeAlias = tuple[Tensor, ...]
SmallStep: TypeAlias = Callable[[Inputs], dict[str, Tensor]]

WARM_UP = 3
"""Eager steps before the capture: they allocate optimiser state and gradients, and are real steps."""


class GraphedStep:
    """Captures a step after a few eager ones, then replays it; every batch must have the first one's shapes.

    Whatever else the step reads must stay where it is: weights, statistics, and the generator it draws from.
    """

    def __init__(self, step: SmallStep, generator: torch.Generator | None = None) -> None:
        self.step, self.generator = step, generator
        self.taken = 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, batch: Inputs) -> dict[str, Tensor]:
        """Take one step; the returned tensors are overwritten by the next."""
        self.taken += 1
        if self.taken <= WARM_UP:
            return self._on_side_stream(batch)
        if self.graph is None:
            self._capture(batch)
        for static, fresh in zip(self.inputs, batch, strict=True):
            static.copy_(fresh)
        assert self.graph is not None
        self.graph.replay()
        return self.outputs

    def _on_side_stream(self, batch: Inputs) -> dict[str, Tensor]:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            outputs = self.step(batch)
        torch.cuda.current_stream().wait_stream(stream)
        return outputs

    def _capture(self, batch: Inputs) -> None:
        self.inputs = [x.clone() for x in batch]
        self.graph = torch.cuda.CUDAGraph()
        if self.generator is not None:
            self.graph.register_generator_state(self.generator)
        with torch.cuda.graph(self.graph):
            self.outputs = self.step(tuple(self.inputs))


def make_step(step: SmallStep, device: torch.device, generator: torch.Generator | None = None) -> SmallStep:
    """The step itself on CPU, its graph on a GPU; `generator` is what the step draws from, if it draws."""
    return GraphedStep(step, generator) if device.type == "cuda" else step

"""A small step of fixed shapes, run eagerly or as a captured CUDA graph: the same numbers in one launch."""

from __future__ import annotations

import importlib.util
import shutil
import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeAlias, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")
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


def make_step_by_size(step: SmallStep, device: torch.device) -> SmallStep:
    """As `make_step`, for batches of a few sizes, which the first input tells: each size has a graph of its own."""
    steps: dict[int, SmallStep] = {}

    def sized(batch: Inputs) -> dict[str, Tensor]:
        size = len(batch[0])
        if size not in steps:
            steps[size] = make_step(step, device)
        return steps[size](batch)

    return sized


def fused(function: Callable[P, R], device: torch.device) -> Callable[P, R]:
    """On a GPU, the function compiled into few kernels that give its numbers to float tolerance; elsewhere itself.

    Kernels are chosen by rule, never by stopwatch: two runs of one seed agree to the bit.
    """
    if device.type != "cuda" or not _can_compile():
        return function
    from torch._inductor import config as inductor

    inductor.compile_threads = 1  # a crowd of compiling processes would fight the simulator for the cores
    compiled = torch.compile(function, dynamic=False, options={"deterministic": True})

    @wraps(function)
    def quietly(*args: P.args, **kwargs: P.kwargs) -> R:
        # The compiler thinks aloud while it works; a captured step comes here a few times only.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compiled(*args, **kwargs)

    return quietly


def _can_compile() -> bool:
    """Whether what turns kernels into machine code is there: without it a run is slower, not impossible."""
    return importlib.util.find_spec("triton") is not None and any(map(shutil.which, ("cc", "gcc", "clang")))

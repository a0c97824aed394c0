"""What every worker does alike: read its settings, time whole iterations, print one JSON line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import torch


def read_settings() -> Any:
    """The settings given on the command line; `threads` 0 leaves torch its default."""
    settings = SimpleNamespace(**json.loads(sys.argv[1]))
    if settings.threads:
        torch.set_num_threads(settings.threads)
    return settings


def report(settings: Any, iterate: Callable[[int], object], *packages: str) -> None:
    """Warm up with one iteration, time the rest; `iterate(n)` does n whole iterations, rollout and update."""
    iterate(1)
    began = time.perf_counter()
    iterate(settings.iterations)
    seconds = time.perf_counter() - began
    steps = settings.iterations * settings.num_envs * settings.rollout_steps
    versions = {name: version(name) for name in ("torch", "gymnasium", "numpy", *packages)}
    outcome = {"steps_per_second": steps / seconds, "torch_threads": torch.get_num_threads(), "versions": versions}
    print(json.dumps(outcome), flush=True)

"""The cores a process may use."""

from __future__ import annotations

import os


def usable_cores() -> list[int]:
    """Their numbers; only Linux tells, and only there can a process be bound to some of them."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))

"""Makes `toys` and `references` importable from every test, and keeps tensors on one thread: the problems are tiny."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)

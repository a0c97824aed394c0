"""Freed memory is kept: the same tensors, made again and again, cost hardly any new pages."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ilde.allocation import keep_freed_memory

CHURN = """
import resource, sys
import torch
from ilde.allocation import keep_freed_memory
from ilde.nets.policy import ConvTrunk

if not keep_freed_memory():
    sys.exit(3)
torch.set_num_threads(1)
trunk = ConvTrunk((4, 84, 84), torch.Generator().manual_seed(0))
for round in range(40):
    if round == 25:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    trunk(torch.zeros(128, 4, 84, 84, dtype=torch.uint8)).sum().backward()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_the_same_tensors_again_cost_few_new_pages() -> None:
    done = subprocess.run([sys.executable, "-c", CHURN], capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip("this C library has no such setting")
    # Fifteen minibatches of 14 MB: left to itself the library mostly asks for thousands of pages for each of them.
    assert int(done.stdout) < 6000


def test_asking_twice_does_no_harm() -> None:
    assert keep_freed_memory() == keep_freed_memory()

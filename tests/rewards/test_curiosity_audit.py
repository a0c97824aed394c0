"""`tools/curiosity_audit.py`: its distances on states worked out by hand."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from tool_modules import load_tool


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    return load_tool("curiosity_audit")


def test_a_step_is_as_far_as_its_successor_from_the_nearest_demonstrated_one(audit: ModuleType) -> None:
    mix: Any = SimpleNamespace(space=lambda obs: obs)
    shown = SimpleNamespace(next_obs=torch.tensor([[0.0, 0.0], [10.0, 0.0]]))
    steps = SimpleNamespace(next_obs=torch.tensor([[3.0, 4.0], [10.0, 1.0], [0.0, 0.0]]))
    # Squared distances 25, 1 and 0, over two features.
    assert audit.distances(mix, shown)(steps).tolist() == pytest.approx([12.5, 0.5, 0.0], abs=1e-6)


def test_an_alive_bonus_is_no_noise_and_a_flash_is(audit: ModuleType) -> None:
    ended = torch.zeros(300, 2, dtype=torch.bool)
    ended[[40, 90], [0, 1]] = True
    alive = audit.returns(torch.ones(300, 2), ended)
    # Alone at the end of an episode; 40 steps before it, a geometric sum of 41; of 300 steps the last 200 are cut off.
    assert (alive[40, 0].item(), alive[0, 0].item(), len(alive)) == pytest.approx((1.0, (1 - 0.99**41) / 0.01, 100))
    same = audit.noise(torch.full((300, 2), 2.0), ended)
    assert (same["spread"], same["correlation"]) == pytest.approx((0.0, 1.0), abs=1e-5)
    assert same["return_spread"] == pytest.approx(same["alive_spread"], rel=1e-4)
    flash = torch.ones(300, 2)
    flash[::50] = 500.0
    seen = audit.noise(flash, ended)
    assert seen["spread"] > 5
    assert seen["return_spread"] > same["return_spread"]
    assert seen["correlation"] < 0.99

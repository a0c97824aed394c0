"""Small steps: without a GPU they are the plain functions, and what they report is averaged in one place."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ilde.learners.averages import Averages
from ilde.learners.guard import NonFiniteError
from ilde.nets import steps

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def halved(x: Tensor) -> Tensor:
    return x / 2


def test_on_a_cpu_nothing_is_compiled_or_captured() -> None:
    assert steps.fused(halved, CPU) is halved
    step = lambda batch: {"half": halved(batch[0])}  # noqa: E731
    assert steps.make_step(step, CPU) is step


def test_without_a_compiler_the_function_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_can_compile", lambda: False)
    assert steps.fused(halved, GPU) is halved


def test_a_compiled_function_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}

    def compiler(function: object, **settings: object) -> object:
        asked.update(settings)
        return function

    monkeypatch.setattr(steps, "_can_compile", lambda: True)
    monkeypatch.setattr(torch, "compile", compiler)
    fused = steps.fused(halved, GPU)
    assert fused is not halved
    assert float(fused(torch.tensor(3.0))) == 1.5
    # Kernels chosen by stopwatch would give other numbers in the next run.
    assert asked == {"dynamic": False, "options": {"deterministic": True}}


def test_means_are_over_the_steps_since_the_restart() -> None:
    averages = Averages()
    for loss, norm in ((1.0, 10.0), (2.0, 30.0)):
        averages.add({"loss": torch.tensor(loss), "norm": torch.tensor(norm)})
    assert averages.read(2, "train") == {"train/loss": 1.5, "train/norm": 20.0}
    averages.restart()
    averages.add({"loss": torch.tensor(5.0), "norm": torch.tensor(7.0)})
    assert averages.read(1, "train") == {"train/loss": 5.0, "train/norm": 7.0}


def test_a_mean_that_is_not_finite_is_named() -> None:
    averages = Averages()
    averages.add({"loss": torch.tensor(1.0), "norm": torch.tensor(torch.inf)})
    with pytest.raises(NonFiniteError, match="norm") as error:
        averages.read(1, "train")
    assert "loss" not in str(error.value)

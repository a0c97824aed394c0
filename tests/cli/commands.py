"""The command line, run in this process."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any, TypeAlias

from ilde.cli.main import main

_TINY = {
    "num-envs": 2,
    "rollout-steps": 16,
    "ppo.num-minibatches": 2,
    "ppo.num-epochs": 2,
    "evaluation.final-episodes": 2,
    "rewards.background-steps": 64,
    "rewards.generative.epochs": 2,
    "device": "cpu",
}
TINY = tuple(f"--{name}={value}" for name, value in _TINY.items())
"""Settings of a run that takes a second; an update is 32 steps."""


@dataclass(frozen=True)
class Result:
    """What a command line came to."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)


Ilde: TypeAlias = Callable[..., Result]


def run_ilde(*words: object) -> Result:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(word) for word in words])
    return Result(code, out.getvalue(), err.getvalue())

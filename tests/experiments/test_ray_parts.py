"""What the Ray engine decides before there is a cluster."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ilde.data import UserError
from ilde.experiments import ray_engine
from ilde.experiments.engine import Attempt
from ilde.experiments.ray_engine import RayEngine, connect, fair_gpus, make_token, token_missing


@pytest.mark.parametrize(
    ("gpus", "runs", "part"),
    [
        (0, 4, 0.0),
        (8, 8, 1.0),
        (8, 3, 1.0),
        (8, 12, 0.5),  # two on some GPUs, one on others: nobody waits
        (1, 3, 0.3333),  # three of them fit on one
        (8, 32, 0.25),
    ],
)
def test_gpus_are_shared_so_that_all_runs_fit(gpus: int, runs: int, part: float) -> None:
    assert fair_gpus(gpus, runs) == part


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_new_token_is_its_owners_alone_and_is_never_replaced(home: Path) -> None:
    assert token_missing()
    make_token()
    token = home / ".ray" / "auth_token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert len(token.read_text()) == 64
    assert not token_missing()
    with pytest.raises(FileExistsError):
        make_token()


@pytest.mark.parametrize("name", ["RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"])
@pytest.mark.usefixtures("home")
def test_a_token_of_the_users_is_enough(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "mine")
    assert not token_missing()


@pytest.mark.usefixtures("home")
def test_who_disables_tokens_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert not token_missing()


@pytest.mark.usefixtures("home")
def test_a_token_is_asked_for_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_AUTH_MODE")
    monkeypatch.setattr(ray_engine, "find_spec", lambda name: True)
    with pytest.raises(UserError, match=r"--address far:1: the cluster's token is missing; put it into ~/.ray/auth"):
        connect("far:1")


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"--engine ray needs Ray: pip install ilde\[ray\]"):
        connect(None)


class LostError(Exception):
    """An error of Ray's."""


class Cluster:
    """A Ray whose every task is lost with some words."""

    exceptions = SimpleNamespace(TaskCancelledError=type("Cancelled", (LostError,), {}), RayError=LostError)

    def __init__(self, words: str) -> None:
        self.words = words

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 2.0}}]

    def remote(self, task: object) -> Cluster:
        return self

    def options(self, **shares: object) -> SimpleNamespace:
        return SimpleNamespace(remote=lambda attempt, cpus: attempt.id)

    def wait(self, tasks: list[str], **how: object) -> tuple[list[str], list[str]]:
        return tasks, []

    def get(self, task: str) -> int:
        raise LostError(self.words)


@pytest.mark.parametrize(
    ("words", "said"), [("the node died\nat night", "the node died\n"), ("", "LostError\n")], ids=["words", "no words"]
)
def test_a_task_that_never_began_still_leaves_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, said: str
) -> None:
    monkeypatch.setattr(ray_engine, "connect", lambda address: Cluster(words))
    engine = RayEngine(None)
    attempt = Attempt("a/seed-0", Path("deep/a/seed-0"), (), tmp_path)
    engine.start(attempt)
    assert engine.ended() == {"a/seed-0": ray_engine.FAILED}
    assert attempt.log.read_text() == f"ilde: {said}"


def test_a_worker_loads_neither_torch_nor_gymnasium() -> None:
    script = "import sys, ilde.experiments.ray_engine; sys.exit(bool({'torch', 'gymnasium', 'ray'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0

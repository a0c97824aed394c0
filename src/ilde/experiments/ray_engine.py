"""The engine of a cluster: every attempt a Ray task, which Ray starts again where a machine was lost.

Runs, logs and demonstrations lie on storage that all machines share. This module imports neither torch nor, until an
engine is built, Ray: the workers load it for every task.
"""

from __future__ import annotations

import logging
import math
import os
import secrets
import socket
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ilde.data import HindranceError, UserError
from ilde.experiments.claims import claimed_cores
from ilde.experiments.engine import Attempt, begin, exit_code

LOSSES = 20
"""How often Ray starts an attempt again because its machine was lost."""
UNLIMITED = 10**6
"""Attempts at once: Ray itself knows how many fit, and asks for more machines where it can."""
DEFAULT_CPUS = 2.0
DEFAULTS = {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
"""Nobody uses the cluster without its token, nothing is reported to anyone; read when Ray is first imported."""
STOPPED = 143
FAILED = 1


def carry_out(attempt: Attempt, cpus: float) -> int:
    """The task: one attempt from beginning to end on this machine; cancelling it saves the run and ends it."""
    with claimed_cores(int(cpus)) as cores, begin(attempt, cores) as child:
        while True:
            try:
                while (code := exit_code(child)) is None:
                    time.sleep(0.2)
                return code
            except KeyboardInterrupt:
                child.terminate()


class RayEngine:
    """Ray tasks with their share of CPUs and GPUs, on a cluster that exists or on one of its own."""

    def __init__(
        self,
        address: str | None,
        *,
        jobs: int | None = None,
        cpus: float | None = None,
        gpus: float | None = None,
        use_gpus: bool = True,
    ) -> None:
        ray = connect(address)
        self._ray = ray
        try:
            total = ray.cluster_resources()
            largest = max((node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"]), default=0.0)
            self.cpus = _checked_cpus(cpus, largest)
            self.at_once = jobs or UNLIMITED
            fitting = min(self.at_once, max(1, int(total.get("CPU", 0.0) // self.cpus)))
            self.gpus = (fair_gpus(total.get("GPU", 0.0), fitting) if use_gpus else 0.0) if gpus is None else gpus
        except BaseException:
            ray.shutdown()
            raise
        self._task = ray.remote(carry_out).options(
            num_cpus=self.cpus, num_gpus=self.gpus, max_retries=LOSSES, scheduling_strategy="SPREAD"
        )
        self._running: dict[Any, Attempt] = {}

    def start(self, attempt: Attempt) -> None:
        """Hand it to the cluster."""
        self._running[self._task.remote(attempt, self.cpus)] = attempt

    def ended(self) -> dict[str, int]:
        """The exit codes since the last call."""
        if not self._running:
            return {}
        try:
            over, _ = self._ray.wait(list(self._running), num_returns=len(self._running), timeout=0)
        except self._ray.exceptions.RayError as error:
            remedy = "bring it back, and the same command goes on"
            raise HindranceError(f"the cluster does not answer any more ({first_line(error)}); {remedy}") from error
        return {self._running[task].id: self._code(task, self._running.pop(task)) for task in over}

    def stop(self) -> None:
        """Cancel every task: those under way save their runs first."""
        for task in self._running:
            self._ray.cancel(task)

    def close(self) -> None:
        """Leave the cluster, which ends our tasks; a cluster of our own ends with it."""
        self._ray.shutdown()

    def _code(self, task: Any, attempt: Attempt) -> int:
        try:
            return int(self._ray.get(task))
        except self._ray.exceptions.TaskCancelledError:
            return STOPPED
        except self._ray.exceptions.RayError as error:
            # A task that never began has written nothing.
            attempt.log.parent.mkdir(parents=True, exist_ok=True)
            with attempt.log.open("a", encoding="utf-8") as log:
                log.write(f"ilde: {first_line(error)}\n")
            return FAILED


def first_line(error: Exception) -> str:
    """Of what an error says, or its name: it may have no words."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def fair_gpus(gpus: float, runs: int) -> float:
    """The part of a GPU each of so many runs gets where all are shared evenly; 0 without any."""
    # Rounded down: three thirds of a GPU must fit on it.
    return math.floor(10_000 / math.ceil(runs / gpus)) / 10_000 if gpus else 0.0


def _checked_cpus(wanted: float | None, largest: float) -> float:
    if wanted is None:
        return max(1.0, min(DEFAULT_CPUS, largest))
    if not 0 < wanted <= largest:
        raise UserError(f"--cpus {wanted:g}: must be above 0, and no machine of the cluster has more than {largest:g}")
    return wanted


def connect(address: str | None) -> Any:
    """The Ray module, connected to the cluster at an address, or to a new one on this machine."""
    if find_spec("ray") is None:
        raise UserError("--engine ray needs Ray: pip install ilde[ray]")
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    if token_missing():
        if address is not None:
            remedy = "put it into ~/.ray/auth_token or name its file in RAY_AUTH_TOKEN_PATH"
            raise UserError(f"--address {address}: the cluster's token is missing; {remedy}")
        make_token()
    if address is not None:
        _check_answers(address)
    ray: Any = import_module("ray")
    # A cluster of our own listens to this machine's user alone, and stores nothing worth mentioning.
    own = {"dashboard_host": "127.0.0.1", "object_store_memory": 100 * 2**20} if address is None else {}
    try:
        ray.init(address or "local", logging_level=logging.ERROR, log_to_driver=False, **own)
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise UserError(f"--address {address or 'local'}: {first_line(error)}; is its token the one here?") from error
    return ray


def _check_answers(address: str) -> None:
    """Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal():
        try:
            socket.create_connection((host.removeprefix("ray://"), int(port)), timeout=10).close()
        except OSError as error:
            raise UserError(f"--address {address}: nobody answers there ({error}); start the cluster first") from None


def token_missing() -> bool:
    """Whether Ray's processes must show each other a token and there is none."""
    given = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    return os.environ["RAY_AUTH_MODE"] == "token" and not given and not token_path().exists()


def token_path() -> Path:
    """Where Ray looks for a token that nobody names."""
    return Path.home() / ".ray" / "auth_token"


def make_token() -> None:
    """Make a token that only its owner may read; Ray makes one itself, but leaves its permissions to chance."""
    token_path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(token_path(), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32))

"""A real Ray cluster of two nodes on this machine, one of which is lost in the middle of a study."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from studies import command, descendants, kill_all, process, rows, wait_for, write_study

from ilde.cli.main import main
from ilde.experiments.ray_engine import make_token

if find_spec("ray") is None:
    pytest.skip("Ray is not installed: pip install ilde[ray]", allow_module_level=True)
if not Path("/proc/self/stat").exists():
    pytest.skip("needs /proc to find the processes of a node", allow_module_level=True)

UPDATES = 160
STEPS = 32 * UPDATES
# A lost node is noticed after three seconds rather than half a minute.
PATIENCE = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_failure_threshold": "6",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Cluster:
    """Two nodes with one CPU each."""

    address: str
    environment: dict[str, str]
    worker: subprocess.Popen[bytes]

    def grid(self, study: Path, out: Path, **environment: str) -> AbstractContextManager[subprocess.Popen[str]]:
        """The study on its way on the cluster."""
        words = ("grid", str(study), "--out", str(out), "--engine", "ray", "--address", self.address, "--cpus", "1")
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return process("-m", "ilde", *words, "--json", env=self.environment | environment, **pipes)


def start_node(environment: dict[str, str], *words: str) -> subprocess.Popen[bytes]:
    resources = ("--num-cpus=1", "--num-gpus=0", f"--object-store-memory={80 * 2**20}", "--block")
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--node-ip-address=127.0.0.1", *resources, *words]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # Ray's sockets lie in its folder, and the name of a socket must be short.
    with (
        tempfile.TemporaryDirectory(prefix="r", ignore_cleanup_errors=True) as home,
        pytest.MonkeyPatch.context() as own,
    ):
        for name, value in {**PATIENCE, "HOME": home, "RAY_AUTH_MODE": "token", "OMP_NUM_THREADS": "1"}.items():
            own.setenv(name, value)
        make_token()
        environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
        port = free_port()
        head = ("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={home}/ray")
        nodes = [start_node(environment, *head)]
        try:
            wait_for(lambda: answers(port))
            nodes.append(start_node(environment, f"--address=127.0.0.1:{port}"))
            wait_for(lambda: any("raylet" in command(pid) for pid in descendants(nodes[1].pid)))
            yield Cluster(f"127.0.0.1:{port}", environment, nodes[1])
        finally:
            for node in nodes:
                kill_all(node.pid)
                node.wait()


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def run_on(node: subprocess.Popen[bytes]) -> Path | None:
    """The folder of the run that is under way on a node."""
    commands = [command(pid) for pid in descendants(node.pid)]
    words = next((words.split() for words in commands if "ilde.cli.attempt" in words), None)
    return None if words is None else Path(words[words.index("ilde.cli.attempt") + 1])


def test_a_cluster_refuses_another_token(cluster: Cluster, tmp_path: Path) -> None:
    study = write_study(tmp_path, steps=32)
    impatient = {"RAY_NUM_REDIS_GET_RETRIES": "2"}
    with cluster.grid(study, tmp_path / "out", RAY_AUTH_TOKEN="0" * 64, **impatient) as grid:
        out, err = grid.communicate(timeout=240)
    assert (grid.returncode, out) == (2, "")
    assert "InvalidAuthToken" in err
    assert err.splitlines()[-1].startswith(f"ilde: --address {cluster.address}: ")
    assert not (tmp_path / "out").exists()


def test_a_study_survives_the_loss_of_a_node(cluster: Cluster, tmp_path: Path) -> None:
    study = write_study(tmp_path, steps=STEPS, seeds="0..1")
    undisturbed, disturbed = tmp_path / "local", tmp_path / "ray"
    with cluster.grid(study, disturbed) as grid:
        wait_for(lambda: run_on(cluster.worker) is not None)
        victim = run_on(cluster.worker)
        assert victim is not None
        wait_for(lambda: rows(victim / "timing.jsonl") >= 20)
        kill_all(cluster.worker.pid)
        assert rows(victim / "timing.jsonl") < UPDATES
        assert main(["grid", str(study), "--out", str(undisturbed), "--jobs", "2"]) == 0
        out, err = grid.communicate(timeout=240)
    assert grid.returncode == 0, err
    runs: list[dict[str, Any]] = json.loads(out)["runs"]
    assert [(run["state"], run["env_steps"]) for run in runs] == [("finished", STEPS)] * 2
    assert "going on from" in victim.with_name(f"{victim.name}.log").read_text()
    for run in runs:
        for name in ("evaluations.jsonl", "metrics.jsonl"):
            assert (disturbed / run["id"] / name).read_bytes() == (undisturbed / run["id"] / name).read_bytes()

from __future__ import annotations

import getpass
import json
import os
import platform
import shutil
import socket
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from ilde.runs import collect_provenance
from ilde.runs.provenance import source_revision


def test_everything_that_moves_numbers_is_recorded() -> None:
    provenance = collect_provenance(["ilde", "train", "ilde"], "sha256:ab", {"mujoco": "4.0.0"})
    versions = provenance["versions"]
    assert versions["python"] == platform.python_version()
    assert versions["torch"] == str(torch.__version__)
    assert versions["numpy"] == np.__version__
    assert versions["mujoco"] == "4.0.0"
    assert all(versions[name] for name in ("scipy", "gymnasium", "ilde"))
    assert provenance["demos_hash"] == "sha256:ab"
    assert provenance["command"] == ["ilde", "train", "ilde"]
    assert provenance["cores"] == os.cpu_count()
    assert provenance["cpu"]
    assert provenance["started"].endswith("+00:00")
    assert json.loads(json.dumps(provenance, allow_nan=False)) == provenance


def test_no_person_and_no_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/alice")
    monkeypatch.setattr(socket, "gethostname", lambda: "alices-machine")
    command = ["/home/alice/.venv/bin/ilde", "--demos=/home/alice/d.npz", "/home/alice", "/home/alice2/x"]
    provenance = collect_provenance(command, None, {})
    assert provenance["command"] == ["~/.venv/bin/ilde", "--demos=~/d.npz", "~", "/home/alice2/x"]
    text = json.dumps({key: value for key, value in provenance.items() if key != "command"})
    assert "alice" not in text
    assert platform.node() not in text
    assert f"/{getpass.getuser()}" not in text


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_revision_is_that_of_tracked_sources_and_says_when_they_were_changed(tmp_path: Path) -> None:
    package, installed = tmp_path / "src", tmp_path / "site-packages"
    for folder in (package, installed):
        folder.mkdir()
        (folder / "module.py").write_text("x = 1\n")
    assert source_revision(package) is None
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "src")
    assert source_revision(package) is None
    git(tmp_path, "commit", "-q", "-m", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert source_revision(package) == {"commit": commit, "dirty": False}
    assert source_revision(installed) is None
    (package / "module.py").write_text("x = 2\n")
    assert source_revision(package) == {"commit": commit, "dirty": True}


def test_without_git_there_is_no_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert source_revision(Path(__file__).parent) is None

"""What a run was made with: everything that can move its numbers, and nothing that names a person or a machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

PACKAGES = ("ilde", "torch", "numpy", "scipy", "gymnasium")


def collect_provenance(
    command: Sequence[str], demos_hash: str | None, simulator_versions: Mapping[str, str]
) -> dict[str, Any]:
    """Command, time, demonstrations, versions, source revision and hardware of this process, as JSON values."""
    return {
        "command": [_without_home(argument) for argument in command],
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "demos_hash": demos_hash,
        "versions": {
            "python": platform.python_version(),
            **{package: _version(package) for package in PACKAGES},
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),
            **simulator_versions,
        },
        "source": source_revision(Path(__file__).parents[1]),
        "platform": platform.platform(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }


def source_revision(folder: Path) -> dict[str, Any] | None:
    """The git commit of a folder's files and whether they were changed since; None where git does not track them."""
    # An installed package may lie in an environment inside somebody else's repository, whose commit says nothing.
    if not _git(folder, "ls-files"):
        return None
    commit = _git(folder, "rev-parse", "HEAD")
    return {"commit": commit, "dirty": bool(_git(folder, "status", "--porcelain", "--", "."))} if commit else None


def _git(folder: Path, *arguments: str) -> str | None:
    # Without optional locks: `git status` must not get in the way of the user's own git.
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str:
    # platform.processor() is empty on most Linux systems.
    try:
        named = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        named = None
    return named[1].strip() if named else platform.processor() or platform.machine()


def _without_home(argument: str) -> str:
    """The argument with the user's home folder, and so the user's name, as `~`."""
    return re.sub(rf"{re.escape(os.path.expanduser('~'))}(?=/|$)", "~", argument)

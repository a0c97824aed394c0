"""Cores of a machine on which several engines may start runs, none knowing of the others.

A claim is a lock on a file named after the core; the kernel frees it when its holder dies, however it dies.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path


@contextmanager
def claimed_cores(count: int, folder: Path | None = None) -> Iterator[list[int]]:
    """So many cores that nobody else has claimed; none where there are too few, or where no core can be named.

    Args:
        folder: where the claims are kept; by default the user's own on this machine.
    """
    with ExitStack() as claims:
        yield _claim(count, folder or Path(tempfile.gettempdir()) / f"ilde-cores-{os.getuid()}", claims)


def _claim(count: int, folder: Path, claims: ExitStack) -> list[int]:
    cores: list[int] = []
    if hasattr(os, "sched_getaffinity"):
        with suppress(OSError):  # somebody else's folder: the run goes on unbound
            folder.mkdir(mode=0o700, exist_ok=True)
            for core in sorted(os.sched_getaffinity(0)):
                if len(cores) < count and _free(folder / str(core), claims):
                    cores.append(core)
    if len(cores) < count:
        claims.close()
        return []
    return cores


def _free(path: Path, claims: ExitStack) -> bool:
    file = claims.enter_context(path.open("a"))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

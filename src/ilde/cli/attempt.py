"""`python -m ilde.cli.attempt FOLDER METHOD ...`: one attempt at a run, for a process that may die before it.

Goes on with the run in the folder, or begins it with the words of `ilde train`. When the end of standard input comes,
the parent is gone: the run saves a checkpoint and ends, as on SIGTERM.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import time
from pathlib import Path

from ilde.cli.main import main

PATIENCE_SECONDS = 150.0
"""How long a run may look taken: shared storage can take that long to forget the lock of a machine that was lost."""


def attempt(folder: Path, words: list[str]) -> int:
    """Carry the run to its end; returns the exit code of `ilde`."""
    await_release(folder, PATIENCE_SECONDS)
    begun = (folder / "config.json").exists()
    command = ["resume", str(folder)] if begun else ["train", *words, f"--out={folder}"]
    sys.argv = ["ilde", *command]  # what a run remembers as its command can be typed
    print(shlex.join(sys.argv), flush=True)
    return main(command)


def await_release(folder: Path, patience: float) -> None:
    """Wait for a process that still holds the run; after `patience` seconds, opening the run will say who it is."""
    from ilde.data import UserError
    from ilde.runs.durable import FolderLock

    deadline = time.monotonic() + patience
    while (folder / "lock").exists() and time.monotonic() < deadline:
        try:
            FolderLock(folder).release()
            return
        except UserError:
            time.sleep(0.5)


def end_with_parent() -> None:
    """Stop this process, in good order, when nobody holds the other end of its standard input any more."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    end_with_parent()
    sys.exit(attempt(Path(sys.argv[1]), sys.argv[2:]))

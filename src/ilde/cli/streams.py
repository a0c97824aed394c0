"""Standard output as it is: in any encoding, closed, full, or left by its reader."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper


def prepare() -> None:
    """Let nothing fail for want of a letter or of a stream."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever began this process, and so wanted by nobody
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open to the end
    # A letter that the encoding lacks becomes one other, so that columns stay columns; standard error does alike.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def output_lost() -> bool:
    """Whether nothing can be printed any more: an error does not say which of all files it came from."""
    try:
        print(flush=True)
    except OSError:
        return True
    return False


def give_up_output() -> None:
    """What is still buffered must not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""Run as a script: a small process that has the libraries loaded and forks a reader for each request.

It stands for `quarantine._run`, with the same script, limits and answers, and saves the start of a process per file.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from typing import Any

MODULES = ("h5py", "pyarrow.parquet", "pyarrow.compute")


class ReaderServer:
    """The caller's side."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, words: list[str], seconds: float) -> None:
        from ilde.demos.archive import FormatError

        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([words, seconds]), file=self.process.stdin, flush=True)
        message = json.loads(self.process.stdout.readline())
        if message is not None:
            raise FormatError(message)

    def close(self) -> None:
        self.process.communicate()


def _answer(words: list[str], seconds: float) -> str | None:
    """None for a success, or what the fork died of."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _read(words, writing)
    os.close(writing)
    deadline = time.monotonic() + seconds
    while not (waited := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"reading it took longer than {seconds:g} s; refused"
        time.sleep(0.001)
    with os.fdopen(reading, "rb") as pipe:
        message = pipe.read().decode()
    code = os.waitstatus_to_exitcode(waited[1])
    return None if code == 0 else message if code > 0 else f"damaged: its reader crashed on it (signal {-code})"


def _read(words: list[str], report: int) -> None:
    code = 1
    try:
        runpy.run_path(words[0])["main"](*words[1:])
        code = 0
    except SystemExit as leaving:
        os.write(report, str(leaving.code).encode())
    finally:
        os._exit(code)


def _serve() -> None:
    for module in MODULES:
        importlib.import_module(module)
    for line in sys.stdin:
        request: Any = json.loads(line)
        print(json.dumps(_answer(*request)), flush=True)


if __name__ == "__main__":
    _serve()

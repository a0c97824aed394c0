"""Files whose libraries can crash, hang or grow without bound are read in a process of their own, within limits.

What comes back is an `.npz` of plain arrays, read with the care due to a stranger's file.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

from ilde.data import UserError
from ilde.demos import archive
from ilde.demos.archive import FormatError
from ilde.envs.names import installed

Reader: TypeAlias = Literal["hdf5.gail", "hdf5.minari", "arrow.minari", "arrow.imitation"]
"""A script beside this one, and a function in it."""

TIME_LIMIT_S = 60.0
BYTES_PER_SECOND = 20 * 2**20
"""Larger files have more time: even a slow disk reads this fast."""
OVERHEAD_BYTES = 2 * 2**30
"""Address space of the interpreter and its libraries."""
MAX_MESSAGE = 300

_FOLDER = Path(__file__).parent
_NEEDS = {"hdf5": "h5py", "arrow": "pyarrow"}
_ENVIRONMENT: Mapping[str, str] = {
    "HDF5_PLUGIN_PRELOAD": "::",  # no filter libraries: a file must not choose what is loaded
    "HDF5_USE_FILE_LOCKING": "FALSE",  # folders may be read-only
    "OPENBLAS_NUM_THREADS": "1",
}


def read_apart(
    reader: Reader, path: Path, *, limit_bytes: int = archive.LIMIT_BYTES, time_limit_s: float | None = None
) -> dict[str, Any]:
    """The arrays of a `Foreign` that a reader finds; raises `FormatError` whatever happens to its process."""
    script, _, function = reader.partition(".")
    require(_NEEDS[script], path)
    seconds = TIME_LIMIT_S + _size(path) / BYTES_PER_SECOND if time_limit_s is None else time_limit_s
    with TemporaryDirectory(prefix="ilde-") as folder:
        target = Path(folder) / "arrays.npz"
        # Arrays exist twice while episodes are joined.
        limits = (limit_bytes, 2 * limit_bytes + OVERHEAD_BYTES)
        words = (_FOLDER / "apart.py", _FOLDER / f"{script}.py", function, path.absolute(), target, *limits)
        _run([str(word) for word in words], seconds)
        return {**archive.read_arrays(target, limit_bytes + archive.CHUNK_BYTES)}


def require(module: str, path: Path) -> None:
    """Refuse where an optional library is missing, naming the extra."""
    if not installed(module):
        raise UserError(f"{path}: this format needs {module}: pip install 'ilde[formats]'")


def _run(words: list[str], seconds: float) -> None:
    # -P: the folder of the script is not searched for modules.
    command = [sys.executable, "-P", *words]
    environment = {**os.environ, **_ENVIRONMENT}
    try:
        result = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise FormatError(f"reading it took longer than {seconds:g} s; refused") from error
    if result.returncode < 0:
        raise FormatError(f"damaged: its reader crashed on it (signal {-result.returncode})")
    if result.returncode:
        raise FormatError(_last_line(result.stderr))


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines() or ["damaged: cannot be read"]
    return "".join(letter if letter.isprintable() else "?" for letter in lines[-1])[:MAX_MESSAGE]


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())

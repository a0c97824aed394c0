"""Writes that survive a crash, and the lock that keeps a run to one process."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from ilde.data import HindranceError, UserError

LASTING = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EINVAL,
}
"""Refusals of a file system that no waiting ends; others, such as no room or storage out of reach, may be over soon."""


def sync(path: Path) -> None:
    """Force a file's contents, or a folder's entries, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file so that a reader, or a crash, sees either the old contents or the new."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(content)
    sync(temporary)
    os.replace(temporary, path)
    sync(path.parent)


def nearest(path: Path) -> Path:
    """What there already is of a path: itself or the first of its parents."""
    # `os.path.exists` answers False where a parent must not be looked into; `Path.exists` would raise.
    return next(there for there in (path, *path.absolute().parents) if os.path.exists(there))


def probe(folder: Path) -> None:
    """Meet, before any work, the `OSError` of writing into a folder that is there or is yet to be made."""
    # Permissions alone do not say it: file systems are read-only, out of reach, or not really there.
    with TemporaryFile(dir=nearest(folder)):
        pass


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn a refusal of the file system to read into one line for the user."""
    try:
        yield
    except OSError as error:
        message = f"{path}: cannot be read ({error.strerror})"
        if error.errno not in LASTING:
            raise HindranceError(f"{message}; mend that and try again") from error
        raise UserError(f"{message}; make it readable, or restore it from a copy of the run") from error


class FolderLock:
    """An exclusive `flock` on `folder/lock`; the kernel frees it when its holder dies, however it dies."""

    def __init__(self, folder: Path) -> None:
        # The file is never unlinked: a waiting process could else lock a name that no longer exists.
        self._file = (folder / "lock").open("a+", encoding="ascii")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            holder = self._file.read().strip() or "unknown"
            self._file.close()
            message = f"another process (pid {holder}) is working on this run; wait for it or stop it"
            raise HindranceError(f"{folder}: {message}") from None
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def release(self) -> None:
        """Let another process take the folder."""
        self._file.close()

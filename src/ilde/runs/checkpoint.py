"""Checkpoints that are either whole or absent: a folder of safetensors and JSON, checksummed, synced and renamed.

A checkpoint lies at `<env_steps>/` with `tensors.safetensors` and `state.json`. No file's time is ever looked at: the
newest is the one with the most steps. One process writes (the run's lock sees to that); any number may read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from ilde.data import HindranceError, UserError
from ilde.envs.base import State
from ilde.runs.durable import sync
from ilde.runs.tree import decode, encode

FORMAT = 1
TENSORS = "tensors.safetensors"
TREE = "state.json"
TEMPORARY = ".tmp-"
REPLACED = ".replaced"


class CorruptCheckpoint(UserError):  # noqa: N818 - the name says what is wrong
    """A checkpoint whose files are missing, damaged, or of another format."""


class Checkpoint(NamedTuple):
    """A verified checkpoint; `note` says which newer ones were skipped and why."""

    state: State
    header: dict[str, Any]
    note: str | None


def write_checkpoint(folder: Path, env_steps: int, state: State, *, header: dict[str, Any]) -> Path:
    """Write `folder/<env_steps>/` so that a kill at any moment leaves it whole or absent; a former one is replaced."""
    if env_steps < 0:
        raise ValueError(f"env_steps is {env_steps}; it must not be negative")
    final = folder / f"{env_steps:012d}"
    temporary = folder / f"{TEMPORARY}{final.name}"
    try:
        clear_leftovers(folder)
        temporary.mkdir(parents=True)
        _write_files(temporary, state, {**header, "env_steps": env_steps, "format": FORMAT})
        _install(temporary, final)
    except (OSError, SafetensorError) as error:
        message = f"cannot write the checkpoint ({error}); free space or mend the folder, then `ilde resume` the run"
        raise HindranceError(f"{final}: {message}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return final


def read_checkpoint(path: Path) -> tuple[State, dict[str, Any]]:
    """The state and header written at `path`, or `CorruptCheckpoint` with the reason."""
    try:
        body = _read_sealed(path / TREE)
        if body["format"] != FORMAT:
            raise CorruptCheckpoint(f"{path}: format {body['format']}; this version of ilde reads format {FORMAT}")
        tensors = _read_tensors(path / TENSORS, body["tensors_sha256"])
        header, state = decode(body["header"], tensors), decode(body["state"], tensors)
        env_steps = header["env_steps"]
    except OSError as error:
        raise CorruptCheckpoint(f"{error.filename or path}: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, RuntimeError, SafetensorError) as error:
        # The checksums hold, so this is a document that ilde did not write.
        raise CorruptCheckpoint(f"{path}: not a checkpoint ({type(error).__name__}: {error})") from error
    if _is_checkpoint(path) and env_steps != int(path.name):
        raise CorruptCheckpoint(f"{path}: written at {env_steps} steps; the folder has another step's name")
    return state, header


def latest_checkpoint(folder: Path) -> Checkpoint | None:
    """The readable checkpoint with the most steps; None where none was ever written.

    Damaged ones are passed over and named in the note. If all are damaged `CorruptCheckpoint` is raised: to start
    again from nothing must be the user's decision.
    """
    skipped: list[str] = []
    for steps in reversed(checkpoint_steps(folder)):
        path = folder / f"{steps:012d}"
        try:
            state, header = read_checkpoint(path)
        except CorruptCheckpoint as error:
            skipped.append(str(error))
            continue
        note = f"skipped {'; '.join(skipped)}; going on from {path}" if skipped else None
        return Checkpoint(state, header, note)
    if skipped:
        remedy = "restore the folder from a copy, or start anew with another --out"
        raise CorruptCheckpoint(f"{folder}: no readable checkpoint ({'; '.join(skipped)}); {remedy}")
    return None


def checkpoint_steps(folder: Path) -> list[int]:
    """The steps of all checkpoints in a folder, damaged ones included, in ascending order."""
    return sorted(int(path.name) for path in folder.iterdir() if _is_checkpoint(path)) if folder.is_dir() else []


def prune(folder: Path, keep_last: int = 2, *, keep: Collection[int] = ()) -> None:
    """Delete all checkpoints but the last few and those at the steps in `keep`."""
    if keep_last < 1:
        raise ValueError(f"keep_last is {keep_last}; at least one checkpoint must stay")
    for steps in checkpoint_steps(folder)[:-keep_last]:
        if steps not in keep:
            discard(folder, steps)


def discard(folder: Path, env_steps: int) -> None:
    """Delete one checkpoint; a kill halfway leaves no damaged one behind."""
    doomed = folder / f"{TEMPORARY}discarded-{env_steps:012d}"
    os.rename(folder / f"{env_steps:012d}", doomed)
    shutil.rmtree(doomed)


def clear_leftovers(folder: Path) -> None:
    """Remove what a killed writer left behind; only the process that holds the run's lock may do this."""
    for path in folder.glob(f"{TEMPORARY}*"):
        shutil.rmtree(path)
    for former in folder.glob(f"*{REPLACED}"):
        successor = former.with_name(former.name.removesuffix(REPLACED))
        if successor.exists():
            shutil.rmtree(former)
        else:
            os.rename(former, successor)


def _write_files(folder: Path, state: State, header: dict[str, Any]) -> None:
    tensors: dict[str, Tensor] = {}
    trees = {"state": encode(state, tensors), "header": encode(header, tensors, ("header",))}
    # Not `save_file`: its files are readable by their owner alone, whatever the umask says.
    content = safetensors.torch.save(tensors)
    (folder / TENSORS).write_bytes(content)
    (folder / TREE).write_bytes(_seal({"format": FORMAT, "tensors_sha256": _sha256(content), **trees}))
    for path in (folder / TENSORS, folder / TREE, folder):
        sync(path)


def _install(temporary: Path, final: Path) -> None:
    former = final.with_name(final.name + REPLACED)
    if final.exists():
        # Folders cannot be swapped in one call; `clear_leftovers` brings the former back after a kill between the two.
        os.rename(final, former)
    os.rename(temporary, final)
    sync(final.parent)
    shutil.rmtree(former, ignore_errors=True)


def _seal(body: dict[str, Any]) -> bytes:
    text = json.dumps(body, allow_nan=False)
    return f'{{"sha256": "{_sha256(text.encode())}", "body": {text}}}\n'.encode()


def _read_sealed(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    try:
        body: dict[str, Any] = json.loads(content)["body"]
        # Sealing again must give the same bytes, so no flip anywhere in the file goes unseen.
        whole = _seal(body) == content
    except (ValueError, LookupError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise CorruptCheckpoint(f"{path}: {len(content):,} bytes do not match their checksum")
    return body


def _read_tensors(path: Path, sha256: str) -> dict[str, Tensor]:
    content = path.read_bytes()
    if _sha256(content) != sha256:
        raise CorruptCheckpoint(f"{path}: {len(content):,} bytes do not match their checksum")
    return safetensors.torch.load(content)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _is_checkpoint(path: Path) -> bool:
    return re.fullmatch(r"[0-9]{12,}", path.name) is not None

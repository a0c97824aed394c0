"""Demonstrations out of other formats, checked against the user's environment before they are believed."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import gymnasium as gym
import numpy as np

from ilde.demos import archive, imitation_format, minari, plain_arrays
from ilde.demos.archive import FormatError
from ilde.demos.demonstrations import Demonstrations
from ilde.demos.foreign import Assembled, Foreign, assemble
from ilde.demos.header import Header
from ilde.demos.quarantine import read_apart
from ilde.demos.storage import one_line_errors
from ilde.envs.base import Array

SourceFormat: TypeAlias = Literal["npz", "minari", "gail-hdf5", "imitation"]
SOURCE_FORMATS: tuple[SourceFormat, ...] = get_args(SourceFormat)

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_UNKNOWN = f"not a format that can be imported; known are {', '.join(SOURCE_FORMATS)}"
_READERS: Mapping[SourceFormat, Callable[[Path], Foreign]] = {
    "npz": plain_arrays.read,
    "minari": minari.read,
    "gail-hdf5": lambda path: Foreign(**read_apart("hdf5.gail", path)),
    "imitation": imitation_format.read,
}


@dataclass(frozen=True)
class Target:
    """The environment that the demonstrations are for."""

    env_id: str
    obs_space: gym.spaces.Box
    action_space: gym.spaces.Discrete | gym.spaces.Box


@dataclass(frozen=True)
class Imported:
    """Demonstrations, the format they were found in, and what a user should know about the reading."""

    demos: Demonstrations
    source_format: SourceFormat
    notes: tuple[str, ...]


def import_demos(
    source: str | Path, target: Target, *, source_format: SourceFormat | None = None, created: str, command: str
) -> Imported:
    """Read demonstrations in another format; every fault is a `UserError` of one line.

    Args:
        source: a file, a folder, or the id of a data set in Minari's local store.
        target: the environment; what does not fit its spaces is refused.
        source_format: None: find out.
        created: the time, for the header.
        command: how they were imported, for the header.
    """
    with one_line_errors(source):
        path = _located(Path(source))
        found, foreign = _read(path, source_format)
        _check_env_id(foreign, target)
        recorder = f"imported from {found} {path.name}, sha256 {_digest(path)}"
        demos, notes = demonstrations_of(
            foreign, target, str(source), recorder=recorder, created=created, command=command
        )
        demos, more = _with_origin(demos, foreign)
    return Imported(demos, found, (*notes, *more))


def demonstrations_of(
    foreign: Foreign, target: Target, source: str, *, recorder: str, created: str, command: str
) -> tuple[Demonstrations, tuple[str, ...]]:
    """Foreign steps as demonstrations of an environment, and what a user should know about the reading."""
    assembled = assemble(foreign)
    header = Header(
        env_id=target.env_id,
        simulator_versions={},
        recorder=recorder,
        seeds=tuple(episode.seed for episode in assembled.episodes),
        returns=assembled.returns,
        lives=tuple(int(episode.terminated) for episode in assembled.episodes),
        until="episode",
        greedy=False,
        tremble=0.0,
        created=created,
        command=command,
    )
    demos, notes = _fitted(assembled, header, target, source)
    return demos, (*assembled.notes, *notes)


def _located(path: Path) -> Path:
    found = path if path.exists() else minari.stored_path(path.as_posix())
    if found is None:
        raise FormatError("no such file or folder, and no such data set in Minari's local store")
    if not stat.S_ISREG(found.stat().st_mode) and not found.is_dir():  # opening a pipe would wait for ever
        raise FormatError("not a regular file")
    return found


def _read(path: Path, source_format: SourceFormat | None) -> tuple[SourceFormat, Foreign]:
    try:
        found = source_format or _detect(path)
        return found, _READERS[found](path)
    except FormatError as error:
        if str(error) == archive.NOT_OURS:  # whose advice is to import
            raise FormatError(_UNKNOWN) from error
        raise


def _detect(path: Path) -> SourceFormat:
    """The format of a file or folder, by its content."""
    if path.is_dir() or path.name == minari.HDF5_FILE:
        if minari.data_folder(path) is not None:
            return "minari"
        if path.is_dir() and any(path.glob("*.arrow")):
            return "imitation"
        raise FormatError(_UNKNOWN)
    with path.open("rb") as file:
        if file.read(len(_HDF5_MAGIC)) == _HDF5_MAGIC:
            return "gail-hdf5"
    names = archive.entry_names(path)
    if archive.HEADER in names:
        raise FormatError("is already a demonstration file of ilde: use it as it is")
    return "imitation" if names >= imitation_format.LEGACY_ENTRIES else "npz"


def _check_env_id(foreign: Foreign, target: Target) -> None:
    if foreign.env_id is not None and foreign.env_id != target.env_id:
        shown = "".join(letter if letter.isprintable() else "?" for letter in foreign.env_id[:100])
        raise FormatError(f"recorded on {shown}, --env is {target.env_id}")


def _digest(path: Path) -> str:
    """SHA-256 of a file, or of all files of a folder in the order of their names."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _fitted(assembled: Assembled, header: Header, target: Target, source: str) -> tuple[Demonstrations, list[str]]:
    """The demonstrations in the environment's own types."""
    demos = Demonstrations(target.env_id, assembled.episodes, header)
    demos.check_finite(source)  # before any change of type, which would hide it
    obs, about_obs = _cast([e.obs for e in demos.episodes], target.obs_space, "observations")
    action, about_action = _cast([e.action for e in demos.episodes], target.action_space, "actions")
    episodes = tuple(
        replace(episode, obs=obs[number], action=action[number]) for number, episode in enumerate(demos.episodes)
    )
    demos = replace(demos, episodes=episodes)
    demos.check_matches(target.env_id, target.obs_space, target.action_space, source)
    return demos, about_obs + about_action + _beyond(action, target.action_space)


def _beyond(parts: list[Array], space: gym.spaces.Box | gym.spaces.Discrete) -> list[str]:
    """Continuous actions out of bounds are kept as they were chosen, which a user should know."""
    if not isinstance(space, gym.spaces.Box):
        return []
    beyond = sum(int(((part < space.low) | (part > space.high)).reshape(len(part), -1).any(1).sum()) for part in parts)
    return [f"actions beyond the environment's bounds, kept as recorded: {beyond:,}"] if beyond else []


def _cast(parts: list[Array], space: gym.spaces.Box | gym.spaces.Discrete, what: str) -> tuple[list[Array], list[str]]:
    """Change the type where no number changes, and between floats; what does not fit stays, to be refused by name."""
    shape = space.shape or ()
    if parts[0].shape[1:] == (*shape, 1):
        parts = [part[..., 0] for part in parts]
    given = parts[0].dtype
    if parts[0].shape[1:] != shape or given == space.dtype or given.kind not in "biuf" or space.dtype is None:
        return parts, []
    with np.errstate(all="ignore"):
        cast: list[Array] = [part.astype(space.dtype) for part in parts]
    if all(np.array_equal(new, old) for new, old in zip(cast, parts, strict=True)):
        return cast, []
    if given.kind == "f" and space.dtype.kind == "f":
        return cast, [f"{what} rounded from {given} to {space.dtype}, as the environment gives them"]
    return parts, []


def _with_origin(demos: Demonstrations, foreign: Foreign) -> tuple[Demonstrations, list[str]]:
    """Give back the header that ilde exported, if the content is still what it was."""
    if foreign.header is None:
        return demos, []
    origin, imported = Header.from_json(foreign.header), demos.header
    if origin.content_hash != demos.content_hash:
        return demos, ["changed since ilde exported it: what was known of its origin is left out"]
    recorder = f"{origin.recorder.partition(', imported from ')[0]}, {imported.recorder}"
    header = replace(origin, recorder=recorder, created=imported.created, command=imported.command)
    return replace(demos, header=header), []

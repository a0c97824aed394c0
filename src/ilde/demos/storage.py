"""Demonstrations on disk: one `.npz` of arrays and a JSON header, lossless, checked on the way in and on the way out.

Frame stacks are stored once per frame: consecutive observations of C frames share C - 1 of them. Whether they really do
is verified when saving; everything else is stored as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ilde.data import ShapeError, UserError
from ilde.demos import archive
from ilde.demos.archive import FormatError
from ilde.demos.demonstrations import MIN_TRANSITIONS, Demonstrations, Episode
from ilde.demos.header import Header
from ilde.envs.base import Array

_PER_EPISODE = {"length": ("int64",), "terminated": ("bool",), "truncated": ("bool",), "life_lost": ("bool",)}
_PER_STEP = {"action": ("int64", "float32", "float64"), "reward": ("float64",), "trembled": ("bool",)}
_OBSERVATIONS = {"obs": ("uint8", "float32", "float64"), "frames": ("uint8",)}
_DTYPES = _PER_EPISODE | _PER_STEP | _OBSERVATIONS


def save(demos: Demonstrations, path: str | Path) -> None:
    """Write a demonstration file, whole or not at all; what `load` would refuse is not written."""
    header = replace(demos.header, content_hash=demos.content_hash).to_json()
    try:
        Header.from_json(header)
        arrays = _pack(demos)
        _check_arrays(arrays)
        archive.check_expansion(sum(array.nbytes for e in demos.episodes for array in (e.obs, e.action, e.reward)))
        demos.check_finite(str(path))
        archive.write(Path(path), header, arrays)
    except FormatError as error:
        raise UserError(f"{path}: {error}") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from error


def load(path: str | Path, limit_bytes: int = archive.LIMIT_BYTES) -> Demonstrations:
    """Read a demonstration file from anyone; every fault is a `UserError` of one line."""
    with one_line_errors(path):
        header, arrays = archive.read(Path(path), limit_bytes)
        demos = _unpack(Header.from_json(header), arrays, limit_bytes)
        demos.check_finite(str(path))
        if demos.content_hash != demos.header.content_hash:
            raise FormatError("content does not match its checksum")
    return demos


@contextmanager
def one_line_errors(source: str | Path) -> Iterator[None]:
    """Turn whatever a stranger's file leads to into a `UserError` of one line that names the file."""
    try:
        yield
    except UserError:
        raise
    except (FormatError, ShapeError) as error:
        raise UserError(f"{source}: {error}") from error
    except OSError as error:
        raise UserError(f"{source}: {error.strerror or 'cannot be read'}") from error
    except MemoryError as error:
        raise UserError(f"{source}: does not fit into memory") from error
    except Exception as error:  # a file from a stranger must not show a traceback, whatever it broke
        raise UserError(f"{source}: damaged: cannot be read ({type(error).__name__})") from error


def _pack(demos: Demonstrations) -> dict[str, Array]:
    episodes = demos.episodes
    stacked = all(_is_frame_stack(episode.obs) for episode in episodes)
    observations = [_unstack(episode.obs) if stacked else episode.obs for episode in episodes]
    return {
        "length": np.array([len(episode) for episode in episodes], np.int64),
        **{name: np.array([getattr(e, name) for e in episodes]) for name in ("terminated", "truncated", "life_lost")},
        **{name: np.concatenate([getattr(episode, name) for episode in episodes]) for name in _PER_STEP},
        "frames" if stacked else "obs": np.concatenate(observations),
    }


def _unpack(header: Header, arrays: dict[str, Array], limit_bytes: int) -> Demonstrations:
    _check_arrays(arrays)
    lengths = [int(length) for length in arrays["length"]]
    step_ends = np.cumsum(lengths)[:-1]
    observations = _split_observations(arrays, lengths, limit_bytes)
    steps = {name: np.split(arrays[name], step_ends) for name in _PER_STEP}
    if len(header.seeds) != len(lengths):
        raise FormatError(f"header: {len(header.seeds)} seeds for {len(lengths)} episodes")
    episodes = tuple(
        Episode(
            obs=observations[number],
            action=steps["action"][number],
            reward=steps["reward"][number],
            trembled=steps["trembled"][number],
            terminated=bool(arrays["terminated"][number]),
            truncated=bool(arrays["truncated"][number]),
            life_lost=bool(arrays["life_lost"][number]),
            seed=header.seeds[number],
        )
        for number in range(len(lengths))
    )
    return Demonstrations(header.env_id, episodes, header)


def _check_arrays(arrays: dict[str, Array]) -> None:
    """The names, dtypes and lengths of the format, so that slicing afterwards cannot go wrong."""
    required = _PER_EPISODE.keys() | _PER_STEP.keys()
    for name in sorted((arrays.keys() ^ required) - _OBSERVATIONS.keys()):
        raise FormatError(f"{'unknown' if name in arrays else 'missing'} entry {name[:40]!r}")
    if len(arrays.keys() & _OBSERVATIONS.keys()) != 1:
        raise FormatError("needs one entry 'obs' or 'frames'")
    for name, array in arrays.items():
        if array.dtype.name not in _DTYPES[name] or not array.dtype.isnative:
            raise FormatError(f"{name} has dtype {array.dtype}; can be {' or '.join(_DTYPES[name])}")
        if array.ndim < 1 or (array.ndim != 1 and name not in ("action", "obs", "frames")):
            raise FormatError(f"{name} has shape {array.shape}; expected one dimension")
    _check_lengths(arrays)


def _check_lengths(arrays: dict[str, Array]) -> None:
    lengths = [int(length) for length in arrays["length"]]
    total = sum(lengths)
    if total < MIN_TRANSITIONS:
        raise FormatError(f"{'1 transition' if total == 1 else 'no transitions'}; need at least {MIN_TRANSITIONS}")
    if min(lengths) < 1:
        raise FormatError(f"episode {lengths.index(min(lengths))}: no transitions")
    expected = dict.fromkeys(_PER_EPISODE, len(lengths)) | dict.fromkeys(_PER_STEP, total)
    if "obs" in arrays:
        expected["obs"] = total + len(lengths)
    for name, count in expected.items():
        if len(arrays[name]) != count:
            raise FormatError(f"{name} has {len(arrays[name]):,} entries; expected {count:,}")


def _split_observations(arrays: dict[str, Array], lengths: list[int], limit_bytes: int) -> list[Array]:
    if "obs" in arrays:
        return np.split(arrays["obs"], np.cumsum([length + 1 for length in lengths])[:-1])
    frames = arrays["frames"]
    depth, rest = divmod(len(frames) - sum(lengths), len(lengths))
    if frames.ndim != 3 or depth < 2 or rest:
        raise FormatError(f"frames {frames.shape} do not make stacks for {sum(lengths):,} steps")
    archive.check_expansion((sum(lengths) + len(lengths)) * depth * frames[0].nbytes, limit_bytes)
    parts = np.split(frames, np.cumsum([depth + length for length in lengths])[:-1])
    return [_restack(part, depth) for part in parts]


def _is_frame_stack(obs: Array) -> bool:
    is_image_stack = obs.ndim == 4 and obs.dtype == np.uint8 and obs.shape[1] >= 2
    return is_image_stack and np.array_equal(obs[1:, :-1], obs[:-1, 1:])


def _unstack(obs: Array) -> Array:
    return np.concatenate([obs[0], obs[1:, -1]])


def _restack(frames: Array, depth: int) -> Array:
    # A read-only view: in memory, too, every frame is there once.
    return np.moveaxis(sliding_window_view(frames, depth, axis=0), -1, 1)

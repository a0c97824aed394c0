"""Minari data sets, read from their files: the environment they name is compared with the user's, never built."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ilde.demos.archive import FormatError
from ilde.demos.foreign import Foreign
from ilde.demos.quarantine import Reader, read_apart
from ilde.envs.base import Array

METADATA = "metadata.json"
HDF5_FILE = "main_data.hdf5"
MAX_METADATA_BYTES = 64 * 2**20
HEADER_KEY = "ilde_header"

_READERS: Mapping[str, Reader] = {"hdf5": "hdf5.minari", "arrow": "arrow.minari", "parquet": "arrow.minari"}
_ID = re.compile(r"[-\w]+(/[-\w]+)*-v\d+")


def data_folder(path: Path) -> Path | None:
    """The folder with the files of a data set, given it, the folder around it or its HDF5 file; None if it is none."""
    candidates = (path.parent,) if path.name == HDF5_FILE else (path, path / "data")
    return next((folder for folder in candidates if (folder / METADATA).is_file()), None)


def stored_path(name: str) -> Path | None:
    """Where Minari keeps a data set of this id (`mujoco/hopper/expert-v0`) on this machine; None if it is not there."""
    root = os.environ.get("MINARI_DATASETS_PATH")
    folder = (Path(root) if root else Path.home() / ".minari" / "datasets") / name
    return folder if _ID.fullmatch(name) and data_folder(folder) is not None else None


def read(path: Path) -> Foreign:
    """The steps in a Minari data set of any of its three storage formats."""
    folder = data_folder(path)
    if folder is None:
        raise FormatError(f"no Minari data set: there is no {METADATA}")
    metadata = _metadata(folder / METADATA)
    storage = metadata.get("data_format", "hdf5")  # older data sets do not say
    if not isinstance(storage, str) or storage not in _READERS:
        raise FormatError(f"{METADATA}: unknown data_format {str(storage)[:40]!r}; known are {', '.join(_READERS)}")
    source = folder / HDF5_FILE if storage == "hdf5" else folder
    if storage == "hdf5" and not source.is_file():
        raise FormatError(f"incomplete: there is no {HDF5_FILE} beside {METADATA}")
    arrays = read_apart(_READERS[storage], source)
    found, promised = len(arrays["length"]), metadata.get("total_episodes")
    if isinstance(promised, int) and found != promised:
        raise FormatError(f"incomplete: {found:,} of {promised:,} episodes")
    header = metadata.get(HEADER_KEY)
    foreign = Foreign(**arrays, env_id=_env_id(metadata), header=json.dumps(header).encode() if header else None)
    return replace(foreign, obs=_shaped(foreign.obs, metadata))


def _metadata(path: Path) -> dict[str, Any]:
    if path.stat().st_size > MAX_METADATA_BYTES:
        raise FormatError(f"{METADATA} is too long")
    return _json_object(path.read_bytes(), METADATA)


def _env_id(metadata: Mapping[str, Any]) -> str | None:
    header = metadata.get(HEADER_KEY)
    if isinstance(header, dict) and isinstance(header.get("env_id"), str):
        return str(header["env_id"])
    spec = metadata.get("env_spec")
    name = _json_object(spec, "env_spec").get("id") if isinstance(spec, str) else None
    return name if isinstance(name, str) else None


def _shaped(obs: Array, metadata: Mapping[str, Any]) -> Array:
    """Arrow rows are flat; the data set's own words say in what shape they were."""
    space = metadata.get("observation_space")
    shape = _json_object(space, "observation_space").get("shape") if isinstance(space, str) else None
    if not isinstance(shape, list) or not all(type(size) is int and size > 0 for size in shape):
        return obs
    if obs.ndim == 2 and obs.shape[1] == math.prod(shape):
        return obs.reshape(len(obs), *shape)
    return obs


def _json_object(text: str | bytes, what: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{what} is not JSON") from error
    if not isinstance(document, dict):
        raise FormatError(f"{what} is not a JSON object")
    return document

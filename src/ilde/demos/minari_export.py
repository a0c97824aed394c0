"""Writes a Minari data set, as HDF5 with every array exact: pictures are never turned into JPEG."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

from ilde.demos.demonstrations import Demonstrations, Episode
from ilde.demos.minari import HDF5_FILE, HEADER_KEY, METADATA
from ilde.demos.quarantine import require
from ilde.envs.base import Array
from ilde.envs.names import is_atari

MINARI_VERSION = "0.5.4"
"""Whose layout is written; the first that can tell exact pictures from JPEG."""
STEPS_PER_CHUNK = 64
"""Compressed together: consecutive frame stacks share most of their frames."""

Space: TypeAlias = gym.spaces.Box | gym.spaces.Discrete


@dataclass(frozen=True)
class EnvSpaces:
    """An environment's own spaces, and how Gymnasium builds it (JSON), if it can."""

    obs: gym.spaces.Box
    action: Space
    env_spec: str | None


def env_spaces(env_id: str, obs_space: gym.spaces.Box, action_space: Space) -> EnvSpaces:
    """What Minari can know of an environment; Atari games are built by ilde alone, so Gymnasium's id would mislead."""
    known = env_id in gym.registry and not is_atari(env_id)
    return EnvSpaces(obs_space, action_space, gym.spec(env_id).to_json() if known else None)


def export_minari(demos: Demonstrations, path: Path, spaces: EnvSpaces | None = None) -> None:
    """Write a new data set folder, whole or not at all."""
    require("h5py", path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        (temporary / "data").mkdir(parents=True)
        _write_episodes(demos, temporary / "data" / HDF5_FILE)
        metadata = _metadata(demos, _dataset_id(path), spaces or _seen_spaces(demos))
        (temporary / "data" / METADATA).write_text(json.dumps(metadata))
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_episodes(demos: Demonstrations, path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for number, episode in enumerate(demos.episodes):
            group = file.create_group(f"episode_{number}")
            group.attrs.update({"id": number, "total_steps": len(episode), "life_lost": episode.life_lost})
            if episode.seed is not None:
                group.attrs["seed"] = episode.seed
            for name, array in _arrays(episode).items():
                chunks = (min(len(array), STEPS_PER_CHUNK), *array.shape[1:])
                group.create_dataset(name, data=array, chunks=chunks, compression="gzip")


def _arrays(episode: Episode) -> dict[str, Array]:
    steps = len(episode)
    last = np.arange(steps) == steps - 1
    return {
        "observations": episode.obs,
        "actions": episode.action,
        "rewards": episode.reward,
        "terminations": last & episode.terminated,
        "truncations": last & episode.truncated,
        "infos/trembled": np.append(False, episode.trembled),  # infos have one entry more, that of the reset
    }


def _metadata(demos: Demonstrations, dataset_id: str, spaces: EnvSpaces) -> dict[str, Any]:
    header = replace(demos.header, content_hash=demos.content_hash)
    metadata = {
        "dataset_id": dataset_id,
        "minari_version": MINARI_VERSION,
        "data_format": "hdf5",
        "jpeg_encoding": False,
        "total_episodes": len(demos.episodes),
        "total_steps": demos.num_transitions,
        "observation_space": _space_json(spaces.obs),
        "action_space": _space_json(spaces.action),
        "algorithm_name": header.recorder,
        HEADER_KEY: asdict(header),
    }
    return metadata if spaces.env_spec is None else metadata | {"env_spec": spaces.env_spec}


def _dataset_id(path: Path) -> str:
    """Minari finds a data set in its store if the folder has the data set's name."""
    name = re.sub(r"[^-\w]", "-", path.name)
    return name if re.search(r"-v\d+$", name) else f"{name}-v0"


def _seen_spaces(demos: Demonstrations) -> EnvSpaces:
    """Spaces that hold what is there; the environment's own may be narrower or wider."""
    first = demos.episodes[0]
    if first.action.dtype.kind == "i":
        highest = max(int(episode.action.max()) for episode in demos.episodes)
        return EnvSpaces(_box(first.obs), gym.spaces.Discrete(highest + 1), None)
    return EnvSpaces(_box(first.obs), _box(first.action), None)


def _box(array: Array) -> gym.spaces.Box:
    low, high = (0, 255) if array.dtype == np.uint8 else (-np.inf, np.inf)
    return gym.spaces.Box(low, high, array.shape[1:], array.dtype.type)


def _space_json(space: Space) -> str:
    if isinstance(space, gym.spaces.Discrete):
        return json.dumps({"type": "Discrete", "dtype": "int64", "start": int(space.start), "n": int(space.n)})
    bounds = {"low": space.low.tolist(), "high": space.high.tolist()}
    return json.dumps({"type": "Box", "dtype": str(space.dtype), "shape": list(space.shape), **bounds})

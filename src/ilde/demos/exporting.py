"""Demonstrations for other programs, without loss: plain arrays in an `.npz`, or a Minari data set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, assert_never, get_args

import numpy as np

from ilde.data import UserError
from ilde.demos import archive
from ilde.demos.demonstrations import Demonstrations, Episode
from ilde.demos.minari_export import EnvSpaces, export_minari
from ilde.demos.plain_arrays import NAMES
from ilde.envs.base import Array

TargetFormat: TypeAlias = Literal["minari", "npz"]
TARGET_FORMATS: tuple[TargetFormat, ...] = get_args(TargetFormat)


def export_demos(
    demos: Demonstrations, target_format: TargetFormat, path: Path, spaces: EnvSpaces | None = None
) -> None:
    """Write demonstrations, whole or not at all, so that importing them gives the same back.

    Args:
        demos: what to write.
        target_format: of the file or, for Minari, of the folder.
        path: where; it must not exist.
        spaces: of the environment, for Minari; None: as wide as needed for what is there.
    """
    try:
        match target_format:
            case "npz":
                arrays = _plain_arrays(demos)
                archive.write_whole(path, lambda file: np.savez_compressed(file, **arrays))
            case "minari":
                export_minari(demos, path, spaces)
            case _:
                assert_never(target_format)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from error


def _plain_arrays(demos: Demonstrations) -> dict[str, Any]:
    episodes = demos.episodes
    header = replace(demos.header, content_hash=demos.content_hash).to_json()
    arrays = {
        "obs": _joined(demos, lambda episode: episode.obs[:-1]),
        "action": _joined(demos, lambda episode: episode.action),
        "next_obs": _joined(demos, lambda episode: episode.obs[1:]),
        "reward": _joined(demos, lambda episode: episode.reward),
        "terminated": _joined(demos, lambda episode: _last_step(episode) & episode.terminated),
        "truncated": _joined(demos, lambda episode: _last_step(episode) & episode.truncated),
        "trembled": _joined(demos, lambda episode: episode.trembled),
        "length": np.array([len(episode) for episode in episodes], np.int64),
        "life_lost": np.array([episode.life_lost for episode in episodes]),
        "seed": np.array([-1 if episode.seed is None else episode.seed for episode in episodes], np.int64),
        "env_id": np.array(demos.env_id),
        "header": np.frombuffer(header, np.uint8),
    }
    return {NAMES[role][0]: array for role, array in arrays.items()}


def _joined(demos: Demonstrations, part: Callable[[Episode], Array]) -> Array:
    return np.concatenate([part(episode) for episode in demos.episodes])


def _last_step(episode: Episode) -> Array:
    return np.equal(np.arange(len(episode)), len(episode) - 1)

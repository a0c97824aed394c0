"""Small files in other formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
from gymnasium.spaces import Box, Discrete

from ilde.demos import Demonstrations
from ilde.demos.importing import Imported, SourceFormat, Target, import_demos

VECTORS = Target("Toy-v0", Box(-np.inf, np.inf, (3,), np.float64), Box(-9.0, 9.0, (2,), np.float32))
FRAMES = Target("Toy-v0", Box(0, 255, (4, 12, 10), np.uint8), Discrete(6))


def imported(path: Path | str, target: Target = VECTORS, source_format: SourceFormat | None = None) -> Imported:
    return import_demos(path, target, source_format=source_format, created="2025-01-01", command="ilde demos import")


def same_steps(demos: Demonstrations, other: Demonstrations) -> bool:
    """Whether observations, actions, successors, rewards and endings agree bit for bit, with their types."""
    pairs = list(zip(demos.episodes, other.episodes, strict=True))
    return all(
        getattr(a, name).dtype == getattr(b, name).dtype and np.array_equal(getattr(a, name), getattr(b, name))
        for a, b in pairs
        for name in ("obs", "action", "reward")
    ) and all((a.terminated, a.truncated) == (b.terminated, b.truncated) for a, b in pairs)


def gail_arrays(demos: Demonstrations) -> dict[str, Any]:
    """Padded with numbers that must never be read; the last observation of each episode is left out."""
    longest = max(len(episode) for episode in demos.episodes)

    def padded(name: str) -> Any:
        rows = [getattr(episode, name)[: len(episode)] for episode in demos.episodes]
        return np.stack([np.concatenate([row, np.full((longest - len(row), *row.shape[1:]), 9e9)]) for row in rows])

    lengths = np.array([len(episode) for episode in demos.episodes])
    return {"obs_B_T_Do": padded("obs"), "a_B_T_Da": padded("action"), "r_B_T": padded("reward"), "len_B": lengths}


def write_gail(path: Path, arrays: dict[str, Any]) -> None:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, compression="gzip" if np.ndim(array) > 1 else None)


def trajectories(demos: Demonstrations) -> dict[str, Any]:
    """The columns of `imitation`; its own loader would unpickle the last one."""
    return {
        "obs": [episode.obs.tolist() for episode in demos.episodes],
        "acts": [episode.action.tolist() for episode in demos.episodes],
        "terminal": [episode.terminated for episode in demos.episodes],
        "rews": [episode.reward.tolist() for episode in demos.episodes],
        "infos": [['{"py/reduce": [{"py/function": "os.abort"}]}'] * len(episode) for episode in demos.episodes],
    }


def write_trajectories(folder: Path, columns: dict[str, Any]) -> None:
    types = {"obs": pa.list_(pa.list_(pa.float64())), "acts": pa.list_(pa.list_(pa.float32()))}
    table = pa.table({name: pa.array(rows, types.get(name)) for name, rows in columns.items()})
    folder.mkdir(exist_ok=True)
    file = folder / "data-00000-of-00001.arrow"
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table, max_chunksize=2)

"""Readers of Arrow and Parquet files, for a process of their own (`apart`): Minari's data sets, and `imitation`'s.

Only the columns that are needed are looked at; `imitation`'s `infos`, which its own loader unpickles, never are.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

Spend: TypeAlias = Callable[[int], None]
EpisodeArrays: TypeAlias = dict[str, NDArray[Any]]

_MINARI = {
    "observations": "obs",
    "actions": "action",
    "rewards": "reward",
    "terminations": "terminated",
    "truncations": "truncated",
}
_MAX_JSON_BYTES = 2**20
_STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"


def minari(path: Path, spend: Spend) -> Iterator[EpisodeArrays]:
    """The folders `0`, `1`, ... of a Minari data set: T + 1 rows each, the last one an observation alone."""
    numbers = sorted(int(folder.name) for folder in path.iterdir() if folder.name.isdecimal() and folder.is_dir())
    for number in numbers:
        folder = path / str(number)
        files = sorted(file for file in folder.iterdir() if file.suffix in (".arrow", ".parquet") and file.is_file())
        if len(files) != 1:
            sys.exit(f"episode {number}: {len(files)} files; expected one .arrow or .parquet file")
        table = _table(files[0], list(_MINARI), spend)
        episode = {name: _numbers(_one_array(table, column), column) for column, name in _MINARI.items()}
        yield {name: array if name == "obs" else array[:-1] for name, array in episode.items()} | _seed(folder)


def imitation(path: Path, spend: Spend) -> Iterator[EpisodeArrays]:
    """The trajectories of `imitation` 1.0, one a row: `obs` (T + 1), `acts` (T), `terminal`, and perhaps `rews` (T)."""
    files = sorted(file for file in path.glob("*.arrow") if not file.name.startswith("cache-") and file.is_file())
    for file in files:
        table = _table(file, ["obs", "acts", "terminal"], spend, optional=["rews"])
        columns = {name: _one_array(table, name) for name in table.column_names}
        for row in range(len(table)):
            yield _trajectory({name: column[row] for name, column in columns.items()})


def _trajectory(row: dict[str, Any]) -> EpisodeArrays:
    if any(not cell.is_valid for cell in row.values()):
        sys.exit("a trajectory has an empty cell")
    action = _numbers(row["acts"].values, "acts")
    terminated = np.zeros(len(action), np.bool_)
    terminated[-1:] = row["terminal"].as_py() is True
    episode = {"obs": _numbers(row["obs"].values, "obs"), "action": action, "terminated": terminated}
    return episode | ({"reward": _numbers(row["rews"].values, "rews")} if "rews" in row else {})


def _seed(folder: Path) -> EpisodeArrays:
    file = folder / "metadata.json"
    seed = None
    if file.is_file() and file.stat().st_size <= _MAX_JSON_BYTES:
        document = json.loads(file.read_text())
        seed = document.get("seed") if isinstance(document, dict) else None
    return {"seed": np.array(seed if isinstance(seed, int) and 0 <= seed < 2**63 else -1, np.int64)}


def _table(file: Path, columns: list[str], spend: Spend, optional: Sequence[str] = ()) -> Any:
    if file.suffix == ".parquet":
        table = parquet.ParquetFile(file).read(columns=columns, use_threads=False)
    else:
        with pa.OSFile(str(file)) as source, _batches(source) as reader:
            table = reader.read_all()
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        sys.exit(f"{file.name}: no column {missing[0]!r}; it has {', '.join(table.column_names)}")
    table = table.select([*columns, *(name for name in optional if name in table.column_names)])
    table.validate(full=True)  # offsets that point outside would be followed
    spend(table.nbytes)
    return table


def _batches(source: Any) -> Any:
    """Minari writes Arrow files; `datasets`, on which `imitation` builds, writes Arrow streams."""
    is_file = source.read(6) == b"ARROW1"
    source.seek(max(source.size() - len(_STREAM_END), 0))
    if not is_file and source.read() != _STREAM_END:  # a shorter stream is a valid one to the library
        sys.exit("truncated: the end of the Arrow stream is missing")
    source.seek(0)
    options = pa.ipc.IpcReadOptions(use_threads=False)  # each thread would reserve address space of its own
    return pa.ipc.open_file(source, options=options) if is_file else pa.ipc.open_stream(source, options=options)


def _one_array(table: Any, name: str) -> Any:
    chunks = table.column(name).combine_chunks()
    return pa.concat_arrays(chunks.chunks) if isinstance(chunks, pa.ChunkedArray) else chunks


def _numbers(values: Any, name: str) -> NDArray[Any]:
    """Nested lists of one length per level as one array."""
    shape = [len(values)]
    while True:
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if values.null_count:
            sys.exit(f"{name}: a value is missing")
        if not (pa.types.is_list(values.type) or pa.types.is_large_list(values.type) or _is_fixed(values.type)):
            break
        lengths = {values.type.list_size} if _is_fixed(values.type) else set(np.unique(values.value_lengths()).tolist())
        if len(lengths) > 1:
            sys.exit(f"{name}: rows of different lengths")
        shape.append(lengths.pop() if lengths else 0)
        values = values.flatten()
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_boolean(values.type)):
        sys.exit(f"{name} holds {values.type}, such as text or JPEG pictures; need plain numbers")
    array: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array.reshape(shape)


def _is_fixed(kind: Any) -> bool:
    return bool(pa.types.is_fixed_size_list(kind))

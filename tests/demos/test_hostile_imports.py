"""Files of other formats from strangers: one line with the path, whatever is in them, never a line of their code."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from foreign_files import gail_arrays, imported, trajectories, write_gail, write_trajectories
from hostile_files import OBJECT_ARRAY, PICKLES, npy, zipped

from ilde.data import UserError
from ilde.demos import Demonstrations, save
from ilde.demos.exporting import export_demos
from ilde.demos.importing import SourceFormat

PICKLE = "contains a Python pickle; refused, because it could run code"
UNKNOWN = "not a format that can be imported; known are npz, minari, gail-hdf5, imitation"

pytestmark = pytest.mark.usefixtures("forked_readers")


def _refusal(path: Path, source_format: SourceFormat | None = None) -> str:
    with pytest.raises(UserError) as error:
        imported(path, source_format=source_format)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize("source_format", [None, "npz", "imitation"])
def test_a_pickle_is_refused_and_not_run(path: Path, source_format: SourceFormat | None) -> None:
    path.write_bytes(PICKLES["in a list, protocol 4"])
    assert _refusal(path, source_format) == PICKLE
    zipped(path, obs=OBJECT_ARRAY, acts=npy("'<f8'", "(2,)", bytes(16)))
    assert _refusal(path, source_format) == PICKLE


def test_what_is_no_known_format_is_said(path: Path) -> None:
    path.write_bytes(b"hello")
    assert _refusal(path) == UNKNOWN
    assert _refusal(path, "npz") == UNKNOWN
    assert _refusal(path.parent) == UNKNOWN
    path.write_bytes(b"")
    assert _refusal(path) == "empty file"
    path.unlink()
    os.mkfifo(path)
    assert _refusal(path, "gail-hdf5") == "not a regular file"


def test_our_own_file_needs_no_import(path: Path, vector_demos: Demonstrations) -> None:
    save(vector_demos, path)
    assert _refusal(path) == "is already a demonstration file of ilde: use it as it is"


def test_a_truncated_npz_is_called_truncated(path: Path) -> None:
    np.savez(path, obs=np.zeros((9, 3)), actions=np.zeros((8, 2)))
    path.write_bytes(path.read_bytes()[:-100])
    assert _refusal(path) == "truncated: the end of the zip archive is missing"


def _change_links(file: Any) -> None:
    del file["r_B_T"]
    file["r_B_T"] = h5py.ExternalLink("other.h5", "/r_B_T")


def _change_storage(file: Any) -> None:
    del file["r_B_T"]
    file.create_dataset("r_B_T", (3, 20), "f8", external=[("/dev/zero", 0, 480)])


def _change_to_virtual(file: Any) -> None:
    del file["r_B_T"]
    layout = h5py.VirtualLayout((3, 20), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "x", (3, 20))
    file.create_virtual_dataset("r_B_T", layout)


def _change_to_petabytes(file: Any) -> None:
    del file["obs_B_T_Do"]
    file.create_dataset("obs_B_T_Do", (3, 20, 2**46), "f8", chunks=(1, 1, 1024))


def _change_to_text(file: Any) -> None:
    del file["len_B"]
    file["len_B"] = ["a", "b", "c"]


def _change_to_group(file: Any) -> None:
    del file["len_B"]
    file.create_group("len_B")


def _change_lengths(file: Any) -> None:
    file["len_B"][1] = 21


def _change_shape(file: Any) -> None:
    del file["r_B_T"]
    file["r_B_T"] = np.zeros((3, 19))


def _poison(file: Any) -> None:
    file["a_B_T_Da"][1, 2, 0] = np.nan


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_change_links, "r_B_T: a link to another place; refused"),
        (_change_storage, "/r_B_T: stored outside of this file; refused"),
        (_change_to_virtual, "/r_B_T: stored outside of this file; refused"),
        (_change_to_petabytes, "expands to 31,457,280.0 GiB (limit 8.0 GiB)"),
        (_change_to_text, "/len_B holds object, such as text or JPEG pictures; need plain numbers"),
        (_change_to_group, "/len_B is a group, not one array; ilde learns from arrays"),
        (_change_lengths, "len_B: episode 1 has length 21; expected 1 to 20"),
        (
            _change_shape,
            "obs_B_T_Do (3, 20, 3), a_B_T_Da (3, 20, 2), r_B_T (3, 19) and len_B (3,) do not go together",
        ),
        (_poison, "episode 1 step 2: action contains nan"),
        (lambda file: file.pop("a_B_T_Da"), "no entry 'a_B_T_Da' in /; it has len_B, obs_B_T_Do, r_B_T"),
    ],
)
def test_a_hostile_hdf5_file_is_one_line(
    path: Path, vector_demos: Demonstrations, change: Callable[[Any], Any], reason: str
) -> None:
    write_gail(path, gail_arrays(vector_demos))
    with h5py.File(path, "a") as file:
        change(file)
    assert _refusal(path) == reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"acts": [[[0.0, 0.0]] * n for n in (20, 4, 10)]}, "episode 1: 6 entries of obs for 4 actions"),
        ({"rews": [[0.0] * n for n in (20, 5, 11)]}, "episode 2: 11 entries of reward for 10 actions"),
        ({"obs": [[[0.0] * 3, [0.0] * 2], [], []]}, "obs: rows of different lengths"),
        ({"obs": [[[None] * 3], [], []]}, "obs: a value is missing"),
        ({"terminal": [True, None, False]}, "a trajectory has an empty cell"),
        ({"rews": [["a"] * n for n in (20, 5, 10)]}, "rews holds string, such as text or JPEG pictures;"),
    ],
)
def test_hostile_trajectories_are_one_line(
    tmp_path: Path, vector_demos: Demonstrations, changes: dict[str, Any], reason: str
) -> None:
    write_trajectories(tmp_path / "saved", trajectories(vector_demos) | changes)
    assert _refusal(tmp_path / "saved").startswith(reason)


def test_a_truncated_stream_of_trajectories_is_refused_even_between_two_batches(
    tmp_path: Path, vector_demos: Demonstrations
) -> None:
    write_trajectories(tmp_path / "saved", trajectories(vector_demos))
    file = tmp_path / "saved" / "data-00000-of-00001.arrow"
    file.write_bytes(file.read_bytes()[:-8])
    assert _refusal(tmp_path / "saved") == "truncated: the end of the Arrow stream is missing"


def test_trajectories_without_a_column_name_it(tmp_path: Path, vector_demos: Demonstrations) -> None:
    columns = trajectories(vector_demos)
    del columns["terminal"]
    write_trajectories(tmp_path / "saved", columns)
    assert _refusal(tmp_path / "saved").startswith("data-00000-of-00001.arrow: no column 'terminal'; it has obs, acts")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "metadata.json is not JSON"),
        ("[" * 100_000, "metadata.json is not JSON"),
        ("[]", "metadata.json is not a JSON object"),
        ('{"data_format": "pickle"}', "metadata.json: unknown data_format 'pickle'; known are hdf5, arrow, parquet"),
        ('{"data_format": ["hdf5"]}', "metadata.json: unknown data_format"),
        ('{"data_format": "arrow"}', "no transitions; need at least 2"),
        ('{"ilde_header": {"env_id": "Toy-v0"}}', "header: command is missing"),
        ('{"env_spec": "x"}', "env_spec is not JSON"),
    ],
)
def test_hostile_metadata_are_one_line(tmp_path: Path, vector_demos: Demonstrations, text: str, reason: str) -> None:
    export_demos(vector_demos, "minari", tmp_path / "mine")
    (tmp_path / "mine" / "data" / "metadata.json").write_text(text)
    assert _refusal(tmp_path / "mine").startswith(reason)


def test_a_minari_folder_without_its_data_is_one_line(tmp_path: Path, vector_demos: Demonstrations) -> None:
    export_demos(vector_demos, "minari", tmp_path / "mine")
    with h5py.File(tmp_path / "mine" / "data" / "main_data.hdf5", "a") as file:
        del file["episode_1"]
    assert _refusal(tmp_path / "mine") == "incomplete: 2 of 3 episodes"
    (tmp_path / "mine" / "data" / "main_data.hdf5").unlink()
    assert _refusal(tmp_path / "mine") == "incomplete: there is no main_data.hdf5 beside metadata.json"
    assert _refusal(tmp_path, "minari") == "no Minari data set: there is no metadata.json"
    assert _refusal(tmp_path, "imitation") == "no trajectories of `imitation`: the folder has no .arrow file"

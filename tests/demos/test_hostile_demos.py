"""Files from strangers: one line with the path, whatever is in them, and never a line of their code."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
import torch
from hostile_files import OBJECT_ARRAY, PICKLES, npy, zipped

from ilde.data import UserError
from ilde.demos import Demonstrations, load, save

Refusal: TypeAlias = Callable[[Path], str]

PICKLE = "contains a Python pickle; refused, because it could run code"
NOT_OURS = "not a demonstration file; `ilde demos import` reads other formats"


def test_an_empty_file_is_called_empty(path: Path, refusal: Refusal) -> None:
    path.write_bytes(b"")
    assert refusal(path) == "empty file"


def test_a_missing_file_and_a_folder_are_named(path: Path, refusal: Refusal) -> None:
    assert refusal(path) == "No such file or directory"
    assert refusal(path.parent) == "not a regular file"


def test_a_pipe_is_refused_without_waiting(path: Path, refusal: Refusal) -> None:
    os.mkfifo(path)
    assert refusal(path) == "not a regular file"


def test_a_truncated_file_says_how_much_is_there(path: Path, refusal: Refusal, vector_demos: Demonstrations) -> None:
    save(vector_demos, path)
    whole = path.read_bytes()
    for kept in (len(whole) // 2, len(whole) - 1, 200):
        path.write_bytes(whole[:kept])
        assert refusal(path) == f"truncated: {kept:,} of {len(whole):,} bytes"


def test_a_file_cut_before_its_length_is_still_called_truncated(
    path: Path, refusal: Refusal, vector_demos: Demonstrations
) -> None:
    save(vector_demos, path)
    path.write_bytes(path.read_bytes()[:20])
    assert refusal(path) == "truncated: the end of the zip archive is missing"


@pytest.mark.parametrize("content", [b"hello", b"\x89PNG\r\n", b"\x1f\x8b\x08\x00", b"PK", b"count\nrows\n"])
def test_other_files_are_not_ours(path: Path, refusal: Refusal, content: bytes) -> None:
    path.write_bytes(content)
    assert refusal(path) == NOT_OURS


def test_other_arrays_are_not_ours(path: Path, refusal: Refusal) -> None:
    np.savez(path, obs=np.zeros(3), acts=np.zeros(2))
    assert refusal(path) == NOT_OURS
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    assert refusal(path) == NOT_OURS


@pytest.mark.parametrize("content", PICKLES.values(), ids=PICKLES)
def test_a_bare_pickle_is_refused_and_not_run(path: Path, refusal: Refusal, content: bytes) -> None:
    path.write_bytes(content)
    assert refusal(path) == PICKLE


def test_a_pickle_inside_an_array_is_refused_and_not_run(
    path: Path, refusal: Refusal, vector_demos: Demonstrations
) -> None:
    zipped(path, obs=OBJECT_ARRAY)
    assert refusal(path) == PICKLE
    path.write_bytes(OBJECT_ARRAY)
    assert refusal(path) == PICKLE
    save(vector_demos, path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("extra.npy", OBJECT_ARRAY)
    assert refusal(path) == PICKLE


def test_a_pickle_hidden_in_a_structured_type_is_refused(path: Path, refusal: Refusal) -> None:
    zipped(path, header=npy("[('a', '<f4'), ('b', '|O')]", "(3,)", b"\0" * 36))
    assert refusal(path) == PICKLE


def test_a_torch_file_is_refused_as_a_pickle(path: Path, refusal: Refusal) -> None:
    torch.save({"obs": torch.zeros(3)}, path)
    assert refusal(path) == PICKLE


def test_an_array_that_declares_petabytes_is_refused_before_it_is_allocated(path: Path, refusal: Refusal) -> None:
    zipped(path, header=npy("'|u1'", "(2,)", b"{}"), obs=npy("'<f8'", f"({25 * 2**47},)", b"\0" * 64))
    assert refusal(path) == "expands to 25 PiB (limit 8 GiB)"


def test_a_zip_that_declares_too_much_is_refused(path: Path, vector_demos: Demonstrations) -> None:
    save(vector_demos, path)
    with pytest.raises(UserError, match=r"a.npz: expands to 3\.\d KiB \(limit 1 KiB\)$"):
        load(path, limit_bytes=1024)


@pytest.mark.parametrize(("declared", "reason"), [(0xFFFFFF00, "expands to 4 GiB"), (100, "damaged: 'header' ")])
def test_a_zip_that_lies_about_its_sizes_is_refused(
    path: Path, vector_demos: Demonstrations, declared: int, reason: str
) -> None:
    save(vector_demos, path)
    data = bytearray(path.read_bytes())
    first_entry = data.index(b"PK\x01\x02")  # of the directory; the uncompressed size is 24 bytes on
    data[first_entry + 24 : first_entry + 28] = declared.to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(UserError) as error:
        load(path, limit_bytes=2**30)
    assert str(error.value).startswith(f"{path}: {reason}")


def test_frames_that_would_unfold_too_far_are_refused(path: Path, frame_demos: Demonstrations) -> None:
    save(frame_demos, path)
    stacked = (7 + 4) * 4 * 120
    stored = 17 * 120
    assert stored < 4000 < stacked
    with pytest.raises(UserError, match=rf"a.npz: expands to {stacked / 1024:.1f} KiB"):
        load(path, limit_bytes=4000)


def test_an_array_with_more_data_than_its_header_says_is_refused(path: Path, refusal: Refusal) -> None:
    bomb = b"\0" * 50_000_000
    zipped(path, header=npy("'|u1'", "(2,)", b"{}" + bomb))
    assert path.stat().st_size < 100_000
    assert refusal(path) == "damaged: an array is longer than its header says"


def test_an_array_with_less_data_than_its_header_says_is_refused(path: Path, refusal: Refusal) -> None:
    zipped(path, header=npy("'|u1'", f"({2**20},)", b"{}"))
    assert refusal(path) == "truncated: an array has 2 of 1,048,576 bytes"


def test_an_enormous_zip_directory_is_not_read(path: Path, refusal: Refusal) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(40):
            archive.writestr(f"{number:05}-{'x' * 60_000}", b"")
    assert refusal(path) == "damaged: the zip directory is too large"


@pytest.mark.parametrize(
    ("descr", "shape"),
    [("'<f8'", "(-1,)"), ("'<f8'", "(2.5,)"), ("'x'", "(1,)"), ("open('a')", "(1,)"), ("'<f8'", "(" * 250 + ")" * 250)],
)
def test_a_broken_array_header_is_refused(path: Path, refusal: Refusal, descr: str, shape: str) -> None:
    zipped(path, header=npy(descr, shape, b"\0" * 16))
    assert refusal(path).startswith("damaged: 'header' ")


def test_absurd_shapes_are_refused(path: Path, refusal: Refusal) -> None:
    zipped(path, header=npy("'<f8'", f"({'9' * 300},)"))
    assert refusal(path) == "expands to 1024 EiB (limit 8 GiB)"
    zipped(path, header=npy("'<f8'", f"(0, {'9' * 300})"))
    assert refusal(path).startswith("damaged: ")


def test_an_encrypted_or_oddly_compressed_entry_is_refused(path: Path, refusal: Refusal) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("header.npy", npy("'|u1'", "(2,)", b"{}"))
    assert refusal(path) == "damaged: 'header' is encrypted or compressed in an unknown way"


def test_a_directory_that_points_nowhere_is_called_damaged(
    path: Path, refusal: Refusal, vector_demos: Demonstrations
) -> None:
    save(vector_demos, path)
    data = bytearray(path.read_bytes())
    data[-6:-2] = (len(data) * 2).to_bytes(4, "little")  # where the directory starts, in the end record
    path.write_bytes(data)
    assert refusal(path).startswith("damaged: ")


def test_two_entries_of_one_name_are_refused(path: Path, refusal: Refusal, vector_demos: Demonstrations) -> None:
    save(vector_demos, path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("action.npy", npy("'<f8'", "(0,)"))
    assert refusal(path) == "damaged: two entries share a name"

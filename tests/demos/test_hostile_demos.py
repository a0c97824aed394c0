"""Files from strangers: one line with the path, whatever is in them, and never a line of their code."""

from __future__ import annotations

import io
import json
import os
import pickle
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ilde.data import UserError
from ilde.demos import Demonstrations, load, save
from ilde.demos import archive as archives

PICKLE = "contains a Python pickle; refused, because it could run code"
NOT_OURS = "not a demonstration file; `ilde demos import` reads other formats"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.npz"


def _refusal(path: Path) -> str:
    with pytest.raises(UserError) as error:
        load(path)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    return message.removeprefix(f"{path}: ")


def _npy(descr: str, shape: str, payload: bytes = b"") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + payload


def _zip(path: Path, **entries: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(f"{name}.npy", data)


def _rewrite(
    path: Path,
    demos: Demonstrations,
    change_arrays: Callable[[dict[str, Any]], Any] = lambda arrays: None,
    change_header: Callable[[dict[str, Any]], Any] = lambda header: None,
) -> None:
    """A file that differs from a good one in just one way."""
    save(demos, path)
    text, arrays = archives.read(path)
    header = json.loads(text)
    change_arrays(arrays)
    change_header(header)
    archives.write(path, json.dumps(header).encode(), arrays)


class _RunsCode:
    def __reduce__(self) -> tuple[Any, ...]:
        return (os._exit, (3,))


def test_an_empty_file_is_called_empty(path: Path) -> None:
    path.write_bytes(b"")
    assert _refusal(path) == "empty file"


def test_a_missing_file_and_a_folder_are_named(path: Path) -> None:
    assert _refusal(path) == "No such file or directory"
    assert _refusal(path.parent) == "not a regular file"


def test_a_pipe_is_refused_without_waiting(path: Path) -> None:
    os.mkfifo(path)
    assert _refusal(path) == "not a regular file"


def test_a_truncated_file_says_how_much_is_there(path: Path, vector_demos: Demonstrations) -> None:
    save(vector_demos, path)
    whole = path.read_bytes()
    for kept in (len(whole) // 2, len(whole) - 1, 200):
        path.write_bytes(whole[:kept])
        assert _refusal(path) == f"truncated: {kept:,} of {len(whole):,} bytes"


def test_a_file_cut_before_its_length_is_still_called_truncated(path: Path, vector_demos: Demonstrations) -> None:
    save(vector_demos, path)
    path.write_bytes(path.read_bytes()[:20])
    assert _refusal(path) == "truncated: the end of the zip archive is missing"


@pytest.mark.parametrize("content", [b"hello", b"\x89PNG\r\n", b"\x1f\x8b\x08\x00", b"PK", b"count\nrows\n"])
def test_other_files_are_not_ours(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert _refusal(path) == NOT_OURS


def test_other_arrays_are_not_ours(path: Path) -> None:
    np.savez(path, obs=np.zeros(3), acts=np.zeros(2))
    assert _refusal(path) == NOT_OURS
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    assert _refusal(path) == NOT_OURS


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_bare_pickle_is_refused_and_not_run(path: Path, protocol: int) -> None:
    for content in (_RunsCode(), [_RunsCode()], {"obs": _RunsCode()}):
        path.write_bytes(pickle.dumps(content, protocol))
        assert _refusal(path) == PICKLE


def test_a_pickle_inside_an_array_is_refused_and_not_run(path: Path, vector_demos: Demonstrations) -> None:
    boobytrap = np.array([_RunsCode()], dtype=object)
    np.savez(path, obs=boobytrap)
    assert _refusal(path) == PICKLE
    with path.open("wb") as file:
        np.save(file, boobytrap, allow_pickle=True)
    assert _refusal(path) == PICKLE
    save(vector_demos, path)
    buffer = io.BytesIO()
    np.save(buffer, boobytrap, allow_pickle=True)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("extra.npy", buffer.getvalue())
    assert _refusal(path) == PICKLE


def test_a_pickle_hidden_in_a_structured_type_is_refused(path: Path) -> None:
    _zip(path, header=_npy("[('a', '<f4'), ('b', '|O')]", "(3,)", b"\0" * 36))
    assert _refusal(path) == PICKLE


def test_a_torch_file_is_refused_as_a_pickle(path: Path) -> None:
    torch.save({"obs": torch.zeros(3)}, path)
    assert _refusal(path) == PICKLE


def test_an_array_that_declares_petabytes_is_refused_before_it_is_allocated(path: Path) -> None:
    _zip(path, header=_npy("'|u1'", "(2,)", b"{}"), obs=_npy("'<f8'", f"({25 * 2**47},)", b"\0" * 64))
    assert _refusal(path) == "expands to 25 PiB (limit 8 GiB)"


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


def test_an_array_with_more_data_than_its_header_says_is_refused(path: Path) -> None:
    bomb = b"\0" * 50_000_000
    _zip(path, header=_npy("'|u1'", "(2,)", b"{}" + bomb))
    assert path.stat().st_size < 100_000
    assert _refusal(path) == "damaged: an array is longer than its header says"


def test_an_array_with_less_data_than_its_header_says_is_refused(path: Path) -> None:
    _zip(path, header=_npy("'|u1'", f"({2**20},)", b"{}"))
    assert _refusal(path) == "truncated: an array has 2 of 1,048,576 bytes"


def test_an_enormous_zip_directory_is_not_read(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(40):
            archive.writestr(f"{number:05}-{'x' * 60_000}", b"")
    assert _refusal(path) == "damaged: the zip directory is too large"


@pytest.mark.parametrize(
    ("descr", "shape"),
    [("'<f8'", "(-1,)"), ("'<f8'", "(2.5,)"), ("'x'", "(1,)"), ("open('a')", "(1,)"), ("'<f8'", "(" * 250 + ")" * 250)],
)
def test_a_broken_array_header_is_refused(path: Path, descr: str, shape: str) -> None:
    _zip(path, header=_npy(descr, shape, b"\0" * 16))
    assert _refusal(path).startswith("damaged: 'header' ")


def test_absurd_shapes_are_refused(path: Path) -> None:
    _zip(path, header=_npy("'<f8'", f"({'9' * 300},)"))
    assert _refusal(path) == "expands to 1024 EiB (limit 8 GiB)"
    _zip(path, header=_npy("'<f8'", f"(0, {'9' * 300})"))
    assert _refusal(path).startswith("damaged: ")


def test_an_encrypted_or_oddly_compressed_entry_is_refused(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("header.npy", _npy("'|u1'", "(2,)", b"{}"))
    assert _refusal(path) == "damaged: 'header' is encrypted or compressed in an unknown way"


def test_two_entries_of_one_name_are_refused(path: Path, vector_demos: Demonstrations) -> None:
    save(vector_demos, path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("action.npy", _npy("'<f8'", "(0,)"))
    assert _refusal(path) == "damaged: two entries share a name"


@pytest.mark.parametrize("text", [b"", b"not json", b"\xff\xfe", b"[" * 100_000, b'{"tremble": NaN}'])
def test_a_header_that_is_not_json_is_refused(path: Path, vector_demos: Demonstrations, text: bytes) -> None:
    save(vector_demos, path)
    archives.write(path, text, archives.read(path)[1])
    assert _refusal(path) == "header is not JSON"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"env_id": 3}, "header: env_id must be printable text of at most 4096 characters"),
        ({"env_id": "a\nb\x1b[31m"}, "header: env_id must be printable text of at most 4096 characters"),
        ({"returns": [1.0, "2", 3.0]}, "header: returns must be a list of finite numbers"),
        ({"seeds": [True, None, 2]}, "header: seeds must be a list of whole numbers or null"),
        ({"until": ["life"]}, "header: until must be 'life' or 'episode'"),
        ({"greedy": 1}, "header: greedy must be true or false"),
        ({"demonstrator": {"mean": 1.0}}, "header: demonstrator must be null or an object with mean, std and episodes"),
        ({"surprise": 1}, "header: unknown field 'surprise'"),
        ({"format_version": 2}, "format version 2; this ilde reads 1: upgrade ilde"),
        ({"format_version": "1"}, "header: format_version must be 1"),
        ({"seeds": [1]}, "header: 1 seeds for 3 episodes"),
        ({"returns": [1.0]}, "header: 1 returns for 3 episodes"),
        ({"content_hash": "0" * 64}, "content does not match its checksum"),
        ({"env_id": "Other-v0"}, "content does not match its checksum"),
        ({"seeds": [5, None, 2]}, "content does not match its checksum"),
    ],
)
def test_a_wrong_header_field_is_named(
    path: Path, vector_demos: Demonstrations, changes: dict[str, Any], reason: str
) -> None:
    _rewrite(path, vector_demos, change_header=lambda header: header.update(changes))
    assert _refusal(path) == reason


def test_a_missing_header_field_is_named(path: Path, vector_demos: Demonstrations) -> None:
    _rewrite(path, vector_demos, change_header=lambda header: header.pop("recorder"))
    assert _refusal(path) == "header: recorder is missing"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"length": np.zeros(0, np.int64)}, "no transitions; need at least 2"),
        ({"length": np.array([1])}, "1 transition; need at least 2"),
        ({"length": np.array([36, -1, 0])}, "episode 1: no transitions"),
        ({"length": np.array([35, 0, 0])}, "episode 1: no transitions"),
        ({"length": np.array([20, 5, 11])}, "action has 35 entries; expected 36"),
        ({"length": np.array([2**62, 2**62, 2**62])}, f"action has 35 entries; expected {3 * 2**62:,}"),
        ({"length": np.zeros((3, 1), np.int64)}, "length has shape (3, 1); expected one dimension"),
        ({"length": np.array([20.0, 5.0, 10.0])}, "length has dtype float64; can be int64"),
        ({"reward": np.zeros(34)}, "reward has 34 entries; expected 35"),
        ({"terminated": np.zeros(2, np.bool_)}, "terminated has 2 entries; expected 3"),
        (
            {"action": np.zeros((35, 2), np.complex128)},
            "action has dtype complex128; can be int64 or float32 or float64",
        ),
        ({"action": np.zeros((35, 2), ">f4")}, "action has dtype >f4; can be int64 or float32 or float64"),
        ({"obs": np.zeros((37, 3))}, "obs has 37 entries; expected 38"),
        ({"frames": np.zeros((3, 2, 2), np.uint8)}, "needs one entry 'obs' or 'frames'"),
        ({"more": np.zeros(3)}, "unknown entry 'more'"),
    ],
)
def test_inconsistent_arrays_are_refused(
    path: Path, vector_demos: Demonstrations, changes: dict[str, Any], reason: str
) -> None:
    _rewrite(path, vector_demos, change_arrays=lambda arrays: arrays.update(changes))
    assert _refusal(path) == reason


def test_a_missing_array_is_named(path: Path, vector_demos: Demonstrations) -> None:
    _rewrite(path, vector_demos, change_arrays=lambda arrays: arrays.pop("trembled"))
    assert _refusal(path) == "missing entry 'trembled'"


@pytest.mark.parametrize("shape", [(16, 12, 10), (9, 12, 10), (0, 12, 10), (17, 120)])
def test_frames_that_do_not_make_stacks_are_refused(
    path: Path, frame_demos: Demonstrations, shape: tuple[int, ...]
) -> None:
    _rewrite(path, frame_demos, change_arrays=lambda arrays: arrays.update(frames=np.zeros(shape, np.uint8)))
    assert _refusal(path) == f"frames {shape} do not make stacks for 9 steps"


@pytest.mark.parametrize(("name", "what"), [("obs", "observation"), ("action", "action"), ("reward", "reward")])
def test_numbers_that_are_not_finite_are_named_with_their_place(
    path: Path, vector_demos: Demonstrations, name: str, what: str
) -> None:
    def poison(arrays: dict[str, Any]) -> None:
        arrays[name][20 + (name == "obs") + 3] = np.nan

    _rewrite(path, vector_demos, change_arrays=poison)
    assert _refusal(path) == f"episode 1 step 3: {what} contains nan"


def test_changed_content_does_not_match_its_checksum(path: Path, vector_demos: Demonstrations) -> None:
    def change(arrays: dict[str, Any]) -> None:
        arrays["action"][7, 1] += 0.5

    _rewrite(path, vector_demos, change_arrays=change)
    assert _refusal(path) == "content does not match its checksum"


def test_the_file_of_another_environment_is_only_compared_never_built(path: Path, vector_demos: Demonstrations) -> None:
    stranger = "os:system('true')"
    save(replace(vector_demos, env_id=stranger, header=replace(vector_demos.header, env_id=stranger)), path)
    assert load(path).env_id == stranger


def _mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """One to three random injuries: bits flipped, pieces cut, copied or overwritten, the end lost."""
    mutant = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        start, stop = sorted(int(place) for place in rng.integers(0, len(mutant) + 1, 2))
        stop = min(stop, start + int(rng.integers(1, 64)))
        match rng.integers(0, 6):
            case 0 | 1 if start < len(mutant):
                mutant[start] ^= 1 << int(rng.integers(0, 8))
            case 2:
                mutant[start:stop] = rng.bytes(stop - start)
            case 3:
                del mutant[start:stop]
            case 4:
                mutant[start:start] = mutant[stop : stop + 32]
            case 5 if start > 0:
                del mutant[start:]
    return bytes(mutant)


def _outcome(path: Path) -> tuple[Demonstrations | None, str]:
    try:
        return load(path), ""
    except UserError as error:
        return None, str(error)


def _fuzz(path: Path, originals: tuple[Demonstrations, ...], mutants: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    files = []
    for demos in originals:
        save(demos, path)
        files.append((path.read_bytes(), demos.content_hash))
    refused = 0
    for number in range(mutants):
        data, content_hash = files[number % len(files)]
        path.write_bytes(_mutated(data, rng))
        started = time.monotonic()
        loaded, message = _outcome(path)
        assert time.monotonic() - started < 2.0
        if loaded is None:
            refused += 1
            assert message.startswith(f"{path}: ")
            assert message.isprintable()
        else:
            assert loaded.content_hash == content_hash
    assert refused > mutants // 2


def test_mutated_files_load_unharmed_or_are_refused_in_one_line(
    path: Path, vector_demos: Demonstrations, frame_demos: Demonstrations
) -> None:
    _fuzz(path, (vector_demos, frame_demos), mutants=50, seed=0)


@pytest.mark.slow
def test_thousands_of_mutated_files_load_unharmed_or_are_refused_in_one_line(
    path: Path, vector_demos: Demonstrations, frame_demos: Demonstrations
) -> None:
    _fuzz(path, (vector_demos, frame_demos), mutants=2000, seed=1)

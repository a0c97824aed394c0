"""Readers in a process of their own: whatever becomes of it, one line comes back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from foreign_files import gail_arrays, imported, write_gail

from ilde.data import UserError
from ilde.demos import Demonstrations, quarantine
from ilde.demos.archive import FormatError
from ilde.demos.quarantine import read_apart


@pytest.fixture
def expert(tmp_path: Path, vector_demos: Demonstrations) -> Path:
    write_gail(tmp_path / "expert.h5", gail_arrays(vector_demos))
    return tmp_path / "expert.h5"


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A reader of the test's own in the place of the one for HDF5."""
    folder = tmp_path / "readers"
    folder.mkdir()
    shutil.copy(Path(quarantine.__file__).parent / "apart.py", folder)
    monkeypatch.setattr(quarantine, "_FOLDER", folder)
    return folder / "hdf5.py"


def test_a_process_of_its_own_reads_the_file(expert: Path, vector_demos: Demonstrations) -> None:
    result = imported(expert)
    assert [len(episode) for episode in result.demos.episodes] == [19, 4, 9]


def test_a_file_cut_short_is_one_line(expert: Path) -> None:
    whole = expert.read_bytes()
    expert.write_bytes(whole[:-500])
    with pytest.raises(UserError) as error:
        imported(expert)
    assert str(error.value) == f"{expert}: truncated: {len(whole) - 500:,} of {len(whole):,} bytes"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os.kill(os.getpid(), 11)", "damaged: its reader crashed on it (signal 11)"),
        ("return b' ' * 2**33", "does not fit into memory"),
    ],
)
def test_a_reader_that_fails_is_one_line(reader: Path, tmp_path: Path, code: str, reason: str) -> None:
    reader.write_text(f"def gail(path, spend):\n    {code}\n")
    with pytest.raises(FormatError) as error:
        read_apart("hdf5.gail", tmp_path, limit_bytes=2**20)
    assert str(error.value) == reason


def test_what_a_reader_says_becomes_one_short_line() -> None:
    assert quarantine._last_line(b"a warning\na\x1b[31m\xff" + b"b" * 1000) == "a?[31m\ufffd" + "b" * 293
    assert quarantine._last_line(b"") == "damaged: cannot be read"


def test_a_reader_that_hangs_is_ended(reader: Path, tmp_path: Path) -> None:
    reader.write_text("def gail(path, spend):\n    while True: pass\n")
    with pytest.raises(FormatError, match=r"reading it took longer than 0\.5 s; refused"):
        read_apart("hdf5.gail", tmp_path, time_limit_s=0.5)


def test_a_missing_library_names_its_extra(expert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "installed", lambda module: False)
    with pytest.raises(UserError) as error:
        imported(expert)
    assert str(error.value) == f"{expert}: this format needs h5py: pip install 'ilde[formats]'"

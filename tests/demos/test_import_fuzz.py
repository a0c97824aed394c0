"""Mutated files of other formats: each is read or refused in one line, in time; no process but the reader's may die."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from foreign_files import gail_arrays, imported, trajectories, write_gail, write_trajectories
from mutations import mutated

from ilde.data import UserError
from ilde.demos import Demonstrations, quarantine
from ilde.demos.exporting import export_demos

TIME_LIMIT_S = 5.0

Write: TypeAlias = Callable[[Path, Demonstrations], Path]
"""Writes a source into a folder and gives the file to injure."""


def _npz(source: Path, demos: Demonstrations) -> Path:
    export_demos(demos, "npz", source)
    return source


def _gail(source: Path, demos: Demonstrations) -> Path:
    write_gail(source, gail_arrays(demos))
    return source


def _minari(source: Path, demos: Demonstrations) -> Path:
    export_demos(demos, "minari", source)
    return source / "data" / "main_data.hdf5"


def _minari_metadata(source: Path, demos: Demonstrations) -> Path:
    export_demos(demos, "minari", source)
    return source / "data" / "metadata.json"


def _imitation(source: Path, demos: Demonstrations) -> Path:
    write_trajectories(source, trajectories(demos))
    return source / "data-00000-of-00001.arrow"


@pytest.fixture(autouse=True)
def _short_patience(forked_readers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "TIME_LIMIT_S", TIME_LIMIT_S)


each_format = pytest.mark.parametrize("write", [_npz, _gail, _minari, _minari_metadata, _imitation])


def _refusal(source: Path) -> str | None:
    try:
        imported(source)
    except UserError as error:
        return str(error)
    return None


def _fuzz(source: Path, write: Write, demos: Demonstrations, mutants: int, seed: int) -> int:
    """How many mutants were refused; each in one line, and none took long."""
    rng = np.random.default_rng(seed)
    victim = write(source, demos)
    whole = victim.read_bytes()
    assert imported(source).demos.num_transitions >= demos.num_transitions - len(demos.episodes)
    refused = 0
    for _ in range(mutants):
        victim.write_bytes(mutated(whole, rng))
        started = time.monotonic()
        message = _refusal(source)
        if message is not None:
            refused += 1
            assert message.startswith(f"{source}: ")
            assert message.isprintable()
        assert time.monotonic() - started < 4 * TIME_LIMIT_S
    return refused


@each_format
def test_mutated_files_are_read_or_refused_in_one_line(
    tmp_path: Path, vector_demos: Demonstrations, write: Write
) -> None:
    assert _fuzz(tmp_path / "source", write, vector_demos, mutants=50, seed=0) > 50 // 4


@pytest.mark.slow
@each_format
def test_thousands_of_mutated_files_are_read_or_refused_in_one_line(
    tmp_path: Path, vector_demos: Demonstrations, write: Write
) -> None:
    assert _fuzz(tmp_path / "source", write, vector_demos, mutants=2000, seed=1) > 2000 // 4

"""Mutated files: each loads unharmed or is refused in one line, quickly."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from mutations import mutated

from ilde.data import UserError
from ilde.demos import Demonstrations, load, save


def _outcome(path: Path) -> tuple[Demonstrations | None, str]:
    try:
        return load(path), ""
    except UserError as error:
        return None, str(error)


def _fuzz(path: Path, originals: tuple[Demonstrations, ...], mutants: int, seed: int) -> int:
    """How many mutants were refused; each in one line, and the others were read unharmed."""
    rng = np.random.default_rng(seed)
    files = []
    for demos in originals:
        save(demos, path)
        files.append((path.read_bytes(), demos.content_hash))
    refused = 0
    for number in range(mutants):
        data, content_hash = files[number % len(files)]
        path.write_bytes(mutated(data, rng))
        started = time.process_time()
        loaded, message = _outcome(path)
        assert time.process_time() - started < 2.0
        if loaded is None:
            refused += 1
            assert message.startswith(f"{path}: ")
            assert message.isprintable()
        else:
            assert loaded.content_hash == content_hash
    return refused


def test_mutated_files_load_unharmed_or_are_refused_in_one_line(
    path: Path, vector_demos: Demonstrations, frame_demos: Demonstrations
) -> None:
    assert _fuzz(path, (vector_demos, frame_demos), mutants=50, seed=0) > 25


@pytest.mark.slow
def test_thousands_of_mutated_files_load_unharmed_or_are_refused_in_one_line(
    path: Path, vector_demos: Demonstrations, frame_demos: Demonstrations
) -> None:
    assert _fuzz(path, (vector_demos, frame_demos), mutants=2000, seed=1) > 1000

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from ilde.runs import CorruptCheckpoint, latest_checkpoint, prune, write_checkpoint
from ilde.runs.checkpoint import checkpoint_steps


def write_steps(folder: Path, *steps: int) -> None:
    for env_steps in steps:
        write_checkpoint(folder, env_steps, {"weight": torch.full((3,), float(env_steps))}, header={})


def test_the_latest_has_most_steps_whatever_the_file_times_say(tmp_path: Path) -> None:
    write_steps(tmp_path, 1000, 200, 30)
    os.utime(tmp_path / "000000001000", (0, 0))
    latest = latest_checkpoint(tmp_path)
    assert latest is not None
    assert (latest.header["env_steps"], latest.note) == (1000, None)


def test_steps_beyond_twelve_digits_are_still_the_latest(tmp_path: Path) -> None:
    write_steps(tmp_path, 10**12, 999_999_999_999)
    latest = latest_checkpoint(tmp_path)
    assert latest is not None
    assert latest.header["env_steps"] == 10**12


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [flip, Path.unlink, lambda path: path.write_bytes(b"")])
@pytest.mark.parametrize("name", ["state.json", "tensors.safetensors"])
def test_a_corrupt_newest_falls_back_and_says_so(tmp_path: Path, name: str, damage: Callable[[Path], None]) -> None:
    write_steps(tmp_path, 100, 200, 300)
    damage(tmp_path / "000000000300" / name)
    latest = latest_checkpoint(tmp_path)
    assert latest is not None
    assert latest.state["weight"].tolist() == [200.0, 200.0, 200.0]
    assert latest.note is not None
    assert latest.note.startswith(f"skipped {tmp_path}/000000000300/{name}: ")
    assert latest.note.endswith("going on from " + str(tmp_path / "000000000200"))


def test_no_checkpoint_is_none_but_only_corrupt_ones_is_an_error(tmp_path: Path) -> None:
    assert latest_checkpoint(tmp_path) is None
    assert latest_checkpoint(tmp_path / "absent") is None
    write_steps(tmp_path, 100, 200)
    for steps in (100, 200):
        flip(tmp_path / f"{steps:012d}" / "state.json")
    with pytest.raises(CorruptCheckpoint, match=r"no readable checkpoint .*000000000200.*000000000100"):
        latest_checkpoint(tmp_path)


def test_pruning_keeps_the_last_and_the_chosen(tmp_path: Path) -> None:
    write_steps(tmp_path, 10, 20, 30, 40, 50)
    prune(tmp_path, 2, keep={20, 50, 999})
    assert checkpoint_steps(tmp_path) == [20, 40, 50]
    prune(tmp_path, 7)
    assert checkpoint_steps(tmp_path) == [20, 40, 50]
    with pytest.raises(ValueError, match="keep_last is 0"):
        prune(tmp_path, 0)

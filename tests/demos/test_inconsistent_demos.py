"""Well-formed archives whose header or arrays break a rule of the format."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from ilde.demos import Demonstrations, load, save
from ilde.demos import archive as archives

Refusal: TypeAlias = Callable[[Path], str]


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


@pytest.mark.parametrize("text", [b"", b"not json", b"\xff\xfe", b"[" * 100_000, b'{"tremble": NaN}'])
def test_a_header_that_is_not_json_is_refused(
    path: Path, refusal: Refusal, vector_demos: Demonstrations, text: bytes
) -> None:
    save(vector_demos, path)
    archives.write(path, text, archives.read(path)[1])
    assert refusal(path) == "header is not JSON"


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
    path: Path, refusal: Refusal, vector_demos: Demonstrations, changes: dict[str, Any], reason: str
) -> None:
    _rewrite(path, vector_demos, change_header=lambda header: header.update(changes))
    assert refusal(path) == reason


def test_a_missing_header_field_is_named(path: Path, refusal: Refusal, vector_demos: Demonstrations) -> None:
    _rewrite(path, vector_demos, change_header=lambda header: header.pop("recorder"))
    assert refusal(path) == "header: recorder is missing"


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
    path: Path, refusal: Refusal, vector_demos: Demonstrations, changes: dict[str, Any], reason: str
) -> None:
    _rewrite(path, vector_demos, change_arrays=lambda arrays: arrays.update(changes))
    assert refusal(path) == reason


def test_a_missing_array_is_named(path: Path, refusal: Refusal, vector_demos: Demonstrations) -> None:
    _rewrite(path, vector_demos, change_arrays=lambda arrays: arrays.pop("trembled"))
    assert refusal(path) == "missing entry 'trembled'"


@pytest.mark.parametrize("shape", [(16, 12, 10), (9, 12, 10), (0, 12, 10), (17, 120)])
def test_frames_that_do_not_make_stacks_are_refused(
    path: Path, refusal: Refusal, frame_demos: Demonstrations, shape: tuple[int, ...]
) -> None:
    _rewrite(path, frame_demos, change_arrays=lambda arrays: arrays.update(frames=np.zeros(shape, np.uint8)))
    assert refusal(path) == f"frames {shape} do not make stacks for 9 steps"


@pytest.mark.parametrize(("name", "what"), [("obs", "observation"), ("action", "action"), ("reward", "reward")])
def test_numbers_that_are_not_finite_are_named_with_their_place(
    path: Path, refusal: Refusal, vector_demos: Demonstrations, name: str, what: str
) -> None:
    def poison(arrays: dict[str, Any]) -> None:
        arrays[name][20 + (name == "obs") + 3] = np.nan

    _rewrite(path, vector_demos, change_arrays=poison)
    assert refusal(path) == f"episode 1 step 3: {what} contains nan"


def test_changed_content_does_not_match_its_checksum(
    path: Path, refusal: Refusal, vector_demos: Demonstrations
) -> None:
    def change(arrays: dict[str, Any]) -> None:
        arrays["action"][7, 1] += 0.5

    _rewrite(path, vector_demos, change_arrays=change)
    assert refusal(path) == "content does not match its checksum"


def test_the_file_of_another_environment_is_only_compared_never_built(path: Path, vector_demos: Demonstrations) -> None:
    stranger = "os:system('true')"
    save(replace(vector_demos, env_id=stranger, header=replace(vector_demos.header, env_id=stranger)), path)
    assert load(path).env_id == stranger

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ilde.data import UserError
from ilde.demos import Demonstrations, load, save

MakeDemos: TypeAlias = Callable[..., Demonstrations]

ARRAYS = ("obs", "action", "reward", "trembled")
ENDINGS = ("terminated", "truncated", "life_lost", "seed")


def _assert_same(one: Demonstrations, other: Demonstrations) -> None:
    assert one.env_id == other.env_id
    assert replace(one.header, content_hash="") == replace(other.header, content_hash="")
    for a, b in zip(one.episodes, other.episodes, strict=True):
        assert [getattr(a, name) for name in ENDINGS] == [getattr(b, name) for name in ENDINGS]
        for name in ARRAYS:
            left, right = getattr(a, name), getattr(b, name)
            assert (left.dtype, left.shape) == (right.dtype, right.shape)
            assert left.tobytes() == right.tobytes()


def test_vectors_come_back_bit_for_bit(vector_demos: Demonstrations, tmp_path: Path) -> None:
    save(vector_demos, tmp_path / "a.npz")
    loaded = load(tmp_path / "a.npz")
    _assert_same(vector_demos, loaded)
    assert loaded.header.content_hash == vector_demos.content_hash == loaded.content_hash


def test_frame_stacks_come_back_bit_for_bit_from_single_frames(frame_demos: Demonstrations, tmp_path: Path) -> None:
    save(frame_demos, tmp_path / "a.npz")
    _assert_same(frame_demos, load(tmp_path / "a.npz"))
    with np.load(tmp_path / "a.npz", allow_pickle=False) as stored:
        assert "obs" not in stored
        assert stored["frames"].shape == (4 + 6 + 4 + 3, 12, 10)


def test_images_that_do_not_overlap_are_stored_as_they_are(frame_demos: Demonstrations, tmp_path: Path) -> None:
    broken = frame_demos.episodes[0].obs.copy()
    broken[3, 0, 5, 5] ^= 1
    episodes = (replace(frame_demos.episodes[0], obs=broken), *frame_demos.episodes[1:])
    demos = replace(frame_demos, episodes=episodes)
    save(demos, tmp_path / "a.npz")
    _assert_same(demos, load(tmp_path / "a.npz"))
    with np.load(tmp_path / "a.npz", allow_pickle=False) as stored:
        assert "frames" not in stored


@given(data=st.data(), lengths=st.lists(st.integers(2, 6), min_size=1, max_size=3), stacked=st.booleans())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_shape_comes_back_bit_for_bit(
    make_demos: MakeDemos, tmp_path: Path, data: st.DataObject, lengths: list[int], stacked: bool
) -> None:
    if stacked:
        depth, height, width = (data.draw(st.integers(1, 5)) for _ in range(3))
        films = [data.draw(arrays(np.uint8, (steps + depth, height, width))) for steps in lengths]
        observations = [
            np.stack([film[step : step + depth] for step in range(steps + 1)])
            for film, steps in zip(films, lengths, strict=True)
        ]
    else:
        shape = data.draw(st.lists(st.integers(1, 4), max_size=3).map(tuple))
        dtype = data.draw(st.sampled_from([np.uint8, np.float32, np.float64]))
        elements = {"allow_nan": False, "allow_infinity": False} if dtype != np.uint8 else None
        observations = [data.draw(arrays(dtype, (steps + 1, *shape), elements=elements)) for steps in lengths]
    demos = make_demos(observations)
    save(demos, tmp_path / "any.npz")
    _assert_same(demos, load(tmp_path / "any.npz"))


def test_the_same_content_gives_the_same_bytes(frame_demos: Demonstrations, tmp_path: Path) -> None:
    save(frame_demos, tmp_path / "a.npz")
    save(load(tmp_path / "a.npz"), tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_saved_prefix_has_its_own_checksum_and_says_its_fraction(frame_demos: Demonstrations, tmp_path: Path) -> None:
    save(frame_demos.prefix(0.5), tmp_path / "half.npz")
    half = load(tmp_path / "half.npz")
    assert half.header.fraction == 0.5
    assert half.header.content_hash == half.content_hash != frame_demos.content_hash


def test_saving_replaces_the_file_and_leaves_nothing_else(
    vector_demos: Demonstrations, frame_demos: Demonstrations, tmp_path: Path
) -> None:
    save(vector_demos, tmp_path / "a.npz")
    save(frame_demos, tmp_path / "a.npz")
    assert load(tmp_path / "a.npz").content_hash == frame_demos.content_hash
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_a_failed_save_leaves_the_old_file(
    vector_demos: Demonstrations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.npz"
    save(vector_demos, path)
    before = path.read_bytes()

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", no_space)
    with pytest.raises(UserError) as error:
        save(vector_demos.prefix(0.5), path)
    assert str(error.value) == f"{path}: cannot be written: No space left on device"
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.npz"]


def test_a_missing_folder_is_named(vector_demos: Demonstrations, tmp_path: Path) -> None:
    path = tmp_path / "missing" / "a.npz"
    with pytest.raises(UserError) as error:
        save(vector_demos, path)
    assert str(error.value) == f"{path}: cannot be written: No such file or directory"


def test_what_could_not_be_loaded_is_not_saved(make_demos: MakeDemos, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    wrong = {
        "obs has dtype int32; can be uint8 or float32 or float64": make_demos([np.zeros((4, 2), np.int32)]),
        "1 transition; need at least 2": make_demos([np.zeros((2, 2))]),
        "episode 0 step 3: observation contains nan": make_demos([np.array([0.0, 1.0, 2.0, np.nan])]),
        "header: tremble must be a number from 0 to 1": make_demos([np.zeros((4, 2))], tremble=2.0),
        "header: command must be printable text of at most 4096 characters": make_demos(
            [np.zeros((4, 2))], command="a\nb"
        ),
    }
    for reason, demos in wrong.items():
        with pytest.raises(UserError) as error:
            save(demos, path)
        assert str(error.value) == f"{path}: {reason}"
        assert not path.exists()

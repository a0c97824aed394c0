"""What is exported comes back bit for bit, and other programs can open it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foreign_files import FRAMES, VECTORS, imported, same_steps
from gymnasium.spaces import Box, Discrete
from minari import MinariDataset

from ilde.data import UserError
from ilde.demos import Demonstrations
from ilde.demos.exporting import TARGET_FORMATS, TargetFormat, export_demos
from ilde.demos.importing import Target
from ilde.demos.minari_export import env_spaces

pytestmark = pytest.mark.usefixtures("forked_readers")


@pytest.fixture(params=["vectors", "frames", "pictures"])
def case(
    request: pytest.FixtureRequest, vector_demos: Demonstrations, frame_demos: Demonstrations
) -> tuple[Demonstrations, Target]:
    """Vectors, stacks of frames with a lost life, and pictures that Minari would turn into JPEG by default."""
    if request.param == "vectors":
        return vector_demos, VECTORS
    first, second = frame_demos.episodes
    if request.param == "frames":
        return replace(frame_demos, episodes=(replace(first, life_lost=True), second)), FRAMES
    pictures = np.random.default_rng(3).integers(0, 256, (10, 32, 40, 3), dtype=np.uint8)
    episodes = (replace(first, obs=pictures[:7]), replace(second, obs=pictures[6:]))
    return replace(frame_demos, episodes=episodes), Target("Toy-v0", Box(0, 255, (32, 40, 3), np.uint8), Discrete(6))


@pytest.mark.parametrize("target_format", TARGET_FORMATS)
def test_what_is_exported_comes_back_bit_for_bit(
    tmp_path: Path, case: tuple[Demonstrations, Target], target_format: TargetFormat
) -> None:
    demos, target = case
    export_demos(demos, target_format, tmp_path / "out")
    result = imported(tmp_path / "out", target)
    assert (result.source_format, result.notes) == (target_format, ())
    assert same_steps(result.demos, demos)
    assert result.demos.content_hash == demos.content_hash
    origin = replace(result.demos.header, recorder="random", created="2025-01-01", command="ilde demos record")
    assert replace(origin, content_hash="") == demos.header
    assert result.demos.header.recorder.startswith(f"random, imported from {target_format} out, sha256 ")
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_minari_opens_what_is_exported(tmp_path: Path, case: tuple[Demonstrations, Target]) -> None:
    demos, target = case
    export_demos(demos, "minari", tmp_path / "mine", env_spaces("Toy-v0", target.obs_space, target.action_space))
    dataset = MinariDataset(tmp_path / "mine" / "data")
    assert (dataset.id, dataset.total_episodes, dataset.total_steps) == (
        "mine-v0",
        len(demos.episodes),
        demos.num_transitions,
    )
    assert (dataset.observation_space, dataset.action_space) == (target.obs_space, target.action_space)
    for ours, theirs in zip(demos.episodes, dataset, strict=True):
        for mine, yours in (
            (ours.obs, theirs.observations),
            (ours.action, theirs.actions),
            (ours.reward, theirs.rewards),
        ):
            np.testing.assert_array_equal(mine, yours)
            assert mine.dtype == yours.dtype
        assert (theirs.terminations.any(), theirs.truncations.any()) == (ours.terminated, ours.truncated)


def test_minari_learns_how_gymnasium_builds_the_environment(tmp_path: Path, vector_demos: Demonstrations) -> None:
    spaces = env_spaces("CartPole-v1", VECTORS.obs_space, VECTORS.action_space)
    export_demos(vector_demos, "minari", tmp_path / "mine", spaces)
    assert MinariDataset(tmp_path / "mine" / "data").env_spec.id == "CartPole-v1"
    assert env_spaces("ALE/Qbert-v5", FRAMES.obs_space, FRAMES.action_space).env_spec is None


def test_plain_arrays_have_the_names_people_know(path: Path, vector_demos: Demonstrations) -> None:
    export_demos(vector_demos, "npz", path)
    with np.load(path) as arrays:
        assert {"observations", "actions", "next_observations", "rewards", "terminals", "timeouts"} <= set(arrays)
        assert np.flatnonzero(arrays["terminals"]).tolist() == [19, 34]
        assert np.flatnonzero(arrays["timeouts"]).tolist() == [24]
        np.testing.assert_array_equal(arrays["next_observations"][24], vector_demos.episodes[1].obs[-1])
        assert str(arrays["env_id"]) == "Toy-v0"


def test_an_export_that_was_changed_loses_its_origin(tmp_path: Path, vector_demos: Demonstrations) -> None:
    export_demos(vector_demos, "npz", tmp_path / "whole.npz")
    with np.load(tmp_path / "whole.npz") as arrays:
        changed = {name: arrays[name] for name in arrays}
    changed["rewards"][0] += 1
    np.savez(tmp_path / "changed.npz", **changed)
    result = imported(tmp_path / "changed.npz")
    assert result.notes == ("changed since ilde exported it: what was known of its origin is left out",)
    assert result.demos.header.demonstrator is None


def test_a_failed_export_leaves_nothing(tmp_path: Path, vector_demos: Demonstrations) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.tex").touch()
    with pytest.raises(UserError, match="taken: cannot be written: "):
        export_demos(vector_demos, "minari", tmp_path / "taken")
    with pytest.raises(UserError, match=r"a\.npz: cannot be written: "):
        export_demos(vector_demos, "npz", tmp_path / "nowhere" / "a.npz")
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]


def test_the_metadata_are_json_that_anyone_can_read(tmp_path: Path, frame_demos: Demonstrations) -> None:
    export_demos(frame_demos, "minari", tmp_path / "a b-v3")
    metadata = json.loads((tmp_path / "a b-v3" / "data" / "metadata.json").read_text())
    assert (metadata["dataset_id"], metadata["jpeg_encoding"]) == ("a-b-v3", False)
    assert metadata["ilde_header"]["env_id"] == "Toy-v0"
    assert json.loads(metadata["observation_space"])["shape"] == [4, 12, 10]

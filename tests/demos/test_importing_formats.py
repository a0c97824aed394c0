"""Minari's data sets, the experts of old GAIL, and the trajectories of `imitation`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from foreign_files import (
    FRAMES,
    VECTORS,
    gail_arrays,
    imported,
    same_steps,
    trajectories,
    write_gail,
    write_trajectories,
)
from minari.data_collector.episode_buffer import EpisodeBuffer
from minari.dataset.minari_storage import MinariStorage

from ilde.data import UserError
from ilde.demos import Demonstrations
from ilde.demos.importing import Target

pytestmark = pytest.mark.usefixtures("forked_readers")


def _write_minari(folder: Path, demos: Demonstrations, target: Target, data_format: str) -> None:
    folder.mkdir(parents=True)
    storage = MinariStorage.new(
        folder / "data", target.obs_space, target.action_space, data_format=data_format, jpeg_encoding=False
    )
    for episode in demos.episodes:
        last = np.arange(len(episode)) == len(episode) - 1
        buffer = EpisodeBuffer(
            seed=episode.seed,
            observations=episode.obs,
            actions=episode.action,
            rewards=episode.reward.tolist(),
            terminations=(last & episode.terminated).tolist(),
            truncations=(last & episode.truncated).tolist(),
        )
        storage.update_episodes([buffer])


@pytest.mark.parametrize("data_format", ["hdf5", "arrow", "parquet"])
@pytest.mark.parametrize("kind", ["vectors", "frames"])
def test_minari_data_sets_of_every_storage_are_read(
    tmp_path: Path, vector_demos: Demonstrations, frame_demos: Demonstrations, data_format: str, kind: str
) -> None:
    demos, target = (vector_demos, VECTORS) if kind == "vectors" else (frame_demos, FRAMES)
    _write_minari(tmp_path / "mine-v0", demos, target, data_format)
    result = imported(tmp_path / "mine-v0", target)
    assert (result.source_format, result.notes) == ("minari", ())
    assert same_steps(result.demos, demos)
    assert result.demos.header.seeds == demos.header.seeds
    assert result.demos.header.returns == pytest.approx(demos.header.returns)
    assert result.demos.header.recorder.startswith("imported from minari mine-v0, sha256 ")


def test_a_minari_data_set_is_found_by_its_id_and_by_its_files(
    tmp_path: Path, vector_demos: Demonstrations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    _write_minari(tmp_path / "toy" / "mine-v0", vector_demos, VECTORS, "hdf5")
    folder = tmp_path / "toy" / "mine-v0"
    for source in ("toy/mine-v0", folder / "data", folder / "data" / "main_data.hdf5"):
        assert same_steps(imported(source).demos, vector_demos)
    with pytest.raises(UserError, match=r"^toy/yours-v0: no such file or folder, and no such data set in Minari's"):
        imported("toy/yours-v0")


def test_the_environment_of_a_minari_data_set_is_compared_and_never_built(
    tmp_path: Path, vector_demos: Demonstrations
) -> None:
    _write_minari(tmp_path / "mine", vector_demos, VECTORS, "hdf5")
    path = tmp_path / "mine" / "data" / "metadata.json"
    spec = {"id": "Other-v0", "entry_point": "antigravity:Env"}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"env_spec": json.dumps(spec)}))
    with pytest.raises(UserError, match=r"mine: recorded on Other-v0, --env is Toy-v0$"):
        imported(tmp_path / "mine")


def test_a_minari_data_set_of_jpeg_pictures_is_refused(tmp_path: Path, frame_demos: Demonstrations) -> None:
    _write_minari(tmp_path / "mine", frame_demos, FRAMES, "hdf5")
    with h5py.File(tmp_path / "mine" / "data" / "main_data.hdf5", "a") as file:
        del file["episode_0/observations"]
        pictures = file["episode_0"].create_dataset("observations", (7,), h5py.vlen_dtype(np.uint8))
        pictures[0] = np.arange(5, dtype=np.uint8)
    with pytest.raises(UserError, match="mine: /episode_0/observations holds object, such as text or JPEG pictures"):
        imported(tmp_path / "mine", FRAMES)


def test_an_old_gail_expert_loses_the_last_step_of_each_episode(path: Path, vector_demos: Demonstrations) -> None:
    expert = path.with_suffix(".h5")
    write_gail(expert, gail_arrays(vector_demos))
    result = imported(expert)
    assert result.source_format == "gail-hdf5"
    assert result.notes == ("dropped the last step of each episode (3 in all): its successor is not stored",)
    cut = tuple(
        replace(
            episode,
            obs=episode.obs[:-1],
            action=episode.action[:-1],
            reward=episode.reward[:-1],
            trembled=episode.trembled[:-1],
            terminated=False,
            truncated=False,
        )
        for episode in vector_demos.episodes
    )
    assert same_steps(result.demos, replace(vector_demos, episodes=cut))
    assert result.demos.header.returns == pytest.approx(vector_demos.header.returns)


def test_trajectories_of_imitation_are_read_and_their_infos_never(tmp_path: Path, vector_demos: Demonstrations) -> None:
    write_trajectories(tmp_path / "saved", trajectories(vector_demos))
    result = imported(tmp_path / "saved")
    assert result.source_format == "imitation"
    assert [note.split(":")[0] for note in result.notes] == ["this format does not tell time limits from terminations"]
    # The second episode ended by a time limit, which the format cannot say.
    fragment = replace(vector_demos.episodes[1], truncated=False)
    first, _, third = vector_demos.episodes
    assert same_steps(result.demos, replace(vector_demos, episodes=(first, fragment, third)))


def test_trajectories_without_rewards_have_none(tmp_path: Path, vector_demos: Demonstrations) -> None:
    columns = trajectories(vector_demos)
    del columns["rews"]
    write_trajectories(tmp_path / "saved", columns)
    result = imported(tmp_path / "saved")
    assert result.demos.header.returns == ()
    assert any(note.startswith("no rewards: what the demonstrator scores is not known") for note in result.notes)


def _legacy(demos: Demonstrations) -> dict[str, Any]:
    episodes = demos.episodes
    return {
        "obs": np.concatenate([episode.obs for episode in episodes]),
        "acts": np.concatenate([episode.action for episode in episodes]),
        "rews": np.concatenate([episode.reward for episode in episodes]),
        "terminal": np.array([episode.terminated for episode in episodes]),
        "indices": np.cumsum([len(episode) for episode in episodes])[:-1],
        "infos": np.array([{}] * demos.num_transitions, dtype=object),  # saved as a pickle
    }


def test_an_older_file_of_imitation_is_read_without_its_pickle(path: Path, vector_demos: Demonstrations) -> None:
    np.savez(path, **_legacy(vector_demos))
    result = imported(path)
    assert result.source_format == "imitation"
    assert [episode.terminated for episode in result.demos.episodes] == [True, False, True]
    assert [len(episode) for episode in result.demos.episodes] == [20, 5, 10]
    np.testing.assert_array_equal(result.demos.episodes[2].obs, vector_demos.episodes[2].obs)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"indices": np.array([25, 20])}, "'indices' must grow from trajectory to trajectory"),
        ({"indices": np.array([20, 99])}, "'indices' must grow from trajectory to trajectory"),
        ({"terminal": np.array([True])}, "acts (35, 2), indices (2,) and terminal (1,) do not go together"),
        ({"acts": np.array([{}] * 35, dtype=object)}, "contains a Python pickle; refused, because it could run code"),
    ],
)
def test_a_wrong_older_file_of_imitation_is_refused(
    path: Path, vector_demos: Demonstrations, changes: dict[str, Any], reason: str
) -> None:
    np.savez(path, **(_legacy(vector_demos) | changes))
    with pytest.raises(UserError) as error:
        imported(path)
    assert str(error.value).startswith(f"{path}: {reason}")

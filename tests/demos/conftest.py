"""Small demonstrations: vectors, and stacks of frames as Atari gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from reader_server import ReaderServer

from ilde.data import UserError
from ilde.demos import Demonstrations, Episode, Header, load, quarantine
from ilde.demos.header import Demonstrator

MakeDemos: TypeAlias = Callable[..., Demonstrations]


def _header(episodes: Sequence[Episode], **changes: Any) -> Header:
    fields: dict[str, Any] = {
        "env_id": "Toy-v0",
        "simulator_versions": {"toy": "1.0"},
        "recorder": "random",
        "seeds": tuple(episode.seed for episode in episodes),
        "returns": tuple(float(episode.reward.sum()) for episode in episodes),
        "lives": tuple(int(episode.terminated) for episode in episodes),
        "until": "episode",
        "greedy": False,
        "tremble": 0.25,
        "created": "2025-01-01",
        "command": "ilde demos record",
        "demonstrator": Demonstrator(mean=10.0, std=2.0, episodes=20),
    }
    return Header(**(fields | changes))


@pytest.fixture(scope="session")
def make_demos() -> MakeDemos:
    """Builds demonstrations from the observations of each episode; everything else follows from a seed."""

    def build(observations: Sequence[np.ndarray], num_actions: int | None = None, **header: Any) -> Demonstrations:
        rng = np.random.default_rng(0)
        episodes = []
        for number, obs in enumerate(observations):
            steps = len(obs) - 1
            vector = rng.normal(size=(steps, 2)).astype(np.float32)
            episodes.append(
                Episode(
                    obs=obs,
                    action=vector if num_actions is None else rng.integers(0, num_actions, steps),
                    reward=rng.normal(size=steps),
                    trembled=rng.random(steps) < 0.25,
                    terminated=number % 2 == 0,
                    truncated=number % 2 == 1,
                    seed=None if number == 1 else number,
                )
            )
        return Demonstrations("Toy-v0", tuple(episodes), _header(episodes, **header))

    return build


@pytest.fixture(scope="session")
def vector_demos(make_demos: MakeDemos) -> Demonstrations:
    """Three episodes of 20, 5 and 10 steps, with three-dimensional float64 observations and two-dimensional actions."""
    rng = np.random.default_rng(1)
    return make_demos([rng.normal(size=(steps + 1, 3)) for steps in (20, 5, 10)])


@pytest.fixture(scope="session")
def frame_demos(make_demos: MakeDemos) -> Demonstrations:
    """Two episodes of 6 and 3 steps; each observation stacks the last four frames of 12 x 10 pixels."""
    rng = np.random.default_rng(2)
    episodes = []
    for steps in (6, 3):
        frames = rng.integers(0, 256, (steps + 4, 12, 10), dtype=np.uint8)
        episodes.append(np.stack([frames[step : step + 4] for step in range(steps + 1)]))
    return make_demos(episodes, num_actions=6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test puts its file."""
    return tmp_path / "a.npz"


@pytest.fixture(scope="session")
def reader_server() -> Iterator[ReaderServer]:
    server = ReaderServer()
    yield server
    server.close()


@pytest.fixture
def forked_readers(reader_server: ReaderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers of other formats run in forks of one process, to save the start of a process for each file."""
    monkeypatch.setattr(quarantine, "_run", reader_server.run)


@pytest.fixture(scope="session")
def refusal() -> Callable[[Path], str]:
    """Loads a bad file and gives the reason it was refused for, after the path."""

    def load_badly(path: Path) -> str:
        with pytest.raises(UserError) as error:
            load(path)
        message = str(error.value)
        assert message.startswith(f"{path}: ")
        assert message.isprintable()
        return message.removeprefix(f"{path}: ")

    return load_badly

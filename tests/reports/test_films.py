"""Stills of demonstrators and policies for a page."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from made_runs import make_run
from PIL import Image
from products import saved_run

from ilde.cli.filming import film_tasks, middle_run
from ilde.data import UserError
from ilde.reports.comparison import compare
from ilde.reports.films import MAX_VIDEO, newest_video
from ilde.reports.gathering import gather
from ilde.video.stills import STILLS, WIDTH, evenly, webp


def picture(level: int, side: int = 84) -> np.ndarray:
    return np.full((side, side, 3), level, np.uint8)


def test_stills_are_evenly_spaced_with_both_ends() -> None:
    levels = [int(still[0, 0, 0]) for still in evenly([picture(k) for k in range(71)])]
    assert levels == [0, 10, 20, 30, 40, 50, 60, 70]
    assert len(evenly([picture(k) for k in range(3)])) == 3 < STILLS


def test_a_still_is_a_small_webp() -> None:
    noise = np.random.default_rng(0).integers(0, 255, (84, 84, 3), np.uint8)
    image = Image.open(io.BytesIO(webp(noise)))
    assert (image.format, image.size) == ("WEBP", (WIDTH, WIDTH))
    assert Image.open(io.BytesIO(webp(np.zeros((240, 320, 3), np.uint8)))).size == (WIDTH, 189)


def test_the_newest_video_is_taken_unless_it_is_too_large(tmp_path: Path) -> None:
    assert newest_video(tmp_path) == b""
    (tmp_path / "videos").mkdir()
    for name, content in (("1.mp4", b"old"), ("2.mp4", b"new"), ("3.mp4", bytes(MAX_VIDEO + 1)), ("4.txt", b"no")):
        (tmp_path / "videos" / name).write_bytes(content)
    assert newest_video(tmp_path) == b"new"


def test_the_seed_in_the_middle_is_shown(tmp_path: Path) -> None:
    for seed, score in enumerate((50.0, 10.0, 30.0, 20.0)):
        make_run(tmp_path / str(seed), seed=seed, score=score)
    (comparison,) = compare(gather([tmp_path]).outcomes)
    assert middle_run(comparison.rows[0]) == f"{tmp_path.name}/3"


@pytest.fixture(scope="module")
def measured_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run of a few steps on a real recording, with a final score."""
    run = saved_run("HalfCheetah-v5", tmp_path_factory.mktemp("runs") / "cheetah")
    row = '{"env_steps": 16, "mean": 1.0, "std": 0.0, "episodes": 20, "greedy": true, "final": true}\n'
    (run / "evaluations.jsonl").write_text(row)
    return run


def test_demonstration_and_policy_are_filmed(measured_run: Path) -> None:
    gathered = gather([measured_run])
    said: list[str] = []
    films = film_tasks(compare(gathered.outcomes), gathered.folders, said.append)
    assert [film.label for film in films[0]] == ["demonstrated: demos.npz", "ilde"]
    for film in films[0]:
        assert len(film.stills) == STILLS
        assert film.stills[0] != film.stills[-1]
    assert said == ["filming demonstrated: demos.npz", "filming ilde"]


def test_what_cannot_be_filmed_is_said(measured_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(run: Path) -> list[np.ndarray]:
        raise UserError("no picture here")

    gathered = gather([measured_run])
    monkeypatch.setattr("ilde.cli.filming.run_stills", broken)
    said: list[str] = []
    films = film_tasks(compare(gathered.outcomes), gathered.folders, said.append)
    assert len(films[0]) == 1
    assert said[-1] == "not filmed: no picture here"
    assert film_tasks(compare(gathered.outcomes), {}, said.append) == {0: ()}
    assert said[-1] == "ilde: not filmed, because its runs are not here, only their outcomes"

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from ilde.data import UserError
from ilde.demos import Demonstrations
from ilde.demos.picture import film_strip

MakeDemos: TypeAlias = Callable[..., Demonstrations]

matplotlib_image = pytest.importorskip("matplotlib.image")


def _spread(path: Path) -> float:
    pixels = matplotlib_image.imread(path)
    assert pixels.shape[1] > pixels.shape[0] > 100
    return float(pixels[..., :3].std())


def test_images_become_a_film_strip(frame_demos: Demonstrations, tmp_path: Path) -> None:
    film_strip(frame_demos, tmp_path / "a.png")
    assert _spread(tmp_path / "a.png") > 0.05


def test_colour_images_become_a_film_strip(make_demos: MakeDemos, tmp_path: Path) -> None:
    film_strip(make_demos([np.full((30, 8, 8, 3), 99, np.uint8)]), tmp_path / "a.png")
    assert _spread(tmp_path / "a.png") > 0.05


def test_vectors_become_curves(vector_demos: Demonstrations, tmp_path: Path) -> None:
    film_strip(vector_demos, tmp_path / "a.png")
    assert _spread(tmp_path / "a.png") > 0.05


def test_pyplot_stays_untouched(vector_demos: Demonstrations, tmp_path: Path) -> None:
    loaded = "matplotlib.pyplot" in sys.modules
    film_strip(vector_demos, tmp_path / "a.png")
    assert ("matplotlib.pyplot" in sys.modules) == loaded


def test_without_matplotlib_the_remedy_is_named(
    vector_demos: Demonstrations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UserError, match=r"pip install ilde\[plots\]"):
        film_strip(vector_demos, tmp_path / "a.png")


def test_a_missing_folder_is_named(vector_demos: Demonstrations, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written: No such file or directory"):
        film_strip(vector_demos, tmp_path / "missing" / "a.png")

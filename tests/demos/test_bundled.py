from __future__ import annotations

from pathlib import Path

import pytest

from ilde.data import UserError
from ilde.demos import Demonstrations, bundled, resolve, save


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vector_demos: Demonstrations) -> Path:
    """A folder of bundled data with one set, and the working directory elsewhere."""
    (tmp_path / "bundled" / "toy-v0").mkdir(parents=True)
    save(vector_demos, tmp_path / "bundled" / "toy-v0" / "weak-v0.npz")
    monkeypatch.setattr(bundled, "FOLDER", tmp_path / "bundled")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_bundled_sets_have_the_names_of_their_files(folder: Path) -> None:
    assert bundled.bundled_names() == ("toy-v0/weak-v0",)


def test_no_folder_means_no_bundled_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "FOLDER", tmp_path / "nothing")
    assert bundled.bundled_names() == ()


def test_a_name_and_a_path_find_the_same_demonstrations(folder: Path, vector_demos: Demonstrations) -> None:
    assert resolve("toy-v0/weak-v0").content_hash == vector_demos.content_hash
    assert resolve("bundled/toy-v0/weak-v0.npz").content_hash == vector_demos.content_hash


def test_a_suffix_takes_the_first_part(folder: Path, vector_demos: Demonstrations) -> None:
    half = vector_demos.prefix(0.5).content_hash
    assert resolve("toy-v0/weak-v0:0.5").content_hash == half
    assert resolve("bundled/toy-v0/weak-v0.npz:0.5").content_hash == half
    assert resolve("toy-v0/weak-v0:1").content_hash == vector_demos.content_hash


def test_a_path_may_contain_a_colon_of_its_own(folder: Path, vector_demos: Demonstrations) -> None:
    save(vector_demos, folder / "run:0.5")
    assert resolve("run:0.5").content_hash == vector_demos.content_hash
    assert resolve("run:0.5:0.5").content_hash == vector_demos.prefix(0.5).content_hash


@pytest.mark.parametrize("suffix", ["0", "-0.1", "1.5", "nan", "inf", "ten", ""])
def test_a_wrong_fraction_is_refused(folder: Path, suffix: str) -> None:
    with pytest.raises(UserError) as error:
        resolve(f"toy-v0/weak-v0:{suffix}")
    reason = f"the fraction {suffix!r} must be a number above 0 and at most 1"
    assert str(error.value) == f"toy-v0/weak-v0:{suffix}: {reason}"


@pytest.mark.parametrize("argument", ["toy-v0/waek-v0", "toy-v0/weak-v1:0.1"])
def test_a_misspelt_name_gets_a_suggestion(folder: Path, argument: str) -> None:
    with pytest.raises(UserError) as error:
        resolve(argument)
    expected = f"{argument}: no such file or bundled demonstration; did you mean `toy-v0/weak-v0`?"
    assert str(error.value) == expected


@pytest.mark.parametrize("argument", ["", ":", ":0.1", "nowhere.npz", "../toy-v0/weak-v0/../../etc"])
def test_an_unknown_name_is_told_where_to_look(folder: Path, argument: str) -> None:
    with pytest.raises(UserError, match="no such file or bundled demonstration") as error:
        resolve(argument)
    assert "\n" not in str(error.value)

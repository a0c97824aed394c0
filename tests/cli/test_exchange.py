"""`ilde demos import` and `ilde demos export`, there and back on CartPole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Ilde

from ilde.cli import exchange
from ilde.cli.verbs import LineParser
from ilde.demos import load
from ilde.demos.exporting import TARGET_FORMATS
from ilde.demos.importing import SOURCE_FORMATS

ARRAYS: dict[str, Any] = {
    "obs": np.arange(20, dtype=np.float32).reshape(5, 4),
    "actions": np.array([0, 1, 1, 0, 1]),
    "rewards": np.ones(5),
    "episode_lengths": np.array([3, 2]),
}
ENV = ("--env", "CartPole-v1")


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    np.savez(tmp_path / "plain.npz", **ARRAYS)
    return tmp_path / "plain.npz"


def test_an_import_says_what_it_dropped_and_can_be_loaded(ilde: Ilde, plain: Path, tmp_path: Path) -> None:
    result = ilde("demos", "import", plain, *ENV, "--out", tmp_path / "mine.npz")
    assert result.code == 0, result.err
    assert result.out.splitlines()[0] == (
        f"{plain}: dropped the last step of each episode (2 in all): its successor is not stored"
    )
    demos = load(tmp_path / "mine.npz")
    assert (demos.env_id, demos.num_transitions, demos.header.returns) == ("CartPole-v1", 3, (3.0, 2.0))
    assert demos.header.recorder.startswith("imported from npz plain.npz, sha256 ")
    assert demos.header.command.startswith("ilde demos import ")
    assert ilde("demos", "check", tmp_path / "mine.npz").code == 0


def test_an_import_as_json_is_one_document(ilde: Ilde, plain: Path, tmp_path: Path) -> None:
    words = ("demos", "import", plain, *ENV, "--out", tmp_path / "mine.npz", "--from", "npz", "--json")
    document = ilde(*words).document
    assert (document["format"], document["transitions"], len(document["notes"])) == ("npz", 3, 1)


@pytest.mark.parametrize("target_format", TARGET_FORMATS)
@pytest.mark.parametrize("env", [(), ENV])
def test_an_export_comes_back_as_it_was(
    ilde: Ilde, plain: Path, tmp_path: Path, target_format: str, env: tuple[str, ...]
) -> None:
    mine, out, again = tmp_path / "mine.npz", tmp_path / "out", tmp_path / "again.npz"
    assert ilde("demos", "import", plain, *ENV, "--out", mine).code == 0
    exported = ilde("demos", "export", mine, "--to", target_format, "--out", out, *env)
    assert (exported.code, exported.out) == (0, f"wrote {out}: 3 transitions in 2 episodes\n")
    assert ilde("demos", "import", out, *ENV, "--out", again).code == 0
    assert load(again).content_hash == load(mine).content_hash


def test_mistakes_are_one_line_and_leave_nothing(ilde: Ilde, plain: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine.npz"
    mistakes = {
        ("import", "nowhere", *ENV): "nowhere: no such file or folder, and no such data set in Minari's local store",
        ("import", plain, "--env", "CartPol-v1"): "unknown environment 'CartPol-v1'; did you mean CartPole-v1",
        ("import", plain, "--env", "Acrobot-v1"): "observations (4,) float32; the environment gives (6,) float32",
        ("import", plain, *ENV, "--from", "hdf5"): "--from: invalid choice: 'hdf5'",
        ("import", plain, *ENV, "--from", "gail-hdf5"): f"{plain}: not an HDF5 file",
        ("import", plain): "required: --env",
        ("export", "nowhere", "--to", "npz"): "nowhere: no such file or bundled demonstration",
        ("export", "halfcheetah-v5/weak-v0"): "required: --to",
        (
            "export",
            "halfcheetah-v5/weak-v0",
            "--to",
            "npz",
            *ENV,
        ): "recorded on HalfCheetah-v5, this run is CartPole-v1",
    }
    for words, line in mistakes.items():
        result = ilde("demos", *words, "--out", out)
        assert (result.code, result.err.count("\n"), result.out) == (2, 1, ""), words
        assert line in result.err
    assert list(tmp_path.iterdir()) == [plain]


def test_what_exists_is_never_overwritten(ilde: Ilde, plain: Path) -> None:
    before = plain.read_bytes()
    for words in (("import", plain, *ENV), ("export", "halfcheetah-v5/weak-v0", "--to", "npz")):
        result = ilde("demos", *words, "--out", plain)
        assert (result.code, plain.read_bytes()) == (2, before)
        assert "exists already" in result.err


def test_the_command_line_offers_the_formats_there_are() -> None:
    choices = {}
    for verb in exchange.VERBS:
        parser = verb.parser()
        assert isinstance(parser, LineParser)
        choices |= {action.dest: action.choices for action in parser._actions if action.choices}
    assert choices == {"source_format": SOURCE_FORMATS, "target_format": TARGET_FORMATS}

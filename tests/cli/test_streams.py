"""Standard output as users have it: encodings of old, closed, on a full disk, a terminal that is narrow."""

from __future__ import annotations

import os
import sys
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest
from commands import Ilde
from made_runs import make_study

from ilde.cli.main import main
from ilde.cli.printing import print_table

FULL = Path("/dev/full")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_study(tmp_path_factory.mktemp("study"))


@pytest.mark.parametrize(("encoding", "letter"), [("ascii", "?"), ("latin-1", "±"), ("utf-8", "±")])
def test_a_letter_that_the_encoding_lacks_stops_nothing(
    study: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, letter: str
) -> None:
    written = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(written, encoding=encoding))
    assert main(["report", str(study)]) == 0
    assert f"1,010 {letter} 10" in written.getvalue().decode(encoding)


def test_a_closed_output_stops_nothing(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["report", str(study), "--out", str(tmp_path / "r.html")]) == 0
    sys.stdout.close()
    assert (tmp_path / "r.html").exists()


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("buffering", [1, -1], ids=["line by line", "at the end"])
def test_a_full_output_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], buffering: int
) -> None:
    with FULL.open("w", buffering=buffering) as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["methods"]) == 1
        assert os.readlink(f"/proc/self/fd/{full.fileno()}") == os.devnull
    said = "ilde: standard output: No space left on device; write to another place\n"
    assert capsys.readouterr().err == said


def test_an_error_of_another_file_is_not_taken_for_one_of_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ilde.cli.main._dispatch", broken)
    with pytest.raises(OSError, match="No space"):
        main(["methods"])


def test_a_file_has_room_for_every_word(ilde: Ilde) -> None:
    rows = ilde("settings", "--preset", "atari").out.splitlines()
    assert not any("…" in row for row in rows)
    # Every row is one line: none begins with the rest of another's words.
    assert all(row.split()[0].replace(".", "").replace("-", "").isidentifier() for row in rows)
    assert max(map(len, rows)) > 160


def test_a_narrow_terminal_folds_what_it_cannot_show(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys, "stdout", Terminal())
    print_table(("setting", "value"), [("rewards.generative.settled-steps", 100)])
    _, *rows = sys.stdout.getvalue().splitlines()
    assert "".join(row.split()[0] for row in rows) == "rewards.generative.settled-steps"
    assert max(map(len, rows)) <= 20

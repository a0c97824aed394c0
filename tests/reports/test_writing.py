"""Files of results: refused before the work they are to keep, and no loss where they fail after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ilde.data import UserError
from ilde.reports.tables import WordTable
from ilde.reports.writing import check_apart, check_file, publish, write_text


def test_a_file_that_can_be_written_is_checked_without_a_trace(tmp_path: Path) -> None:
    (tmp_path / "old.md").write_text("old")
    for path in (tmp_path / "old.md", tmp_path / "new" / "folder" / "new.md"):
        check_file(path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"old.md": "old"}


@pytest.mark.parametrize("name", ["", ".", "..", "folder", "/dev/null", "file/inner.md", "n" * 300, "/proc/new/r.md"])
def test_what_cannot_be_written_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").touch()
    for act in (check_file, lambda path: write_text(path, "text")):
        with pytest.raises(UserError, match=f"^{Path(name)}: (is a folder or a device; name a file|cannot be written)"):
            act(Path(name))


def test_names_of_files_are_whole_in_every_locale(tmp_path: Path) -> None:
    # As Python reads them where the locale is not of UTF-8, and the name of a file that never was.
    write_text(tmp_path / "r.md", "caf\udcc3\udca9, \udcff")
    assert (tmp_path / "r.md").read_text(encoding="utf-8") == "café, \N{REPLACEMENT CHARACTER}"


def test_one_place_under_two_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "a")
    check_apart({"--out": tmp_path / "a", "--markdown": tmp_path / "b", "--json": None, "--outcomes": None})
    for other in (tmp_path / "a", tmp_path / "b" / ".." / "a", tmp_path / "link"):
        with pytest.raises(UserError, match=r"--out and --markdown: both are .*; give each a name of its own"):
            check_apart({"--out": tmp_path / "a", "--json": None, "--markdown": other})


def test_what_was_measured_is_printed_even_if_it_cannot_be_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = WordTable("Table", ("a",), (("42",),), ())
    with pytest.raises(UserError, match="is a folder"):
        publish({}, "Measured", [table], kept=tmp_path, words=None)
    assert "42" in capsys.readouterr().out

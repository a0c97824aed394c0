"""`ilde report`: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import errno
from collections.abc import Sized
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Ilde
from made_runs import make_run, make_study

from ilde.config import QUICK
from ilde.reports import writing


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_study(tmp_path_factory.mktemp("study"))


def test_the_table_is_printed(ilde: Ilde, study: Path) -> None:
    result = ilde("report", study)
    assert result.code == 0
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    assert "ilde 81,920 3 1,010 ± 10 985 to 1,035 1.12 3 of 3 505 imitates" in lines
    assert "constant 81,920 3 -90.0 ± 10.0 -115 to -65 -0.10 0 of 3 -45.0 control" in lines
    assert result.err == ""


def test_where_nothing_could_be_pooled_a_note_stands_alone_under_its_title(ilde: Ilde, tmp_path: Path) -> None:
    make_run(tmp_path / "one")
    make_run(tmp_path / "two", config=replace(QUICK, env="Hopper-v5", num_envs=4), recording="b" * 64)
    title, note, gap, *_ = ilde("report", tmp_path).out.splitlines()
    assert title == "all tasks: scores over the demonstrator's"
    assert note.startswith("- not pooled, as reward, preset, settings and steps are the same on no other task: ilde on")
    assert gap == ""


def test_page_markdown_and_outcomes_are_written(ilde: Ilde, study: Path, tmp_path: Path) -> None:
    page, words, outcomes = tmp_path / "new" / "r.html", tmp_path / "r.md", tmp_path / "r.json"
    result = ilde("report", study, "--out", page, "--markdown", words, "--outcomes", outcomes, "--title", "Mine")
    assert [line.rpartition(" (")[0] for line in result.out.splitlines()[-3:]] == [
        f"wrote {path}" for path in (page, words, outcomes)
    ]
    assert "<title>Mine</title>" in page.read_text()
    assert words.read_text().startswith("# Mine\n")
    again = tmp_path / "again.html"
    assert ilde("report", outcomes, "--out", again, "--title", "Mine").code == 0
    assert again.read_bytes() == page.read_bytes()


def test_json_is_one_document(ilde: Ilde, study: Path, tmp_path: Path) -> None:
    document = ilde("report", study, "--json", "--out", tmp_path / "r.html").document
    assert document["files"] == [str(tmp_path / "r.html")]
    assert document["tasks"][0]["rows"][0]["verdict"] == "imitates"
    assert document["all_tasks"] == []


def test_sampled_actions_can_be_compared(ilde: Ilde, study: Path) -> None:
    task = ilde("report", study, "--json", "--sampled").document["tasks"][0]
    assert task["greedy"] is False
    assert (task["rows"][0]["mean"], task["rows"][0]["greedy"]) == (505.0, 1010.0)


def test_a_damaged_folder_is_skipped_with_one_line(ilde: Ilde, tmp_path: Path) -> None:
    make_run(tmp_path / "good")
    (make_run(tmp_path / "bad") / "status.json").write_text("{")
    result = ilde("report", tmp_path, "--json")
    assert result.code == 0
    (line,) = result.err.splitlines()
    assert line.startswith(f"skipped {tmp_path.name}/bad: status.json: cannot be read")
    assert list(result.document["skipped"]) == [f"{tmp_path.name}/bad"]


def test_mistakes_are_one_line(ilde: Ilde, study: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.json").write_text("hello")
    for words in ((tmp_path / "none",), (tmp_path / "folder",), (tmp_path / "text.json",), (study, "--out", tmp_path)):
        result = ilde("report", *words)
        assert result.code == 2
        assert len(result.err.splitlines()) == 1
        assert str(tmp_path) in result.err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--out", "."), ".: is a folder or a device; name a file"),
        (("--outcomes", ""), ".: is a folder or a device; name a file"),
        (("--markdown", "taken/r.md"), "taken/r.md: cannot be written (Not a directory); choose another file"),
        (("--out", "r", "--outcomes", "./r"), "--out and --outcomes: both are r; give each a name of its own"),
    ],
)
def test_a_file_that_cannot_be_written_is_said_before_anything_is_read(
    ilde: Ilde, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").touch()
    result = ilde("report", tmp_path / "no such runs", *words)
    assert (result.code, result.err) == (2, f"ilde: {line}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_tables_that_cannot_be_kept_in_the_end_are_printed(
    ilde: Ilde, study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_more_room(path: Path, content: bytes) -> None:
        if path.suffix == ".md":
            raise OSError(errno.ENOSPC, "No space left on device")
        path.write_bytes(content)

    monkeypatch.setattr(writing, "write_atomically", no_more_room)
    page, words = tmp_path / "r.html", tmp_path / "r.md"
    for form in ((), ("--json",)):
        result = ilde("report", study, "--out", page, "--markdown", words, *form)
        assert (result.code, result.err) == (
            2, f"ilde: {words}: cannot be written (No space left on device); choose another file\n",
        )  # fmt: skip
        assert result.document["files"] == [str(page)] if form else f"wrote {page}" in result.out
        assert "imitates" in result.out


def test_films_are_made_only_when_asked_for(
    ilde: Ilde, study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def film_tasks(comparisons: object, folders: Sized, note: object) -> dict[int, object]:
        asked.append(len(folders))
        return {}

    monkeypatch.setattr("ilde.cli.filming.film_tasks", film_tasks)
    assert ilde("report", study).code == 0
    assert asked == []
    assert ilde("report", study, "--film", "--out", tmp_path / "r.html").code == 0
    assert asked == [18]


def test_films_need_a_page_to_stand_on(ilde: Ilde, study: Path) -> None:
    result = ilde("report", study, "--film")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "--film: films stand on the page; name it with --out report.html" in result.err


def test_a_strangers_words_do_not_command_the_terminal(ilde: Ilde, study: Path, tmp_path: Path) -> None:
    kept = tmp_path / "r.json"
    assert ilde("report", study, "--outcomes", kept).code == 0
    kept.write_text(kept.read_text().replace("halfcheetah-v5/weak-v0", "\\u001b[2Jweak"))
    result = ilde("report", kept)
    assert result.code == 0
    assert "weak" in result.out
    assert "\x1b" not in result.out

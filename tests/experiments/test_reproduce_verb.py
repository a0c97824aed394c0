"""`ilde reproduce`: what we publish with it, what it reads, what it runs, what it refuses."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest
from made_runs import make_run

from ilde.cli import campaigns
from ilde.cli.main import main
from ilde.experiments.paper import PaperTable, paper_tables
from ilde.experiments.paper.tables import TABLES
from ilde.experiments.reproduction import reproduce
from ilde.reports import gathering, writing
from ilde.reports.gathering import Gathered, gather
from ilde.reports.tables import markdown

RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize("table", paper_tables(), ids=lambda table: table.name)
def test_every_table_with_a_row_of_ours_is_published_and_rebuilt_byte_for_byte(table: PaperTable) -> None:
    words = reproduce(table, gather(sorted(RESULTS.rglob("*.outcomes.json"))).outcomes)
    # Seeds stand beside whatever was measured; recordings are measured themselves.
    measured = "seeds" not in words.columns or {row[words.columns.index("seeds")] for row in words.rows} != {"-"}
    kept = RESULTS / "tables" / f"{table.name}.md"
    assert kept.exists() == measured
    if measured:
        assert markdown(table.title, [words]) == kept.read_text(encoding="utf-8")


def test_nothing_else_is_published_as_a_table() -> None:
    assert {path.stem for path in (RESULTS / "tables").iterdir()} <= set(TABLES)


def test_the_published_report_of_the_baselines_is_rebuilt_byte_for_byte(tmp_path: Path) -> None:
    out = tmp_path / "baselines.md"
    assert main(["report", str(RESULTS / "baselines.outcomes.json"), "--markdown", str(out)]) == 0
    assert out.read_bytes() == (RESULTS / "baselines.md").read_bytes()


def test_the_verb_writes_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "atari.md"
    assert main(["reproduce", "atari", "--from", str(RESULTS), "--markdown", str(out)]) == 0
    assert "70,566 ± 75,310" in capsys.readouterr().out
    assert out.read_bytes() == (RESULTS / "tables" / "atari.md").read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["atari", "--from", "RESULTS", "--budget", "hours"],
            "--budget: no effect, since --from runs nothing; leave it",
        ),
        (
            ["atari", "--from", "RESULTS", "--jobs=2", "--address=a:1"],
            "--jobs, --address: no effect, since --from runs",
        ),
        (["hypotheses", "--from", "RESULTS", "--out", "x"], "--out: no effect, since --from runs nothing"),
        (["demo-lengths", "--budget", "smoke"], "--budget: no effect, since demo-lengths runs nothing"),
    ],
)
def test_options_of_runs_are_refused_where_nothing_is_run(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["reproduce", *(str(RESULTS) if word == "RESULTS" else word for word in words)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"ilde: {said}")


def test_runs_that_cannot_be_read_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "good")
    (make_run(tmp_path / "bad", seed=1) / "status.json").write_text("{")
    for table in ("lambda", "hypotheses"):
        assert main(["reproduce", table, "--from", str(tmp_path), "--json"]) == 0
        said = capsys.readouterr()
        (line,) = said.err.splitlines()
        assert line.startswith(f"skipped {tmp_path.name}/bad: status.json: cannot be read")
        assert list(json.loads(said.out)["skipped"]) == [f"{tmp_path.name}/bad"]


def test_tables_and_reports_take_the_same_folder(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["reproduce", "lambda", "--from"], ["report", "--json"]):
        assert main([*words, str(RESULTS)]) == 0
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("words", [["lambda", "--from", str(RESULTS)], ["demo-lengths"]], ids=lambda words: words[0])
def test_no_budget_is_claimed_where_nothing_is_run(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(["reproduce", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["budget"] is None


def test_a_table_without_a_budget_is_run_with_the_smallest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    titles = []

    def carry_out(*cells: object, title: str, **how: object) -> tuple[list[object], int]:
        titles.append(title)
        return [], 3

    monkeypatch.setattr(campaigns, "carry_out", carry_out)
    monkeypatch.setattr(gathering, "gather", lambda *how: Gathered((), {}, {}))
    assert main(["reproduce", "lambda", "--out", str(tmp_path), "--json"]) == 3
    assert titles == [f"lambda, budget smoke, 9 runs in {tmp_path}"]
    assert json.loads(capsys.readouterr().out)["budget"] == "smoke"


def test_an_unknown_table_is_answered_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "atary"]) == 2
    assert "did you mean atari?" in capsys.readouterr().err.lower()


def test_a_table_stopped_before_its_first_run_says_so_and_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier = tmp_path / "hype.md"
    earlier.write_text("an earlier table")
    words = ["reproduce", "hype", "--minutes", "1e-9", "--out", str(tmp_path / "runs"), "--markdown", str(earlier)]
    assert main(words) == 124
    assert earlier.read_text() == "an earlier table"
    said = capsys.readouterr()
    assert "no run that can be read" not in said.err
    assert "not run" in said.out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--markdown", ""), ".: is a folder or a device; name a file"),
        (("--markdown", "taken/table.md"), "taken/table.md: cannot be written (Not a directory); choose another file"),
        (("--out", "one", "--markdown", "one"), "--out and --markdown: both are one; give each a name of its own"),
        (("--markdown", "runs/reproduce-smoke"), "--out and --markdown: both are runs/reproduce-smoke; give each"),
    ],
)
def test_a_file_that_cannot_be_written_is_said_before_anything_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    line: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(campaigns, "carry_out", lambda *cells, **how: pytest.fail("something ran"))
    Path("taken").touch()
    assert main(["reproduce", "lambda", *words]) == 2
    assert capsys.readouterr().err.startswith(f"ilde: {line}")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_table_that_cannot_be_kept_in_the_end_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: tuple[str, ...]
) -> None:
    def no_room(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writing, "write_atomically", no_room)
    kept = tmp_path / "atari.md"
    assert main(["reproduce", "atari", "--from", str(RESULTS), "--markdown", str(kept), *form]) == 2
    said = capsys.readouterr()
    assert "70,566" in (str(json.loads(said.out)["rows"]) if form else said.out)
    assert said.err == f"ilde: {kept}: cannot be written (No space left on device); choose another file\n"


def test_a_dry_run_shows_the_runs_of_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reproduce", "atari", "--budget", "hours", "--only", "krull/ilde*/seed-0", "--dry-run"]
    assert main([*words, "--json", "--out", str(tmp_path / "out")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["study"] == "atari-hours"
    methods = [run["id"].split("/")[1] for run in document["runs"]]
    assert sorted(methods) == ["ilde", "ilde-no-bonus", "ilde-no-curiosity", "ilde-no-imitation"]
    assert not (tmp_path / "out").exists()
    assert main([*words, "--markdown", "t.md"]) == 2
    assert "--markdown: no effect, since --dry-run measures nothing" in capsys.readouterr().err
    assert main(["reproduce", "demo-lengths", "--dry-run"]) == 2
    capsys.readouterr()
    assert main([*words, "--address", "x:1"]) == 2
    assert "--address is for --engine ray" in capsys.readouterr().err


def test_the_list_of_tables_takes_no_options_of_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "list", "--from", str(RESULTS)]) == 2
    assert "--from: no effect, since list runs and reads nothing; leave it out" in capsys.readouterr().err

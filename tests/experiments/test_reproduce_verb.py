"""`ilde reproduce`: what it reads, what it runs, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from ilde.cli import campaigns
from ilde.cli.main import main
from ilde.reports import gathering

RESULTS = Path(__file__).parents[2] / "results"


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
    monkeypatch.setattr(gathering, "gather", lambda sources: SimpleNamespace(outcomes=()))
    assert main(["reproduce", "lambda", "--out", str(tmp_path), "--json"]) == 3
    assert titles == [f"lambda, budget smoke, 9 runs in {tmp_path}"]
    assert json.loads(capsys.readouterr().out)["budget"] == "smoke"


def test_an_unknown_table_is_answered_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "atary"]) == 2
    assert "did you mean atari?" in capsys.readouterr().err.lower()

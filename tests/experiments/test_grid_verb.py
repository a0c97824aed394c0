"""`ilde grid`, from a study file to finished runs, through stops and starts."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from studies import process, rows, wait_for, write_study

from ilde.cli.main import main
from ilde.runs import RunDirectory

STEPS = 320
RUN = "cartpole-v1/expert"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_study(tmp_path, steps=STEPS, seeds="0..1")


def grid_json(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["grid", *map(str, words), "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_a_dry_run_shows_commands_that_can_be_typed(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    document = grid_json(capsys, study, "--out", out, "--seeds", "3", "--dry-run")
    (run,) = document["runs"]
    assert (document["study"], run["id"], run["state"]) == ("toy", f"{RUN}/seed-3", "new")
    words = shlex.split(run["command"])
    assert words[:4] == ["ilde", "train", "expert", "--env=CartPole-v1"]
    assert {f"--steps={STEPS}", "--seed=3", "--ppo.num-epochs=2", f"--out={out}/{RUN}/seed-3"} <= set(words)
    assert not out.exists()
    assert main(["grid", str(study), "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert f"{RUN}/seed-1" in shown
    assert "the first of 2 commands" in shown


def test_some_runs_of_a_study_are_chosen_by_their_ids(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"

    def ids(*patterns: str) -> list[str]:
        document = grid_json(capsys, study, "--out", out, "--seeds", "0..11", "--dry-run", "--only", *patterns)
        return [run["id"] for run in document["runs"]]

    assert ids("*/seed-1") == [f"{RUN}/seed-1"]
    # In the order of the patterns, each once: what is named first is run first.
    assert ids("*/seed-1?", f"{RUN}/seed-0", "*/seed-10") == [f"{RUN}/seed-{seed}" for seed in (10, 11, 0)]
    words = ["grid", str(study), "--out", str(out), "--only"]
    assert main([*words, f"{RUN}/sed-1"]) == 2
    assert capsys.readouterr().err == f"ilde: --only {RUN}/sed-1: matches no run; did you mean {RUN}/seed-1?\n"
    assert main([*words, "*/seed-0", "*/ppo/*"]) == 2
    assert "--only */ppo/*: matches no run; " in capsys.readouterr().err
    assert not out.exists()
    assert main([*words, "*/seed-1"]) == 0
    assert [run.name for run in (out / RUN).iterdir() if run.is_dir()] == ["seed-1"]


@pytest.mark.parametrize("chosen", [("--only", "*/seed-1"), ("--seeds", "1"), ("--seeds", "7")], ids=" ".join)
def test_a_part_of_a_study_is_held_to_the_settings_of_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], chosen: tuple[str, str]
) -> None:
    study = write_study(tmp_path, steps=32, seeds="0..1")
    words = ["grid", str(study), "--out", str(tmp_path / "out")]
    assert main([*words, "--only", "*/seed-0"]) == 0
    assert main([*words, *chosen, "--dry-run"]) == 0
    study.write_text(study.read_text().replace("num-epochs = 2", "num-epochs = 3"))
    capsys.readouterr()
    for more in ((), ("--dry-run",)):
        assert main([*words, *chosen, *more]) == 2
        line = f"ilde: {tmp_path / 'out' / RUN}/seed-0: was begun with ppo.num_epochs 2, the study now says 3; "
        assert capsys.readouterr().err.startswith(line)
    assert [run.name for run in (tmp_path / "out" / RUN).iterdir() if run.is_dir()] == ["seed-0"]


def test_a_study_whose_time_is_up_says_how_to_go_on_and_a_finished_one_needs_no_time(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["grid", str(study), "--out", str(tmp_path / "out"), "--minutes"]
    assert main([*words, "1e-9"]) == 124
    said = capsys.readouterr().out
    assert "time is up: every run finishes its update and saves" in said
    assert "stopped; the same command goes on" in said
    assert main([*words, "9"]) == 0
    assert main([*words, "1e-9"]) == 0


def test_a_study_stopped_by_ctrl_c_goes_on_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Long enough that the second run cannot end while the signal travels.
    steps = 10 * STEPS
    study = write_study(tmp_path, steps=steps, seeds="0..1")
    out = tmp_path / "out"
    first, second = (out / RUN / f"seed-{seed}" for seed in (0, 1))
    words = ("-m", "ilde", "grid", str(study), "--out", str(out), "--jobs", "1")
    with process(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        wait_for(lambda: rows(second / "timing.jsonl") >= 1)
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=60)
    assert child.returncode == 130, said
    assert f"{RUN}/seed-0: finished at {steps:,} steps" in said
    assert "stopped; the same command goes on" in said
    stopped = RunDirectory.read(second).status
    assert stopped.state == "interrupted"
    assert 0 < stopped.env_steps < steps
    kept = (first / "metrics.jsonl").read_bytes()

    document = grid_json(capsys, study, "--out", out)
    assert document["complete"]
    runs = document["runs"]
    assert [(run["id"], run["state"], run["attempts"]) for run in runs] == [
        (f"{RUN}/seed-0", "finished", 0),
        (f"{RUN}/seed-1", "finished", 1),
    ]
    assert [len(run["evaluations"]) for run in runs] == [2, 2]
    assert f"going on from {stopped.env_steps:,} steps" in second.with_name("seed-1.log").read_text()
    assert (first / "metrics.jsonl").read_bytes() == kept

    assert main(["grid", str(study), "--out", str(out)]) == 0
    assert f"{out}: all 2 runs are finished; nothing is left to do" in capsys.readouterr().out
    changed = study.with_name("toy2.toml")
    changed.write_text(study.read_text().replace("num-epochs = 2", "num-epochs = 3"))
    assert main(["grid", str(changed), "--out", str(out)]) == 2
    line = f"ilde: {first}: was begun with ppo.num_epochs 2, the study now says 3; choose another --out or put"
    assert capsys.readouterr().err.startswith(line)


def test_the_exit_code_is_that_of_a_failed_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = write_study(tmp_path, steps=32, methods='"sac", "random"')
    # That actions are discrete, which SAC cannot choose, is found out by the run itself.
    assert main(["grid", str(study), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().out
    assert "cartpole-v1/sac/seed-0: failed: " in said
    assert "continuous actions" in said
    assert "cartpole-v1/random/seed-0: finished at 0 steps" in said


def test_a_damaged_run_is_named_and_the_others_are_carried_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["grid", str(write_study(tmp_path, steps=32, methods='"random"')), "--out", str(tmp_path / "out")]
    assert main([*words, "--seeds", "0"]) == 0
    damaged = tmp_path / "out" / "cartpole-v1" / "random" / "seed-0" / "status.json"
    damaged.write_text("{")
    why = f"{damaged}: cannot be read (Expecting property name"
    for more in ("--dry-run", "--json", "--json"):
        capsys.readouterr()
        code = main([*words, "--seeds", "0,1", "--json", more])
        first, second = json.loads(capsys.readouterr().out)["runs"]
        assert (first["id"], first["state"]) == ("cartpole-v1/random/seed-0", "refused")
        assert first["message"].startswith(why)
        assert (code, second["state"]) == ((0, "new") if more == "--dry-run" else (2, "finished"))
    capsys.readouterr()
    assert main([*words, "--seeds", "0,1"]) == 2
    said = capsys.readouterr().out
    assert f"cartpole-v1/random/seed-0: refused: {why}" in said
    assert "all runs but those refused are finished; nothing is left to do" in said
    assert main([*words, "--seeds", "0,1", "--dry-run"]) == 0
    assert f"cartpole-v1/random/seed-0: refused: {why}" in capsys.readouterr().out


@pytest.mark.parametrize("sampled_alone", [False, True])
def test_a_last_evaluation_that_is_gone_is_said_and_measured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sampled_alone: bool
) -> None:
    words = ["grid", str(write_study(tmp_path, steps=32, methods='"random"')), "--out", str(tmp_path / "out")]
    assert main(words) == 0
    folder = tmp_path / "out" / "cartpole-v1" / "random" / "seed-0"
    gone = folder / "evaluations.jsonl"
    before = gone.read_bytes()
    gone.unlink()
    if sampled_alone:  # is gone: the greedy one is written before it
        gone.write_bytes(before.splitlines(keepends=True)[0])
    assert main(words) == 2
    said = capsys.readouterr().err
    assert f"{gone}: a finished run without its last evaluation; `ilde resume {folder}` measures it again" in said
    assert main(["resume", str(folder)]) == 0
    assert gone.read_bytes() == before
    assert main(words) == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("nothing",), "nothing: no such file or bundled study; there are "),
        (("smoke", "--engine", "slurm"), "--engine: invalid choice: 'slurm'"),
        (("smoke", "--address", "a:1"), "--address is for --engine ray"),
        (("smoke", "--gpus", "0.5"), "--gpus is for --engine ray"),
        (("smoke", "--engine", "ray", "--cpus", "few"), "--cpus: 'few' is not a number of at least 0"),
        (("smoke", "--jobs", "0"), "--jobs: '0' is not a whole number of at least 1"),
        (("smoke", "--retries", "-1"), "--retries: '-1' is not a whole number of at least 0"),
        (("smoke", "--seeds", "1..0"), "--seeds '1..0': the range is empty"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(
    words: tuple[str, ...],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["grid", *words]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"ilde: {line}")
    assert (said.err.count("\n"), said.out) == (1, "")
    assert not list(tmp_path.iterdir())

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ilde.data import HindranceError, UserError
from ilde.runs import RunDirectory
from ilde.runs.board import ScalarBoard
from ilde.runs.journal import Journal

CONFIG = {"method": "ilde", "seed": 3}


def create(path: Path, **options: Any) -> RunDirectory:
    return RunDirectory.create(path, CONFIG, {"command": ["ilde"]}, tensorboard=False, **options)


def steps_of(path: Path) -> list[int]:
    return [json.loads(line)["env_steps"] for line in path.read_text().splitlines()]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_new_run_has_its_files(tmp_path: Path) -> None:
    with create(tmp_path / "a" / "run") as run:
        assert run.config == CONFIG
        assert run.provenance == {"command": ["ilde"]}
        assert (run.status.state, run.status.env_steps) == ("running", 0)
        assert run.videos.is_dir()
        assert run.checkpoints.is_dir()


def test_an_existing_run_is_never_overwritten(tmp_path: Path) -> None:
    with create(tmp_path / "run") as run:
        run.log_metrics(1, {"loss": 2.0})
    before = contents(tmp_path / "run")
    with pytest.raises(UserError, match=r"run: already holds a run; `ilde resume .*run` goes on with it, or choose"):
        create(tmp_path / "run")
    assert contents(tmp_path / "run") == before


def test_a_run_killed_while_being_created_can_be_created_again(tmp_path: Path) -> None:
    create(tmp_path).close()
    (tmp_path / "config.json").unlink()
    create(tmp_path).close()
    assert RunDirectory.read(tmp_path).config == CONFIG


def test_a_folder_of_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UserError, match=r"holds other files \(thesis.tex\); choose a new or empty folder"):
        create(tmp_path)
    assert contents(tmp_path) == {"thesis.tex": b""}


@pytest.mark.parametrize("below", ["", "run", "runs/today"])
def test_a_file_in_the_way_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"file is a file; choose another --out"):
        create(tmp_path / "file" / below)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody can create")
def test_a_folder_nobody_can_write_is_named_with_the_remedy() -> None:
    with pytest.raises(UserError, match=r"^/proc/run: cannot be written \(.+\); make /proc writable or choose another"):
        create(Path("/proc/run"), required_bytes=1)


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind the superuser")
def test_a_read_only_folder_is_named_with_the_remedy(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match=r"run: cannot be written \(Permission denied\); make .* writable"):
        create(tmp_path / "run")


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, HindranceError),
        (errno.ETIMEDOUT, HindranceError),
        (errno.ENOLCK, HindranceError),
        (errno.EMFILE, HindranceError),
        (errno.EACCES, UserError),
        (errno.EROFS, UserError),
    ],
)
def test_what_may_pass_is_told_from_what_must_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[UserError]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with create(tmp_path) as run:
        monkeypatch.setattr(Journal, "append", refuse)
        with pytest.raises(UserError, match=os.strerror(number)) as raised:
            run.log_metrics(1, {})
    assert type(raised.value) is kind


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EIO, HindranceError),
        (errno.ESTALE, HindranceError),
        (errno.ETIMEDOUT, HindranceError),
        (errno.EACCES, UserError),
        (errno.EISDIR, UserError),
    ],
)
def test_what_cannot_be_read_is_one_line_that_tells_what_may_pass_from_what_must_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[UserError]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with create(tmp_path) as run:
        run.log_metrics(1, {})
        run.log_timing(1, {})
        ways = [run.metrics.rows, run.metrics.last, lambda: run.rewind(0), lambda: run.config, lambda: run.status]
        for name in ("exists", "read_bytes", "open", "is_file"):  # the first that storage out of reach may refuse
            monkeypatch.setattr(Path, name, refuse)
        for read in (*ways, lambda: RunDirectory.read(tmp_path)):
            with pytest.raises(UserError, match=rf"jsonl?: cannot be read \({os.strerror(number)}\); ") as raised:
                read()
            assert type(raised.value) is kind
        monkeypatch.undo()


def test_a_journal_that_is_a_folder_is_named_with_the_remedy(tmp_path: Path) -> None:
    create(tmp_path).close()
    (tmp_path / "metrics.jsonl").mkdir()
    journal = RunDirectory.read(tmp_path).metrics
    for read in (journal.rows, journal.last):
        with pytest.raises(
            UserError, match=r"metrics.jsonl: cannot be read \(Is a directory\); .*restore it from a copy"
        ):
            read()


def test_too_little_disk_space_is_said_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(HindranceError, match=r"MiB free, this run needs 1,099,511,627,776 MiB; free some space"):
        create(tmp_path / "run", required_bytes=2**60)
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    for enter in (RunDirectory.open, RunDirectory.read):
        with pytest.raises(UserError, match=r"not a run \(no config.json\)"):
            enter(tmp_path)
        with pytest.raises(UserError, match="not a run"):
            enter(tmp_path / "absent")


def test_a_second_process_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from ilde.runs import RunDirectory; RunDirectory.open(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with create(tmp_path):
        second = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert second.returncode == 1
    assert f"HindranceError: {tmp_path}: another process (pid {os.getpid()}) is working on this run" in second.stderr


def test_the_lock_is_free_after_closing_and_after_a_failed_creation(tmp_path: Path) -> None:
    with create(tmp_path), pytest.raises(UserError, match="another process"):
        RunDirectory.open(tmp_path)
    RunDirectory.open(tmp_path).close()
    with pytest.raises(ValueError, match="not JSON compliant"):
        RunDirectory.create(tmp_path / "videos" / "inner", {"limit": float("nan")}, {})
    create(tmp_path / "videos" / "inner").close()


def test_reading_needs_no_lock_and_cannot_write(tmp_path: Path) -> None:
    with create(tmp_path) as run:
        run.log_metrics(1, {"loss": 2.0})
        reader = RunDirectory.read(tmp_path)
        assert reader.metrics.rows() == [{"env_steps": 1, "loss": 2.0}]
        for write in (
            lambda: reader.log_metrics(2, {}),
            lambda: reader.log_timing(2, {}),
            lambda: reader.log_evaluation(2, {}),
            lambda: reader.save(2, {}, {}),
            lambda: reader.rewind(0),
            lambda: reader.set_status("failed", 2),
        ):
            with pytest.raises(RuntimeError, match="open for reading only"):
                write()
    with pytest.raises(RuntimeError, match="open for reading only"):
        run.log_metrics(2, {})


def test_a_reader_leaves_the_writers_half_written_checkpoint_alone(tmp_path: Path) -> None:
    with create(tmp_path) as run:
        run.save(1, {}, {})
        (run.checkpoints / ".tmp-000000000002").mkdir()
        RunDirectory.read(tmp_path).load_latest()
        assert (run.checkpoints / ".tmp-000000000002").exists()
    RunDirectory.open(tmp_path).close()
    assert not (tmp_path / "checkpoints" / ".tmp-000000000002").exists()


def test_the_status_is_what_was_said_last(tmp_path: Path) -> None:
    with create(tmp_path) as run:
        run.set_status("interrupted", 4096, "Ctrl-C")
    status = RunDirectory.read(tmp_path).status
    assert (status.state, status.env_steps, status.message) == ("interrupted", 4096, "Ctrl-C")
    assert status.updated.endswith("+00:00")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"state": "running"}'])
def test_a_damaged_status_is_named(tmp_path: Path, content: str) -> None:
    create(tmp_path).close()
    (tmp_path / "status.json").write_text(content)
    with pytest.raises(UserError, match=r"status.json: .*; restore it from a copy of the run"):
        _ = RunDirectory.read(tmp_path).status


def test_a_metrics_row_is_one_line_of_strict_json(tmp_path: Path) -> None:
    with create(tmp_path) as run:
        run.log_metrics(128, {"train/approx_kl": 0.5, "score/raw": float("nan"), "updates": 1})
    line = '{"env_steps": 128, "train/approx_kl": 0.5, "score/raw": null, "updates": 1.0}\n'
    assert (tmp_path / "metrics.jsonl").read_text() == line


def test_an_evaluation_may_hold_lists_and_words(tmp_path: Path) -> None:
    with create(tmp_path) as run:
        run.log_evaluation(1, {"returns": [1.5, float("inf")], "mode": "greedy", "interval": {"low": 1}})
        expected = {"env_steps": 1, "returns": [1.5, None], "mode": "greedy", "interval": {"low": 1}}
        assert run.evaluations.rows() == [expected]


def test_a_value_cannot_take_the_name_of_the_step_axis(tmp_path: Path) -> None:
    with create(tmp_path) as run, pytest.raises(ValueError, match="must not hold a value named env_steps"):
        run.log_metrics(1, {"env_steps": 2})


def test_rewind_drops_later_rows_and_a_torn_line_and_keeps_the_bytes_of_the_rest(tmp_path: Path) -> None:
    with create(tmp_path) as run:
        for steps in (10, 20, 30):
            run.log_metrics(steps, {"loss": 1 / steps})
            run.log_timing(steps, {"seconds": 0.1})
        run.log_evaluation(30, {"mean": 1.0})
        first_two = b"".join((tmp_path / "metrics.jsonl").read_bytes().splitlines(keepends=True)[:2])
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"env_steps": 5, "lo')
    with RunDirectory.open(tmp_path, tensorboard=False) as run:
        assert [row["env_steps"] for row in run.metrics.rows()] == [10, 20, 30]
        run.rewind(20)
        assert (tmp_path / "metrics.jsonl").read_bytes() == first_two
        run.log_metrics(30, {"loss": 0.5})
    assert steps_of(tmp_path / "metrics.jsonl") == [10, 20, 30]
    assert steps_of(tmp_path / "timing.jsonl") == [10, 20]
    assert (tmp_path / "evaluations.jsonl").read_bytes() == b""


def test_a_row_torn_before_its_line_break_counts_as_not_written(tmp_path: Path) -> None:
    with create(tmp_path) as run:
        run.log_metrics(10, {})
        with run.metrics.path.open("a") as file:
            file.write('{"env_steps": 20}')
        run.rewind(20)
        run.log_metrics(20, {})
    assert steps_of(tmp_path / "metrics.jsonl") == [10, 20]


def test_rewinding_to_the_start_forgets_also_step_zero(tmp_path: Path) -> None:
    with create(tmp_path) as run:
        run.log_evaluation(0, {"mean": 1.0})
        run.rewind(-1)
        assert run.evaluations.rows() == []


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"env_steps": "20"}', "\0\0"])
def test_damage_in_the_middle_of_a_journal_is_named_by_its_line(tmp_path: Path, line: str) -> None:
    with create(tmp_path) as run:
        run.metrics.path.write_text(f'{{"env_steps": 10}}\n{line}\n{{"env_steps": 30}}\n')
        with pytest.raises(UserError, match=r"metrics.jsonl: line 2 is damaged; restore the file"):
            run.rewind(10)


def test_a_resume_after_a_corrupt_checkpoint_repeats_its_steps_once(tmp_path: Path) -> None:
    with create(tmp_path) as run:
        assert run.load_latest() is None
        for steps in (10, 20, 30):
            run.log_metrics(steps, {"loss": float(steps)})
            run.save(steps, {"steps": steps}, {"update": steps // 10})
        whole = run.metrics.path.read_bytes()
    (tmp_path / "checkpoints" / "000000000030" / "state.json").write_bytes(b"")
    with RunDirectory.open(tmp_path, tensorboard=False) as run:
        latest = run.load_latest()
        assert latest is not None
        state, header, note = latest
        assert (state["steps"], header["update"]) == (20, 2)
        assert note is not None
        assert "000000000030" in note
        run.rewind(header["env_steps"])
        assert sorted(path.name for path in run.checkpoints.iterdir()) == ["000000000020"]
        run.log_metrics(30, {"loss": 30.0})
        run.save(30, {"steps": 30}, {"update": 3})
        assert run.metrics.path.read_bytes() == whole
        latest = run.load_latest()
    assert latest is not None
    assert (latest.state["steps"], latest.note) == (30, None)


def test_saving_keeps_the_last_two_and_the_chosen(tmp_path: Path) -> None:
    with create(tmp_path) as run:
        for steps in (10, 20, 30, 40):
            run.save(steps, {}, {}, keep={10})
        assert sorted(int(path.name) for path in run.checkpoints.iterdir()) == [10, 30, 40]


def test_tensorboard_shows_each_step_once_after_a_rewind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    # Of two files of one second the tenth writer's would be read before the ninth's.
    writer = pytest.importorskip("tensorboard.summary.writer.event_file_writer")
    monkeypatch.setattr(writer, "_global_uid", writer.AtomicCounter(9))
    with RunDirectory.create(tmp_path, {}, {}) as run:
        for steps in (10, 20, 30):
            run.log_metrics(steps, {"loss": float(steps), "score/raw": float("nan")})
    with RunDirectory.open(tmp_path) as run:
        run.rewind(20)
        run.log_metrics(30, {"loss": 33.0})
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert events.Tags()["scalars"] == ["loss"]
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(10, 10.0), (20, 20.0), (30, 33.0)]


def test_rows_go_to_disk_before_the_checkpoint_that_follows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def record(log: Journal | ScalarBoard) -> None:
        assert list((tmp_path / "checkpoints").iterdir()) == []
        calls.append(log.path.name if isinstance(log, Journal) else "tensorboard")

    monkeypatch.setattr(Journal, "sync", record)
    monkeypatch.setattr(ScalarBoard, "flush", record)
    with RunDirectory.create(tmp_path, {}, {}) as run:
        run.save(30, {}, {})
    assert calls == ["metrics.jsonl", "timing.jsonl", "evaluations.jsonl", "tensorboard"]


def test_without_tensorboard_nothing_is_written_there(tmp_path: Path) -> None:
    with create(tmp_path) as run:
        run.log_metrics(10, {"loss": 1.5})
    assert list((tmp_path / "tensorboard").iterdir()) == []


def test_the_last_row_is_found_without_reading_them_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "rows.jsonl")
    assert journal.last() is None
    for steps in range(50):
        journal.append(steps, {"value": steps})
    monkeypatch.setattr("ilde.runs.journal.TAIL_BYTES", 100)
    assert journal.last() == {"env_steps": 49, "value": 49}
    with journal.path.open("ab") as file:
        file.write(b'{"env_steps": 50, "val')
    assert journal.last() == {"env_steps": 49, "value": 49}


def test_a_full_disk_is_one_line_that_may_pass_wherever_it_is_met(tmp_path: Path) -> None:
    with create(tmp_path) as run:
        (tmp_path / "metrics.jsonl").unlink(missing_ok=True)
        (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
        with pytest.raises(
            HindranceError, match=r"cannot be written \(No space left on device\); mend that and try again"
        ):
            run.log_metrics(1, {"loss": 2.0})

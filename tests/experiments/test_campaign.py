"""The rules of a study, against an engine that does as it is told."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ilde.config import RunConfig, to_dict
from ilde.data import HindranceError, UserError
from ilde.experiments import campaign
from ilde.experiments.campaign import Campaign, Standing
from ilde.experiments.engine import Attempt
from ilde.experiments.grid import Cell
from ilde.runs import RunDirectory, durable
from ilde.runs.durable import FolderLock

CONFIG = RunConfig(method="expert", env="CartPole-v1", steps=320)
STOPPED = 143


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "PERIOD_SECONDS", 0.0)
    monkeypatch.setattr(campaign, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(campaign, "BREATH_SECONDS", 0.0)


class Told:
    """An engine whose attempts end one look later, with the codes it was given."""

    def __init__(self, codes: dict[str, list[int]], at_once: int = 2) -> None:
        self.at_once, self.codes = at_once, codes
        self.started: list[str] = []
        self.running: list[str] = []
        self.most = 0
        self.stopped = False

    def start(self, attempt: Attempt) -> None:
        self.started.append(attempt.id)
        self.running.append(attempt.id)
        self.most = max(self.most, len(self.running))
        attempt.log.parent.mkdir(parents=True, exist_ok=True)
        with attempt.log.open("a") as log:
            log.write(f"try {self.started.count(attempt.id)}\nilde: no luck\n\n")

    def ended(self) -> dict[str, int]:
        over, self.running = self.running[:1], self.running[1:]
        return {name: STOPPED if self.stopped else self.codes.get(name, [0]).pop(0) for name in over}

    def stop(self) -> None:
        assert not self.stopped, "stopped once is enough"
        self.stopped = True

    def close(self) -> None:
        """Nothing is held."""


class Ears:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown: list[list[str]] = []

    def noted(self, message: str) -> None:
        self.lines.append(message)

    def seen(self, standings: Sequence[Standing]) -> None:
        self.shown.append([standing.state for standing in standings])


def cells(*names: str) -> list[Cell]:
    return [Cell(name, replace(CONFIG, seed=seed)) for seed, name in enumerate(names)]


def begin_run(folder: Path, config: RunConfig) -> RunDirectory:
    return RunDirectory.create(folder, to_dict(config), {}, tensorboard=False)


def test_runs_begin_in_order_and_no_more_than_fit(tmp_path: Path) -> None:
    engine, ears = Told({}, at_once=2), Ears()
    names = ["a", "b", "c", "d", "e"]
    standings = Campaign(cells(*names), tmp_path, retries=0, watcher=ears).run(engine)
    assert (engine.started, engine.most) == (names, 2)
    assert [(s.cell.id, s.state, s.attempts) for s in standings] == [(name, "done", 1) for name in names]
    assert ears.shown[0] == ["running", "running", "waiting", "waiting", "waiting"]


def test_a_failed_run_is_tried_again_after_the_others(tmp_path: Path) -> None:
    engine, ears = Told({"a": [1, 137, 0]}, at_once=1), Ears()
    standings = Campaign(cells("a", "b"), tmp_path, retries=2, watcher=ears).run(engine)
    assert engine.started == ["a", "b", "a", "a"]
    assert [(s.state, s.attempts, s.exit_code, s.message) for s in standings] == [
        ("done", 3, 0, ""),
        ("done", 1, 0, ""),
    ]
    assert ears.lines[0] == "a: failed: no luck (exit code 1); trying again (1 of 2)"
    assert "a: failed: ended by signal 9; trying again (2 of 2)" in ears.lines


def test_a_run_that_keeps_failing_is_given_up_and_stops_nothing(tmp_path: Path) -> None:
    engine, ears = Told({"a": [1, 1]}, at_once=1), Ears()
    first, second = Campaign(cells("a", "b"), tmp_path, retries=1, watcher=ears).run(engine)
    assert (first.state, first.attempts, first.exit_code) == ("failed", 2, 1)
    assert second.state == "done"
    assert ears.lines[-1] == f"a: failed: no luck (exit code 1); see {tmp_path / 'a.log'}"


STACK = """Traceback (most recent call last):
  File "env.py", line 59, in step
    raise RuntimeError(...)
"""


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (f"ilde train a\n{STACK}RuntimeError: fell over\nsecond line\n\n  third\n", "RuntimeError: fell over"),
        (f"{STACK}KeyError: 1\n\nDuring handling of the above:\n\n{STACK}RuntimeError: x\ny\n", "RuntimeError: x"),
        (f"ilde train a\n{STACK}RuntimeError: x\nilde resume a\n32 of 64 steps\n", "32 of 64 steps"),
        (f"{STACK}UserError: a: b\nilde: a: b\n", "a: b"),
        ("\n \n", "it said nothing"),
        (None, "it said nothing"),
    ],
)
def test_the_line_that_names_an_exception_is_told(tmp_path: Path, log: str | None, line: str) -> None:
    if log is not None:
        (tmp_path / "a.log").write_text(log)
    assert campaign._last_words(tmp_path / "a.log", 1) == f"{line} (exit code 1)"


def test_a_mistake_is_not_tried_again(tmp_path: Path) -> None:
    engine = Told({"a": [2]})
    (standing,) = Campaign(cells("a"), tmp_path, retries=5, watcher=Ears()).run(engine)
    assert (standing.state, standing.attempts, standing.message) == ("failed", 1, "no luck (exit code 2)")


def test_a_stopped_study_saves_the_running_and_begins_no_other(tmp_path: Path) -> None:
    engine = Told({}, at_once=3)
    study = Campaign(cells("a", "b", "c", "d"), tmp_path, retries=3, watcher=Ears())
    standings = study.run(engine, stop=lambda: len(engine.started) == 3)
    assert engine.started == ["a", "b", "c"]
    assert [s.state for s in standings] == ["done", "stopped", "stopped", "waiting"]
    assert not study.complete


def test_a_finished_run_is_left_alone_and_another_goes_on(tmp_path: Path) -> None:
    both = cells("a", "b")
    for cell, state in zip(both, ("finished", "interrupted"), strict=True):
        with begin_run(tmp_path / cell.id, cell.config) as run:
            run.log_timing(160, {"time/steps_per_second": 40.0})
            run.log_metrics(160, {"score/raw": 21.5})
            for greedy in (True, False):
                run.log_evaluation(160, {"greedy": greedy, "mean": 2.0, "final": state == "finished"})
            run.set_status(state, 160)  # type: ignore[arg-type]
    study, engine = Campaign(both, tmp_path, retries=0, watcher=Ears()), Told({})
    before = study.standings()
    assert [s.state for s in before] == ["done", "waiting"]
    # 160 of 320 steps are left, at 40 a second.
    assert [(s.steps_left, s.seconds_left) for s in before] == [(0, 0.0), (160, 4.0)]
    assert before[1].reached.score == 21.5
    study.run(engine)
    assert (engine.started, study.complete) == (["b"], True)


def test_the_score_of_a_finished_run_is_its_final_greedy_mean(tmp_path: Path) -> None:
    (cell,) = cells("a")
    with begin_run(tmp_path / "a", cell.config) as run:
        run.log_metrics(320, {"score/raw": 21.5})
        for greedy, mean, final in ((True, 1.0, False), (True, 2.0, True), (False, 3.0, True)):
            run.log_evaluation(320, {"greedy": greedy, "mean": mean, "final": final})
        run.set_status("finished", 320)
    study = Campaign([cell], tmp_path, retries=0, watcher=Ears())
    assert study.complete
    assert (study.standings()[0].reached.score, study.standings()[0].reached.env_steps) == (2.0, 320)


def test_a_run_begun_with_other_settings_is_refused(tmp_path: Path) -> None:
    (cell,) = cells("a")
    begin_run(tmp_path / "a", cell.config).close()
    Campaign([cell], tmp_path, retries=0, watcher=Ears())
    changed = replace(cell, config=replace(cell.config, ppo=replace(cell.config.ppo, discount=0.5)))
    message = r"a: was begun with ppo.discount 0.99, the study now says 0.5; choose another --out or put the setting"
    with pytest.raises(UserError, match=message):
        Campaign([changed], tmp_path, retries=0, watcher=Ears())


def test_a_default_of_another_learner_may_have_changed_since(tmp_path: Path) -> None:
    (cell,) = cells("a")
    begin_run(tmp_path / "a", cell.config).close()
    iq, ppo = replace(cell.config.iq, temperature=0.5), replace(cell.config.ppo, discount=0.5)
    changed = replace(cell, config=replace(cell.config, iq=iq))
    (standing,) = Campaign([changed], tmp_path, retries=0, watcher=Ears()).standings()
    assert standing.reached.state == "running"  # taken up where its folder stands
    with pytest.raises(UserError, match=r"was begun with ppo\.discount 0\.99"):
        Campaign([replace(changed, config=replace(changed.config, ppo=ppo))], tmp_path, retries=0, watcher=Ears())


def test_only_rows_begun_with_other_settings_are_refused(tmp_path: Path) -> None:
    old = replace(CONFIG, ppo=replace(CONFIG.ppo, discount=0.5))
    study = cells("x/seed-0", "y/seed-0", "x/seed-1", "y/seed-1", "x/seed-2")
    begin_run(tmp_path / "x" / "seed-0", old).close()
    begin_run(tmp_path / "x" / "seed-2", study[-1].config).close()  # which says what the study says
    engine, ears = Told({}), Ears()
    standings = Campaign(study, tmp_path, retries=0, watcher=ears).run(engine)
    assert engine.started == ["y/seed-0", "y/seed-1", "x/seed-2"]
    assert [s.state for s in standings] == ["refused", "done", "refused", "done", "done"]
    change = f"{tmp_path}/x/seed-0: was begun with ppo.discount 0.5, the study now says 0.99; choose another --out"
    assert all(s.message.startswith(change) for s in standings if s.state == "refused")
    assert [s.exit_code for s in standings] == [2, 0, 2, 0, 0]
    assert ears.lines[0].startswith(f"x/seed-0: refused: {change}")


def test_seeds_that_are_not_asked_for_this_time_still_say_what_their_row_was_begun_with(tmp_path: Path) -> None:
    old = replace(CONFIG, ppo=replace(CONFIG.ppo, discount=0.5))
    begin_run(tmp_path / "x" / "seed-7", replace(old, seed=7)).close()
    begin_run(tmp_path / "y" / "seed-0", CONFIG).close()
    begin_run(tmp_path / "y" / "seed-0-old", old).close()  # moved away: no seed of the row
    begin_run(tmp_path / "z" / "seed-0", CONFIG).close()
    (tmp_path / "z" / "seed-0" / "config.json").write_text("{")  # damage tells nothing of the others
    study = [Cell(f"{row}/seed-1", replace(CONFIG, seed=1)) for row in ("x", "y", "z", "never-begun")]
    engine = Told({})
    standings = Campaign(study, tmp_path, retries=0, watcher=Ears()).run(engine)
    assert engine.started == ["y/seed-1", "z/seed-1", "never-begun/seed-1"]
    assert (standings[0].state, standings[0].exit_code) == ("refused", 2)
    change = f"{tmp_path}/x/seed-7: was begun with ppo.discount 0.5, the study now says 0.99; choose another --out"
    assert standings[0].message.startswith(change)


def test_a_begun_seed_goes_on_beside_others_that_are_not_asked_for(tmp_path: Path) -> None:
    old = replace(CONFIG, ppo=replace(CONFIG.ppo, discount=0.5))
    begin_run(tmp_path / "x" / "seed-0", old).close()
    begin_run(tmp_path / "x" / "seed-1", replace(CONFIG, seed=1)).close()
    (standing,) = Campaign([Cell("x/seed-1", replace(CONFIG, seed=1))], tmp_path, retries=0, watcher=Ears()).standings()
    assert standing.state == "waiting"


def test_a_row_that_cannot_be_listed_may_be_begun_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_reach(path: Path, pattern: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "glob", out_of_reach)
    with pytest.raises(HindranceError, match=r"x: cannot be read \(Input/output error\)"):
        Campaign([Cell("x/seed-1", CONFIG)], tmp_path, retries=0, watcher=Ears())


GREEDY = '{"env_steps": 320, "final": true, "greedy": true, "mean": 1.0}\n'
SAMPLED = GREEDY.replace('"greedy": true', '"greedy": false')
DAMAGE = [
    ("config.json", "{"),
    ("config.json", "[]"),
    ("config.json", '{"ppo": {"no_such": 1}}'),
    ("config.json", '{"ppo": null}'),
    ("status.json", ""),
    ("status.json", '{"state": "done", "env_steps": 1, "message": "", "updated": ""}'),
    ("status.json", '{"state": "finished", "env_steps": "1", "message": "", "updated": ""}'),
    ("evaluations.jsonl", "{}\n"),
    ("evaluations.jsonl", '{"env_steps": 320}\n'),
    ("evaluations.jsonl", GREEDY.replace("1.0", '"high"') + SAMPLED),
    ("evaluations.jsonl", GREEDY.replace("1.0", "NaN") + SAMPLED),
    ("timing.jsonl", '{"env_steps": 320, "time/steps_per_second": "x"}\n'),
    ("timing.jsonl", '{"env_steps": 320, "time/steps_per_second": [1.0]}\n'),
]


@pytest.mark.parametrize(("name", "content"), DAMAGE)
def test_a_damaged_run_is_refused_untouched_and_the_others_go_on(tmp_path: Path, name: str, content: str) -> None:
    both = cells("a", "b")
    with begin_run(tmp_path / "a", both[0].config) as run:
        run.set_status("finished", 320)
    (tmp_path / "a" / "evaluations.jsonl").write_text(GREEDY + SAMPLED)
    assert Campaign(both, tmp_path, retries=0, watcher=Ears()).standings()[0].state == "done"
    damaged = tmp_path / "a" / name
    damaged.write_text(content)
    engine = Told({})
    refused, other = Campaign(both, tmp_path, retries=3, watcher=Ears()).run(engine)
    assert (refused.state, refused.attempts, refused.exit_code) == ("refused", 0, 2)
    assert refused.message.startswith(f"{damaged}: ")
    assert refused.message.endswith(f", or move {tmp_path / 'a'} away to begin it anew")
    assert "restore " in refused.message
    assert (other.state, engine.started, damaged.read_text()) == ("done", ["b"], content)


@pytest.mark.parametrize("name", ["metrics.jsonl", "timing.jsonl", "evaluations.jsonl"])
def test_a_journal_that_cannot_be_read_stops_no_other_run(tmp_path: Path, name: str) -> None:
    begin_run(tmp_path / "a", CONFIG).close()
    unreadable = tmp_path / "a" / name
    unreadable.mkdir()
    engine = Told({})
    refused, other = Campaign(cells("a", "b"), tmp_path, retries=0, watcher=Ears()).run(engine)
    assert (refused.state, refused.exit_code, other.state, engine.started) == ("refused", 2, "done", ["b"])
    assert refused.message.startswith(f"{unreadable}: cannot be read (Is a directory); ")
    assert refused.message.endswith(f", or move {tmp_path / 'a'} away to begin it anew")


def test_a_training_score_that_is_no_number_is_refused_and_one_that_was_not_finite_is_none(tmp_path: Path) -> None:
    study = cells("a", "b")
    for cell in study:
        with begin_run(tmp_path / cell.id, cell.config) as run:
            run.log_metrics(1, {"score/raw": float("nan")})
            run.log_timing(1, {"time/steps_per_second": float("inf")})
    (tmp_path / "a" / "metrics.jsonl").write_text('{"env_steps": 1, "score/raw": {}}\n')
    refused, other = Campaign(study, tmp_path, retries=0, watcher=Ears()).standings()
    assert refused.message.startswith(f"{tmp_path / 'a' / 'metrics.jsonl'}: ")
    assert (refused.state, other.state) == ("refused", "waiting")
    assert (other.reached.score, other.reached.steps_per_second, other.seconds_left) == (None, None, None)


def test_a_run_whose_storage_is_out_of_reach_may_go_on_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = cells("a", "b")
    begin_run(tmp_path / "a", study[0].config).close()
    is_file = Path.is_file

    def out_of_reach(path: Path) -> bool:
        if path.parent.name == "a":
            raise OSError(errno.ESTALE, "Stale file handle")
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", out_of_reach)
    ears = Ears()
    hindered, other = Campaign(study, tmp_path, retries=0, watcher=ears).run(Told({}))
    assert (hindered.state, hindered.exit_code, other.state) == ("refused", HindranceError.exit_code, "done")
    line = f"{tmp_path / 'a' / 'config.json'}: cannot be read (Stale file handle); mend that and try again"
    assert (hindered.message, ears.lines[0]) == (line, f"a: refused: {line}")  # nothing is to be moved away
    with pytest.raises(HindranceError, match="Stale file handle"):
        Campaign(study[:1], tmp_path, retries=0, watcher=Ears())


UNDERWAY = (GREEDY + SAMPLED).replace('"final": true', '"final": false')


@pytest.mark.parametrize("rows", [None, "", UNDERWAY, GREEDY, SAMPLED, UNDERWAY + GREEDY])
def test_a_finished_run_without_its_last_evaluation_is_refused(tmp_path: Path, rows: str | None) -> None:
    with begin_run(tmp_path / "a", CONFIG) as run:
        run.set_status("finished", 320)
    kept = tmp_path / "a" / "evaluations.jsonl"
    if rows is not None:
        kept.write_text(rows)
    standing, _ = Campaign(cells("a", "b"), tmp_path, retries=0, watcher=Ears()).standings()
    line = f"{kept}: a finished run without its last evaluation; restore it from a copy, or move"
    assert (standing.state, standing.message.startswith(line)) == ("refused", True)


def test_a_study_of_nothing_but_damage_is_a_mistake(tmp_path: Path) -> None:
    begin_run(tmp_path / "a", CONFIG).close()
    (tmp_path / "a" / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"a/config\.json: cannot be read .* or move .*/a away to begin it anew"):
        Campaign(cells("a"), tmp_path, retries=0, watcher=Ears())


def test_a_single_run_is_no_place_for_a_study(tmp_path: Path) -> None:
    begin_run(tmp_path, CONFIG).close()
    with pytest.raises(UserError, match="holds a single run; choose another --out for a study"):
        Campaign(cells("a"), tmp_path, retries=0, watcher=Ears())


def test_a_study_is_carried_out_by_one_process_at_a_time(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    with pytest.raises(UserError, match=r"another process \(pid \d+\) is working"):
        Campaign(cells("a"), tmp_path, retries=0, watcher=Ears()).run(Told({}))
    lock.release()
    Campaign(cells("a"), tmp_path, retries=0, watcher=Ears()).run(Told({}))


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(UserError, match="taken/out: cannot be written"):
        Campaign(cells("a"), tmp_path / "taken" / "out", retries=0, watcher=Ears()).run(Told({}))


def test_a_folder_that_cannot_be_written_is_said_before_anything_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**how: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(durable, "TemporaryFile", refuse)
    engine = Told({})
    with pytest.raises(UserError, match=r"cannot be written \(Read-only file system\); choose another --out"):
        Campaign(cells("a"), tmp_path, retries=0, watcher=Ears()).run(engine)
    assert engine.started == []


def test_a_damaged_file_of_a_running_run_does_not_stop_the_study(tmp_path: Path) -> None:
    class Damaging(Told):
        def start(self, attempt: Attempt) -> None:
            super().start(attempt)
            attempt.folder.mkdir()
            (attempt.folder / "config.json").write_text("{}")
            (attempt.folder / "status.json").write_text("{")

    (standing,) = Campaign(cells("a"), tmp_path, retries=0, watcher=Ears()).run(Damaging({}))
    assert (standing.state, standing.reached.env_steps) == ("done", 0)


def test_an_attempt_that_cannot_begin_stops_no_other_and_is_tried_again(tmp_path: Path) -> None:
    class Crowded(Told):
        """There is no room for one run, the first time or ever."""

        def __init__(self, refusals: int) -> None:
            super().__init__({})
            self.refusals = refusals

        def start(self, attempt: Attempt) -> None:
            if attempt.id == "b" and self.refusals:
                self.refusals -= 1
                raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
            super().start(attempt)

    for refusals, state, code in ((1, "done", 0), (9, "failed", HindranceError.exit_code)):
        ears = Ears()
        study = Campaign(cells("a", "b", "c"), tmp_path / str(refusals), retries=2, watcher=ears)
        standings = study.run(Crowded(refusals))
        assert [s.state for s in standings] == ["done", state, "done"]
        assert standings[1].exit_code == code
        assert "b: failed: cannot begin (Resource temporarily unavailable); trying again (1 of 2)" in ears.lines
    assert standings[1].attempts == 3
    assert "b: failed: cannot begin (Resource temporarily unavailable)" in ears.lines  # there is no log to see


@pytest.mark.parametrize(("code", "pauses"), [(HindranceError.exit_code, 1), (1, 0)])
def test_after_a_hindrance_nothing_begins_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, pauses: int
) -> None:
    clock = [0.0]
    monkeypatch.setattr(campaign, "BREATH_SECONDS", 5.0)
    monkeypatch.setattr(campaign, "PERIOD_SECONDS", 1.0)
    monkeypatch.setattr(campaign.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(campaign.time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    engine = Told({"a": [code, 0]}, at_once=1)
    (standing,) = Campaign(cells("a"), tmp_path, retries=1, watcher=Ears()).run(engine)
    assert (standing.state, engine.started) == ("done", ["a", "a"])
    assert clock[0] == 2 + 5 * pauses  # a second for each attempt, and the rest between them


def test_a_run_that_another_process_holds_is_tried_again_and_a_mistake_is_not(tmp_path: Path) -> None:
    for code, state in ((HindranceError.exit_code, "done"), (UserError.exit_code, "failed")):
        standings = Campaign(cells("a"), tmp_path, retries=1, watcher=Ears()).run(Told({"a": [code, 0]}))
        assert standings[0].state == state

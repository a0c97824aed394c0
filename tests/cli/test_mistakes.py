from __future__ import annotations

from pathlib import Path

import pytest
import torch
from commands import Ilde

from ilde.cli.main import explain
from ilde.data import UserError
from ilde.learners.guard import NonFiniteError

TRAIN = ("train", "expert", "--env", "CartPole-v1")

MISTAKES = [
    (("trian",), "unknown verb 'trian'; did you mean train?"),
    (("xyz",), "unknown verb 'xyz'; see `ilde --help`"),
    (("demos", "lst"), "unknown verb 'demos lst'; did you mean list?"),
    (("demos", "xyz"), "unknown verb 'demos xyz'; there are list, show, check, record, import, export"),
    (("train",), "required: METHOD, --env; see `ilde train --help`"),
    (("train", "ild", "--env", "CartPole-v1"), "unknown method 'ild'; did you mean ilde?"),
    (("train", "expert", "--env", "CartPol-v1"), "unknown environment 'CartPol-v1'; did you mean CartPole-v1"),
    (("train", "expert", "--evn", "CartPole-v1"), "unknown option --evn; did you mean --env?"),
    (("train", "ilde", "--env", "CartPole-v1"), "method ilde learns from demonstrations; name them with --demos"),
    (("train", "ilde", "--env", "CartPole-v1", "--demos", "nowhere.npz"), "nowhere.npz: no such file"),
    ((*TRAIN, "--ppo.learning-rte", "1"), "unknown option --ppo.learning-rte; did you mean --ppo.learning-rate?"),
    ((*TRAIN, "--learning-rate=1"), "unknown option --learning-rate; did you mean --ppo.learning-rate?"),
    ((*TRAIN, "--num-envs"), "--num-envs needs a value"),
    ((*TRAIN, "--num-envs", "--json"), "--num-envs needs a value"),
    ((*TRAIN, "--num-envs", "0"), "num_envs: must be at least 1, received 0"),
    ((*TRAIN, "--ppo.learning-rate", "fast"), "--ppo.learning-rate: 'fast' is not a number"),
    ((*TRAIN, "--steps", "many"), "--steps: 'many' is not a whole number"),
    ((*TRAIN, "--device", "gpu"), "--device: 'gpu' is not one of auto, cpu, cuda"),
    ((*TRAIN, "--preset", "qick"), "unknown preset 'qick'; did you mean quick?"),
    ((*TRAIN, "--seeds", "3..0"), "--seeds '3..0': the range is empty"),
    ((*TRAIN, "--seeds", "0,1", "--seed", "7"), "--seed and --seeds: name the seeds once"),
    ((*TRAIN, "--seeds", "0,0"), "--seeds '0,0': a seed stands twice"),
    ((*TRAIN, "--seeds", "all"), "--seeds 'all': write a range such as 0..3"),
    ((*TRAIN, "surplus"), "unrecognized arguments: surplus; see `ilde train --help`"),
    ((*TRAIN, "--reward", "valid"), "unknown term 'valid'; did you mean vail?"),
    (("resume", "nowhere"), "nowhere: not a run"),
    (("eval", "nowhere"), "nowhere: not a run"),
    (("eval", "nowhere", "--episodes", "0"), "--episodes: '0' is not a whole number of at least 1"),
    (("eval", "nowhere", "--foo"), "unknown option --foo; see `ilde eval --help`"),
    (("eval", "nowhere", "--epsodes", "3"), "unknown option --epsodes; did you mean --episodes?"),
    (("demos", "show", "nowhere"), "nowhere: no such file or bundled demonstration"),
    (("demos", "record", "--policy", "random", "--out", "a.npz"), "a random policy needs --env"),
    (("demos", "record", "--policy", "random", "--out", "no/a.npz"), "no/a.npz: there is no folder"),
    (("demos", "record", "--policy", "x", "--out", "a.npz", "--tremble", "2"), "--tremble 2.0: must be a probability"),
    (("demos", "record", "--policy", "x", "--out", "a.npz", "--fraction", "0"), "--fraction 0.0: must be above 0"),
    (("watch", "nowhere"), "required: --video; see `ilde watch --help`"),
]


def test_a_mistake_in_a_strangers_words_does_not_command_the_terminal(ilde: Ilde, tmp_path: Path) -> None:
    result = ilde("resume", tmp_path / "a\x1b[2Jb")
    assert result.code == 2
    assert "a [2Jb: not a run" in result.err


@pytest.mark.parametrize(("words", "line"), MISTAKES, ids=[" ".join(words) for words, _ in MISTAKES])
def test_a_mistake_is_one_line_and_exit_2(
    ilde: Ilde, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = ilde(*words)
    assert result.code == 2
    assert result.err.startswith("ilde: ")
    assert line in result.err
    assert result.err.count("\n") == 1
    assert result.out == ""
    assert not list(tmp_path.iterdir())


def test_a_missing_gpu_is_said_at_the_start(ilde: Ilde, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = ilde(*TRAIN, "--device", "cuda", "--out", tmp_path / "run")
    assert (result.code, result.err) == (2, "ilde: device cuda: no GPU can be used here; choose --device cpu\n")
    assert result.out == ""
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_a_file_is_refused(ilde: Ilde, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    result = ilde(*TRAIN, "--out", tmp_path / "taken")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert "taken is a file; choose another --out" in result.err


def test_a_folder_with_other_files_is_refused(ilde: Ilde, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    result = ilde(*TRAIN, "--out", tmp_path)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "holds other files (thesis.tex)" in result.err


def test_an_existing_run_is_never_overwritten(ilde: Ilde, expert: Path) -> None:
    result = ilde(*TRAIN, "--out", expert)
    assert result.code == 2
    assert f"ilde resume {expert}" in result.err


def test_an_existing_demonstration_is_never_overwritten(ilde: Ilde, tmp_path: Path) -> None:
    taken = tmp_path / "mine.npz"
    taken.write_text("mine")
    result = ilde("demos", "record", "--env", "CartPole-v1", "--policy", "random", "--out", taken)
    assert (result.code, taken.read_text()) == (2, "mine")
    assert "exists already" in result.err


def test_a_policy_of_another_environment_is_refused(ilde: Ilde, expert: Path, tmp_path: Path) -> None:
    words = ("demos", "record", "--env", "Acrobot-v1", "--policy", expert, "--out", tmp_path / "a.npz")
    result = ilde(*words)
    assert (result.code, result.err) == (2, f"ilde: {expert}: trained on CartPole-v1, --env is Acrobot-v1\n")


def test_json_leaves_standard_output_empty_on_a_mistake(ilde: Ilde) -> None:
    assert ilde(*TRAIN, "--json", "--device", "gpu").out == ""


def test_debug_shows_the_traceback_before_the_line(ilde: Ilde) -> None:
    result = ilde("eval", "nowhere", "--debug")
    assert result.code == 2
    assert "Traceback" in result.err
    assert result.err.splitlines()[-1].startswith("ilde: nowhere: not a run")


def test_check_names_each_bad_file_and_exits_2(ilde: Ilde, tmp_path: Path) -> None:
    (tmp_path / "empty.npz").touch()
    result = ilde("demos", "check", tmp_path / "empty.npz", "nowhere")
    assert result.code == 2
    assert [line.split(":")[0] for line in result.out.splitlines()] == [str(tmp_path / "empty.npz"), "nowhere"]


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UserError("a: b"), 2, "a: b"),
        (NonFiniteError("not finite: reward"), 1, "not finite: reward"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 2, "out of memory"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB"), 2, "out of memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), 2, "out of memory"),
    ],
)
def test_foreseen_failures_have_their_own_code(error: BaseException, code: int, line: str) -> None:
    explained = explain(error)
    assert explained is not None
    assert explained[1] == code
    assert line in explained[0]


def test_a_defect_keeps_its_traceback() -> None:
    assert explain(RuntimeError("shapes differ")) is None

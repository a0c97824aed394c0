"""A run carried in parts, without what can be fitted again, goes on as if it had never moved."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch
from tool_modules import load_tool

from ilde.config import RunConfig
from ilde.data import UserError
from ilde.launch import resume, start
from ilde.runs.checkpoint import read_checkpoint, write_checkpoint

portable, tiny = load_tool("portable"), load_tool("tiny_run")
ENV = "Hopper-v5"
UPDATES = 4


@pytest.fixture
def halfway(tmp_path: Path) -> tuple[RunConfig, Path]:
    """A run of four updates that stopped after two."""
    demos = tmp_path / "demos.npz"
    tiny.record_random_policy(ENV, demos, seed=0)
    config = replace(tiny.tiny_config("ilde", ENV, demos, UPDATES, seed=0), schedule_steps=10_000)
    run = start(config, tmp_path / "run")
    taken = iter([False, False])
    assert not run.train(lambda: next(taken, True))
    run.folder.close()
    return config, tmp_path / "run"


def last_metrics(run: Path) -> dict[str, float]:
    rows = (run / "metrics.jsonl").read_text().splitlines()
    metrics: dict[str, float] = json.loads(rows[-1])
    return metrics


def finished(path: Path) -> dict[str, float]:
    run = resume(path)
    assert run.train()
    run.folder.close()
    return last_metrics(path)


def test_it_goes_on_bit_for_bit(halfway: tuple[RunConfig, Path], tmp_path: Path) -> None:
    _, run = halfway
    parts = portable.pack(run, tmp_path / "parts", 20_000)
    assert len(parts) > 1
    assert all(part.stat().st_size <= 20_000 for part in parts)
    assert portable.unpack(tmp_path / "parts", tmp_path / "moved")
    before, after = (max((path / "checkpoints").iterdir()) for path in (run, tmp_path / "moved"))
    for name in ("state.json", "tensors.safetensors"):
        assert (before / name).read_bytes() == (after / name).read_bytes()
    assert finished(tmp_path / "moved") == finished(run)


def test_the_fitted_model_does_not_travel(halfway: tuple[RunConfig, Path], tmp_path: Path) -> None:
    _, run = halfway
    parts = portable.pack(run, tmp_path / "parts", 2**30)
    newest = max((run / "checkpoints").iterdir())
    tensors = safetensors.torch.load((newest / "tensors.safetensors").read_bytes())
    with tarfile.open(parts[0]) as tar:
        carried = tar.extractfile(f"checkpoints/{newest.name}/tensors.safetensors")
        assert carried is not None
        moved = safetensors.torch.load(carried.read())
    left = set(tensors) - set(moved)
    assert left
    assert all(name.startswith("reward.terms.giril.net.") for name in left)
    assert not any("giril.net" in name for name in moved)


def test_other_bits_are_refused_or_owned_up_to(
    halfway: tuple[RunConfig, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = halfway
    portable.pack(run, tmp_path / "parts", 2**30)
    fitted = portable._fitted_again
    monkeypatch.setattr(portable, "_fitted_again", lambda run: {n: x + 1e-4 for n, x in fitted(run).items()})
    with pytest.raises(UserError, match="other bits"):
        portable.unpack(tmp_path / "parts", tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
    assert not portable.unpack(tmp_path / "parts", tmp_path / "moved", accept_other_bits=True)
    assert "fitted again" in json.loads((tmp_path / "moved" / "provenance.json").read_text())["portable_resume"]
    assert finished(tmp_path / "moved") != finished(run)


def test_other_demonstrations_are_refused(halfway: tuple[RunConfig, Path], tmp_path: Path) -> None:
    config, run = halfway
    portable.pack(run, tmp_path / "parts", 2**30)
    tiny.record_random_policy(ENV, Path(str(config.demos)), seed=7)
    with pytest.raises(UserError, match="demonstrations"):
        portable.unpack(tmp_path / "parts", tmp_path / "moved", accept_other_bits=True)


def test_a_part_damaged_on_the_way_is_found_out(halfway: tuple[RunConfig, Path], tmp_path: Path) -> None:
    _, run = halfway
    part = portable.pack(run, tmp_path / "parts", 20_000)[1]
    content = bytearray(part.read_bytes())
    content[100] ^= 1
    part.write_bytes(content)
    with pytest.raises(UserError, match="checksum"):
        portable.unpack(tmp_path / "parts", tmp_path / "moved", accept_other_bits=True)


def test_an_existing_run_is_never_overwritten(halfway: tuple[RunConfig, Path], tmp_path: Path) -> None:
    _, run = halfway
    portable.pack(run, tmp_path / "parts", 2**30)
    before = (run / "metrics.jsonl").read_bytes()
    with pytest.raises(UserError, match="exists"):
        portable.unpack(tmp_path / "parts", run)
    assert (run / "metrics.jsonl").read_bytes() == before


def test_a_damaged_newest_checkpoint_is_passed_over(halfway: tuple[RunConfig, Path], tmp_path: Path) -> None:
    _, run = halfway
    older, newest = sorted((run / "checkpoints").iterdir())[-2:]
    (newest / "tensors.safetensors").write_bytes(b"")
    portable.pack(run, tmp_path / "parts", 2**30)
    assert portable.unpack(tmp_path / "parts", tmp_path / "moved")
    assert [path.name for path in (tmp_path / "moved" / "checkpoints").iterdir()] == [older.name]


def test_what_is_no_run_and_what_are_no_parts_is_said_in_one_line(
    halfway: tuple[RunConfig, Path], tmp_path: Path
) -> None:
    _, run = halfway
    with pytest.raises(UserError, match="not a run"):
        portable.pack(tmp_path / "nowhere", tmp_path / "parts", 2**20)
    with pytest.raises(UserError, match="above 0"):
        portable.pack(run, tmp_path / "parts", 0)
    with pytest.raises(UserError, match="No such file"):
        portable.unpack(tmp_path / "nowhere", tmp_path / "moved")
    portable.pack(run, tmp_path / "parts", 20_000)[1].unlink()
    with pytest.raises(UserError, match="part-001"):
        portable.unpack(tmp_path / "parts", tmp_path / "moved")


def test_a_run_begun_on_a_gpu_is_refused_by_a_cpu_before_anything_is_played_again(
    halfway: tuple[RunConfig, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = halfway
    newest = max((run / "checkpoints").iterdir())
    state, header = read_checkpoint(newest)
    state["collector"]["generator"] = torch.zeros(16, dtype=torch.uint8)  # a GPU's is a seed and an offset
    write_checkpoint(newest.parent, int(newest.name), state, header=header)
    monkeypatch.setattr("ilde.trainer.Trainer.load_state_dict", lambda *_: pytest.fail("something was restored"))
    with pytest.raises(UserError, match="on a GPU, whose random numbers a CPU cannot go on with; resume it there"):
        resume(run)

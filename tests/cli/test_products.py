"""The verbs that hand over to other modules: their arguments arrive, their results are printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import Ilde
from rich.table import Table


def test_watch_passes_its_options_on(ilde: Ilde, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def watch(run: Path, video: Path, **options: Any) -> Path:
        seen.append((run, video, options))
        return video

    monkeypatch.setattr("ilde.watching.watch", watch)
    result = ilde("watch", "runs/a", "--video", "a.mp4", "--episodes", 2, "--max-steps", 5, "--json")
    assert (result.code, result.document) == (0, {"video": "a.mp4"})
    assert seen == [(Path("runs/a"), Path("a.mp4"), {"episodes": 2, "seed": 0, "max_steps": 5})]
    assert ilde("watch", "runs/a", "--video", "a.mp4").out == "wrote a.mp4\n"


def test_export_says_how_exact_it_is(ilde: Ilde, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ilde.export.export_onnx", lambda run, out: 2.5e-7)
    assert ilde("export", "a", "b.onnx", "--json").document == {"file": "b.onnx", "max_abs_difference": 2.5e-7}
    assert ilde("export", "a", "b.onnx").out == "wrote b.onnx; differs from PyTorch by at most 2.5e-07\n"


def test_bench_prints_what_was_measured(ilde: Ilde, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(env: str, *, seconds: float, num_envs: int | None) -> dict[str, object]:
        return {"env": env, "fraction_of_limit": seconds / (num_envs or 4)}

    monkeypatch.setattr("ilde.bench.bench", measured)
    monkeypatch.setattr("ilde.bench.table", lambda result: Table(f"limit {result['fraction_of_limit']}"))
    words = ("bench", "--env", "CartPole-v1", "--seconds", 1)
    assert ilde(*words, "--json").document == {"env": "CartPole-v1", "fraction_of_limit": 0.25}
    assert "limit 0.25" in ilde(*words).out
    assert "limit 0.5" in ilde(*words, "--num-envs", 2).out

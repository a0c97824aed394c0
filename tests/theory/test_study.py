from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ilde.cli.main import main
from ilde.data import UserError
from ilde.theory.presets import StudyConfig, build_game, find_preset, presets
from ilde.theory.regret import moments
from ilde.theory.study import Job, jobs_of, run_job, run_study
from ilde.theory.summary import exponent, slope, summarise


def quick(name: str = "random", seeds: int = 2) -> StudyConfig:
    config = replace(find_preset(name), num_seeds=seeds, episodes=(500.0, 2000.0), ablation_episodes=(500.0,))
    return replace(config, demo_counts=(1, 16))


def test_the_number_of_processes_changes_nothing() -> None:
    config = quick()
    alone, together = (run_study(config, processes, lambda done, total: None) for processes in (1, 2))
    assert alone == together
    assert [outcome.job for outcome in alone] == jobs_of(config)


def test_a_module_in_the_current_folder_does_not_stand_in_for_one_of_pythons(tmp_path: Path) -> None:
    script, workplace = tmp_path / "bin" / "script.py", tmp_path / "mine"
    script.parent.mkdir()
    workplace.mkdir()
    (workplace / "select.py").write_text("raise RuntimeError('not the select of Python')")
    # Where an installed command lies, the current folder is not searched.
    script.write_text("import sys; from ilde.cli.main import main\nif __name__ == '__main__': sys.exit(main())")
    words = ["theory", "--preset", "random", "--seeds", "1", "--episodes", "200,500", "--jobs", "2", "--out", "study"]
    done = subprocess.run([sys.executable, script, *words], cwd=workplace, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_seeds_differ() -> None:
    first, second = (run_job(quick(), Job("full", 500.0, seed)) for seed in (0, 1))
    assert first.regret != second.regret


def test_a_power_law_is_fitted_exactly() -> None:
    episodes = np.array([1e3, 1e4, 1e5])
    assert slope(episodes, 7 * episodes**0.6) == pytest.approx(0.6)
    assert np.isnan(slope(episodes, np.array([1.0, -1.0, 1.0])))


def test_the_interval_of_the_exponent_contains_it() -> None:
    outcomes = [run_job(quick(), Job("full", t, seed)) for t in (300.0, 1000.0, 3000.0) for seed in range(4)]
    fitted = exponent(outcomes, "regret")
    low, high = fitted["interval"]
    assert low <= fitted["exponent"] <= high
    assert high - low < 0.5


def test_imitation_alone_comes_closer_to_the_expert_with_every_decade() -> None:
    config = quick()
    errors = [
        float(np.mean([run_job(config, Job("imitation", t, seed)).mixture_error for seed in range(3)]))
        for t in (1e2, 1e3, 1e4)
    ]
    assert errors == sorted(errors, reverse=True)
    # At T^(-1/3), two decades are worth a factor of 4.6.
    assert errors[-1] < errors[0] / 3


def test_without_curiosity_the_regret_of_the_curious_game_stays() -> None:
    config = quick()
    for seed in range(2):
        full, incurious = (run_job(config, Job(variant, 1e4, seed)) for variant in ("full", "no-curiosity"))
        assert incurious.regret > 1.5 * full.regret


def test_few_demonstrations_leave_a_floor() -> None:
    config = quick()
    one, exact = (np.mean([run_job(config, job(seed)).regret for seed in range(4)]) for job in (
        lambda seed: Job("demos", 1e4, seed, 1), lambda seed: Job("full", 1e4, seed),
    ))  # fmt: skip
    assert one > 1.5 * exact


def test_no_bonus_and_no_reuse_change_only_what_they_say() -> None:
    config = quick("chain")
    full, bare, fresh = (run_job(config, Job(variant, 1e4, 0)) for variant in ("full", "no-bonus", "no-reuse"))
    assert bare.schedule == replace(full.schedule, bonus_constant=0.0)
    assert full.schedule.period > 1 == fresh.schedule.period
    assert fresh.schedule.iterations == full.schedule.iterations
    assert fresh.episodes == pytest.approx(full.episodes, rel=0.1)


@pytest.mark.parametrize("config", presets(), ids=lambda config: config.name)
def test_in_every_preset_curiosity_leads_beyond_the_expert(config: StudyConfig) -> None:
    game = build_game(config)
    assert 0 <= game.intrinsic.min() <= game.intrinsic.max() <= 1
    expert = moments(game, game.expert[None])
    assert game.saddle.value < -game.curiosity_weight * float(expert.curiosity[0]) - 0.1


def test_an_unknown_preset_is_named() -> None:
    with pytest.raises(UserError, match="did you mean chain"):
        find_preset("chian")


def test_the_summary_has_what_the_interface_promises() -> None:
    config = quick()
    summary = summarise(config, run_study(config, 1, lambda done, total: None))
    assert np.isfinite(summary["exponent"])
    assert len(summary["interval"]) == 2
    assert {row["variant"] for row in summary["points"]} >= {"full", "no-bonus", "no-curiosity", "no-reuse", "1 demos"}
    assert all(row["period"] >= 1 for row in summary["theorem"])


def test_the_verb_writes_a_run_directory_and_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "study"
    words = ["theory", "--preset", "random", "--seeds", "2", "--episodes", "200,500", "--jobs", "1"]
    assert main([*words, "--json", "--out", str(out)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["exponent"] == pytest.approx(json.loads((out / "study.json").read_text())["exponent"], rel=1e-5)
    assert json.loads((out / "status.json").read_text())["state"] == "finished"
    assert json.loads((out / "config.json").read_text())["world"]["kind"] == "random"
    assert (out / "regret.png").stat().st_size > 10_000
    assert main([*words, "--out", str(out)]) == 2
    assert "already holds a run" in capsys.readouterr().err
    words[words.index("2")] = "1"
    assert main([*words, "--out", str(tmp_path / "single")]) == 0
    assert "one seed: no interval, and nothing is claimed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--preset", "chian"), "did you mean chain"),
        (("--episodes", "1e4"), "two or more numbers"),
        (("--episodes", "ten,20"), "two or more numbers"),
        (("--seeds", "0"), "whole number"),
    ],
)
def test_mistakes_are_one_line(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", *words]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_the_theory_imports_no_torch() -> None:
    script = "import sys, ilde.theory.summary, ilde.theory.plot; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0

"""The benchmark measures, and its figures hang together."""

from __future__ import annotations

import json

import pytest
import torch
from rich.console import Console

from ilde.bench import _warm_up, bench, table
from ilde.data import UserError
from ilde.nets.steps import WARM_UP


def test_the_figures_of_a_benchmark_hang_together() -> None:
    threads = torch.get_num_threads()
    result = bench("Hopper-v5", seconds=0.05, num_envs=2, device="cpu")
    assert torch.get_num_threads() == threads
    assert json.loads(json.dumps(result)) == result
    assert list(result["term_seconds"]) == ["vail", "giril", "entropy"]
    assert all(spent > 0 for spent in result["term_seconds"].values())
    steps = result["num_envs"] * result["rollout_steps"]
    assert result["steps_per_second"] == pytest.approx(steps / result["iteration_seconds"])
    assert result["fraction_of_limit"] == pytest.approx(result["steps_per_second"] / result["raw_steps_per_second"])
    assert result["fraction_of_limit"] > 0
    assert result["ppo_iteration_seconds"] > 0
    terms = result["feature_seconds"] + sum(result["term_seconds"].values())
    beyond = result["iteration_seconds"] - result["ppo_iteration_seconds"]
    assert result["reward_overhead"] == pytest.approx(beyond / terms)


def test_the_table_says_what_bounds_the_speed() -> None:
    result = {
        "env": "X-v0", "device": "cpu", "cores": 2, "num_envs": 4, "rollout_steps": 8, "raw_steps_per_second": 1000.0,
        "acting_steps_per_second": 5000.0, "collect_seconds": 0.4, "update_seconds": 0.5, "feature_seconds": 0.1,
        "term_seconds": {"vail": 0.2},
        "iteration_seconds": 1.0, "steps_per_second": 320.0, "fraction_of_limit": 0.32,
        "fraction_of_synchronous_limit": 0.9, "ppo_iteration_seconds": 0.7, "bound_by": "update",
    }  # fmt: skip
    console = Console(width=80)
    with console.capture() as shown:
        console.print(table(result))
    assert "32.0%" in shown.get()
    assert "0.400 s" in shown.get()
    assert "reward term vail" in shown.get()
    assert "most time goes to" in shown.get()


def test_no_time_to_measure_is_refused() -> None:
    with pytest.raises(UserError, match="seconds 0"):
        bench("Hopper-v5", seconds=0)


def test_no_environments_are_refused_and_not_taken_for_the_usual_number() -> None:
    with pytest.raises(UserError, match="num_envs is 0"):
        bench("Hopper-v5", seconds=0.05, num_envs=0, device="cpu")


def test_on_a_gpu_everything_is_taken_until_its_last_graph_is_captured() -> None:
    taken: list[str] = []
    works = (lambda: taken.append("simulator"), lambda: taken.append("iteration"))
    _warm_up(works, torch.device("cpu"))
    assert taken == []
    _warm_up(works, torch.device("cuda"))
    assert taken.count("simulator") == taken.count("iteration") == WARM_UP + 1

"""Behavioural cloning: the likelihood it maximises, what it holds out, what it keeps."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from toys import Corridor, corridor_trainer, generator

from ilde.config import find_preset
from ilde.data import Transitions
from ilde.envs import make_envs
from ilde.evaluation import evaluate
from ilde.launch import start
from ilde.learners.cloning import Cloning, CloningConfig
from ilde.policies import load_policy


def learner(*, continuous: bool = False, **changes: Any) -> Cloning:
    trainer = corridor_trainer("bc", continuous=continuous)
    assert isinstance(trainer.learner, Cloning)
    return Cloning(trainer.learner.policy, replace(CloningConfig(epochs=40), **changes), generator())


def labelled(count: int = 40) -> Transitions:
    """States -1 and 1; the demonstrator takes action 0 in the one and 2 in the other."""
    obs = torch.tensor([[-1.0], [1.0]]).repeat(count // 2, 1)
    action = torch.tensor([0, 2]).repeat(count // 2)
    return Transitions(obs, action, obs, torch.zeros(count, dtype=torch.bool), torch.full((count,), torch.nan))


def test_the_loss_is_the_mean_negative_log_likelihood() -> None:
    clone, demos = learner(), labelled(4)
    distribution, _ = clone.policy(demos.obs)
    by_hand = -sum(distribution.log_prob(demos.action).tolist()) / 4
    assert clone.loss(demos).item() == pytest.approx(by_hand)


def test_a_loss_measured_in_parts_is_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ilde.learners.cloning.CHUNK", 3)
    clone, sizes = learner(), []
    demos = replace(labelled(10), action=torch.randint(3, (10,), generator=generator(7)))
    whole, by_parts = clone.loss(demos).item(), clone.loss
    monkeypatch.setattr(clone, "loss", lambda part: sizes.append(len(part)) or by_parts(part))
    assert clone._measured(demos) == pytest.approx(whole)
    assert sizes == [3, 3, 3, 1]


def test_it_learns_which_action_goes_with_which_state() -> None:
    clone = learner(learning_rate=1e-2)
    metrics = clone.fit(labelled())
    action = clone.policy.act(torch.tensor([[-1.0], [1.0]]), generator(), greedy=True).action
    assert action.tolist() == [0, 2]
    assert metrics["bc/held_out_loss"] < 0.1 < math.log(3)


def test_it_stops_after_as_many_passes_without_progress_as_it_has_patience() -> None:
    contradictory = replace(labelled(), action=torch.randint(3, (40,), generator=generator(7)))
    metrics = learner(epochs=500, patience=3, learning_rate=3e-2).fit(contradictory)
    assert metrics["bc/epochs"] < 100


def test_it_keeps_the_weights_that_predicted_the_held_out_part_best() -> None:
    contradictory = replace(labelled(), action=torch.randint(3, (40,), generator=generator(7)))
    clone = learner(learning_rate=3e-2, held_out=0.5)
    _, hidden = Cloning(clone.policy, clone.config, generator())._split(contradictory)
    metrics = clone.fit(contradictory)
    assert clone.loss(hidden).item() == pytest.approx(metrics["bc/held_out_loss"])


def test_the_held_out_part_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    clone, demos = learner(epochs=3, held_out=0.25), labelled()
    demos = replace(demos, obs=torch.arange(40.0)[:, None])
    seen: set[float] = set()
    loss = clone.loss

    def spying(batch: Transitions) -> torch.Tensor:
        if torch.is_grad_enabled():
            seen.update(batch.obs[:, 0].tolist())
        return loss(batch)

    monkeypatch.setattr(clone, "loss", spying)
    clone.fit(demos)
    assert len(seen) == 30


@pytest.mark.parametrize("held_out", [0.99, 1.0])
def test_something_is_always_left_to_learn_from(held_out: float) -> None:
    metrics = learner(epochs=2, held_out=held_out).fit(labelled())
    assert math.isfinite(metrics["bc/loss"])


def test_one_transition_is_enough() -> None:
    assert math.isfinite(learner().fit(labelled(2)[torch.tensor([0])])["bc/held_out_loss"])


@pytest.mark.parametrize("continuous", [False, True])
def test_a_clone_walks_like_the_demonstrator_without_a_single_step(continuous: bool) -> None:
    trainer = corridor_trainer("bc", continuous=continuous, cloning=CloningConfig(learning_rate=1e-2))
    assert trainer.done
    assert trainer.env_steps == 0
    envs = make_envs(partial(Corridor, continuous=continuous), 1, 0, clip_actions=True)
    score = evaluate(envs, trainer.learner.policy, episodes=1, generator=generator(), greedy=True)
    # The demonstrator reaches the end in ten steps and scores 25.5; random actions score about 6.
    assert score.returns[0] > 20


def test_a_run_of_it_is_evaluated_without_training(tmp_path: Path) -> None:
    quick = find_preset("quick")
    config = replace(
        quick,
        method="bc",
        demos="halfcheetah-v5/weak-v0:0.1",
        device="cpu",
        cloning=CloningConfig(epochs=2),
        evaluation=replace(quick.evaluation, final_episodes=1),
    )
    run = start(config, tmp_path / "run")
    with run.folder:
        assert run.train()
    rows = run.folder.evaluations.rows()
    assert [(row["env_steps"], row["final"]) for row in rows] == [(0, True), (0, True)]
    assert load_policy(tmp_path / "run").config.method == "bc"

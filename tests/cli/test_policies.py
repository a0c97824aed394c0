from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import TINY, Ilde

from ilde.config import RunConfig
from ilde.data import UserError
from ilde.demos import load
from ilde.nets.policy import Decision
from ilde.policies import TremblingPolicy, load_policy, save_policy_file, uniform_policy
from ilde.runs import RunDirectory
from ilde.trainer import Trainer


class Stubborn:
    """Always takes action 1, which a uniform policy takes half of the time."""

    def act(self, obs: torch.Tensor, generator: torch.Generator, *, greedy: bool = False) -> Decision:
        ones = torch.ones(len(obs), dtype=torch.int64)
        return Decision(ones, torch.zeros(len(obs)), torch.zeros(len(obs)))


def test_a_policy_comes_with_its_origin(expert: Path) -> None:
    loaded = load_policy(expert)
    assert (loaded.config.method, loaded.config.env, loaded.env_steps) == ("expert", "CartPole-v1", 2016)
    assert loaded.demonstrator is None


def test_a_policy_acts_as_its_checkpoint_does(expert: Path) -> None:
    saved = RunDirectory.read(expert).load_latest()
    assert saved is not None
    policy = load_policy(expert).policy
    assert isinstance(policy, torch.nn.Module)
    for name, tensor in policy.state_dict().items():
        torch.testing.assert_close(tensor, saved.state["learner"]["policy"][name], rtol=0, atol=0)


def test_a_loaded_policy_has_each_weight_by_itself(expert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a GPU a policy under training has them side by side, and a file of tensors refuses that.
    built: list[RunConfig] = []

    def noted(config: RunConfig, *rest: Any) -> Trainer:
        built.append(config)
        return Trainer(config, *rest)

    monkeypatch.setattr("ilde.policies.Trainer", noted)
    assert load_policy(expert).config.ppo.fuse
    assert [config.ppo.fuse for config in built] == [False]


def test_a_run_without_a_checkpoint_has_no_policy(ilde: Ilde, expert: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((expert / "config.json").read_bytes())
    with pytest.raises(UserError, match="no checkpoint yet"):
        load_policy(tmp_path)


@pytest.mark.parametrize(("probability", "share"), [(0.0, 1.0), (0.5, 0.75), (1.0, 0.5)])
def test_a_trembling_hand_takes_random_actions_that_often(probability: float, share: float) -> None:
    space = uniform_policy("CartPole-v1").policy
    policy = TremblingPolicy(Stubborn(), space, probability)  # type: ignore[arg-type]
    action = policy.act(torch.zeros(20_000, 4), torch.Generator().manual_seed(0)).action
    assert float((action == 1).float().mean()) == pytest.approx(share, abs=0.02)


def test_what_was_executed_is_what_is_stored(ilde: Ilde, tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "demos.npz"
    # Pendulum takes actions in [-2, 2]; the new Gaussian policy of unit deviation leaves that now and then.
    trained = ilde("train", "expert", "--env", "Pendulum-v1", "--steps", 32, "--out", run, *TINY)
    assert trained.code == 0, trained.err
    recorded = ilde("demos", "record", "--policy", run, "--out", out, "--sampled", "--evaluate", 0)
    assert recorded.code == 0, recorded.err
    actions = np.abs(load(out).episodes[0].action)
    assert actions.max() == 2.0
    assert 0 < np.mean(actions == 2.0) < 0.5


REPLAY = (
    "--evaluation.final-episodes=2", "--device=cpu", "--rewards.background-steps=64", "--rewards.generative.epochs=2",
    "--sac.warm-up=64", "--sac.hidden=16", "--sac.batch-size=16", "--iq.warm-up=64", "--iq.hidden=16",
    "--iq.batch-size=16", "--rewards.discriminator.rollouts=1", "--steps=192",
)  # fmt: skip
"""Three iterations of the preset `replay`, with small networks."""


@pytest.fixture(scope="module")
def sac(ilde: Ilde, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "sac"
    trained = ilde("train", "sac", "--env", "Pendulum-v1", "--out", run, *REPLAY)
    assert trained.code == 0, trained.err
    assert "preset replay, chosen for sac on Pendulum-v1" in trained.out
    return run


def test_a_soft_actor_can_be_saved_measured_and_recorded(ilde: Ilde, sac: Path, tmp_path: Path) -> None:
    file, demos = tmp_path / "sac.policy.safetensors", tmp_path / "demos.npz"
    save_policy_file(load_policy(sac), file)
    measured = [ilde("eval", policy, "--episodes", 2, "--json").document for policy in (sac, file)]
    assert measured[0] == measured[1]
    recorded = ilde("demos", "record", "--policy", sac, "--out", demos, "--sampled", "--evaluate", 0)
    assert recorded.code == 0, recorded.err
    action = load(demos).transitions().action
    assert action.abs().max() <= 2.0
    assert action.std() > 0.1


@pytest.mark.parametrize("method", ["hype", "hype-ilde", "iq-learn"])
def test_each_replaying_imitator_trains_from_the_command_line(
    ilde: Ilde, sac: Path, tmp_path: Path, method: str
) -> None:
    demos, run = tmp_path / "demos.npz", tmp_path / "run"
    assert ilde("demos", "record", "--policy", sac, "--out", demos, "--evaluate", 0).code == 0
    trained = ilde("train", method, "--env", "Pendulum-v1", "--demos", demos, "--out", run, *REPLAY, "--json")
    assert trained.code == 0, trained.err
    assert trained.document["state"] == "finished"
    assert ilde("eval", run, "--episodes", 1, "--json").document["episodes"] == 1


def test_discrete_actions_are_refused_in_one_line(ilde: Ilde, tmp_path: Path) -> None:
    refused = ilde("train", "sac", "--env", "CartPole-v1", "--out", tmp_path / "run", *REPLAY)
    assert refused.code == 2
    assert "Discrete(2): this learner needs continuous actions" in refused.err.splitlines()[-1]
    assert not (tmp_path / "run").exists()

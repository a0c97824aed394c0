"""PPO beside Stable-Baselines3: the same weights, rollout and minibatches must give the same loss, gradients and steps.

Settings of ours that say the same: half the squared error counts, so `value_weight` is twice `vf_coef`; advantages are
normalised per minibatch; the value is not clipped (theirs does not take the worse error). A time limit reaches their
buffer as a reward raised by the discounted value of the successor, as their own collection does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from toys import generator

from ilde.data import Rollout, Transitions
from ilde.learners.ppo import PPO, Batch, PPOConfig, ppo_loss
from ilde.nets.policy import ActorCritic

stable_baselines3 = pytest.importorskip("stable_baselines3", reason="install the dev extra")

STEPS, ENVS, HIDDEN = 16, 4, 12
OBS = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
ACTIONS: dict[str, gym.Space[Any]] = {
    "discrete": gym.spaces.Discrete(4),
    "continuous": gym.spaces.Box(-1.0, 1.0, (2,), np.float32),
}
CONFIG = PPOConfig(
    learning_rate=1e-3, anneal=False, num_epochs=2, num_minibatches=4, clip_range=0.2, clip_value=False,
    entropy_weight=0.02, value_weight=1.0, advantages="minibatch", hidden=HIDDEN,
)  # fmt: skip


class Spaces(gym.Env[Any, Any]):
    """Has the spaces their constructor asks for; it is never played."""

    observation_space = OBS

    def __init__(self, action_space: gym.Space[Any]) -> None:
        self.action_space = action_space


@dataclass
class Pair:
    """Our learner and theirs, with the same weights and the same experience."""

    ours: PPO
    theirs: Any
    rollout: Rollout
    reward: torch.Tensor

    @property
    def batch(self) -> Batch:
        return self.ours._batch(self.rollout, self.reward)

    def parameters(self) -> Iterator[tuple[str, torch.nn.Parameter, torch.nn.Parameter]]:
        policy, twin = self.ours.policy, self.theirs.policy
        layers = [
            ("actor 1", policy.actor[0], twin.mlp_extractor.policy_net[0]),  # type: ignore[index]
            ("actor 2", policy.actor[2], twin.mlp_extractor.policy_net[2]),  # type: ignore[index]
            ("critic 1", policy.critic[0], twin.mlp_extractor.value_net[0]),  # type: ignore[index]
            ("critic 2", policy.critic[2], twin.mlp_extractor.value_net[2]),  # type: ignore[index]
            ("action head", policy.action_head, twin.action_net),
            ("value head", policy.value_head, twin.value_net),
        ]
        for name, layer, other in layers:
            yield f"{name} weight", layer.weight, other.weight
            yield f"{name} bias", layer.bias, other.bias
        if policy.log_std is not None:
            yield "log_std", policy.log_std, twin.log_std


def their_learner(space: gym.Space[Any], max_grad_norm: float, batch_size: int, num_epochs: int) -> Any:
    vector = stable_baselines3.common.vec_env.DummyVecEnv([lambda: Spaces(space)] * ENVS)
    learner = stable_baselines3.PPO(
        "MlpPolicy", vector, learning_rate=CONFIG.learning_rate, n_steps=STEPS, batch_size=batch_size,
        n_epochs=num_epochs, gamma=CONFIG.discount, gae_lambda=CONFIG.gae_lambda, clip_range=CONFIG.clip_range,
        clip_range_vf=None, normalize_advantage=True, ent_coef=CONFIG.entropy_weight, vf_coef=CONFIG.value_weight / 2,
        max_grad_norm=max_grad_norm, seed=0, device="cpu",
        policy_kwargs={"net_arch": {"pi": [HIDDEN, HIDDEN], "vf": [HIDDEN, HIDDEN]}, "activation_fn": torch.nn.Tanh},
    )  # fmt: skip
    learner.set_logger(stable_baselines3.common.logger.configure(None, []))
    return learner


def experience(policy: ActorCritic) -> tuple[Rollout, torch.Tensor]:
    """A chained rollout of the policy with both kinds of ending, its log-probabilities off by a little."""
    draw = generator(7)
    path = torch.randn(STEPS + 1, ENVS, 3, generator=draw)
    terminated, truncated = (torch.rand(STEPS, ENVS, generator=draw) < 0.1 for _ in range(2))
    truncated &= ~terminated
    next_obs = path[1:].clone()
    next_obs[truncated] += 1.0
    decision = policy.act(path[:-1].flatten(0, 1), draw)
    action, log_prob, value = (x.unflatten(0, (STEPS, ENVS)) for x in decision)
    steps = Transitions(path[:-1], action, next_obs, terminated, torch.zeros(STEPS, ENVS))
    # Off-policy by up to some tenths, so that clipping has work to do.
    log_prob = log_prob + 0.2 * torch.randn(STEPS, ENVS, generator=draw)
    return Rollout(steps, truncated, log_prob, value), torch.randn(STEPS, ENVS, generator=draw)


def fill(theirs: Any, rollout: Rollout, reward: torch.Tensor, policy: ActorCritic) -> None:
    """Hand the experience over the way their own collection would."""
    steps = rollout.transitions
    beyond = policy.value(steps.next_obs.flatten(0, 1)).view(STEPS, ENVS)
    reward = reward + CONFIG.discount * beyond * rollout.truncated
    ended = rollout.ended.float().numpy()
    buffer = theirs.rollout_buffer
    for t in range(STEPS):
        started = ended[t - 1] if t else np.ones(ENVS)
        action = steps.action[t].numpy().reshape(ENVS, -1)
        buffer.add(steps.obs[t].numpy(), action, reward[t].numpy(), started, rollout.value[t], rollout.log_prob[t])
    buffer.compute_returns_and_advantage(beyond[-1], ended[-1])


def pair(kind: str, *, max_grad_norm: float, batch_size: int, num_epochs: int) -> Pair:
    config = PPOConfig(**{**vars(CONFIG), "max_grad_norm": max_grad_norm, "num_epochs": num_epochs})
    policy = ActorCritic(OBS, ACTIONS[kind], HIDDEN, generator(3))
    if policy.log_std is not None:
        policy.log_std.data.fill_(-0.3)
    result = Pair(
        PPO(policy, config, generator(4)),
        their_learner(ACTIONS[kind], max_grad_norm, batch_size, num_epochs),
        *experience(policy),
    )
    for _, mine, twin in result.parameters():
        twin.data.copy_(mine.data)
    assert sum(p.numel() for p in policy.parameters()) == sum(p.numel() for p in result.theirs.policy.parameters())
    fill(result.theirs, result.rollout, result.reward, policy)
    return result


class Recorder(torch.optim.Adam):
    """Keeps the gradients it is asked to apply, and applies none."""

    def step(self, closure: Any = None) -> Any:
        pass


@pytest.fixture(params=["discrete", "continuous"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_returns_and_advantages_are_theirs(kind: str) -> None:
    both = pair(kind, max_grad_norm=0.5, batch_size=STEPS * ENVS, num_epochs=1)
    batch, buffer = both.batch, both.theirs.rollout_buffer
    assert both.rollout.truncated.any()
    assert both.rollout.transitions.terminated.any()
    np.testing.assert_allclose(batch.advantage.view(STEPS, ENVS).numpy(), buffer.advantages, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(batch.target.view(STEPS, ENVS).numpy(), buffer.returns, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("max_grad_norm", [1e9, 0.5], ids=["raw", "clipped"])
def test_loss_and_gradients_are_theirs(kind: str, max_grad_norm: float) -> None:
    both = pair(kind, max_grad_norm=max_grad_norm, batch_size=STEPS * ENVS, num_epochs=1)
    both.theirs.policy.optimizer = Recorder(both.theirs.policy.parameters(), lr=1e-3)
    both.theirs.train()
    loss, parts = ppo_loss(both.ours.policy, both.batch, both.ours.config)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(both.ours.policy.parameters(), max_grad_norm)
    assert norm > 0.5
    logged = both.theirs.logger.name_to_value
    assert float(loss.detach()) == pytest.approx(logged["train/loss"], abs=1e-5)
    assert float(parts["clip_fraction"]) == pytest.approx(logged["train/clip_fraction"]) != 0.0
    assert float(parts["approx_kl"]) == pytest.approx(logged["train/approx_kl"], abs=1e-5)
    for name, mine, twin in both.parameters():
        assert mine.grad is not None
        assert twin.grad is not None
        torch.testing.assert_close(mine.grad, twin.grad, rtol=1e-5, atol=1e-5, msg=name)


def test_two_epochs_of_minibatches_end_in_their_weights(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    both = pair(kind, max_grad_norm=0.5, batch_size=STEPS * ENVS // 4, num_epochs=2)
    # Their buffer runs through one environment after the other, ours through one step after the other.
    position = torch.arange(STEPS * ENVS).view(STEPS, ENVS).T.flatten()
    orders = [np.random.default_rng(seed).permutation(STEPS * ENVS) for seed in range(2)]
    remaining = iter(orders)
    monkeypatch.setattr(np.random, "permutation", lambda size: next(remaining))
    minibatches = [part for order in orders for part in position[order].split(STEPS * ENVS // 4)]
    monkeypatch.setattr(both.ours, "_minibatches", lambda size: minibatches)
    before = {name: mine.detach().clone() for name, mine, _ in both.parameters()}
    both.theirs.train()
    both.ours.update(both.rollout, lambda batch: both.reward, 0.0)
    for name, mine, twin in both.parameters():
        assert not torch.allclose(before[name], mine, atol=1e-4), name
        torch.testing.assert_close(mine, twin, rtol=1e-5, atol=1e-5, msg=name)

"""CDIL: the loss against its definition, what shapes the embedding, and what the fitted models find curious."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import one_hot
from toys import generator

from ilde.rewards.base import Encoded
from ilde.rewards.dynamics import DynamicsConfig, DynamicsModel, DynamicsReward


def model(*, discrete: bool = True, seed: int = 0, hidden: int = 5, actions: int = 2, **config: Any) -> DynamicsReward:
    draw = generator(seed)
    net = DynamicsModel(3, actions, hidden, nn.Tanh, draw)
    return DynamicsReward(net, DynamicsConfig(**config), draw, discrete=discrete)


def moves(size: int, *, discrete: bool, seed: int = 0, dtype: torch.dtype = torch.float32) -> Encoded:
    """Three features, the first of which moves with the action."""
    draw = generator(seed)
    features = torch.randn(size, 3, generator=draw, dtype=dtype)
    choice = torch.randint(2, (size,), generator=draw)
    step = (2.0 * choice - 1.0).to(dtype)
    action = one_hot(choice, 2).to(dtype) if discrete else torch.stack([step, torch.zeros_like(step)], -1)
    successor = features + step[:, None] * torch.tensor([1.0, 0.0, 0.0], dtype=dtype)
    never = torch.zeros(size, dtype=torch.bool)
    return Encoded(features, action, successor, never, torch.zeros(size), never)


def layer(net: nn.Module, x: Any, *, tanh: bool) -> Any:
    linear = net[0] if isinstance(net, nn.Sequential) else net
    out = x @ linear.weight.detach().numpy().T + linear.bias.detach().numpy()
    return np.tanh(out) if tanh else out


def by_definition(term: DynamicsReward, batch: Encoded, share: float) -> float:
    net, action = term.net, batch.action.numpy()
    before, after = (layer(net.encoder, x.numpy(), tanh=True) for x in (batch.features, batch.next_features))
    code = layer(net.action_head, layer(net.inverse, np.concatenate([before, after], -1), tanh=True), tanh=False)
    if term.discrete:
        log_probs = code - np.log(np.exp(code).sum(-1, keepdims=True))
        inverse = -np.mean([row[choice] for row, choice in zip(log_probs, action.argmax(-1), strict=True)])
    else:
        inverse = np.mean((code - action) ** 2)
    hidden = layer(net.forward_model, np.concatenate([before, action], -1), tanh=True)
    predicted = layer(net.next_head, hidden, tanh=False)
    return float((1 - share) * inverse + share * 0.5 * np.mean(np.sum((predicted - after) ** 2, -1)))


@settings(max_examples=30, deadline=None)
@given(size=st.integers(1, 6), seed=st.integers(0, 2**20), discrete=st.booleans(), share=st.floats(0, 1))
def test_the_loss_equals_its_definition(size: int, seed: int, discrete: bool, share: float) -> None:
    term = model(discrete=discrete, seed=seed, forward_share=share)
    term.net.double()
    batch = moves(size, discrete=discrete, seed=seed, dtype=torch.float64)
    assert term.loss(batch).item() == pytest.approx(by_definition(term, batch, share), rel=1e-6, abs=1e-9)


def test_the_forward_model_does_not_shape_the_embedding() -> None:
    term = model(forward_share=1.0)
    term.loss(moves(8, discrete=True)).backward()
    assert all(float(p.grad.abs().max()) == 0.0 for p in term.net.encoder.parameters() if p.grad is not None)
    assert float(term.net.next_head.weight.grad.abs().max()) > 0.0


@pytest.mark.parametrize("discrete", [True, False], ids=["discrete", "continuous"])
def test_curiosity_is_small_where_the_demonstrator_went_and_grows_with_a_lie_about_the_action(discrete: bool) -> None:
    term = model(discrete=discrete, hidden=32, learning_rate=1e-2, epochs=150, subsample=1)
    demos = moves(64, discrete=discrete)
    metrics = term.fit(demos)
    assert metrics["icm/fit_transitions"] == 64
    told = float(term.reward(moves(64, discrete=discrete, seed=1)).mean())
    lie = demos.action.flip(-1) if discrete else -demos.action
    lied = float(term.reward(replace(demos, action=lie)).mean())
    assert lied > 2 * told
    assert not any(p.requires_grad for p in term.net.parameters())


def test_it_pays_nothing_for_dying() -> None:
    batch = moves(4, discrete=True)
    dead = replace(batch, terminated=torch.ones(4, dtype=torch.bool))
    assert model().reward(dead).tolist() == [0.0] * 4
    assert float(model().reward(batch).min()) > 0.0

"""One step down the gradient, with weights side by side and without."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ilde.learners.descent import ALIGNMENT, Descent
from ilde.nets.layers import can_fold, conv, folded_conv, orthogonal


def nets() -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(48, 5))
    return net, copy.deepcopy(net)


def descents(**settings: Any) -> tuple[list[nn.Module], list[Descent]]:
    both = list(nets())
    rates = [torch.tensor(1e-2) for _ in both]
    return both, [
        Descent(net.parameters(), rate, eps=1e-5, packed=packed, **settings)
        for net, rate, packed in zip(both, rates, (False, True), strict=True)
    ]


def loss_of(net: nn.Module, step: int) -> Tensor:
    inputs = torch.randn(8, 1, 6, 6, generator=torch.Generator().manual_seed(step))
    loss: Tensor = (net(inputs) - 1.0).square().mean()
    return loss


def weights(net: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in net.parameters()])


@pytest.mark.parametrize("max_norm", [0.1, 1e9])
def test_weights_side_by_side_move_as_adam_moves_them(max_norm: float) -> None:
    both, descend = descents(max_norm=max_norm)
    for step in range(20):
        norms = [d(loss_of(net, step)) for net, d in zip(both, descend, strict=True)]
        assert torch.allclose(norms[0], norms[1], rtol=1e-5)
    assert torch.allclose(weights(both[0]), weights(both[1]), atol=1e-6)
    assert not torch.allclose(weights(both[0]), weights(nets()[0]), atol=1e-3)


def test_each_weight_begins_aligned() -> None:
    (_, net), _ = descents(max_norm=1.0)
    assert all(p.storage_offset() % ALIGNMENT == 0 for p in net.parameters())
    assert len({p.untyped_storage().data_ptr() for p in net.parameters()}) == 1


@pytest.mark.parametrize(("saver", "loader"), [(0, 1), (1, 0), (1, 1)])
def test_a_state_saved_either_way_goes_on_the_other(saver: int, loader: int) -> None:
    both, descend = descents(max_norm=1.0)
    for step in range(4):
        descend[saver](loss_of(both[saver], step))
    saved, net_state = copy.deepcopy(descend[saver].state_dict()), copy.deepcopy(both[saver].state_dict())
    for step in range(4, 8):
        descend[saver](loss_of(both[saver], step))
    fresh, (plain, packed) = descents(max_norm=1.0)
    other = (plain, packed)[loader]
    fresh[loader].load_state_dict(net_state)
    other.load_state_dict(saved)
    for step in range(4, 8):
        other(loss_of(fresh[loader], step))
    assert torch.allclose(weights(fresh[loader]), weights(both[saver]), atol=0.0 if saver == loader else 1e-6)


@pytest.mark.parametrize("steps_before", [0, 3])
def test_an_adam_that_never_stepped_is_loaded_as_such(steps_before: int) -> None:
    both, descend = descents(max_norm=1.0)
    fresh = copy.deepcopy(descend[0].state_dict())
    first = copy.deepcopy(both[0].state_dict())
    for step in range(steps_before):
        descend[1](loss_of(both[1], step))
    both[1].load_state_dict(first)
    descend[1].load_state_dict(fresh)
    for net, d in zip(both, descend, strict=True):
        d(loss_of(net, 0))
    assert torch.allclose(weights(both[0]), weights(both[1]), atol=1e-6)


@pytest.mark.parametrize("side", [0, 1])
def test_what_is_loaded_is_stepped_saved_and_loaded_again(side: int) -> None:
    both, descend = descents(max_norm=1.0)
    net, d = both[side], descend[side]
    d(loss_of(net, 0))
    d.load_state_dict(copy.deepcopy(d.state_dict()))
    d(loss_of(net, 1))
    saved, where = copy.deepcopy(d.state_dict()), copy.deepcopy(net.state_dict())
    assert {float(values["step"]) for values in saved["state"].values()} == {2.0}
    d(loss_of(net, 2))
    ends = weights(net)
    net.load_state_dict(where)
    d.load_state_dict(saved)
    d(loss_of(net, 2))
    assert torch.equal(weights(net), ends)


@pytest.mark.parametrize("side", [0, 1])
def test_a_changed_learning_rate_counts_at_once_after_loading_too(side: int) -> None:
    both, descend = descents(max_norm=1.0)
    net, d = both[side], descend[side]
    d(loss_of(net, 0))
    d.load_state_dict(copy.deepcopy(d.state_dict()))
    before = weights(net)
    d.learning_rate.fill_(0.0)
    d(loss_of(net, 1))
    assert torch.equal(weights(net), before)


@pytest.mark.parametrize(("kernel", "stride"), [(8, 4), (4, 2), (2, 2), (3, 1)])
def test_folding_pixels_into_channels_changes_no_convolution(kernel: int, stride: int) -> None:
    layer = conv(4, 6, kernel=kernel, stride=stride, init=orthogonal(1.0), generator=torch.Generator().manual_seed(0))
    images = torch.rand(3, 4, 24, 16, generator=torch.Generator().manual_seed(1))
    plain, folded = layer(images), folded_conv(layer, images)
    assert torch.allclose(plain, folded, atol=1e-5)
    gradients = [torch.autograd.grad(out.square().sum(), layer.weight)[0] for out in (plain, folded)]
    assert torch.allclose(*gradients, rtol=1e-3, atol=1e-3)


def test_only_whole_blocks_can_be_folded() -> None:
    layer = conv(4, 6, kernel=8, stride=4, init=orthogonal(1.0), generator=torch.Generator().manual_seed(0))
    assert can_fold(layer, 84, 84)
    assert not can_fold(layer, 84, 83)

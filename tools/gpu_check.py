"""On a GPU: do fused, captured steps give the eager numbers, is a run a function of its seed, does it resume exactly?

    python tools/gpu_check.py --json results/gpu-check.json

Trains ILDE with the paper's Atari preset (full networks, 32 x 128, all terms) for a few updates: fused and captured,
the same again, the same but saved and loaded half-way; plain and captured, plain and eager. The first three must agree
to the bit, and so must the last two. What fusing does to the numbers is seen in the gradient of one minibatch, with the
short floats of the tensor units and without them; after one update more would be seen of Adam than of rounding, for its
steps of equal length turn the last digit of a small gradient into a whole step. A state's features must be the same
however many come with it. On a machine without a GPU nothing is fused or captured, and all must agree to the bit.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ilde.config import RunConfig, find_preset
from ilde.envs import simulator_versions
from ilde.learners.descent import Descent
from ilde.learners.ppo import PPO, Batch, ppo_loss
from ilde.nets import steps
from ilde.prepare import build, choose_device, fit
from ilde.runs import collect_provenance
from ilde.trainer import Trainer

EXACT = ("repeated", "resumed", "captured_against_eager", "features_by_batch_size")
"""What must not differ at all."""
NEVER = 10**9
"""Eager steps before a capture that is not to happen."""
BATCHES = (8, 29, 65, 256, 1024)
"""Sizes of batches in which features are compared; some are those of demonstrations."""
NEAR = 1e-2
"""Learning rates by which two ways to take Adam's steps may differ: they round differently."""


def configured(args: argparse.Namespace) -> RunConfig:
    """The paper's preset, with a generative model fitted briefly: its fit is not what is compared."""
    config = find_preset("atari")
    generative = replace(config.rewards.generative, epochs=20)
    return replace(
        config,
        method="ilde",
        env=args.env,
        demos=args.demos,
        device=args.device,
        num_envs=args.num_envs,
        rollout_steps=args.rollout_steps,
        rewards=replace(config.rewards, generative=generative),
    )


def prepared(config: RunConfig) -> Trainer:
    """A trainer before its first iteration."""
    trainer, demos = build(config)
    fit(trainer, demos)
    return trainer


def train(
    config: RunConfig, updates: int, *, fuse: bool = True, eager: bool = False, interrupted: bool = False
) -> dict[str, Any]:
    """Weights and metrics after some updates, and how far a fused gradient is from a plain one."""
    warm_up, steps.WARM_UP = steps.WARM_UP, NEVER if eager else steps.WARM_UP
    config = replace(config, ppo=replace(config.ppo, fuse=fuse))
    trainer = prepared(config)
    try:
        for update in range(updates):
            if interrupted and update == updates // 2:
                state = trainer.state_dict()
                trainer.envs.close()
                trainer = prepared(config)
                trainer.load_state_dict(state)
            metrics = trainer.iterate()
        policy = trainer.learner.policy
        assert isinstance(policy, nn.Module)
        weights = {name: value.detach().cpu().clone() for name, value in policy.state_dict().items()}
        found = {"gradient": gradient_distance(trainer), "features": feature_distance(trainer)} if fuse else {}
        return {"weights": weights, "metrics": metrics} | found
    finally:
        steps.WARM_UP = warm_up
        trainer.envs.close()


def gradient_distance(trainer: Trainer) -> dict[str, float]:
    """|fused - plain| / |plain| for the gradient of one minibatch."""
    learner = trainer.learner
    assert isinstance(learner, PPO)
    obs, action, numbers = (x[: trainer.config.rollout_steps] for x in learner._held)
    batch = Batch(obs, action, *numbers.unbind(-1))
    found = {}
    for name, short in (("usual", True), ("full_precision", False)):
        torch.backends.cudnn.allow_tf32 = short
        fused, plain = (gradient(learner, loss, batch) for loss in (learner._loss, ppo_loss))
        found[name] = float((fused - plain).norm() / plain.norm())
    torch.backends.cudnn.allow_tf32 = True
    return found


def feature_distance(trainer: Trainer) -> float:
    """The largest difference in a feature of the policy's latest states, embedded together and in small batches."""
    space, learner = trainer.reward.space, trainer.learner
    assert space is not None
    assert isinstance(learner, PPO)
    obs = learner._held[0][: max(BATCHES)]
    whole = space(obs)
    apart = (torch.cat([space(part) for part in obs.split(size)]) for size in BATCHES)
    return max(float((features - whole).abs().max()) for features in apart)


def gradient(learner: PPO, loss: Any, batch: Batch) -> Tensor:
    """Of the whole policy, flat."""
    parameters = list(learner.policy.parameters())
    return torch.cat(
        [g.flatten() for g in torch.autograd.grad(loss(learner.policy, batch, learner.config)[0], parameters)]
    )


def descent_distance(device: torch.device, steps: int = 5) -> float:
    """How far weights moved side by side end from those Adam moves one by one, in learning rates; equal gradients."""
    shapes, rate = ((32, 4, 8, 8), (512, 1568), (512,), (6, 512), (6,)), 2.5e-4
    first = [torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 0.1 for shape in shapes]
    ends = []
    for packed in (False, True):
        weights = [torch.nn.Parameter(w.to(device, copy=True)) for w in first]
        descend = Descent(weights, torch.tensor(rate, device=device), max_norm=0.5, eps=1e-5, packed=packed)
        draw = torch.Generator().manual_seed(1)
        for _ in range(steps):
            slopes = [torch.randn(shape, generator=draw).to(device) for shape in shapes]
            descend(torch.stack([(w * slope).sum() for w, slope in zip(weights, slopes, strict=True)]).sum())
        ends.append(torch.cat([w.detach().flatten() for w in weights]))
    return float((ends[0] - ends[1]).abs().max()) / rate


def distance(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest difference between two policies, relative to each tensor; infinite where one is not finite."""
    pairs = [(one["weights"][name], other["weights"][name]) for name in one["weights"]]
    if not all(bool(a.isfinite().all() and b.isfinite().all()) for a, b in pairs):
        return math.inf
    return max(float((a - b).abs().max() / a.abs().max().clamp(min=1e-12)) for a, b in pairs)


def main() -> int:
    """Run the four, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="ALE/Qbert-v5")
    parser.add_argument("--demos", default="qbert/weak-v0:0.1")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--num-envs", type=int, default=32)
    parser.add_argument("--rollout-steps", type=int, default=128)
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of fused against plain, at full precision")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    config = configured(args)
    captured = train(config, args.updates)
    result = {
        "updates": args.updates,
        "repeated": distance(captured, train(config, args.updates)),
        "resumed": distance(captured, train(config, args.updates, interrupted=True)),
        "captured_against_eager": distance(
            train(config, args.updates, fuse=False), train(config, args.updates, fuse=False, eager=True)
        ),
        "fused_gradient_against_plain": captured["gradient"],
        "features_by_batch_size": captured["features"],
        "packed_descent_against_plain": descent_distance(choose_device(args.device)),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "gpu_memory_bytes": torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0,
        "provenance": collect_provenance(sys.argv, None, simulator_versions()),
    }
    print(json.dumps(result, indent=1, default=str))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1, default=str) + "\n")
    exact = all(result[name] == 0.0 for name in EXACT)
    close = captured["gradient"]["full_precision"] <= args.tolerance
    return 0 if exact and close and result["packed_descent_against_plain"] <= NEAR else 1


if __name__ == "__main__":
    sys.exit(main())

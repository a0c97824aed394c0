"""On a GPU: do fused, captured steps give the eager numbers, is a run a function of its seed, does it resume exactly?

    python tools/gpu_check.py --json results/gpu-check.json

Trains ILDE with the paper's Atari preset (full networks, 32 x 128, all terms) for a few updates four times: captured,
captured again, eager, and captured but saved and loaded half-way. On a machine without a GPU nothing is captured, and
all four must agree to the bit.
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

from ilde.config import RunConfig, find_preset
from ilde.envs import simulator_versions
from ilde.learners import steps
from ilde.prepare import build, fit
from ilde.runs import collect_provenance
from ilde.trainer import Trainer

NEVER = 10**9
"""Eager steps before a capture that is not to happen."""


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


def train(config: RunConfig, updates: int, *, eager: bool = False, interrupted: bool = False) -> dict[str, Any]:
    """Weights and metrics after some updates."""
    warm_up, steps.WARM_UP = steps.WARM_UP, NEVER if eager else steps.WARM_UP
    config = replace(config, ppo=replace(config.ppo, fuse=not eager))
    trainer = prepared(config)
    try:
        for update in range(updates):
            if interrupted and update == updates // 2:
                state = trainer.state_dict()
                trainer.envs.close()
                trainer = prepared(config)
                trainer.load_state_dict(state)
            metrics = trainer.iterate()
        weights = {name: value.detach().cpu().clone() for name, value in trainer.learner.policy.state_dict().items()}
        return {"weights": weights, "metrics": metrics}
    finally:
        steps.WARM_UP = warm_up
        trainer.envs.close()


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
    parser.add_argument("--tolerance", type=float, default=1e-3, help="of captured against eager")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    config = configured(args)
    captured = train(config, args.updates)
    result = {
        "updates": args.updates,
        "repeated": distance(captured, train(config, args.updates)),
        "resumed": distance(captured, train(config, args.updates, interrupted=True)),
        "first_update_eager": distance(train(config, 1), train(config, 1, eager=True)),
        "eager": distance(captured, train(config, args.updates, eager=True)),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "gpu_memory_bytes": torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0,
        "provenance": collect_provenance(sys.argv, None, simulator_versions()),
    }
    print(json.dumps(result, indent=1, default=str))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1, default=str) + "\n")
    exact = result["repeated"] == 0.0 and result["resumed"] == 0.0
    return 0 if exact and result["first_update_eager"] <= args.tolerance else 1


if __name__ == "__main__":
    sys.exit(main())

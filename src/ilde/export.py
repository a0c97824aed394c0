"""The policy as an ONNX file: observations in, greedy actions out, normalisation and clipping included.

Every file is compared with PyTorch before it gets its name. The value and the randomness stay behind.
"""

from __future__ import annotations

import importlib.metadata
import os
import warnings
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from ilde.data import UserError
from ilde.envs import make_envs
from ilde.envs.base import Array
from ilde.nets.distributions import Categorical
from ilde.nets.policy import ActorCritic, Policy
from ilde.nets.soft import SoftActor, SoftQ
from ilde.policies import load_policy
from ilde.randomness import torch_generator

TOLERANCE = 1e-3
"""Largest difference between the two programs' numbers that rounding can explain."""
CHECKED = 64
"""Random observations they are compared on."""


Network: TypeAlias = ActorCritic | SoftActor | SoftQ


class GreedyPolicy(nn.Module):
    """What is exported: the most likely action, and for discrete actions the log-probabilities as well."""

    low: Tensor
    high: Tensor

    def __init__(self, policy: Network, action_space: gym.spaces.Discrete | gym.spaces.Box, *, clip: bool) -> None:
        super().__init__()
        self.policy = policy
        self.discrete = isinstance(action_space, gym.spaces.Discrete)
        self.clips = clip and isinstance(action_space, gym.spaces.Box)
        if isinstance(action_space, gym.spaces.Box):
            self.register_buffer("low", torch.as_tensor(action_space.low))
            self.register_buffer("high", torch.as_tensor(action_space.high))

    def forward(self, obs: Tensor) -> tuple[Tensor, ...]:
        """Actions (B, ...), and logits (B, n) if they are discrete."""
        if isinstance(self.policy, SoftActor):
            return (self.policy.executed(self.policy(obs).mode()),)
        distribution = self.policy.distribution(obs) if isinstance(self.policy, SoftQ) else self.policy(obs)[0]
        if isinstance(distribution, Categorical):
            return distribution.mode(), distribution.log_probs
        action = distribution.mode()
        return (torch.clamp(action, self.low, self.high) if self.clips else action,)


def export_onnx(run: Path, out: Path) -> float:
    """Write the newest policy of a run; returns the largest difference from PyTorch on random observations."""
    loaded = load_policy(run)
    config = loaded.config
    envs = make_envs(config.env, 1, config.seed)
    envs.close()
    facts = {"env": config.env, "method": config.method, "env_steps": str(loaded.env_steps)}
    return export_policy(
        loaded.policy, envs.obs_space, envs.action_space, out, clip_actions=config.clip_actions, facts=facts
    )


def export_policy(
    policy: Policy,
    obs_space: gym.spaces.Box,
    action_space: gym.spaces.Discrete | gym.spaces.Box,
    out: Path,
    *,
    clip_actions: bool,
    facts: dict[str, str],
) -> float:
    """Write a policy with some facts about it; returns the largest difference from PyTorch on random observations."""
    onnx = _require(out)
    if not isinstance(policy, Network):
        raise UserError(f"{out}: a random policy has no network to export; choose a run of another method")
    program = GreedyPolicy(policy, action_space, clip=clip_actions).eval()
    obs = random_observations(policy, obs_space)
    unfinished = out.with_name(f".{out.name}.unfinished")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _write(program, obs, unfinished)
        model = onnx.load(unfinished)
        onnx.helper.set_model_props(model, facts | {"ilde": importlib.metadata.version("ilde")})
        onnx.save(model, unfinished)
        difference = _difference(program, obs, unfinished)
        if not difference <= TOLERANCE:
            raise RuntimeError(f"{out}: the exported policy differs from PyTorch by {difference:.2g}; not written")
        os.replace(unfinished, out)
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error.strerror or error}); choose another file") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return difference


def random_observations(policy: Network, obs_space: gym.spaces.Box) -> Tensor:
    """Observations (CHECKED, ...) as the policy might see them: any image, or vectors around what it has seen."""
    device = next(policy.parameters()).device
    generator = torch_generator(0, "export", device)
    shape = (CHECKED, *obs_space.shape)
    if len(obs_space.shape) == 3:
        return torch.randint(256, shape, dtype=torch.uint8, generator=generator, device=device)
    noise = torch.empty(shape, device=device).normal_(generator=generator)
    if not isinstance(policy, ActorCritic) or policy.normalise is None:
        return 2.0 * noise
    moments = policy.normalise.moments
    return moments.mean.float() + 2.0 * moments.std.float() * noise


def _require(out: Path) -> Any:
    try:
        import onnx
        import onnxruntime  # noqa: F401 - needed for the check, so better missed now
    except ImportError as error:
        raise UserError(f"{out}: export needs onnx and onnxruntime: pip install ilde[export]") from error
    return onnx


def _write(program: GreedyPolicy, obs: Tensor, path: Path) -> None:
    names = ["action", "logits"] if program.discrete else ["action"]
    with warnings.catch_warnings():
        # The exporter that PyTorch prefers needs a further package; for networks this plain the older one is exact.
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            program,
            (obs[:2],),
            path,
            input_names=["obs"],
            output_names=names,
            dynamic_axes={name: {0: "batch"} for name in ["obs", *names]},
            dynamo=False,
        )


def _difference(program: GreedyPolicy, obs: Tensor, path: Path) -> float:
    """The largest difference in logits or continuous actions."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    ours: list[Array] = [output.cpu().numpy() for output in _outputs(program, obs)]
    theirs: list[Array] = session.run(None, {"obs": obs.cpu().numpy()})
    return float(np.abs(ours[-1] - theirs[-1]).max())


@torch.no_grad()
def _outputs(program: GreedyPolicy, obs: Tensor) -> tuple[Tensor, ...]:
    outputs: tuple[Tensor, ...] = program(obs)
    return outputs

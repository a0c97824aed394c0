"""Trained policies, taken out of run directories or policy files: no demonstrations are needed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from ilde.config import RunConfig, from_dict, to_dict
from ilde.data import UserError
from ilde.demos.bundled import FOLDER as BUNDLED
from ilde.envs import EnvLike, make_envs
from ilde.envs.base import Array, EnvBatch
from ilde.evaluation import Evaluation, evaluate, never
from ilde.learners.base import Learner
from ilde.nets.policy import Decision, Policy, UniformPolicy
from ilde.randomness import derive_seed, torch_generator
from ilde.runs import RunDirectory
from ilde.runs.directory import POLICY
from ilde.trainer import Trainer

Spaces: TypeAlias = tuple[gym.Space[Any], gym.Space[Any]]
"""Of observations and of actions."""
POLICY_KEY = "ilde"
"""The metadata entry of a policy file."""
MAX_ENVS = 32
"""Environments that play an evaluation's episodes side by side."""


@dataclass(frozen=True)
class LoadedPolicy:
    """A policy and where it comes from."""

    policy: Policy
    config: RunConfig
    env_steps: int
    """Agent steps it was trained for."""
    demonstrator: float | None
    """The demonstrator's return, if its run had one."""
    action_space: gym.spaces.Discrete | gym.spaces.Box


def load_policy(path: Path, device: torch.device | str = "cpu") -> LoadedPolicy:
    """The policy of a run at its newest readable checkpoint, or of a policy file."""
    if path.is_file():
        return load_policy_file(path, device)
    folder = RunDirectory.read(path)
    config = from_dict(RunConfig, folder.config)
    checkpoint = folder.load_latest()
    if checkpoint is None and (path / POLICY).is_file():
        return load_policy_file(path / POLICY, device)
    if checkpoint is None:
        raise UserError(f"{path}: no checkpoint yet; `ilde resume {path}` goes on with the run")
    folder.require_named_env()
    learner, action_space = _untrained(config, device)
    learner.load_state_dict(checkpoint.state["learner"])
    demonstrator = folder.provenance.get("demonstrator")
    return LoadedPolicy(learner.policy, config, checkpoint.state["env_steps"], demonstrator, action_space)


def _untrained(config: RunConfig, device: torch.device | str) -> tuple[Learner, gym.spaces.Discrete | gym.spaces.Box]:
    # The parts that trained the policy also rebuild it, whatever its learner; one small environment tells the spaces.
    # Its weights are not laid side by side, for a file of tensors wants each by itself.
    config = replace(config, rollout_steps=1, ppo=replace(config.ppo, fuse=False))
    envs = make_envs(config.env, 1, config.seed, clip_actions=config.clip_actions)
    try:
        return Trainer(config, envs, torch.device(device)).learner, envs.action_space
    finally:
        envs.close()


def save_policy_file(loaded: LoadedPolicy, path: Path) -> None:
    """Write a policy as one safetensors file, with its configuration in the metadata."""
    if not isinstance(loaded.policy, nn.Module):
        raise UserError(f"{path}: a policy of method {loaded.config.method} has no weights to save")
    facts = {"config": to_dict(loaded.config), "env_steps": loaded.env_steps, "demonstrator": loaded.demonstrator}
    # The actor and the critic of images share their trunk: it is written once.
    safetensors.torch.save_model(loaded.policy, str(path), {POLICY_KEY: json.dumps(facts)})


def load_policy_file(path: Path, device: torch.device | str = "cpu") -> LoadedPolicy:
    """Read what `save_policy_file` wrote."""
    try:
        with safetensors.safe_open(path, "pt") as file:
            facts = json.loads((file.metadata() or {})[POLICY_KEY])
        config = from_dict(RunConfig, facts["config"])
        learner, action_space = _untrained(config, device)
        policy = learner.policy
        assert isinstance(policy, nn.Module)
        safetensors.torch.load_model(policy, path, device=str(device))
        return LoadedPolicy(policy, config, int(facts["env_steps"]), facts["demonstrator"], action_space)
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"{path}: not a policy file ({' '.join(str(error).split())})") from None


def bundled_policy(name: str) -> LoadedPolicy:
    """The policy that recorded a bundled demonstration, where it is shipped."""
    path = BUNDLED / f"{name}.policy.safetensors"
    if not path.is_file():
        raise UserError(f"{name}: its policy is not shipped; `ilde demos show {name}` says how it was made")
    return load_policy_file(path)


def uniform_policy(env: str) -> LoadedPolicy:
    """The policy that acts uniformly at random in an environment."""
    envs = make_envs(env, 1, 0)
    envs.close()
    config = RunConfig(method="random", env=envs.env_id)
    return LoadedPolicy(UniformPolicy(envs.action_space), config, 0, None, envs.action_space)


def evaluate_policy(
    loaded: LoadedPolicy,
    *,
    episodes: int,
    seed: int,
    greedy: bool,
    max_steps: int | None = None,
    device: torch.device | str = "cpu",
) -> Evaluation:
    """True returns of whole episodes; with the run's own seed, the very episodes of its final evaluation."""
    config, count = loaded.config, episodes
    return measure(
        loaded.policy, config.env, config, episodes=count, seed=seed, greedy=greedy, max_steps=max_steps, device=device
    )


def measure(
    policy: Policy,
    env: EnvLike,
    config: RunConfig,
    *,
    episodes: int,
    seed: int,
    greedy: bool,
    max_steps: int | None,
    device: torch.device | str,
    stop: Callable[[], bool] = never,
    spaces: Spaces | None = None,
) -> Evaluation:
    """True returns in environments of their own, on seeds that training never sees; see `evaluate` on stopping.

    Args:
        spaces: those that the policy was made for, where the environment may be another one
    """
    env_seed = derive_seed(seed, "evaluation") % 2**31
    envs = make_envs(env, min(episodes, MAX_ENVS), env_seed, clip_actions=config.clip_actions)
    generator = torch_generator(seed, "evaluation", device)
    try:
        if spaces is not None:
            _require_alike(envs, spaces)
        return evaluate(
            envs, policy, episodes=episodes, generator=generator, greedy=greedy, max_steps=max_steps, stop=stop
        )
    finally:
        envs.close()


def _require_alike(envs: EnvBatch, spaces: Spaces) -> None:
    """Refuse an environment whose observations or actions are not of the policy's form; bounds may differ."""
    forms = [
        [
            f"Discrete({s.n}, start={s.start})" if isinstance(s, gym.spaces.Discrete) else f"{s.dtype}{s.shape}"
            for s in two
        ]
        for two in ((envs.obs_space, envs.action_space), spaces)
    ]
    for name, here, own in zip(("observations", "actions"), *forms, strict=True):
        if here != own:
            raise UserError(f"{envs.env_id}: {name} are {here}; the policy's are {own}")


@dataclass(frozen=True)
class TremblingPolicy:
    """A policy whose hand trembles: with some probability a uniformly random action replaces the chosen one.

    Of a decision only the action is that of the trembling policy.
    """

    policy: Policy
    uniform: UniformPolicy
    probability: float

    def act(self, obs: Tensor, generator: torch.Generator, *, greedy: bool = False) -> Decision:
        """Choose, then tremble."""
        decision = self.policy.act(obs, generator, greedy=greedy)
        random = self.uniform.act(obs, generator).action
        trembles = torch.rand(len(obs), generator=generator, device=obs.device) < self.probability
        trembles = trembles.reshape(-1, *(1 for _ in random.shape[1:]))
        return decision._replace(action=torch.where(trembles, random, decision.action))


def actor(loaded: LoadedPolicy, *, seed: int, greedy: bool) -> Callable[[Array], Array]:
    """The policy, on CPU, as a function from observations (N, ...) to the actions (N, ...) that are executed."""
    generator = torch_generator(seed, "recording")
    space, clips = loaded.action_space, loaded.config.clip_actions

    def act(obs: Array) -> Array:
        action: Array = loaded.policy.act(torch.from_numpy(obs), generator, greedy=greedy).action.numpy()
        return np.clip(action, space.low, space.high) if clips and isinstance(space, gym.spaces.Box) else action

    return act


def describe(loaded: LoadedPolicy) -> str:
    """The policy in words, with a hash of its weights: what a recording says of its recorder."""
    if not isinstance(loaded.policy, nn.Module) or loaded.config.method == "random":
        return loaded.config.method
    digest = hashlib.sha256()
    for name, tensor in loaded.policy.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.cpu().numpy().tobytes())
    run = f"{loaded.config.method} on {loaded.config.env}, seed {loaded.config.seed}, {loaded.env_steps} steps"
    return f"{run}, weights sha256 {digest.hexdigest()}"

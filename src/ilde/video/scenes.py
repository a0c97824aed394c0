"""Episodes as they are filmed: played by a policy, or acted out again from a recording."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from ilde.data import Transitions, UserError
from ilde.demos import Demonstrations
from ilde.envs.base import Array
from ilde.nets.policy import Policy
from ilde.video.camera import Stage
from ilde.video.canvas import Picture

MAX_FPS = 50
"""Faster environments are filmed every few steps: their speed stays true and the file small."""


class Reel:
    """Pictures of one size, packed: an episode has a thousand of them."""

    def __init__(self) -> None:
        self._packed: list[bytes] = []
        self._shape: tuple[int, ...] = ()

    def append(self, picture: Picture) -> None:
        """Add one picture."""
        self._shape = picture.shape
        self._packed.append(zlib.compress(np.ascontiguousarray(picture).tobytes(), 1))

    def __iter__(self) -> Iterator[Picture]:
        for packed in self._packed:
            yield np.frombuffer(zlib.decompress(packed), np.uint8).reshape(self._shape)


@dataclass(frozen=True)
class Scene:
    """One episode: the pictures of every `stride`-th step, and the transitions (T, 1) of all."""

    reel: Reel
    stride: int
    transitions: Transitions


def perform(
    stage: Stage,
    policy: Policy,
    generator: torch.Generator,
    greedy: bool,
    max_steps: int | None,
    max_fps: int = MAX_FPS,
) -> Scene:
    """Play one episode."""
    reel, stride = Reel(), _stride(stage, max_fps)
    obs = stage.envs.reset()
    seen: list[Array] = [obs]
    actions: list[Array] = []
    rewards: list[Array] = []
    ends: list[Array] = []
    while max_steps is None or len(actions) < max_steps:
        if len(actions) % stride == 0:
            reel.append(stage.shoot(obs))
        decision = policy.act(torch.from_numpy(np.asarray(obs)).to(generator.device), generator, greedy=greedy)
        step = stage.envs.step(decision.action.cpu().numpy())
        seen.append(step.next_obs)
        actions.append(decision.action.cpu().numpy())
        rewards.append(step.reward)
        ends.append(step.terminated)
        obs = step.obs
        if step.scores:
            break
    transitions = _transitions(np.stack(seen), np.stack(actions), np.stack(rewards), np.stack(ends))
    return Scene(reel, stride, transitions.to(generator.device))


def reenact(
    stage: Stage,
    demos: Demonstrations,
    number: int,
    max_steps: int | None,
    device: torch.device,
    max_fps: int = MAX_FPS,
) -> Scene:
    """Take a recorded episode's actions again, in the environment it was recorded on."""
    episode = demos.episodes[number]
    steps = min(len(episode), max_steps or len(episode))
    reel, stride = Reel(), _stride(stage, max_fps)
    move = _retrace(stage, demos, number)
    for t in range(steps):
        move(t)
        if t % stride == 0:
            reel.append(stage.shoot(episode.obs[t : t + 1]))
    ends = np.arange(steps) + 1 == (len(episode) if episode.terminated else -1)
    transitions = _transitions(
        # Copies: what was loaded from a file may not be written to, which a tensor cannot promise.
        episode.obs[: steps + 1, None].copy(),
        episode.action[:steps, None].copy(),
        episode.reward[:steps, None].astype(np.float32),
        ends[:, None],
    )
    return Scene(reel, stride, transitions.to(device))


def _retrace(stage: Stage, demos: Demonstrations, number: int) -> Callable[[int], None]:
    """What brings the simulator to the state before step t, for t = 0, 1, ...; recorded images need no simulator."""
    env, episode = stage.single, demos.episodes[number]
    if env is None or len(stage.envs.obs_space.shape) == 3:
        return lambda t: None
    if episode.seed is None:
        raise UserError(f"demonstrations on {demos.env_id}: episode {number} has no seed, so it cannot be acted out")
    simulator, seed = env, episode.seed

    def move(t: int) -> None:
        obs = simulator.reset(seed=seed)[0] if t == 0 else simulator.step(episode.action[t - 1])[0]
        if not np.allclose(obs, episode.obs[t], rtol=1e-3, atol=1e-3):
            versions = ", ".join(f"{name} {version}" for name, version in demos.header.simulator_versions.items())
            raise UserError(f"demonstrations on {demos.env_id}: step {t} leads elsewhere here; recorded on {versions}")

    return move


def _transitions(seen: Array, actions: Array, rewards: Array, ends: Array) -> Transitions:
    """Records (T, 1) of one episode; observation t + 1 is the successor of t, so both are views of one tensor."""
    obs = torch.from_numpy(seen)
    return Transitions(
        obs=obs[:-1],
        action=torch.from_numpy(actions),
        next_obs=obs[1:],
        terminated=torch.from_numpy(ends),
        env_reward=torch.from_numpy(rewards),
    )


def _stride(stage: Stage, max_fps: int) -> int:
    return -(-stage.fps // max_fps)

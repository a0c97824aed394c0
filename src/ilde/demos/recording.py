"""Recording demonstrations: whole episodes, or first lives, of any policy, with true successors.

Every recorded episode starts at the start of a game: after a recorded life the rest of its game is played on, unkept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import gymnasium as gym
import numpy as np

from ilde.data import UserError
from ilde.demos.demonstrations import Demonstrations, Episode
from ilde.demos.header import Demonstrator, Header, Until
from ilde.envs.base import Array, EnvBatch, Step, episode_seed
from ilde.envs.seeded_batch import SeededBatch

Act: TypeAlias = Callable[[Array], Array]
"""A policy: observations (N, ...) to actions (N, ...)."""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What the recorder cannot see for itself; it goes into the header as it is."""

    recorder: str
    greedy: bool
    simulator_versions: Mapping[str, str]
    created: str
    command: str
    seed: int | None = None
    """The seed the environments were made with."""
    demonstrator: Demonstrator | None = None


def record(
    envs: EnvBatch,
    act: Act,
    *,
    episodes: int,
    until: Until,
    tremble: float,
    generator: np.random.Generator,
    provenance: Provenance,
) -> Demonstrations:
    """Play and keep `episodes` episodes; with probability `tremble` a uniformly random action is taken instead."""
    if envs.num_envs != 1:
        raise ValueError(f"recording needs one environment; received {envs.num_envs}")
    if episodes < 1:
        raise UserError(f"episodes {episodes}: record at least 1")
    if not 0 <= tremble <= 1:
        raise UserError(f"tremble {tremble}: must be a probability, from 0 to 1")
    player = _Player(envs, act, tremble, generator)
    recorded = []
    for number in range(episodes):
        player.finish_game()
        recorded.append(_record_episode(player, until, seed=_seed_of(envs, provenance.seed, number)))
    kept = tuple(episode for episode, _ in recorded)
    header = Header(
        env_id=envs.env_id,
        simulator_versions=dict(provenance.simulator_versions),
        recorder=provenance.recorder,
        seeds=tuple(episode.seed for episode in kept),
        returns=tuple(float(episode.reward.sum()) for episode in kept),
        lives=tuple(lives for _, lives in recorded),
        until=until,
        greedy=provenance.greedy,
        tremble=tremble,
        created=provenance.created,
        command=provenance.command,
        demonstrator=provenance.demonstrator,
    )
    return Demonstrations(envs.env_id, kept, header)


def _seed_of(envs: EnvBatch, seed: int | None, episode: int) -> int | None:
    """The reset seed of an episode, if it is certain: not all simulators are seeded anew each time (Atari rarely)."""
    if seed is None or (episode > 0 and not isinstance(envs, SeededBatch)):
        return None
    return episode_seed(seed, 0, episode)


def random_policy(action_space: gym.spaces.Discrete | gym.spaces.Box, generator: np.random.Generator) -> Act:
    """The policy that chooses uniformly among all actions, whatever it sees."""
    if isinstance(action_space, gym.spaces.Discrete):
        low, high = int(action_space.start), int(action_space.start + action_space.n)
        return lambda obs: generator.integers(low, high, len(obs))
    if not action_space.is_bounded():
        raise UserError(f"actions {action_space.shape} without bounds: there is no uniformly random one")
    box = action_space
    return lambda obs: generator.uniform(box.low, box.high, (len(obs), *box.shape)).astype(box.dtype)


@dataclass
class _Player:
    """One environment and its policy; remembers whether a game is under way."""

    envs: EnvBatch
    act: Act
    tremble: float
    generator: np.random.Generator
    obs: Array = field(init=False)
    game_over: bool = True

    def __post_init__(self) -> None:
        self.random = random_policy(self.envs.action_space, self.generator) if self.tremble else self.act
        self.obs = self.envs.reset()

    def step(self) -> tuple[Array, bool, Step]:
        """Take one action; returns the executed action (1, ...), whether it was a tremble, and the outcome."""
        trembled = bool(self.generator.random() < self.tremble)
        chosen = (self.random if trembled else self.act)(self.obs)
        action = np.array(chosen, dtype=self.envs.action_space.dtype)
        outcome = self.envs.step(action)
        self.obs, self.game_over = outcome.obs, bool(outcome.scores)
        return action, trembled, outcome

    def finish_game(self) -> None:
        """Play on until the next episode starts."""
        while not self.game_over:
            self.step()


def _record_episode(player: _Player, until: Until, seed: int | None) -> tuple[Episode, int]:
    """One episode, and how often it terminated on the way."""
    obs, actions, rewards, trembles, lives = [player.obs[0].copy()], [], [], [], 0
    while True:
        action, trembled, outcome = player.step()
        terminated, truncated = bool(outcome.terminated[0]), bool(outcome.truncated[0])
        obs.append(outcome.next_obs[0].copy())  # environments may reuse their buffers
        actions.append(action[0])
        rewards.append(float(outcome.reward[0]))
        trembles.append(trembled)
        lives += terminated
        if player.game_over or (until == "life" and (terminated or truncated)):
            break
    episode = Episode(
        obs=np.stack(obs),
        action=np.stack(actions),
        reward=np.array(rewards, np.float64),
        trembled=np.array(trembles, np.bool_),
        terminated=terminated,
        truncated=truncated,
        life_lost=terminated and not player.game_over,
        seed=seed,
    )
    return episode, lives

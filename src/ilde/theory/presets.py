"""What a study is asked to do, and the four that have names."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal, TypeAlias, assert_never

import numpy as np

from ilde.data import UserError
from ilde.theory.constants import Scale
from ilde.theory.curiosity import ModelClass, fit_transitions, intrinsic_reward
from ilde.theory.mdp import Array, Mdp, occupancy, optimal_policy, sample, state_features
from ilde.theory.regret import Game
from ilde.theory.rewards import RewardClass, Shape
from ilde.theory.saddle import solve_saddle
from ilde.theory.uncertainty import LinearClass, TabularClass, ValueClass
from ilde.theory.worlds import chain_mdp, grid_mdp, linear_mdp, random_mdp

WorldKind: TypeAlias = Literal["chain", "random", "grid", "linear"]


@dataclass(frozen=True)
class WorldConfig:
    """One decision process; what a size means depends on the kind."""

    kind: WorldKind = "chain"
    size: int = 7
    """Cells of the corridor, states of a random or linear process, cells along a side of the grid."""
    room: int = 3
    """States (chain) or side (grid) of the unpredictable room; dimension of a linear process."""
    num_actions: int = 3
    """The grid always has 4."""
    horizon: int = 11
    slip: float = 0.05
    """Chain and grid: how often another action happens. Random: the concentration of the successors' Dirichlet law."""


@dataclass(frozen=True)
class StudyConfig:
    """A sweep over T on one decision process, with its ablations."""

    name: str = "chain"
    world: WorldConfig = field(default_factory=WorldConfig)
    curiosity_weight: float = 10.0
    """lambda; the paper's."""
    curiosity_model: ModelClass = "displacement"
    curiosity_demos: int = 8
    """Demonstrations the transition model is fitted to; the reward player has the expert's exact occupancy."""
    reward_shape: Shape = "box"
    reward_features: Literal["states", "process"] = "states"
    """What rewards are linear in: the states, as in the paper's experiments, or the process's own features."""
    temperature: float = 0.2
    """Of the expert, which is softmax-optimal for a hidden reward."""
    scale: Scale = field(default_factory=lambda: Scale(0.1, 30.0, 5.0, 8.0, 10.0))
    episodes: tuple[float, ...] = (1e4, 10**4.5, 1e5, 10**5.5, 1e6)
    """The values of T; the algorithm is tuned anew for each."""
    ablation_episodes: tuple[float, ...] = (1e4, 10**4.5, 1e5)
    demo_counts: tuple[int, ...] = (1, 4, 16, 64)
    num_seeds: int = 20
    game_seed: int = 0
    """Of the process, the hidden reward and the curiosity's demonstrations: one game for all seeds."""


def presets() -> tuple[StudyConfig, ...]:
    """The studies that have names."""
    return (
        StudyConfig(),
        StudyConfig(
            "random",
            WorldConfig("random", size=6, num_actions=3, horizon=6, slip=0.3),
            curiosity_weight=1.0,
            curiosity_model="tabular",
            curiosity_demos=4,
            scale=Scale(0.1, 30.0, 5.0, 2.0, 10.0),
        ),
        StudyConfig("grid", WorldConfig("grid", size=4, room=2, num_actions=4, horizon=9)),
        StudyConfig(
            "linear",
            WorldConfig("linear", size=12, room=4, num_actions=3, horizon=5),
            curiosity_weight=4.0,
            curiosity_model="tabular",
            curiosity_demos=4,
            reward_features="process",
            scale=Scale(0.1, 30.0, 5.0, 2.0, 10.0),
        ),
    )


def find_preset(name: str) -> StudyConfig:
    """A study by its name."""
    known = {preset.name: preset for preset in presets()}
    if name not in known:
        close = get_close_matches(name, known, 1)
        raise UserError(
            f"--preset {name!r}: " + (f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}")
        )
    return known[name]


def build_mdp(world: WorldConfig, rng: np.random.Generator) -> Mdp:
    """The decision process."""
    match world.kind:
        case "chain":
            return chain_mdp(world.size, world.room, world.num_actions, world.horizon, world.slip)
        case "random":
            return random_mdp(world.size, world.num_actions, world.horizon, world.slip, rng)
        case "grid":
            return grid_mdp(world.size, world.room, world.horizon, world.slip)
        case "linear":
            return linear_mdp(world.size, world.num_actions, world.room, world.horizon, rng)
        case _:
            assert_never(world.kind)


def hidden_reward(world: WorldConfig, mdp: Mdp, rng: np.random.Generator) -> Array:
    """(S, A): what the expert wants: the state next to the start, or anything at random."""
    if world.kind in ("chain", "grid"):
        return np.broadcast_to((np.arange(mdp.num_states) == 1)[:, None], (mdp.num_states, mdp.num_actions)).astype(
            float
        )
    return np.asarray(mdp.features @ rng.uniform(-1, 1, mdp.features.shape[-1]))


def build_game(config: StudyConfig, curiosity_weight: float | None = None) -> Game:
    """Everything that all runs of a study share; with another lambda, that one's own pi*."""
    rng = np.random.default_rng(config.game_seed)
    mdp = build_mdp(config.world, rng)
    expert = optimal_policy(mdp, hidden_reward(config.world, mdp, rng), config.temperature)
    demos = sample(mdp, expert, config.curiosity_demos, rng)
    intrinsic = intrinsic_reward(mdp, fit_transitions(mdp, demos, config.curiosity_model))
    own = config.reward_features == "process"
    features = mdp.features if own else state_features(mdp.num_states, mdp.num_actions)
    rewards = RewardClass(features, config.reward_shape)
    expectation = rewards.expectation(occupancy(mdp, expert))
    weight = config.curiosity_weight if curiosity_weight is None else curiosity_weight
    return Game(
        mdp, rewards, expert, expectation, intrinsic, weight,
        solve_saddle(mdp, rewards, expectation, intrinsic, weight),
    )  # fmt: skip


def value_class(config: StudyConfig, mdp: Mdp, curiosity_weight: float) -> ValueClass:
    """What OPE fits: the values' bound is H times the largest |r + lambda L|."""
    bound = mdp.horizon * (1.0 + curiosity_weight)
    if config.world.kind == "linear":
        return LinearClass(mdp.features, bound)
    return TabularClass(mdp.num_states, mdp.num_actions, bound)

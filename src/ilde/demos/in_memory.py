"""Demonstrations out of a user's own arrays, held to the same laws as those out of files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import gymnasium as gym
import numpy as np

from ilde.demos.archive import FormatError
from ilde.demos.demonstrations import Demonstrations
from ilde.demos.foreign import Foreign
from ilde.demos.importing import Target, demonstrations_of
from ilde.demos.storage import one_line_errors
from ilde.envs import EnvLike, make_envs
from ilde.envs.base import Array

SOURCE = "arrays"


def from_arrays(
    env: EnvLike, episodes: Iterable[Sequence[Any]], *, terminated: Sequence[bool] | None = None
) -> Demonstrations:
    """Demonstrations of an environment; a mistake is a `UserError` of one line that names its place.

    Args:
        env: an id, a function that builds one environment, or a vector environment, as `Imitator` takes it.
        episodes: for each (observations, actions) or (observations, actions, rewards), in time order. With one
            observation more than actions the last one is the last successor; with as many, the last step is dropped.
            Without rewards, or with None for them, everything can be learned, but nothing be compared with the
            demonstrator.
        terminated: which episodes ended in a terminal state; by default none is taken to have.
    """
    with one_line_errors(SOURCE):
        foreign = _foreign([_arrays(episode) for episode in episodes], terminated)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        demos, _ = demonstrations_of(foreign, target_of(env), SOURCE, recorder=SOURCE, created=created, command="")
    return demos


def target_of(env: EnvLike) -> Target:
    """The name and the spaces of an environment."""
    if isinstance(env, gym.vector.VectorEnv):
        envs = make_envs(env, env.num_envs, 0)  # and left open for its owner
    else:
        envs = make_envs(env, 1, 0)
        envs.close()
    return Target(envs.env_id, envs.obs_space, envs.action_space)


def _arrays(episode: Sequence[Any]) -> tuple[Array, ...]:
    """What is there of an episode: None for its rewards is as good as none."""
    given = tuple(episode)
    return tuple(map(np.asarray, given[:2] if len(given) == 3 and given[2] is None else given))


def _foreign(episodes: Sequence[tuple[Array, ...]], terminated: Sequence[bool] | None) -> Foreign:
    if not episodes:
        raise FormatError("no episodes")
    sizes = {len(episode) for episode in episodes}
    if not sizes <= {2, 3} or len(sizes) > 1:
        raise FormatError("an episode is (observations, actions) or (observations, actions, rewards), all alike")
    for number, (obs, action, *_) in enumerate(episodes):
        if obs.ndim == 0 or action.ndim == 0 or len(obs) - len(action) not in (0, 1):
            raise FormatError(
                f"episode {number}: observations {obs.shape} and actions {action.shape}; "
                "expected as many of both, or one observation more"
            )
    lengths = np.array([len(episode[1]) for episode in episodes])
    return Foreign(
        obs=_joined([episode[0] for episode in episodes], "observations"),
        action=_joined([episode[1] for episode in episodes], "actions"),
        reward=_joined([episode[2] for episode in episodes], "rewards") if sizes == {3} else None,
        terminated=None if terminated is None else _marked(lengths, terminated),
        length=lengths,
    )


def _joined(parts: Sequence[Array], what: str) -> Array:
    shapes = {part.shape[1:] for part in parts}
    if len(shapes) > 1:
        raise FormatError(f"{what} of different shapes: {' and '.join(map(str, sorted(shapes)))}")
    return np.concatenate(parts)


def _marked(lengths: Array, terminated: Sequence[bool]) -> Array:
    """A flag for each step, set at the last one of the episodes that terminated."""
    if len(terminated) != len(lengths):
        raise FormatError(f"{len(terminated)} marks of termination for {len(lengths)} episodes")
    flags = np.zeros(int(lengths.sum()))
    flags[np.cumsum(lengths) - 1] = np.asarray(terminated, dtype=np.float64)
    return flags

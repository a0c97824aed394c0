"""Steps as another format gives them, and the law by which they become episodes with true successors.

A transition needs its successor. Formats that store one observation per action do not have that of an episode's last
step, so this step is dropped, and said to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ilde.demos.archive import FormatError
from ilde.demos.demonstrations import MIN_TRANSITIONS, Episode
from ilde.envs.base import Array

Storing: TypeAlias = Literal["successors", "one more", "one each"]
"""How successors are stored: an array of their own, one observation more per episode, or none for the last step."""

NO_TIME_LIMITS = "this format does not tell time limits from terminations: every marked end is taken for a termination"


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """Steps of all episodes, one after another; `action` has N of them."""

    action: Array
    obs: Array
    """One for each action, or one more for each episode."""
    next_obs: Array | None = None
    reward: Array | None = None
    terminated: Array | None = None
    truncated: Array | None = None
    trembled: Array | None = None
    length: Array | None = None
    """The steps of each episode; without it, episodes end where a step is marked as an end."""
    life_lost: Array | None = None
    seed: Array | None = None
    """The reset seed of each episode; -1: unknown."""
    env_id: str | None = None
    header: bytes | None = None
    """The header that ilde added when it exported them."""
    notes: tuple[str, ...] = ()
    """What a user should know about the reading."""


@dataclass(frozen=True)
class Assembled:
    """Episodes, and the returns they had before a step was dropped."""

    episodes: tuple[Episode, ...]
    returns: tuple[float, ...]
    notes: tuple[str, ...]


def assemble(foreign: Foreign) -> Assembled:
    """Cut the steps into episodes; raises `FormatError` where the arrays contradict each other."""
    steps = _Steps.of(foreign)
    ends = _ends(foreign, steps.terminated | steps.truncated)
    storing = _storing(foreign, len(ends))
    life_lost, seeds = _flags(foreign.life_lost, len(ends), "lost lives"), _seeds(foreign.seed, len(ends))
    episodes, returns, start = [], [], 0
    for number, stop in enumerate((ends + 1).tolist()):
        kept = slice(start, stop - 1 if storing == "one each" else stop)
        ended = kept.stop == stop
        if kept.stop > start:
            episode = Episode(
                obs=_observations(foreign, storing, number, start, stop),
                action=foreign.action[kept],
                reward=steps.reward[kept],
                trembled=steps.trembled[kept],
                terminated=ended and bool(steps.terminated[stop - 1]),
                truncated=ended and bool(steps.truncated[stop - 1]),
                life_lost=ended and bool(life_lost[number]),
                seed=seeds[number],
            )
            episodes.append(episode)
            returns.append(float(steps.reward[start:stop].sum()))
        start = stop
    _check_enough(sum(map(len, episodes)))
    known = () if foreign.reward is None else tuple(returns)
    return Assembled(tuple(episodes), known, (*foreign.notes, *_notes(foreign, storing, len(ends))))


@dataclass(frozen=True)
class _Steps:
    """What is known of each step, zero where it is not."""

    reward: Array
    terminated: Array
    truncated: Array
    trembled: Array

    @staticmethod
    def of(foreign: Foreign) -> _Steps:
        count = len(foreign.action)
        terminated = _flags(foreign.terminated, count, "terminations")
        return _Steps(
            reward=_numbers(foreign.reward, count, "rewards"),
            terminated=terminated,
            truncated=_flags(foreign.truncated, count, "time limits") & ~terminated,
            trembled=_flags(foreign.trembled, count, "trembles"),
        )


def _ends(foreign: Foreign, ended: Array) -> Array:
    """The last step of each episode."""
    steps = len(ended)
    _check_enough(steps)
    goes_on = _goes_on(foreign)
    if foreign.length is None:
        if goes_on is None and not ended.any() and len(foreign.obs) != steps + 1:
            raise FormatError("no episode boundaries: add an array 'episode_lengths', 'terminals' or 'timeouts'")
        breaks = np.zeros(steps, np.bool_) if goes_on is None else ~goes_on
        return np.flatnonzero(np.append((ended | breaks)[:-1], True))
    ends = _checked_ends(foreign.length, steps)
    inner = np.ones(steps, np.bool_)
    inner[ends] = False
    _refuse_first(ended & inner, ends, "marked as an end inside its episode")
    if goes_on is not None:
        _refuse_first(~goes_on & inner, ends, "its next observation is not the observation of the step after it")
    return ends


def _checked_ends(length: Array, steps: int) -> Array:
    if length.ndim != 1 or length.dtype.kind not in "iu":
        raise FormatError(f"episode lengths {length.shape} {length.dtype}; expected whole numbers, one per episode")
    lengths = length.tolist()  # Python's numbers cannot overflow
    if any(steps_of < 1 for steps_of in lengths):
        number = next(n for n, steps_of in enumerate(lengths) if steps_of < 1)
        raise FormatError(f"episode {number}: no transitions (length {lengths[number]})")
    if sum(lengths) != steps:
        raise FormatError(f"the episode lengths add up to {sum(lengths):,}; there are {steps:,} actions")
    return np.cumsum(length.astype(np.int64)) - 1


def _goes_on(foreign: Foreign) -> Array | None:
    """Where (N,) the successor is the next step's observation; None where successors are not stored."""
    if foreign.next_obs is None:
        return None
    obs, successors = foreign.obs, foreign.next_obs
    if obs.shape != successors.shape or len(obs) != len(foreign.action):
        raise FormatError(
            f"observations {obs.shape}, next observations {successors.shape} and {len(foreign.action):,} actions "
            "do not go together"
        )
    # NaN goes on as NaN: it is refused later, with its place.
    same = (obs[1:] == successors[:-1]) | ((obs[1:] != obs[1:]) & (successors[:-1] != successors[:-1]))
    return np.append(same.reshape(len(same), -1).all(axis=1), False)


def _refuse_first(bad: Array, ends: Array, what: str) -> None:
    if bad.any():
        step = int(np.flatnonzero(bad)[0])
        number = int(np.searchsorted(ends, step))
        start = int(ends[number - 1]) + 1 if number else 0
        raise FormatError(f"episode {number} step {step - start}: {what}")


def _storing(foreign: Foreign, num_episodes: int) -> Storing:
    if foreign.next_obs is not None:
        return "successors"
    steps, count = len(foreign.action), len(foreign.obs)
    if count == steps + num_episodes:
        return "one more"
    if count == steps:
        return "one each"
    raise FormatError(
        f"{count:,} observations for {steps:,} actions in {num_episodes:,} episodes; expected {steps:,} (one per "
        f"action) or {steps + num_episodes:,} (one more per episode)"
    )


def _observations(foreign: Foreign, storing: Storing, number: int, start: int, stop: int) -> Array:
    match storing:
        case "successors":
            assert foreign.next_obs is not None
            return np.concatenate([foreign.obs[start:stop], foreign.next_obs[stop - 1 : stop]])
        case "one more":
            return foreign.obs[start + number : stop + number + 1]
        case "one each":
            return foreign.obs[start:stop]


def _numbers(array: Array | None, count: int, what: str) -> Array:
    if array is None:
        return np.zeros(count)
    if array.shape == (count, 1):
        array = array[:, 0]
    if array.shape != (count,) or array.dtype.kind not in "biuf":
        raise FormatError(f"{what} {array.shape} {array.dtype}; expected {count:,} numbers")
    return array.astype(np.float64)


def _flags(array: Array | None, count: int, what: str) -> Array:
    numbers = _numbers(array, count, what)
    if not np.isin(numbers, (0, 1)).all():
        raise FormatError(f"{what} hold values other than 0 and 1")
    return np.equal(numbers, 1)


def _seeds(seeds: Array | None, count: int) -> list[int | None]:
    if seeds is None:
        return [None] * count
    if seeds.shape != (count,) or seeds.dtype.kind not in "iu":
        raise FormatError(f"seeds {seeds.shape} {seeds.dtype}; expected {count:,} whole numbers")
    return [seed if seed >= 0 else None for seed in seeds.tolist()]


def _check_enough(steps: int) -> None:
    if steps < MIN_TRANSITIONS:
        raise FormatError(f"{'1 transition' if steps == 1 else 'no transitions'}; need at least {MIN_TRANSITIONS}")


def _notes(foreign: Foreign, storing: Storing, num_episodes: int) -> list[str]:
    notes = []
    if storing == "one each":
        notes.append(f"dropped the last step of each episode ({num_episodes:,} in all): its successor is not stored")
    if foreign.reward is None:
        notes.append("no rewards: what the demonstrator scores is not known, so nothing will be compared with it")
    if foreign.terminated is None and storing != "one each":
        notes.append("no terminations are marked: no episode is taken to have ended")
    return notes

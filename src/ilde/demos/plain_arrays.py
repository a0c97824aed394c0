"""Plain arrays in an `.npz` of anyone's: which name stands for what."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ilde.demos import archive
from ilde.demos.archive import FormatError
from ilde.demos.foreign import NO_TIME_LIMITS, Foreign
from ilde.envs.base import Array

NAMES: Mapping[str, tuple[str, ...]] = {
    "obs": ("observations", "obs", "observation", "states"),
    "action": ("actions", "acts", "action"),
    "next_obs": ("next_observations", "next_obs", "new_obs", "next_states"),
    "reward": ("rewards", "rews", "reward"),
    "terminated": ("terminals", "terminateds", "terminated", "terminations", "terminal"),
    "done": ("dones", "done"),
    "truncated": ("timeouts", "truncateds", "truncated", "truncations"),
    "trembled": ("trembled",),
    "length": ("episode_lengths", "lengths", "length"),
    "starts": ("episode_starts",),
    "ends": ("episode_ends",),
    "life_lost": ("episode_life_lost",),
    "seed": ("episode_seeds",),
    "env_id": ("env_id",),
    "header": ("ilde_header",),
}
"""What each array is, and what it may be called; the first name is the one exports use."""


def read(path: Path) -> Foreign:
    """The steps in an `.npz` of plain arrays."""
    arrays = archive.read_arrays(path)
    roles = _roles(arrays)
    for role in ("obs", "action"):
        if role not in roles:
            raise FormatError(f"no entry {' or '.join(map(repr, NAMES[role]))}")
    action = _sequence(roles["action"], "actions")
    truncated, terminated = roles.get("truncated"), roles.get("terminated")
    notes = _ignored(arrays)
    if terminated is None and "done" in roles:
        terminated = roles["done"]  # where time limits are marked as well, they are taken out on the way
        if truncated is None:
            notes += (NO_TIME_LIMITS,)
        else:
            terminated = terminated.astype(np.bool_) & ~truncated.astype(np.bool_)
    return Foreign(
        obs=_sequence(roles["obs"], "observations"),
        action=action,
        next_obs=roles.get("next_obs"),
        reward=roles.get("reward"),
        terminated=terminated,
        truncated=truncated,
        trembled=roles.get("trembled"),
        length=_lengths(roles, len(action)),
        life_lost=roles.get("life_lost"),
        seed=roles.get("seed"),
        env_id=str(roles["env_id"]) if "env_id" in roles else None,
        header=roles["header"].tobytes() if "header" in roles else None,
        notes=notes,
    )


def _roles(arrays: Mapping[str, Array]) -> dict[str, Array]:
    roles = {}
    for role, names in NAMES.items():
        found = [name for name in names if name in arrays]
        if len(found) > 1:
            raise FormatError(f"{found[0]!r} and {found[1]!r} mean the same; keep one of them")
        if found:
            roles[role] = arrays[found[0]]
    return roles


def _ignored(arrays: Mapping[str, Array]) -> tuple[str, ...]:
    known = {name for names in NAMES.values() for name in names}
    unknown = sorted(name for name in arrays if name not in known)
    return (f"ignored entries {', '.join(repr(name[:40]) for name in unknown)}",) if unknown else ()


def _sequence(array: Array, what: str) -> Array:
    if array.ndim == 0 or array.dtype.kind not in "biuf":
        raise FormatError(f"{what} {array.shape} {array.dtype}; expected numbers, one row per step")
    return array


def _lengths(roles: Mapping[str, Array], steps: int) -> Array | None:
    given = [role for role in ("length", "starts", "ends") if role in roles]
    if len(given) > 1:
        raise FormatError(f"{NAMES[given[0]][0]!r} and {NAMES[given[1]][0]!r} both set the episodes; keep one of them")
    match given:
        case ["length"]:
            return roles["length"]
        case ["starts"]:
            starts = roles["starts"]
            if starts.shape != (steps,) or not steps or not starts[0]:
                raise FormatError("'episode_starts' must mark the first step of each episode, step 0 too")
            return np.diff(np.append(np.flatnonzero(starts), steps))
        case ["ends"]:
            ends = roles["ends"]
            if ends.ndim != 1 or ends.dtype.kind not in "iu":
                raise FormatError("'episode_ends' must count the steps up to the end of each episode")
            return np.diff(ends.astype(np.int64), prepend=0)
    return None

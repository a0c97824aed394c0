"""Readers of HDF5 files, for a process of their own (`apart`): the experts of old GAIL, and Minari's data sets.

Links and data stored outside of the file are refused, and sizes are checked as declared, before anything is read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import h5py
import numpy as np
from numpy.typing import NDArray

Spend: TypeAlias = Callable[[int], None]
EpisodeArrays: TypeAlias = dict[str, NDArray[Any]]

_EPISODE = re.compile(r"episode_(\d{1,9})")


def gail(path: Path, spend: Spend) -> Iterator[EpisodeArrays]:
    """Trajectories padded to one length: `obs_B_T_Do`, `a_B_T_Da`, `r_B_T`, and `len_B`, how much of each counts."""
    with _opened(path) as file:
        obs, action, reward, length = (_array(file, n, spend) for n in ("obs_B_T_Do", "a_B_T_Da", "r_B_T", "len_B"))
    if reward.ndim != 2 or not obs.shape[:2] == action.shape[:2] == reward.shape or length.shape != reward.shape[:1]:
        sys.exit(
            f"obs_B_T_Do {obs.shape}, a_B_T_Da {action.shape}, r_B_T {reward.shape} and len_B {length.shape} "
            "do not go together"
        )
    for number, steps in enumerate(length.tolist()):
        if not (1 <= steps <= reward.shape[1] and steps == int(steps)):
            sys.exit(f"len_B: episode {number} has length {steps}; expected 1 to {reward.shape[1]}")
        kept = slice(int(steps))
        yield {"obs": obs[number, kept], "action": action[number, kept], "reward": reward[number, kept]}


def minari(path: Path, spend: Spend) -> Iterator[EpisodeArrays]:
    """The groups `episode_0`, `episode_1`, ... of a Minari data set."""
    with _opened(path) as file:
        numbers = sorted(int(match[1]) for name in file if (match := _EPISODE.fullmatch(name)))
        for number in numbers:
            yield _minari_episode(_linked(file, f"episode_{number}"), spend)


def _minari_episode(group: Any, spend: Spend) -> EpisodeArrays:
    if not isinstance(group, h5py.Group):
        sys.exit("an episode is not a group")
    episode = {
        "obs": _array(group, "observations", spend),
        "action": _array(group, "actions", spend),
        "reward": _array(group, "rewards", spend),
        "terminated": _array(group, "terminations", spend),
        "truncated": _array(group, "truncations", spend),
        "seed": _whole_number(group.attrs, "seed", -1),
        "life_lost": _whole_number(group.attrs, "life_lost", 0),
    }
    infos = _linked(group, "infos") if "infos" in group else None
    if isinstance(infos, h5py.Group) and "trembled" in infos:
        episode["trembled"] = _array(infos, "trembled", spend)[1:]  # infos have one entry more, that of the reset
    return episode


def _opened(path: Path) -> Any:
    if not h5py.is_hdf5(path):
        sys.exit("not an HDF5 file")
    try:
        return h5py.File(path, "r")
    except OSError as error:
        sizes = re.search(r"eof = (\d+).*stored_eof = (\d+)", str(error))
        if sizes is None:
            raise
        sys.exit(f"truncated: {int(sizes[1]):,} of {int(sizes[2]):,} bytes")


def _whole_number(attributes: Any, name: str, default: int) -> NDArray[Any]:
    value = np.asarray(attributes.get(name, default))
    return value.astype(np.int64) if value.shape == () and value.dtype.kind in "biu" else np.array(default)


def _linked(group: Any, name: str) -> Any:
    link = group.get(name, getlink=True)
    if link is None:
        sys.exit(f"no entry {name!r} in {group.name}; it has {', '.join(sorted(group)[:8])}")
    if not isinstance(link, h5py.HardLink):
        sys.exit(f"{name}: a link to another place; refused")
    return group[name]


def _array(group: Any, name: str, spend: Spend) -> NDArray[Any]:
    item = _linked(group, name)
    if not isinstance(item, h5py.Dataset):
        sys.exit(f"{item.name} is a group, not one array; ilde learns from arrays")
    if item.external or item.is_virtual:
        sys.exit(f"{item.name}: stored outside of this file; refused")
    if item.dtype.kind not in "biuf" or item.ndim == 0:
        sys.exit(f"{item.name} holds {item.dtype}, such as text or JPEG pictures; need plain numbers")
    spend(item.size * item.dtype.itemsize)
    read: NDArray[Any] = item[()]
    return read

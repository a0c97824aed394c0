"""Trajectories saved by the `imitation` library: a folder of Arrow files, or the `.npz` it wrote before 1.0.

Their `infos` hold pickles, or text that becomes objects when decoded. They are never looked at.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ilde.demos import archive
from ilde.demos.archive import FormatError
from ilde.demos.foreign import NO_TIME_LIMITS, Foreign
from ilde.demos.quarantine import read_apart

LEGACY_ENTRIES = frozenset({"obs", "acts", "terminal", "indices"})


def read(path: Path) -> Foreign:
    """The steps of saved trajectories."""
    if not path.is_dir():
        return _read_legacy(path)
    if not any(path.glob("*.arrow")):
        raise FormatError("no trajectories of `imitation`: the folder has no .arrow file")
    return Foreign(**read_apart("arrow.imitation", path), notes=(NO_TIME_LIMITS,))


def _read_legacy(path: Path) -> Foreign:
    """`indices` has the step at which each trajectory but the first starts; `terminal` has one flag per trajectory."""
    arrays = archive.read_arrays(path, unread=("infos",))
    missing = sorted(LEGACY_ENTRIES - arrays.keys())
    if missing:
        raise FormatError(f"no trajectories of `imitation`: no entry {missing[0]!r}")
    action, indices, terminal = arrays["acts"], arrays["indices"], arrays["terminal"]
    if action.ndim == 0 or indices.ndim != 1 or indices.dtype.kind not in "iu" or terminal.shape != (len(indices) + 1,):
        raise FormatError(
            f"acts {action.shape}, indices {indices.shape} and terminal {terminal.shape} do not go together"
        )
    length = np.diff(indices.astype(np.int64), prepend=0, append=len(action))
    if not (length > 0).all():
        raise FormatError("'indices' must grow from trajectory to trajectory and stay below the number of steps")
    terminated = np.zeros(len(action), np.bool_)
    terminated[np.cumsum(length) - 1] = terminal.astype(np.bool_)
    return Foreign(
        obs=arrays["obs"],
        action=action,
        reward=arrays.get("rews"),
        terminated=terminated,
        length=length,
        notes=(NO_TIME_LIMITS,),
    )

"""Run as a script in a process of its own: calls a reader and writes the episodes it finds as plain arrays.

Nothing of ilde is imported here or in the readers, so that the process starts quickly and its limits bind before a byte
of the file is read. A refusal is the text of `sys.exit`.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PER_EPISODE = ("seed", "life_lost")


class Budget:
    """What may still be read into memory; a reader asks before it reads."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes, self.asked = limit_bytes, 0

    def spend(self, num_bytes: int) -> None:
        """Ask for memory."""
        self.asked += num_bytes
        if self.asked > self.limit_bytes:
            sys.exit(f"expands to {self.asked / 2**30:,.1f} GiB (limit {self.limit_bytes / 2**30:,.1f} GiB)")


def join(episodes: Iterable[Mapping[str, NDArray[Any]]]) -> dict[str, Any]:
    """The arrays of all episodes, one after another, and the length of each; refuses what does not fit together."""
    kept = list(episodes)
    if not kept:
        sys.exit("no transitions; need at least 2")
    surplus = len(kept[0]["obs"]) - len(kept[0]["action"])
    for number, episode in enumerate(kept):
        _check(number, episode, kept[0], surplus)
    joined = {name: np.concatenate([e[name] for e in kept]) for name in kept[0] if name not in PER_EPISODE}
    joined |= {name: np.array([e[name] for e in kept]) for name in kept[0] if name in PER_EPISODE}
    return joined | {"length": np.array([len(e["action"]) for e in kept], np.int64)}


def _check(number: int, episode: Mapping[str, NDArray[Any]], first: Mapping[str, NDArray[Any]], surplus: int) -> None:
    if episode.keys() != first.keys():
        sys.exit(f"episode {number}: holds {', '.join(episode)}; episode 0 holds {', '.join(first)}")
    steps = len(episode["action"])
    for name in [name for name in episode if name not in PER_EPISODE]:
        expected = steps + surplus if name == "obs" else steps
        if len(episode[name]) != expected or surplus not in (0, 1):
            sys.exit(f"episode {number}: {len(episode[name]):,} entries of {name} for {steps:,} actions")
        if episode[name].shape[1:] != first[name].shape[1:]:
            sys.exit(f"episode {number}: {name} {episode[name].shape[1:]}; episode 0 has {first[name].shape[1:]}")


def _limit_memory(num_bytes: int) -> None:
    # Missing on some systems; there the time limit is what is left.
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (num_bytes, num_bytes))


def main(reader: str, function: str, source: str, target: str, limit_bytes: str, memory_bytes: str) -> None:
    """Read one file or folder."""
    _limit_memory(int(memory_bytes))
    try:
        read = runpy.run_path(reader)[function]
        arrays = join(read(Path(source), Budget(int(limit_bytes)).spend))
    except MemoryError:
        sys.exit("does not fit into memory")
    except Exception as error:  # the libraries raise whatever the damage leads to
        sys.exit(f"damaged or truncated: cannot be read ({type(error).__name__})")
    try:
        np.savez(target, **arrays)
    except OSError as error:
        sys.exit(f"no room to unpack it: {error.strerror or error}; let TMPDIR name a larger disk")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The names of environments: what a user may type, and the one form demonstrations and run directories carry."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from ilde.data import UserError

_ATARI_PREFIX, _ATARI_SUFFIX = "ALE/", "-v5"
# Two-player games: ale-py ships their ROMs, but its single-player simulator ends the whole process on them.
_TWO_PLAYER_GAMES = frozenset({"combat", "joust", "maze_craze", "warlords"})
_KINDS = {"gymnasium.envs.classic_control": "classic", "gymnasium.envs.mujoco": "mujoco"}
_SIMULATORS = ("gymnasium", "ale-py", "mujoco")


def installed(module: str) -> bool:
    """Whether a module of an optional extra can be imported."""
    return find_spec(module) is not None


def is_atari(env_id: str) -> bool:
    """Whether a canonical id names an Atari game."""
    return env_id.startswith(_ATARI_PREFIX)


def canonical_env_id(name: str) -> str:
    """The one form of an environment's name: a Gymnasium id as it is, an Atari game as `ALE/BeamRider-v5`.

    An Atari id names the game only (also `BeamRider` or `beam_rider`): ilde fixes frame skip, actions and rewards
    itself. `module:Id-v0` is passed on, and Gymnasium imports the module.
    """
    if ":" in name or (name in gym.registry and not _from_ale(gym.registry[name])):
        return name
    if is_atari(name) and not installed("ale_py"):
        raise UserError(f"{name}: Atari games need ale-py: pip install ilde[atari]")
    bare = name.removeprefix(_ATARI_PREFIX).removesuffix(_ATARI_SUFFIX) if is_atari(name) else name
    game = _squeezed(bare)
    if game in _atari_ids():
        return _atari_ids()[game]
    raise UserError(f"unknown environment {name!r}{_did_you_mean(name)}")


def atari_game(env_id: str) -> str:
    """The ROM's name of a canonical Atari id."""
    return next(game for game in _atari_games() if _atari_ids()[_squeezed(game)] == env_id)


def list_envs() -> list[dict[str, Any]]:
    """Every environment ilde can be named: `name`, `kind` (atari, mujoco, classic, other), `installed`."""
    found = [(name, _kind(spec)) for name, spec in gym.registry.items()]
    found += [(name, "atari") for name in _atari_ids().values()]
    present = {"mujoco": installed("mujoco")}
    return [
        {"name": name, "kind": kind, "installed": present.get(kind, True)}
        for name, kind in sorted(found, key=lambda pair: (pair[1] or "", pair[0]))
        if kind
    ]


def simulator_versions() -> dict[str, str]:
    """The versions of the installed simulators: they move results, so every run and demonstration records them."""
    versions = {}
    for package in _SIMULATORS:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def kind_of(env_id: str) -> str | None:
    """The kind of a registered Gymnasium id; None for one that needs what Gymnasium no longer ships."""
    return _kind(gym.registry[env_id]) if env_id in gym.registry else "other"


def _kind(spec: EnvSpec) -> str | None:
    origin = spec.entry_point if isinstance(spec.entry_point, str) else getattr(spec.entry_point, "__module__", "")
    for package, kind in _KINDS.items():
        if origin.startswith(package + "."):
            return kind
    return None if origin.startswith(("gymnasium", "ale_py")) else "other"


def _from_ale(spec: EnvSpec) -> bool:
    return isinstance(spec.entry_point, str) and spec.entry_point.startswith("ale_py")


def _squeezed(name: str) -> str:
    return name.replace("_", "").lower()


@cache
def _atari_games() -> tuple[str, ...]:
    from ale_py import roms

    return tuple(game for game in roms.get_all_rom_ids() if game not in _TWO_PLAYER_GAMES)


def _atari_ids() -> dict[str, str]:
    """Squeezed name -> canonical id of every playable game; empty without ale-py."""
    if not installed("ale_py"):
        return {}
    return {
        _squeezed(game): f"{_ATARI_PREFIX}{game.title().replace('_', '')}{_ATARI_SUFFIX}" for game in _atari_games()
    }


def _did_you_mean(name: str) -> str:
    known = {entry["name"].lower(): entry["name"] for entry in list_envs()}
    known |= {
        entry.removeprefix(_ATARI_PREFIX).removesuffix(_ATARI_SUFFIX).lower(): entry
        for entry in known.values()
        if is_atari(entry)
    }
    close = get_close_matches(name.lower(), known, n=3, cutoff=0.75)
    choices = list(dict.fromkeys(known[match] for match in close))
    if choices:
        return f"; did you mean {' or '.join(choices)}?"
    return ": see `ilde envs` for those there are; one of your own is MODULE:ID"

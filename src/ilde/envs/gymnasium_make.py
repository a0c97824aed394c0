"""`gymnasium.make` with its noise silenced and its many failures turned into one-line user errors."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym

from ilde.data import UserError
from ilde.envs.names import installed, kind_of

DRAWN = "to be watched it must take render_mode='rgb_array' and give a picture (docs/your-own.md)"
"""What is asked of an environment whose pictures are wanted."""


def make_gym(env_id: str, render_mode: str | None = None) -> gym.Env[Any, Any]:
    """Build one registered Gymnasium environment, or say in one line why it cannot be built here."""
    if kind_of(env_id) == "mujoco" and not installed("mujoco"):
        raise UserError(f"{env_id}: MuJoCo tasks need mujoco: pip install ilde[mujoco]")
    try:
        with _quiet_simulator(env_id):
            # Unasked for, because a user's own class need not know the word.
            drawn: dict[str, Any] = {} if render_mode is None else {"render_mode": render_mode}
            return gym.make(env_id, disable_env_checker=True, **drawn)
    except Exception as error:  # a user's class may fail in any way
        if isinstance(error, ModuleNotFoundError) and ":" in env_id:
            hint = "is its folder on PYTHONPATH? (PYTHONPATH=. for this one)"
            raise UserError(f"{env_id}: cannot be built: {error.__cause__ or error}; {hint}") from error
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        hint = f"; {DRAWN}" if render_mode is not None and isinstance(error, TypeError) else ""
        raise UserError(f"{env_id}: cannot be built: {reason}{hint}") from error


@contextmanager
def _quiet_simulator(env_id: str) -> Iterator[None]:
    """No advice on newer versions: the id is part of a result's name, so it is never out of date."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind_of(env_id) != "mujoco":
            yield
            return
        import mujoco

        # MuJoCo would print its model compiler's advice once per copy, and write it to a file in the current folder.
        handler = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(lambda _: None)
        try:
            yield
        finally:
            mujoco.set_mju_user_warning(handler)

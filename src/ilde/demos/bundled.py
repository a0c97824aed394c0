"""The data sets that come with the package, and how a DEMOS argument finds its file."""

from __future__ import annotations

import difflib
import json
from pathlib import Path

from ilde.data import UserError
from ilde.demos.demonstrations import Demonstrations
from ilde.demos.storage import load

FOLDER = Path(__file__).parent / "bundled"


def bundled_names() -> tuple[str, ...]:
    """All bundled data sets, like `halfcheetah-v5/weak-v0`."""
    return tuple(sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.npz")))


def expert_of(demos: Demonstrations) -> dict[str, str] | None:
    """How the expert behind a bundled data set came to be: task, the command that makes it again, commit, machine.

    None for anybody else's recording.
    """
    known: dict[str, dict[str, str]] = json.loads((FOLDER / "experts.json").read_text(encoding="utf-8"))
    return known.get(demos.header.recorder.rpartition(" ")[2])


def resolve(argument: str) -> Demonstrations:
    """The demonstrations of a bundled name or a path, with `:0.1` after it for the first 10 percent of each episode."""
    whole = _find(argument)
    if whole is not None:
        return load(whole)
    name, colon, suffix = argument.rpartition(":")
    path = _find(name) if colon else None
    if path is not None:
        return load(path).prefix(_fraction(argument, suffix))
    raise UserError(f"{argument}: no such file or bundled demonstration; {_remedy(name if colon else argument)}")


def findable(argument: str) -> bool:
    """Whether there is anything under such an argument."""
    return _find(argument) is not None or _find(argument.rpartition(":")[0]) is not None


def _find(name: str) -> Path | None:
    if name in bundled_names():
        return FOLDER / f"{name}.npz"
    path = Path(name)
    return path if name and path.exists() else None


def _fraction(argument: str, suffix: str) -> float:
    try:
        fraction = float(suffix)
    except ValueError:
        fraction = 0.0
    if not 0 < fraction <= 1:
        raise UserError(f"{argument}: the fraction {suffix!r} must be a number above 0 and at most 1")
    return fraction


def _remedy(name: str) -> str:
    close = difflib.get_close_matches(name, bundled_names(), n=1)
    return f"did you mean `{close[0]}`?" if close else "`ilde demos list` shows the bundled ones"

"""What a demonstration says about its origin: JSON, checked field by field because a file may come from a stranger."""

from __future__ import annotations

import json
import math
import string
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from ilde.demos.archive import FormatError

FORMAT_VERSION = 1
MAX_TEXT = 4096

Until: TypeAlias = Literal["life", "episode"]


@dataclass(frozen=True)
class Demonstrator:
    """The evaluation of the policy that was recorded: true returns of whole episodes."""

    mean: float
    std: float
    episodes: int


@dataclass(frozen=True, kw_only=True)
class Header:
    """Where a demonstration comes from; the tuples have one entry per recorded episode."""

    env_id: str
    simulator_versions: Mapping[str, str]
    """Versions and settings that change what the same actions do."""
    recorder: str
    """`random`, or the policy in words (its run and the hash of its checkpoint)."""
    seeds: tuple[int | None, ...]
    """The reset seed of each episode, where known."""
    returns: tuple[float, ...]
    """The true return of each episode as recorded, before any prefix was taken; none where rewards are not known."""
    lives: tuple[int, ...]
    """How often each episode terminated while it was recorded: in Atari, the lives lost."""
    until: Until
    greedy: bool
    tremble: float
    """The probability with which a uniformly random action replaced the chosen one."""
    created: str
    command: str
    demonstrator: Demonstrator | None = None
    fraction: float = 1.0
    """The part of each recorded episode that is kept."""
    content_hash: str = ""
    """`Demonstrations.content_hash` when last saved; a prefix keeps that of its source."""
    format_version: int = FORMAT_VERSION

    def to_json(self) -> bytes:
        """The header as it is stored."""
        return json.dumps(asdict(self), sort_keys=True).encode()

    @staticmethod
    def from_json(document: bytes) -> Header:
        """The header of a file; raises `FormatError` naming the first field that is missing, unknown or wrong."""
        fields = _json_object(document)
        version = fields.get("format_version")
        if type(version) is int and version > FORMAT_VERSION:
            raise FormatError(f"format version {version}; this ilde reads {FORMAT_VERSION}: upgrade ilde")
        for name in sorted(_RULES.keys() | fields.keys()):
            if name not in _RULES:
                raise FormatError(f"header: unknown field {name[:40]!r}")
            if name not in fields:
                raise FormatError(f"header: {name} is missing")
            expected, holds = _RULES[name]
            if not holds(fields[name]):
                raise FormatError(f"header: {name} must be {expected}")
        for name in ("seeds", "returns", "lives"):
            fields[name] = tuple(fields[name])
        if fields["demonstrator"] is not None:
            fields["demonstrator"] = Demonstrator(**fields["demonstrator"])
        return Header(**fields)


def _json_object(document: bytes) -> dict[str, Any]:
    def refuse_constant(name: str) -> float:
        raise ValueError(f"{name} is not JSON")

    try:
        fields = json.loads(document.decode(), parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise FormatError("header is not JSON") from error
    if not isinstance(fields, dict):
        raise FormatError("header is not a JSON object")
    return fields


def _is_text(value: Any) -> bool:
    # Printable, because these words end up in one-line messages and on terminals.
    return isinstance(value, str) and len(value) <= MAX_TEXT and value.isprintable()


def _is_text_map(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_text(key) and _is_text(item) for key, item in value.items())


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _is_natural(value: Any) -> bool:
    return type(value) is int and value >= 0


def _list_of(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(holds(item) for item in value)


def _is_demonstrator(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict) or value.keys() != {"mean", "std", "episodes"}:
        return False
    return _is_number(value["mean"]) and _is_number(value["std"]) and _is_natural(value["episodes"])


def _is_sha256(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 64 and set(value) <= set(string.hexdigits.lower())


_TEXT = (f"printable text of at most {MAX_TEXT} characters", _is_text)
_RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "env_id": _TEXT,
    "simulator_versions": ("a map of text to text", _is_text_map),
    "recorder": _TEXT,
    "seeds": ("a list of whole numbers or null", _list_of(lambda seed: seed is None or _is_natural(seed))),
    "returns": ("a list of finite numbers", _list_of(_is_number)),
    "lives": ("a list of whole numbers", _list_of(_is_natural)),
    "until": ("'life' or 'episode'", lambda value: value in ("life", "episode")),
    "greedy": ("true or false", lambda value: isinstance(value, bool)),
    "tremble": ("a number from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1),
    "created": _TEXT,
    "command": _TEXT,
    "demonstrator": ("null or an object with mean, std and episodes", _is_demonstrator),
    "fraction": ("a number above 0 and at most 1", lambda value: _is_number(value) and 0 < value <= 1),
    "content_hash": ("a SHA-256 in hexadecimal", _is_sha256),
    "format_version": (f"{FORMAT_VERSION}", lambda value: type(value) is int and value == FORMAT_VERSION),
}

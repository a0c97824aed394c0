"""Frozen dataclasses as settings: a JSON round trip and overrides by dotted name, every mistake named."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Literal, TypeVar

from ilde.data import UserError


def did_you_mean(name: str, known: list[str]) -> str:
    """The closest known name as a question, or all of them."""
    close = get_close_matches(name, known, 1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"


C = TypeVar("C")


def to_dict(config: object) -> dict[str, Any]:
    """A JSON-ready dictionary."""
    assert dataclasses.is_dataclass(config)
    assert not isinstance(config, type)
    return dataclasses.asdict(config)


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of nested settings, by its dotted name."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def from_dict(cls: type[C], values: dict[str, Any], path: str = "") -> C:
    """The inverse of `to_dict`; unknown keys and wrong types are named."""
    hints = typing.get_type_hints(cls)
    unknown = next((key for key in values if key not in hints), None)
    if unknown is not None:
        raise UserError(f"unknown setting {path}{unknown}; {did_you_mean(unknown, list(hints))}")
    converted = {key: _convert(hints[key], value, f"{path}{key}") for key, value in values.items()}
    return cls(**converted)


def _convert(hint: Any, value: Any, path: str) -> Any:
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise UserError(f"{path}: expected settings, received {value!r}")
        return from_dict(typing.cast(type[Any], hint), value, f"{path}.")
    if isinstance(value, str) and hint is not str:
        return parse_value(hint, value, path)
    if not _fits(hint, value):
        raise UserError(f"{path}: {value!r} is not {_described(hint)}")
    return value


def check_types(config: object, path: str = "") -> None:
    """Raise, naming the setting, where a value is of another type than its field: in Python nothing else looks."""
    for name, hint in typing.get_type_hints(type(config)).items():
        value = getattr(config, name)
        if dataclasses.is_dataclass(hint):
            kind = typing.cast(type[Any], hint)
            if not isinstance(value, kind):
                raise UserError(f"{path}{name}: expected a {kind.__name__}, received {value!r}")
            check_types(value, f"{path}{name}.")
        elif not _fits(hint, value):
            raise UserError(f"{path}{name}: {value!r} is not {_described(hint)}")


def _fits(hint: Any, value: Any) -> bool:
    options = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        return value in options
    if options:
        return any(_fits(option, value) for option in options)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))


def parse_value(hint: Any, text: str, path: str) -> Any:
    """Read a field's value from the command line."""
    options = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        if text not in options:
            raise UserError(f"{path}: {text!r} is not one of {', '.join(map(str, options))}")
        return text
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return None if text.lower() == "none" else parse_value(options[0], text, path)
    if hint is bool:
        if text.lower() not in ("true", "false"):
            raise UserError(f"{path}: {text!r} is not true or false")
        return text.lower() == "true"
    try:
        # 1e6 is how people write a number of steps; plain digits keep them all.
        scientific = hint is int and "e" in text.lower() and float(text).is_integer()
        number = int(float(text)) if scientific else hint(text)
        if isinstance(number, float) and not math.isfinite(number):
            raise ValueError
        return number
    except (ValueError, OverflowError):
        raise UserError(f"{path}: {text!r} is not {_described(hint)}") from None


def _described(hint: Any) -> str:
    options = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, options))}"
    if options:
        return " or ".join(map(_described, options))
    names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", type(None): "none"}
    return names.get(hint, f"of type {hint}")


def override(config: C, path: str, text: str, prefix: str = "") -> C:
    """The configuration with one field, named by its dotted path, replaced; `prefix` is where it hangs itself."""
    assert dataclasses.is_dataclass(config)
    assert not isinstance(config, type)
    path = path.replace("-", "_")
    head, _, rest = path.partition(".")
    hints = typing.get_type_hints(type(config))
    whole = f"{prefix}{path}"
    if head not in hints:
        raise UserError(f"unknown setting {whole}; {did_you_mean(head, list(hints))}")
    if rest:
        inner = getattr(config, head)
        if not dataclasses.is_dataclass(inner):
            raise UserError(f"unknown setting {whole}; {head} has no parts")
        value = override(inner, rest, text, f"{prefix}{head}.")
    elif dataclasses.is_dataclass(hints[head]):
        raise UserError(f"{whole}: name one of its parts: {', '.join(typing.get_type_hints(hints[head]))}")
    else:
        value = parse_value(hints[head], text, whole)
    return typing.cast(C, dataclasses.replace(config, **{head: value}))

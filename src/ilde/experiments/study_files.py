"""Studies in files: TOML or JSON, bundled or the user's own; every mistake names the file and the key."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ilde.data import UserError
from ilde.experiments.grid import Grid, Task, Variant, naming
from ilde.fields import did_you_mean, leaves
from ilde.settings import Setting, parse_seeds

FOLDER = Path(__file__).parent / "studies"

GRID_KEYS = ("name", "description", "methods", "seeds", "tasks", "variants")
TASK_KEYS = ("env", "name", "demos", "preset", "steps", "methods", "overrides")
VARIANT_KEYS = ("name", "methods", "overrides")


def study_names() -> tuple[str, ...]:
    """All bundled studies."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def find_study(argument: str) -> Grid:
    """The study of a bundled name or a file."""
    if argument in study_names():
        return read_study(FOLDER / f"{argument}.toml")
    path = Path(argument)
    if not path.is_file():
        hint = did_you_mean(argument, list(study_names()))
        raise UserError(f"{argument}: no such file or bundled study; {hint}")
    return read_study(path)


def read_study(path: Path) -> Grid:
    """The study in a file; its name is the file's unless it says another."""
    document = _parse(path)
    with naming(str(path)):
        grid = _grid(_Table(document, "", GRID_KEYS), path.stem)
        grid.cells()
    return grid


def _parse(path: Path) -> dict[str, Any]:
    try:
        match path.suffix:
            case ".toml":
                document = tomllib.loads(path.read_text(encoding="utf-8"))
            case ".json":
                document = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_each_once)
            case _:
                raise UserError(f"{path}: a study is a .toml or .json file")
    except (OSError, ValueError) as error:  # what both parsers raise is a ValueError, and so is bad UTF-8
        raise UserError(f"{path}: cannot be read ({error})") from None
    if not isinstance(document, dict):
        raise UserError(f"{path}: is not a table of keys; see docs/scaling.md")
    return document


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, which may name a key twice, where TOML may not."""
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"{next(key for key in keys if keys.count(key) > 1)} stands twice")
    return values


def _grid(table: _Table, stem: str) -> Grid:
    return Grid(
        name=table.text("name") or stem,
        description=table.text("description") or "",
        methods=table.texts("methods"),
        seeds=table.seeds("seeds"),
        tasks=tuple(_task(entry) for entry in table.tables("tasks", TASK_KEYS)),
        variants=tuple(_variant(entry) for entry in table.tables("variants", VARIANT_KEYS)),
    )


def _task(table: _Table) -> Task:
    return Task(
        env=table.required("env"),
        name=table.text("name") or "",
        demos=table.text("demos"),
        preset=table.text("preset"),
        steps=table.steps("steps"),
        methods=table.texts("methods"),
        overrides=table.settings("overrides"),
    )


def _variant(table: _Table) -> Variant:
    return Variant(table.required("name"), table.texts("methods"), table.settings("overrides"))


class _Table:
    """One table of a study; what is wrong with a key is said with its place."""

    def __init__(self, values: object, place: str, known: tuple[str, ...]) -> None:
        if not isinstance(values, dict):
            raise UserError(f"{place.removesuffix('.')}: {values!r} is not a table of keys")
        stranger = next((key for key in values if key not in known), None)
        if stranger is not None:
            raise UserError(f"{place}{stranger}: unknown key; {did_you_mean(stranger, list(known))}")
        self._values, self._place = values, place

    def text(self, key: str) -> str | None:
        """A text; None if it is not there."""
        value = self._values.get(key)
        if value is not None and not isinstance(value, str):
            raise self._mistake(key, value, "a text")
        return value

    def required(self, key: str) -> str:
        """A text that must be there."""
        value = self.text(key)
        if not value:
            raise UserError(f"{self._place}{key}: missing")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, empty if it is not there."""
        value = self._values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise self._mistake(key, value, "a list of texts")
        return tuple(value)

    def steps(self, key: str) -> int | None:
        """A whole number; None if it is not there."""
        value = self._values.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value % 1):
            raise self._mistake(key, value, "a whole number")
        return None if value is None else int(value)

    def seeds(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers, or a text such as `0..3`."""
        match self._values.get(key):
            case str() as text:
                return parse_seeds(text)
            case list() as values if all(type(value) is int for value in values):
                return tuple(values)
            case value:
                raise self._mistake(key, value, "a list of whole numbers or a text such as '0..3'")

    def tables(self, key: str, known: tuple[str, ...]) -> Iterator[_Table]:
        """A list of tables, empty if it is not there."""
        value = self._values.get(key, [])
        if not isinstance(value, list):
            raise self._mistake(key, value, f"a list of tables; write [[{key}]]")
        return (_Table(entry, f"{key}[{index}].", known) for index, entry in enumerate(value))

    def settings(self, key: str) -> tuple[Setting, ...]:
        """Settings by dotted name, from tables within tables or from names with dots."""
        value = self._values.get(key, {})
        if not isinstance(value, dict):
            raise self._mistake(key, value, "a table of settings")
        return tuple((name, self._setting(f"{key}.{name}", setting)) for name, setting in leaves(value))

    def _setting(self, key: str, value: object) -> str:
        if not isinstance(value, str | int | float | None):
            raise self._mistake(key, value, "a text, a number or true or false")
        # 4e5 is how people write a number of steps, and a float in TOML.
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)

    def _mistake(self, key: str, value: object, expected: str) -> UserError:
        wrong = "missing, expected" if value is None else f"{value!r} is not"
        return UserError(f"{self._place}{key}: {wrong} {expected}")

"""A study as data: methods x tasks x variants x seeds, and the runs it stands for.

Every run has an id that is also its folder: `hopper-v5/ilde/lambda-2/seed-0`. The same study always gives the same ids
in the same order: the first seed of everything first, so that an unfinished study already has a number for each row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase

from ilde.config import RunConfig, find_preset
from ilde.data import UserError
from ilde.demos import resolve
from ilde.envs import canonical_env_id
from ilde.methods import find_method
from ilde.prepare import uses_demos
from ilde.rewards.expression import parse_expression
from ilde.runs.directory import CONFIG
from ilde.settings import Setting, compose

RESERVED = ("method", "env", "preset", "seed")
"""Settings with a key of their own in a study, which overrides must leave alone."""
TAKEN = ("lock", CONFIG)
"""Files that a study's folder may hold or must not, which no task's folder can be named after."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


@dataclass(frozen=True)
class Task:
    """What is to be learned: an environment, with its demonstrations and settings."""

    env: str
    name: str = ""
    """Its part of the ids; the environment's name in small letters if not given."""
    demos: str | None = None
    preset: str | None = None
    steps: int | None = None
    methods: tuple[str, ...] = ()
    """Those of the study that try it; none stands for all."""
    overrides: tuple[Setting, ...] = ()

    @property
    def label(self) -> str:
        """Its part of the ids."""
        return self.name or re.sub(r"[^a-z0-9.]+", "-", re.split("[/:]", self.env)[-1].lower()).strip("-.")

    @property
    def settings(self) -> tuple[Setting, ...]:
        """What it sets beside environment and preset."""
        named = (("demos", self.demos), ("steps", self.steps))
        return (*((key, str(value)) for key, value in named if value is not None), *self.overrides)


@dataclass(frozen=True)
class Variant:
    """A named list of overrides, tried beside others."""

    name: str
    methods: tuple[str, ...] = ()
    """Those of the study it applies to; none stands for all."""
    overrides: tuple[Setting, ...] = ()


@dataclass(frozen=True)
class Cell:
    """One run of a study."""

    id: str
    """Unique in its study, and the run's folder in the study's."""
    config: RunConfig
    task: str = ""
    variant: str = ""


@dataclass(frozen=True)
class Grid:
    """A study: every method on every task, in every variant that applies to it, with every seed."""

    name: str
    methods: tuple[str, ...]
    tasks: tuple[Task, ...]
    seeds: tuple[int, ...]
    variants: tuple[Variant, ...] = ()
    description: str = ""
    plain: bool = False
    """Whether a method runs as it is beside its variants too."""

    def __post_init__(self) -> None:
        _check_name("name", self.name)
        for method in self.methods:
            with naming("methods"):
                find_method(method)
        if any(seed < 0 for seed in self.seeds):
            raise UserError(f"seeds: {min(self.seeds)} is negative")
        for index, task in enumerate(self.tasks):
            _check_name(f"tasks[{index}].name", task.label, TAKEN)
        for index, variant in enumerate(self.variants):
            _check_name(f"variants[{index}].name", variant.name)
        self._check_lists()
        self._check_choices()
        self._check_settings()

    def _check_lists(self) -> None:
        lists = {
            "methods": self.methods,
            "tasks": [task.label for task in self.tasks],
            "seeds": self.seeds,
            "variants": [variant.name for variant in self.variants],
        }
        for key, entries in lists.items():
            if not entries and key != "variants":
                raise UserError(f"{key}: a study needs at least one")
            twice = next((entry for entry in entries if list(entries).count(entry) > 1), None)
            if twice is not None:
                raise UserError(f"{key}: {twice} stands twice; leave one out or give it another name")

    def _check_choices(self) -> None:
        groups: dict[str, Sequence[Task | Variant]] = {"tasks": self.tasks, "variants": self.variants}
        for key, group in groups.items():
            for index, entry in enumerate(group):
                stranger = next((method for method in entry.methods if method not in self.methods), None)
                if stranger is not None:
                    raise UserError(f"{key}[{index}].methods: {stranger!r} is not among the study's methods")
        if all(task.methods for task in self.tasks):
            idle = set(self.methods).difference(*(task.methods for task in self.tasks))
            if idle:
                raise UserError(f"methods: no task tries {min(idle)}; leave it out or name it in a task's methods")

    def _check_settings(self) -> None:
        tasks = [(f"tasks[{n}]", task.overrides, task.settings) for n, task in enumerate(self.tasks)]
        variants = [(f"variants[{n}]", v.overrides, v.overrides) for n, v in enumerate(self.variants)]
        for place, overrides, settings in (*tasks, *variants):
            reserved = next((name for name, _ in overrides if _spelled(name) in RESERVED), None)
            if reserved is not None:
                raise UserError(f"{place}.overrides: {reserved} has a key of its own in a study")
            names = [_spelled(name) for name, _ in settings]
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise UserError(f"{place}.overrides: {twice} stands twice; leave one out")

    def cells(self) -> tuple[Cell, ...]:
        """Its runs; a setting that makes no sense is named."""
        rows = [row for index, task in enumerate(self.tasks) for row in self._rows(f"tasks[{index}]", task)]
        return tuple(_seeded(row, seed) for seed in self.seeds for row in rows)

    def _rows(self, place: str, task: Task) -> Iterator[Cell]:
        """The task's runs, yet without a seed; a method that no variant applies to runs as it is."""
        with naming(f"{place}.env"):
            canonical_env_id(task.env)
        if task.preset is not None:
            with naming(f"{place}.preset"):
                find_preset(task.preset)
        for method in (method for method in self.methods if not task.methods or method in task.methods):
            plain = _composed(place, method, task, ())
            variants = [(n, v) for n, v in enumerate(self.variants) if not v.methods or method in v.methods]
            for index, variant in variants:
                config = _composed(f"variants[{index}] on {place}", method, task, variant.overrides)
                yield Cell(f"{task.label}/{method}/{variant.name}", config, task.label, variant.name)
            if self.plain or not variants:
                yield Cell(f"{task.label}/{method}", plain, task.label)


def chosen(cells: Sequence[Cell], patterns: Sequence[str]) -> tuple[Cell, ...]:
    """The runs whose ids match a pattern, such as `krull/*/seed-0`, in the patterns' order; without any all of them."""
    for pattern in patterns:
        if not any(fnmatchcase(cell.id, pattern) for cell in cells):
            close = get_close_matches(pattern, [cell.id for cell in cells], 1)
            hint = f"did you mean {close[0]}?" if close else f"the first is {cells[0].id}, --dry-run shows all"
            raise UserError(f"--only {pattern}: matches no run; {hint}")
    found = (cell for pattern in patterns for cell in cells if fnmatchcase(cell.id, pattern))
    return tuple({cell.id: cell for cell in found}.values()) if patterns else tuple(cells)


def check_demos(cells: Sequence[Cell]) -> None:
    """Refuse runs whose demonstrations are missing, cannot be read or show another environment, before any begins."""
    known: set[tuple[str, str]] = set()
    for cell in cells:
        demos, env = cell.config.demos, cell.config.env
        if not uses_demos(cell.config) or (demos, env) in known:
            continue
        with naming(f"{cell.id}: demos"):
            if demos is None:
                raise UserError(f"missing, and {cell.config.method} learns from them; name a bundled set or a file")
            resolve(demos).check_recorded_on(env, demos)
            known.add((demos, env))


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Say where a mistake stands."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{place}: {error}") from error


def _composed(place: str, method: str, task: Task, overrides: Sequence[Setting]) -> RunConfig:
    with naming(place):
        config = compose(method, task.env, task.preset, (*task.settings, *overrides))
        parse_expression(config.reward or find_method(method).reward)
        return config


def _seeded(row: Cell, seed: int) -> Cell:
    return replace(row, id=f"{row.id}/seed-{seed}", config=replace(row.config, seed=seed))


def _spelled(name: str) -> str:
    """A setting's name in the one spelling that configurations have."""
    return name.replace("-", "_")


def _check_name(key: str, name: str, taken: Sequence[str] = ()) -> None:
    if not _NAME.fullmatch(name):
        raise UserError(f"{key}: {name!r} cannot be a folder; use small letters, digits, '.', '_' and '-'")
    if name in taken:
        raise UserError(f"{key}: {name!r} is a file's name in the folder of a study; choose another")

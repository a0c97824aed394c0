"""The tables and figures of the paper with its numbers, as it prints them; one TOML file each.

Rows have our names: a method, or a method and a variant of it as in the ids of a study (`ilde/lambda-2`). A figure is a
table without rows: the paper gives no numbers for its curves, and none are read off.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ilde.data import UserError
from ilde.fields import did_you_mean

FOLDER = Path(__file__).parent

TABLES = (
    "atari",
    "normalised",
    "efficiency",
    "efficiency-vs-giril",
    "lambda",
    "noise",
    "iq-learn",
    "hype",
    "mujoco",
    "demo-lengths",
    "atari-curves",
    "mujoco-curves",
    "mujoco-ablations",
)

Domain: TypeAlias = Literal["atari", "mujoco", "hype", "demonstrators"]
"""Tables of one domain share budgets, demonstrations and protocol."""

_PRINTED = re.compile(r"(?P<mean>-?[\d,]+(?:\.(?P<decimals>\d+))?)(?: ± (?P<std>[\d,]+(?:\.\d+)?))?%?")


@dataclass(frozen=True)
class PaperValue:
    """One entry of a table."""

    mean: float | None
    """None where the paper prints a dash: never."""
    std: float | None
    printed: str
    decimals: int = 0
    """Of the mean, as printed."""

    def agrees_with(self, value: float) -> bool:
        """Whether a value, rounded as this one is, is printed the same."""
        return self.mean is not None and f"{value:.{self.decimals}f}" == f"{self.mean:.{self.decimals}f}"


Entries: TypeAlias = Mapping[str, PaperValue]


@dataclass(frozen=True)
class PaperTask:
    """A task under the paper's name."""

    name: str
    env: str
    """Ours."""
    folder: str
    """Of its bundled demonstrations, and its part of a run's id."""
    also: tuple[str, ...] = ()
    """Other versions of it: runs on them stand in its tables, under their own name, where it has none itself."""

    @property
    def envs(self) -> tuple[str, ...]:
        """All that answer for it."""
        return (self.env, *self.also)


@dataclass(frozen=True)
class ProtocolPoint:
    """A point in which our protocol is not, or not surely, the paper's."""

    point: str
    paper: str
    ours: str


@dataclass(frozen=True)
class PaperTable:
    """A table, or a figure, of the paper."""

    name: str
    title: str
    where: str
    """Section, number and label in the paper's source."""
    quantity: str
    """What the entries are."""
    domain: Domain
    tasks: tuple[PaperTask, ...]
    demonstrators: Entries
    """The expert's return, by task; empty where the paper gives none."""
    rows: Mapping[str, Entries]
    """Row, then task; empty for a figure."""
    labels: Mapping[str, str]
    """The paper's names of the rows."""
    totals: Mapping[str, Entries]
    """What the paper says of all tasks together: name of the total, then row (`expert` is the demonstrator's)."""
    steps: int | None
    """Agent steps of a run; None where the paper does not say."""
    seeds: int | None
    """Runs behind an entry; None where the paper does not say."""
    methods: tuple[str, ...]
    """Ours that its runs need, controls apart."""
    variants: Mapping[str, Mapping[str, str]]
    """Settings of the named variants of those methods, by dotted name; one without any is the method as it is."""
    notes: tuple[str, ...]
    """What is missing, unclear or at odds with itself."""
    protocol: tuple[ProtocolPoint, ...]

    @property
    def holds_returns(self) -> bool:
        """Whether its entries are returns, as the environment pays them."""
        return self.quantity.startswith("average return")

    @property
    def about_recordings(self) -> bool:
        """Whether its rows differ in what was demonstrated."""
        return self._varies("demos")

    @property
    def about_rewards(self) -> bool:
        """Whether its rows differ in the reward."""
        return self._varies("reward")

    def _varies(self, setting: str) -> bool:
        return any(setting in settings for settings in self.variants.values())

    def run_of(self, row: str) -> str:
        """What the runs of a row are called: one of a variant without settings is the method as it is."""
        method, _, variant = row.partition("/")
        return row if self.variants.get(variant) else method


def method_of(row: str) -> str:
    """The method of a row."""
    return row.partition("/")[0]


def parse_printed(text: str) -> PaperValue:
    """Read `11,453 ± 2,319`, `9.84%` or a dash."""
    if text == "-":
        return PaperValue(None, None, text)
    match = _PRINTED.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a number as the paper prints them")
    std = match["std"]
    return PaperValue(_number(match["mean"]), _number(std) if std else None, text, len(match["decimals"] or ""))


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def paper_tables() -> tuple[PaperTable, ...]:
    """All of them."""
    return tuple(paper_table(name) for name in TABLES)


@cache
def paper_table(name: str) -> PaperTable:
    """The table of that name."""
    if name not in TABLES:
        raise UserError(f"unknown table {name!r}; {did_you_mean(name, list(TABLES))}")
    document = _document(name)
    rows: dict[str, dict[str, str]] = document.get("rows", {})
    runs = _document(document.get("same_runs_as", name))
    return PaperTable(
        name=name,
        title=document["title"],
        where=document["where"],
        quantity=document["quantity"],
        domain=document["domain"],
        tasks=tuple(map(_task, document["tasks"])),
        demonstrators=_demonstrators(document),
        rows={row: _entries(values) for row, values in rows.items()},
        labels={row: values["label"] for row, values in rows.items()},
        totals={total: _entries(values) for total, values in document.get("totals", {}).items()},
        steps=document.get("steps"),
        seeds=document.get("seeds"),
        methods=tuple(runs.get("methods") or dict.fromkeys(map(method_of, runs["rows"]))),
        variants=runs.get("variants", {}),
        notes=tuple(document["notes"]),
        protocol=_protocol(document["domain"], name),
    )


def _task(name: str) -> PaperTask:
    entry = read_toml("tasks.toml")[name]
    return PaperTask(name, entry["env"], entry["folder"], tuple(entry.get("also", ())))


def _document(name: str) -> dict[str, Any]:
    return read_toml(f"tables/{name}.toml")


def _demonstrators(document: Mapping[str, Any]) -> Entries:
    origin = _document(document["demonstrators_of"]) if "demonstrators_of" in document else document
    experts = _entries(origin.get("demonstrators", {}))
    return {task: expert for task, expert in experts.items() if task in document["tasks"]}


def _protocol(domain: str, name: str) -> tuple[ProtocolPoint, ...]:
    """What differs in all tables of the domain, then in this one."""
    points = read_toml("protocol.toml")
    return tuple(ProtocolPoint(**point) for part in dict.fromkeys((domain, name)) for point in points.get(part, []))


@cache
def read_toml(name: str) -> dict[str, Any]:
    """A file of this package."""
    return tomllib.loads((FOLDER / name).read_text(encoding="utf-8"))


def _entries(texts: Mapping[str, str]) -> Entries:
    return {key: parse_printed(text) for key, text in texts.items() if key != "label"}

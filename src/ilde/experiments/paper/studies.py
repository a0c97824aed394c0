"""The runs behind each table, in three budgets, with the controls beside every method.

Studies of one budget may share a folder: the same id stands for the same run in all of them, and is not run twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from ilde.data import UserError
from ilde.experiments.grid import Grid, Task, Variant
from ilde.experiments.paper.tables import Domain, PaperTable, PaperTask, paper_table, read_toml
from ilde.fields import did_you_mean, leaves
from ilde.methods import find_method
from ilde.reports.comparison import CONTROLS
from ilde.settings import Setting

BudgetName: TypeAlias = Literal["smoke", "hours", "paper"]
BUDGETS: tuple[BudgetName, ...] = get_args(BudgetName)


@dataclass(frozen=True)
class Budget:
    """What a run of a domain may cost."""

    steps: int
    seeds: int
    preset: str | None = None
    """None lets each method take its usual one."""
    overrides: Mapping[str, object] = field(default_factory=dict)
    reading: Mapping[str, object] = field(default_factory=dict)
    """Of what the paper leaves open: the domain's, whatever a run may cost."""

    games: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Of that again, what a single task decides, by the paper's name for it."""

    def settings(self, task: str) -> tuple[Setting, ...]:
        """What is not the preset's, as a study has it; of two settings of one name the later part's counts."""
        parts = (self.reading, self.games.get(task, {}), self.overrides)
        return tuple({name: str(value) for part in parts for name, value in leaves(part)}.items())


def find_budget(domain: Domain, name: str) -> Budget:
    """The budget of that name."""
    if name not in BUDGETS:
        raise UserError(f"unknown budget {name!r}; {did_you_mean(name, list(BUDGETS))}")
    costs = read_toml("budgets.toml")[domain]
    return Budget(**costs[name], reading=costs.get("reading", {}), games=costs.get("games", {}))


def paper_study(name: str, budget: str) -> Grid:
    """The study that measures a table of the paper."""
    table = paper_table(name)
    cost = find_budget(table.domain, budget)
    methods = (*table.methods, *controls_of(table))
    # Controls that see demonstrations see those of every row: on another recording they can judge nothing.
    shown = [name for name in methods if table.about_recordings and find_method(name).demos != "unused"]
    varied = tuple(dict.fromkeys([*table.methods, *shown]))
    return Grid(
        name=f"{name}-{budget}",
        description=f"{table.title} ({table.where}), budget {budget}",
        methods=methods,
        tasks=tuple(_task(table.domain, task, cost) for task in table.tasks),
        seeds=tuple(range(cost.seeds)),
        variants=tuple(
            Variant(key, varied, tuple(leaves(changes))) for key, changes in table.variants.items() if changes
        ),
        plain=not all(table.variants.values()),
    )


def controls_of(table: PaperTable) -> tuple[str, ...]:
    """What its methods must beat at their own budget; demonstrators imitate nobody."""
    return () if table.domain == "demonstrators" else CONTROLS


def _task(domain: Domain, task: PaperTask, budget: Budget) -> Task:
    recording = read_toml("budgets.toml")[domain].get("demos")
    return Task(
        env=task.env,
        # HyPE's runs stand beside those of the MuJoCo table on the same task, with other demonstrations.
        name=f"{task.folder}-hype" if domain == "hype" else task.folder,
        demos=f"{task.folder}/{recording}" if recording else None,
        preset=budget.preset,
        steps=budget.steps,
        overrides=budget.settings(task.name),
    )

"""Writes results/todo.json: the runs that the paper's tables still need, in order, as commands.

    python tools/todo.py                # after new results: what they answer is left out

The runs are those of `ilde reproduce TABLE --budget hours`, in its folders, so that the same command finds them done.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ilde.config import RunConfig, to_dict
from ilde.envs.names import is_atari
from ilde.experiments.grid import Cell
from ilde.experiments.paper.studies import BudgetName, paper_study
from ilde.methods import find_method
from ilde.prepare import uses_demos
from ilde.reports.comparison import CONTROLS
from ilde.reports.gathering import gather
from ilde.reports.outcomes import Outcome, spelled_reward, split_demos, variant
from ilde.reports.writing import write_text
from ilde.settings import spelled

NOTE = "What the paper's tables still need, in order; every command can be stopped and resumed. By tools/todo.py."


@dataclass(frozen=True)
class Part:
    """Some runs of a table's study."""

    table: str
    rows: tuple[str, ...]
    """A method, or a method and a variant of it, as in the ids."""
    tasks: tuple[str, ...] = ()
    """None stands for all."""
    seeds: tuple[int, ...] = ()
    """Instead of the budget's own."""
    budget: BudgetName = "hours"


@dataclass(frozen=True)
class Step:
    """What is run together."""

    name: str
    parts: tuple[Part, ...]
    again: bool = False
    """Only what has run with features rounded by the size of their batch."""


ILDE = Part("atari", ("ilde",))
GAMES = ("qbert", "beam_rider", "demon_attack")
BASELINES = Part("atari", ("giril", "vail", *(name for name in CONTROLS if name != "shuffled")), GAMES)
SHUFFLED = Part("atari", ("shuffled",), GAMES)
"""Apart: where states alone are judged, as on games, it asks less than the other controls."""
ABLATIONS = ("ilde-no-curiosity", "ilde-no-bonus", "ilde-no-imitation")
MORE_SEEDS = (1, 2)
ROUNDED = ("1093c45", "c808c16", "82ca0f7", "821671f", "a60446a")
"""Sources of kept runs on games whose features depended on the size of their batch: they stand until run again."""

STEPS = (
    Step("a: ILDE on all six games, one seed", (ILDE,)),
    Step("b: GIRIL, VAIL and the controls on three games", (BASELINES,)),
    Step("a again, features at full precision", (ILDE,), again=True),
    Step("c: the ablations on three games", (Part("atari", ABLATIONS, ("qbert", "beam_rider", "battle_zone")),)),
    Step("b, the fifth control: the demonstrated states alone", (SHUFFLED,)),
    Step(
        "d: BeamRider at lambda 2 and with trembling hands; IQ-Learn on two games; HyPE on Hopper",
        (
            Part("lambda", ("ilde/lambda-2",)),
            Part("noise", tuple(f"{method}/tremble-0.3" for method in ("ilde", "shuffled", "wrong-demos"))),
            Part("iq-learn", ("iq-learn",), ("beam_rider", "qbert")),
            Part("hype", ("hype", "hype-ilde", *CONTROLS), ("hopper-v4-hype",)),
        ),
    ),
    Step(
        "MuJoCo: VAIL, GIRIL, ILDE and the controls, three seeds",
        (Part("mujoco", ("vail", "giril", "ilde", *CONTROLS)),),
    ),
    Step("MuJoCo: the ablations, three seeds", (Part("mujoco-ablations", ABLATIONS),)),
    Step(
        "MuJoCo: one run of ILDE with the paper's preset and steps",
        (Part("mujoco", ("ilde",), ("hopper-v4",), seeds=(0,), budget="paper"),),
    ),
    Step("e: more seeds of a and b", tuple(replace(part, seeds=MORE_SEEDS) for part in (ILDE, BASELINES, SHUFFLED))),
)
"""In the order in which they tell most."""


def cells_of(part: Part) -> Iterator[Cell]:
    """The runs of a part, the first seed of everything first."""
    study = paper_study(part.table, part.budget)
    for cell in replace(study, seeds=part.seeds or study.seeds).cells():
        row = cell.id.removeprefix(f"{cell.task}/").rpartition("/")[0]
        if row in part.rows and (not part.tasks or cell.task in part.tasks):
            yield cell


def answers(outcome: Outcome) -> Hashable:
    """What a finished run stands for."""
    recording = (outcome.demos, outcome.fraction)
    settings = (outcome.preset, outcome.variant, outcome.planned_steps, outcome.seed)
    return (outcome.task, outcome.method, outcome.reward, *settings, recording)


def asks(config: RunConfig) -> Hashable:
    """What a run that answers would stand for."""
    reward = spelled_reward(config.reward or find_method(config.method).reward)
    recording = split_demos(config.demos) if uses_demos(config) else (None, 1.0)
    settings = (config.preset, variant(to_dict(config)), config.steps, config.seed)
    return (config.env, config.method, reward, *settings, recording)


def queue(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The document."""
    finished = [outcome for outcome in outcomes if outcome.state == "finished" and outcome.greedy is not None]
    known = {answers(outcome) for outcome in finished}
    stale = known - {answers(outcome) for outcome in finished if not _rounded(outcome)}
    steps = []
    for step in STEPS:
        runs = [
            _run(part, cell)
            for part in step.parts
            for cell in cells_of(part)
            if (asks(cell.config) in stale if step.again else asks(cell.config) not in known)
        ]
        steps += [{"step": step.name, "runs": runs}] if runs else []
    return {"note": NOTE, "queue": steps}


def _rounded(outcome: Outcome) -> bool:
    source = outcome.provenance.get("source")
    commit = source.get("commit") if isinstance(source, dict) else source
    return is_atari(outcome.task) and str(commit).startswith(ROUNDED)


def _run(part: Part, cell: Cell) -> dict[str, str]:
    out = f"runs/reproduce-{part.budget}/{cell.id}"
    return {"id": cell.id, "command": shlex.join(["ilde", "train", *spelled(cell.config), f"--out={out}"])}


def document(results: Path) -> str:
    """The file that belongs beside some results."""
    return json.dumps(queue(gather(sorted(results.rglob("*.outcomes.json"))).outcomes), indent=1) + "\n"


def main() -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="DIR")
    results = parser.parse_args().results
    write_text(results / "todo.json", document(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What have the generative model and the discriminator of a run learned? Asked about play they were not fitted to.

    python tools/model_audit.py runs/a/seed-0 --game demon_attack/full-v0 --json results/model-audit.json
    python tools/model_audit.py --from results/model-audit.json --markdown results/model-audit.md

Three kinds of play before the models of the newest checkpoint: the run's demonstration, a recorded game of the same
demonstrator after as many steps, and a random policy. Of the curiosity: its error, how much that varies between steps,
how much it would vary with the action alone, its correlation with the squared distance to the nearest demonstrated
state and with the squared change to the successor, and the largest predicted beside the largest true feature. A model
of the demonstrator's transitions would notice a wrong action. Of the discriminator: the mean logit; one that knows the
demonstrator's ways gives the later play a high one, one that remembers states gives it what it gives chance.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ilde.data import Transitions, UserError
from ilde.demos import Demonstrations, resolve
from ilde.envs import make_envs, simulator_versions
from ilde.prepare import random_rollout
from ilde.reports.numbers import NOTHING
from ilde.reports.outcomes import variant
from ilde.reports.tables import WordTable
from ilde.reports.writing import publish, read_kept
from ilde.rewards.base import Encoded, encode
from ilde.rewards.discriminator import AdversarialReward
from ilde.rewards.generative import GenerativeReward
from ilde.runs import RunDirectory, collect_provenance
from ilde.trainer import Trainer
from ilde.watching import load_to_play

MOST = 1000
"""Transitions of each kind of play that are looked at, spread evenly over it."""
NUM_ENVS = 8
NUMBERS = {
    "error": "error",
    "spread_over_steps": "its spread over steps",
    "spread_over_actions": "over actions",
    "with_distance": "correlation with distance²",
    "with_change": "with change²",
    "largest_predicted": "largest predicted",
    "largest_true": "largest true",
    "logit": "logit",
}


def thinned(play: Transitions) -> Transitions:
    """At most so many of them, evenly spaced."""
    flat = play.flatten()
    return flat[torch.linspace(0, len(flat) - 1, min(MOST, len(flat))).long()]


def correlation(one: Tensor, other: Tensor) -> float | None:
    """Pearson's; None where one of them does not vary."""
    found = float(torch.corrcoef(torch.stack([one, other]).double())[0, 1])
    return found if math.isfinite(found) else None


@torch.no_grad()
def curiosity(term: GenerativeReward, play: Encoded, demos: Encoded) -> dict[str, float | None]:
    """What the error of the generative model depends on."""
    error = term.error(play)
    predicted = term.net.decode_next(play.action, play.features)
    return {
        "error": float(error.mean()),
        "spread_over_steps": float(error.std()),
        "spread_over_actions": _spread_over_actions(term, play) if term.discrete else None,
        "with_distance": correlation(error, torch.cdist(play.features, demos.features).min(1).values.square()),
        "with_change": correlation(error, (play.next_features - play.features).square().mean(-1)),
        "largest_predicted": float(predicted.abs().max()),
        "largest_true": float(play.next_features.abs().max()),
    }


def _spread_over_actions(term: GenerativeReward, play: Encoded) -> float:
    """The deviation of a step's error over all actions it might be said to have had, on average."""
    actions = torch.eye(play.action.shape[-1], device=play.action.device)
    errors = [term.error(replace(play, action=action.expand_as(play.action))) for action in actions]
    return float(torch.stack(errors).std(0).mean())


@torch.no_grad()
def measure(run: Path, game: str, steps: int, seed: int) -> dict[str, Any]:
    """The three kinds of play before one run's models."""
    recording = resolve(game)
    trainer, _ = load_to_play(run)
    if trainer.config.demos is None:
        raise UserError(f"{run}: learned from no demonstrations that could be found again")
    demos = resolve(trainer.config.demos)
    plays = {
        "demonstration": demos.transitions(),
        "demonstrator, later": _after(recording, demos.num_transitions),
        "random": _by_chance(trainer, steps, seed),
    }
    reward = trainer.reward
    shown = {name: encode(thinned(play).to(trainer.device), reward.space, reward.code) for name, play in plays.items()}
    rows: dict[str, dict[str, float | None]] = {name: {"steps": len(play)} for name, play in shown.items()}
    for term in reward.terms.values():
        for name, play in shown.items():
            if isinstance(term.model, GenerativeReward):
                rows[name] |= curiosity(term.model, play, shown["demonstration"])
            elif isinstance(term.model, AdversarialReward):
                rows[name]["logit"] = float(term.model.judge(play).logit.mean())
    config = trainer.config
    settings = variant(RunDirectory.read(run).config)
    named = {"env": config.env, "method": config.method, "seed": config.seed, "demos": config.demos}
    made = collect_provenance(sys.argv, None, simulator_versions())
    return named | {"settings": settings, "env_steps": trainer.env_steps, "rows": rows, "made": made}


def _after(recording: Demonstrations, steps: int) -> Transitions:
    whole = recording.transitions()
    if len(whole) <= steps:
        raise UserError(f"the game has {len(whole)} transitions, no more than the demonstration: give a longer one")
    return whole.map(lambda x: x[steps:])


def _by_chance(trainer: Trainer, steps: int, seed: int) -> Transitions:
    envs = make_envs(trainer.config.env, NUM_ENVS, seed, clip_actions=trainer.config.clip_actions)
    try:
        return random_rollout(envs, steps, seed, "audit")
    finally:
        envs.close()


def table(document: dict[str, Any]) -> WordTable:
    """One line for each kind of play."""
    lines = [
        (_title(run), name, *(_number(row.get(key)) for key in NUMBERS))
        for run in document["runs"]
        for name, row in run["rows"].items()
    ]
    return WordTable("What the models of a run have learned", ("run", "play", *NUMBERS.values()), tuple(lines))


def _title(run: dict[str, Any]) -> str:
    settings = "".join(f", {setting}" for setting in run["settings"])
    return f"{run['env']}, {run['method']}, seed {run['seed']}, at {run['env_steps']:,}, from {run['demos']}{settings}"


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3g}"


def main() -> int:
    """Measure or read, then print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", help="folder of a run with a checkpoint")
    parser.add_argument("--game", help="a recorded game of the demonstrator, such as demon_attack/full-v0")
    parser.add_argument("--from", dest="kept", type=Path, help="read what --json wrote")
    parser.add_argument("--steps", type=int, default=1000, help=f"random steps in each of {NUM_ENVS} environments")
    parser.add_argument("--seed", type=int, default=20000)
    parser.add_argument("--json", type=Path, help="write here; other runs already there are kept beside")
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    if (args.run is None) == (args.kept is None) or (args.run is None) != (args.game is None):
        parser.error("give a run with --game, or --from FILE")
    if args.steps < 2:
        parser.error("play at least two random steps")
    source = args.kept or (args.json if args.json and args.json.exists() else None)
    try:
        document = read_kept(source, table) if source else {"runs": []}
        if args.run is not None:
            found = measure(args.run, args.game, args.steps, args.seed)
            document["runs"] = [run for run in document["runs"] if _title(run) != _title(found)] + [found]
        publish(document, "Models, audited", [table(document)], kept=args.json, words=args.markdown)
    except (UserError, OSError) as error:
        sys.exit(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())

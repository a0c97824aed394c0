"""What does a run's reward pay for? Each term, per step: for the agent, its demonstrator and chance.

    python tools/term_audit.py runs/a/seed-0 --game demon_attack/full-v0 --life demon_attack/one-life-v0
    python tools/term_audit.py --from results/term-audit.json --markdown results/term-audit.md

Asks the reward of a run, as its newest checkpoint has it, about four kinds of play: the agent sampling its actions, the
agent playing greedily, a random policy, and a recorded game of the demonstrator by quarters. Where the demonstrator's
total lies below the agent's, nothing draws the agent on towards the demonstrator's play. The state entropy refers to
the agent's latest sampled states, as in training. `worth` is what going on like this is worth at the start of a life:
the total, discounted by 0.99 a step and by the chance to lose the life. Play that is worth less than another gives way
to it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ilde.collector import Collector
from ilde.data import Transitions
from ilde.demos import resolve
from ilde.envs import make_envs
from ilde.nets.policy import Decision, Policy, UniformPolicy
from ilde.randomness import torch_generator
from ilde.reports.numbers import NOTHING
from ilde.reports.tables import WordTable, markdown
from ilde.reports.writing import write_text
from ilde.rewards.base import encode
from ilde.rewards.compose import RewardMix
from ilde.rewards.entropy import StateEntropy
from ilde.trainer import Trainer
from ilde.watching import load_to_play

NUM_ENVS, STEPS, PARTS = 16, 256, 4
DISCOUNT = 0.99
PLAY = ("points", "lives")
LEFT_OUT = 2
"""Rollouts that are played and not judged: games begin alike."""


@dataclass(frozen=True)
class Greedy:
    """A policy that takes its most likely action whenever it acts."""

    policy: Policy

    def act(self, obs: Tensor, generator: torch.Generator, *, greedy: bool = False) -> Decision:
        """The most likely actions."""
        return self.policy.act(obs, generator, greedy=True)


def play(trainer: Trainer, policy: Policy, rollouts: int, seed: int) -> Iterator[Transitions]:
    """Rollouts (T, N) of a policy, from some way into its games."""
    config = trainer.config
    envs = make_envs(config.env, NUM_ENVS, seed, clip_actions=config.clip_actions)
    try:
        collector = Collector(envs, policy, STEPS, torch_generator(seed, "audit", trainer.device), trainer.device)
        for number in range(LEFT_OUT + rollouts):
            rollout = collector.collect()
            if number >= LEFT_OUT:
                yield rollout.transitions
    finally:
        envs.close()


def refer_to(reward: RewardMix, transitions: Transitions) -> None:
    """Let the state entropy compare with these states; no other term learns."""
    for term in reward.terms.values():
        if isinstance(term.model, StateEntropy):
            term.model.update(encode(transitions, reward.space, reward.code))


def judged(reward: RewardMix, plays: Iterable[Transitions], *, own: bool = False) -> dict[str, float | None]:
    """Means per step of every term's share, and what the play is like."""
    sums: dict[str, float] = {}
    count = 0
    for transitions in plays:
        if own:
            refer_to(reward, transitions)
        numbers: dict[str, Tensor] = {str(name): share for name, share in reward.breakdown(transitions).items()}
        numbers["total"] = torch.stack(list(numbers.values())).sum(0)
        numbers |= {"points": transitions.env_reward, "lives": transitions.terminated}
        for name, values in numbers.items():
            sums[name] = sums.get(name, 0.0) + float(values.double().sum())
        count += transitions.terminated.numel()
    return {name: value / count for name, value in sums.items()}


def measure(run: Path, game: str, life: str | None, rollouts: int, seed: int) -> dict[str, Any]:
    """The four kinds of play before one run's reward."""
    trainer, _ = load_to_play(run)
    reward, policy = trainer.reward, trainer.learner.policy
    whole = resolve(game).transitions().to(trainer.device)
    rows = {
        "agent, sampling": judged(reward, play(trainer, policy, rollouts, seed), own=True),
        "agent, greedy": judged(reward, play(trainer, Greedy(policy), rollouts, seed)),
        "random": judged(reward, play(trainer, UniformPolicy(trainer.envs.action_space), rollouts, seed)),
    }
    lives = None if life is None else 1 / len(resolve(life).transitions())  # a whole game tells its end, not its lives
    quarters = [whole.map(lambda x, part=part: x.chunk(PARTS)[part]) for part in range(PARTS)]  # type: ignore[misc]
    for number, part in enumerate(quarters):
        rows[f"demonstrator, quarter {number + 1}"] = judged(reward, [part]) | {"lives": lives, "points": None}
    return {"env": trainer.config.env, "method": trainer.config.method, "env_steps": trainer.env_steps, "rows": rows}


def worth(row: dict[str, Any]) -> float:
    """What going on like this is worth, from its means per step."""
    return float(row["total"] / (1.0 - DISCOUNT * (1.0 - row["lives"])))


def _words(row: dict[str, Any]) -> tuple[str, str, str]:
    points = NOTHING if row["points"] is None else f"{1000 * row['points']:.0f}"
    if row["lives"] is None:
        return NOTHING, points, NOTHING
    return f"{worth(row):.2f}", points, f"{1 / row['lives']:,.0f}" if row["lives"] else "none lost"


def table(document: dict[str, Any]) -> WordTable:
    """One line for each kind of play."""
    lines = []
    for run in document["runs"]:
        for name, row in run["rows"].items():
            shares = tuple(f"{value:.4f}" for term, value in row.items() if term not in PLAY)
            where = f"{run['env']}, {run['method']} at {run['env_steps']:,}"
            lines.append((where, name, *shares, *_words(row)))
    terms = tuple(term for term in row if term not in PLAY)
    columns = ("run", "play", *terms, "worth", "points in 1,000 steps", "steps a life")
    return WordTable("What a reward pays, per step", columns, tuple(lines), tuple(document["notes"]))


def main() -> int:
    """Measure or read, then print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", help="folder of a run with a checkpoint")
    parser.add_argument("--game", help="a recorded game of the demonstrator, such as demon_attack/full-v0")
    parser.add_argument("--life", help="a recorded life of it, which tells how long it lives")
    parser.add_argument("--from", dest="kept", type=Path, help="read what --json wrote")
    parser.add_argument("--rollouts", type=int, default=4, help=f"of {STEPS} steps in {NUM_ENVS} environments each")
    parser.add_argument("--seed", type=int, default=20000)
    parser.add_argument("--json", type=Path, help="write here; runs already there are kept beside")
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    if (args.run is None) == (args.kept is None) or (args.run is not None and args.game is None):
        parser.error("give a run and --game, or --from FILE")
    if args.kept:
        document = json.loads(args.kept.read_text())
    else:
        document = {"command": "python tools/term_audit.py RUN --game GAME/full-v0", "notes": NOTES, "runs": []}
        if args.json and args.json.exists():
            document = json.loads(args.json.read_text())
        found = measure(args.run, args.game, args.life, args.rollouts, args.seed)
        same = ("env", "method", "env_steps")
        document["runs"] = [run for run in document["runs"] if any(run[key] != found[key] for key in same)] + [found]
    if args.json:
        write_text(args.json, json.dumps(document, indent=1) + "\n")
    words = markdown("Rewards, audited", [table(document)])
    if args.markdown:
        write_text(args.markdown, words)
    print(words)
    return 0


NOTES = ["shares of the terms by weight and scale, as they are summed; the total before its own scale"]

if __name__ == "__main__":
    sys.exit(main())

"""What does a run's reward pay for? Each term, per step: for the agent, its demonstrator and chance.

    python tools/term_audit.py runs/a/seed-0 --game demon_attack/full-v0 --json results/term-audit.json
    python tools/term_audit.py runs/a/seed-0 --deaths --json results/term-audit.json
    python tools/term_audit.py --from results/term-audit.json --markdown results/term-audit.md

Asks the reward of a run, as its newest checkpoint has it, about four kinds of play: the agent sampling its actions, the
agent playing greedily, a random policy, and a recorded game of the demonstrator by quarters. Points and lost lives are
counted over all steps played, rewards over the last of them, far into the games. The state entropy refers to the
agent's latest sampled states, as in training; other play has no neighbours of its own among them, which favours it.
`worth` is what going on like this is worth at the start of a life: the total, discounted by 0.99 a step and by the
chance to lose the life. Where the demonstrator's is not above the agent's, nothing draws the agent on. `--deaths` asks
instead what terms pay a random policy so many steps before it loses a life, for games show a death before they count
it, and away from deaths just before it scores and long before.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ilde.collector import Collector
from ilde.data import Transitions, UserError
from ilde.demos import resolve
from ilde.envs import make_envs, simulator_versions
from ilde.nets.policy import Decision, Policy, UniformPolicy
from ilde.randomness import torch_generator
from ilde.reports.numbers import NOTHING
from ilde.reports.tables import WordTable
from ilde.reports.writing import publish
from ilde.rewards.compose import RewardMix
from ilde.runs import RunDirectory, collect_provenance
from ilde.trainer import Trainer
from ilde.watching import load_to_play, refer_to

NUM_ENVS, STEPS, PARTS = 16, 256, 4
DISCOUNT = 0.99
PLAY = ("points", "lives")
BEFORE = ((1, 5), (5, 10), (10, 20), (20, 40), (40, 80), (80, 200))
"""Steps before a death that are looked at together."""
SOON, LATER = 5, 20
"""Steps within which points are about to be scored, and beyond which neither points nor a death is near."""
NOTES = [
    "shares of the terms by weight and scale, as they are summed; the total before its own scale",
    "points and lives over all steps played; of a recording, its own",
    "a recording does not say where lives were lost: its deaths are paid for even where `dying_steps` limits that, and "
    "so are its last steps",
]


@dataclass(frozen=True)
class Greedy:
    """A policy that takes its most likely action whenever it acts."""

    policy: Policy

    def act(self, obs: Tensor, generator: torch.Generator, *, greedy: bool = False) -> Decision:
        """The most likely actions."""
        return self.policy.act(obs, generator, greedy=True)


@dataclass(frozen=True)
class Length:
    """How many rollouts are played, and how many of them, the last ones, are judged."""

    played: int
    judged: int


def play(trainer: Trainer, policy: Policy, length: Length, seed: int) -> Iterator[tuple[Transitions, bool]]:
    """Rollouts (T, N) of a policy, and whether each is to be judged."""
    config = trainer.config
    envs = make_envs(config.env, NUM_ENVS, seed, clip_actions=config.clip_actions)
    try:
        collector = Collector(envs, policy, STEPS, torch_generator(seed, "audit", trainer.device), trainer.device)
        for number in range(length.played):
            yield collector.collect().transitions, number >= length.played - length.judged
    finally:
        envs.close()


def judged(reward: RewardMix, plays: Iterable[tuple[Transitions, bool]], *, own: bool = False) -> dict[str, Any]:
    """Means per step of every term's share over what is judged, of points and lost lives over everything."""
    sums: dict[str, float] = defaultdict(float)
    played = asked = 0
    for transitions, counts in plays:
        played += transitions.terminated.numel()
        sums["points"] += float(transitions.env_reward.double().sum())
        sums["lives"] += float(transitions.terminated.sum())
        if counts:
            asked += transitions.terminated.numel()
            if own:
                refer_to(reward, transitions)
            for name, share in reward.breakdown(transitions).items():
                sums[name] += float(share.double().sum())
    shares = {name: value / asked for name, value in sums.items() if name not in PLAY}
    return shares | {"total": sum(shares.values())} | {name: sums[name] / played for name in PLAY}


def measure(run: Path, game: str, length: Length, seed: int) -> dict[str, Any]:
    """The four kinds of play before one run's reward."""
    recording = resolve(game)
    trainer, _ = load_to_play(run)
    reward, policy = trainer.reward, trainer.learner.policy
    chance = UniformPolicy(trainer.envs.action_space)
    rows = {
        "agent, sampling": judged(reward, play(trainer, policy, length, seed), own=True),
        "agent, greedy": judged(reward, play(trainer, Greedy(policy), length, seed)),
        "random": judged(reward, play(trainer, chance, length, seed)),
    }
    whole = recording.transitions().to(trainer.device)
    header = recording.header
    known = {
        "points": sum(header.returns) / len(whole) if header.returns and header.fraction == 1.0 else None,
        "lives": sum(header.lives) / len(whole) if header.fraction == 1.0 else None,
    }
    for number in range(PARTS):
        part = whole.map(lambda x, number=number: x.tensor_split(PARTS)[number])  # type: ignore[misc]
        rows[f"demonstrator, quarter {number + 1}"] = judged(reward, [(part, True)]) | known
    steps = {"played": length.played * STEPS * NUM_ENVS, "judged": length.judged * STEPS * NUM_ENVS}
    return _named(run, trainer) | {"steps": steps, "rows": rows, "rows_made": _made()}


def deaths(run: Path, rollouts: int, seed: int) -> dict[str, Any]:
    """What each term pays a random policy on the way to a death, and to points."""
    trainer, _ = load_to_play(run)
    reward, chance = trainer.reward, UniformPolicy(trainer.envs.action_space)
    shares, ends, scored = defaultdict[str, list[Tensor]](list), [], []
    for transitions, _ in play(trainer, chance, Length(rollouts, rollouts), seed):
        refer_to(reward, transitions)
        ends.append(transitions.terminated)
        scored.append((transitions.env_reward > 0).clone())
        for name, share in reward.breakdown(transitions).items():
            shares[name].append(share)
    paid = {name: torch.cat(parts) for name, parts in shares.items()}
    rows = {}
    for title, where in stretches(torch.cat(ends), torch.cat(scored)).items():
        if where.any():
            means = {name: float(share[where].double().mean()) for name, share in paid.items()}
            rows[title] = means | {"steps": int(where.sum())}
    return _named(run, trainer) | {"deaths": rows, "deaths_made": _made()}


def stretches(terminated: Tensor, scored: Tensor) -> dict[str, Tensor]:
    """Which steps (T, N) are looked at together."""
    death, points = steps_ahead(terminated), steps_ahead(scored)
    before = {f"{first} to {last - 1}": (death >= first) & (death < last) for first, last in BEFORE}
    far = death >= LATER
    return before | {
        f"{LATER} or more, points within {SOON}": far & (points < SOON),
        f"{LATER} or more, no points within {LATER}": far & (points >= LATER),
    }


def steps_ahead(event: Tensor) -> Tensor:
    """How many steps (T, N) lie between each and the next event; very many where none follows."""
    ahead, found = torch.full_like(event[0], torch.iinfo(torch.int32).max, dtype=torch.int64), []
    for happened in event.flip(0):
        ahead = torch.where(happened, 0, ahead + 1)
        found.append(ahead)
    return torch.stack(found[::-1])


def _named(run: Path, trainer: Trainer) -> dict[str, Any]:
    config, settings = trainer.config, json.dumps(RunDirectory.read(run).config, sort_keys=True)
    return {
        "env": config.env,
        "method": config.method,
        "seed": config.seed,
        "env_steps": trainer.env_steps,
        "config": hashlib.sha256(settings.encode()).hexdigest()[:12],
    }


def _made() -> dict[str, Any]:
    return collect_provenance(sys.argv, None, simulator_versions())


def worth(row: dict[str, Any]) -> float:
    """What going on like this is worth, from its means per step."""
    return float(row["total"] / (1.0 - DISCOUNT * (1.0 - row["lives"])))


def _words(row: dict[str, Any]) -> tuple[str, str, str]:
    points = NOTHING if row["points"] is None else f"{1000 * row['points']:.0f}"
    if row["lives"] is None:
        return NOTHING, points, NOTHING
    return f"{worth(row):.2f}", points, f"{1 / row['lives']:,.0f}" if row["lives"] else "none lost"


def table(document: dict[str, Any]) -> WordTable:
    """One line for each kind of play; a run without a term leaves its column empty."""
    found = [(_title(run), name, row) for run in document["runs"] for name, row in run.get("rows", {}).items()]
    terms = list(dict.fromkeys(term for _, _, row in found for term in row if term not in (*PLAY, "total")))
    lines = [
        (
            run,
            name,
            *(f"{row[term]:.4f}" if term in row else NOTHING for term in (*terms, "total")),
            *_words(row),
        )
        for run, name, row in found
    ]
    columns = ("run", "play", *terms, "total", "worth", "points in 1,000 steps", "steps a life")
    return WordTable("What a reward pays, per step", columns, tuple(lines), tuple(document["notes"]))


def death_table(document: dict[str, Any]) -> WordTable:
    """One line for each stretch before a death."""
    found = [(_title(run), name, row) for run in document["runs"] for name, row in run.get("deaths", {}).items()]
    terms = list(dict.fromkeys(term for _, _, row in found for term in row if term != "steps"))
    lines = [
        (run, name, *(f"{row[term]:.4f}" if term in row else NOTHING for term in terms), f"{row['steps']:,}")
        for run, name, row in found
    ]
    columns = ("run", "steps before a life is lost", *terms, "steps")
    return WordTable(
        "What a reward pays a random policy on the way to a death, and to points, per step", columns, tuple(lines)
    )


def _title(run: dict[str, Any]) -> str:
    return f"{run['env']}, {run['method']}, seed {run['seed']}, at {run['env_steps']:,}, settings {run['config']}"


def _document(args: argparse.Namespace) -> dict[str, Any]:
    known: dict[str, Any] = {"notes": NOTES, "runs": []}
    source = args.kept or (args.json if args.json and args.json.exists() else None)
    if source is not None:
        try:
            known = json.loads(source.read_text())
        except ValueError:
            raise UserError(f"{source}: not what --json wrote") from None
    if args.run is None:
        return known
    if args.deaths:
        found = deaths(args.run, args.rollouts, args.seed)
    else:
        found = measure(args.run, args.game, Length(args.skip + args.rollouts, args.rollouts), args.seed)
    same = [run for run in known["runs"] if all(run[key] == found[key] for key in ("config", "env_steps"))]
    others = [run for run in known["runs"] if run not in same]
    for run in same:
        found = run | found  # what was not asked anew stays
    return known | {"notes": NOTES, "runs": [*others, found]}


def main() -> int:
    """Measure or read, then print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", help="folder of a run with a checkpoint")
    parser.add_argument("--game", help="a recorded game of the demonstrator, such as demon_attack/full-v0")
    parser.add_argument(
        "--deaths", action="store_true", help="ask about the steps before a death and before points instead"
    )
    parser.add_argument("--from", dest="kept", type=Path, help="read what --json wrote")
    parser.add_argument(
        "--skip", type=int, default=24, help=f"rollouts of {STEPS} steps x {NUM_ENVS} before those judged"
    )
    parser.add_argument("--rollouts", type=int, default=2, help="rollouts judged")
    parser.add_argument("--seed", type=int, default=20000)
    parser.add_argument("--json", type=Path, help="write here; other runs already there are kept beside")
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    asked = (args.game is not None) + args.deaths
    if (args.run is None) == (args.kept is None) or asked != (args.run is not None):
        parser.error("give a run with either --game or --deaths, or --from FILE")
    if args.rollouts < 1 or args.skip < 0:
        parser.error("judge at least one rollout, skip none or more")
    try:
        document = _document(args)
        tables = [made for made in (table(document), death_table(document)) if made.rows]
        publish(document, "Rewards, audited", tables, kept=args.json, words=args.markdown)
    except (UserError, OSError) as error:
        sys.exit(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())

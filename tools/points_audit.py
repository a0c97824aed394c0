"""Does curiosity pay for points? How far each reading of it rises and falls with the score along random play.

    python tools/points_audit.py beam_rider qbert --json results/points-audit.json
    python tools/points_audit.py krull --reading "mine: rewards.features.floor=1 rewards.generative.predicts=change"
    python tools/points_audit.py krull star_gunner --reading tables
    python tools/points_audit.py --from results/points-audit.json --markdown results/points-audit.md

What an agent learns first from a reward is decided by what the reward says about a random policy's steps. For each game
and each reading (settings of the preset `atari`, the generative model fitted to a tenth of a life) and for random play:
the correlation of the curiosity's discounted return with that of the points, each ending with a life; beside it what an
alive bonus reaches, and what the two reach together, with the curiosity at its weight and two alive bonuses in the
place of imitation and state entropy, all divided by the spread of their returns. `range` is the curiosity's spread over
its mean per step, `living` how far it pays for living itself; `kind` follows from the two, and the paper's tables from
the kind of `change, nearly raw` (ADR 14). Of the error behind it, steps before a death apart: `reach` is how many times
its median it is in one step of a hundred, `before points` and `after points` its mean, in medians, just before and from
steps that score.

The reading `tables` is what the paper's tables are run with, game by game. No training and no GPU: two to five minutes
a game and reading on one core. Points are read here to choose among readings, and not for the kind; no learner sees
them. A reward may go with points along random play and still be best served by something else: a reading that looks
well here has to be tried.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from game_audits import audit, audit_parser
from torch import Tensor

from ilde.collector import Collector
from ilde.data import Transitions, UserError
from ilde.demos import resolve
from ilde.envs import make_envs
from ilde.envs.base import EnvBatch
from ilde.experiments.paper.studies import paper_study
from ilde.learners.returns import generalised_advantage
from ilde.nets.policy import UniformPolicy
from ilde.prepare import random_rollout
from ilde.randomness import torch_generator
from ilde.reports.tables import WordTable
from ilde.rewards.base import encode
from ilde.rewards.build import build_reward
from ilde.rewards.compose import RewardMix
from ilde.rewards.generative import GenerativeReward, ending_within
from ilde.settings import compose

CHANGE = (
    "rewards.generative.predicts=change rewards.generative.epochs=100 rewards.generative.log-variance-limit=4 "
    "rewards.generative.dying-steps=60"
)
READINGS = {
    "distance": "rewards.generative.log-variance-limit=4 rewards.generative.epochs=100 rewards.curiosity-factor=0.02",
    "change, nearly raw": f"{CHANGE} rewards.features.floor=3 rewards.features.clip=0",
    "change, at most 5 medians": f"{CHANGE} rewards.features.floor=1 rewards.generative.surprise-limit=5",
}
TABLES = "tables"
"""The reading of the paper's tables, which have their own settings for each game."""
NUM_ENVS, ROLLOUT, ROLLOUTS, BACKGROUND = 16, 128, 24, 10_000
"""Games side by side, steps of a rollout, rollouts looked at, and the steps before them that scale the features."""
DISCOUNTS = {"points": 0.99, "soon": 0.94}
"""What an agent cares for, and how far its advantages reach by themselves: 0.99 times the 0.95 of PPO's averages."""
CUT = 200
"""Last steps whose returns are left out, for they are cut off."""
LAMBDA = 10.0
"""λ of the paper."""
STEADY, ALIVE = 1.0, 0.95
"""The largest range of a curiosity that does not burst, and how far it goes with living if it is little else."""
BEFORE, AFTER = 8, 16
"""Steps looked at before and from a step that scores."""


def returns(reward: Tensor, ended: Tensor, discount: float) -> Tensor:
    """Discounted return of each step (T, N) to the end of its life, as one list, over its spread."""
    nothing = torch.zeros_like(reward)
    total = generalised_advantage(
        reward, nothing, nothing, terminated=ended, ended=ended, discount=discount, gae_lambda=1.0
    )[:-CUT].flatten()
    return total / total.std()


def correlation(one: Tensor, other: Tensor) -> float:
    """Of two lists of returns."""
    return round(float(torch.corrcoef(torch.stack([one, other]))[0, 1]), 3)


def judged(paid: Tensor, points: Tensor, ended: Tensor, weight: float) -> dict[str, float]:
    """What a curiosity has to do with points and with living."""
    row = {"weight": weight, "range": round(float(paid.std() / paid.mean()), 2)}
    for name, discount in DISCOUNTS.items():
        own, scored, alive = (returns(x, ended, discount) for x in (paid, points, torch.ones_like(paid)))
        row |= {name: correlation(own, scored), f"{name}_alive": correlation(alive, scored)}
        row |= {f"{name}_together": correlation(2.0 * alive + weight * own, scored)}
        if name == "points":
            row["living"] = correlation(own, alive)
    return row


def reach(error: Tensor, ended: Tensor, dying_steps: int) -> float:
    """How many times its median an error (T, N) reaches in one step of a hundred, those before a death apart."""
    calm = error[~ending_within(ended, dying_steps)]
    return round(float(calm.quantile(0.99) / calm.median()), 2)


def around_points(error: Tensor, scored: Tensor, ended: Tensor, dying_steps: int) -> dict[str, float]:
    """The mean error (T, N), in medians, before and from the steps that score, wherever a life goes on around them."""
    usual = error[~ending_within(ended, dying_steps)].median()
    begun = ended.roll(1, 0)
    begun[0] = True  # what came before is not known
    since = ending_within(begun.flip(0), BEFORE - 1).flip(0)
    chosen = scored.bool() & ~since & ~ending_within(ended, AFTER + dying_steps)
    chosen[-AFTER:] = False
    times, envs = chosen.nonzero(as_tuple=True)
    if not len(times):
        return {}
    spans = {"before": range(-BEFORE, 0), "after": range(AFTER)}
    means = {name: torch.stack([error[times + lag, envs] for lag in lags]).mean() for name, lags in spans.items()}
    return {name: round(float(mean / usual), 2) for name, mean in means.items()}


def kind(row: dict[str, float]) -> str:
    """How a curiosity behaves along random play, whatever the points."""
    if row["range"] > STEADY:
        return "bursts"
    return "alive bonus" if row["living"] > ALIVE else "steady"


def as_tabled(game: str) -> str:
    """What the tables of the paper are run with on a game."""
    for task in paper_study("atari", "hours").tasks:
        if task.name == game:
            return " ".join(f"{name}={value}" for name, value in task.overrides)
    raise UserError(f"{game}: no game of the paper's tables")


def fitted(settings: str, envs: EnvBatch, fragment: Transitions, background: Transitions, seed: int) -> RewardMix:
    """A reading's curiosity, having learned what it learns before interaction."""
    words = [tuple(word.split("=", 1)) for word in settings.split()]
    if any(len(word) != 2 for word in words):
        raise UserError(f"{settings!r}: name settings as NAME=VALUE")
    config = compose("giril", envs.env_id, "atari", [(name, value) for name, value in words]).rewards
    spaces, cpu = (envs.obs_space, envs.action_space), torch.device("cpu")
    mix = build_reward(
        f"{LAMBDA:g}*giril", config, *spaces, num_envs=NUM_ENVS, clip_actions=True, seed=seed, device=cpu
    )
    mix.fit(fragment, background)
    return mix


def _curiosity(mix: RewardMix) -> GenerativeReward:
    model = mix.terms["giril"].model
    assert isinstance(model, GenerativeReward)
    return model


def measure(game: str, readings: dict[str, str], seed: int) -> dict[str, Any]:
    """What each reading pays along one game's random play."""
    fragment = resolve(f"{game}/one-life-v0:0.1")
    envs = make_envs(fragment.header.env_id, NUM_ENVS, seed, clip_actions=True)
    try:
        background = random_rollout(envs, BACKGROUND // NUM_ENVS, seed, "background")
        mixes = {
            name: fitted(as_tabled(game) if name == TABLES else words, envs, fragment.transitions(), background, seed)
            for name, words in readings.items()
        }
        generator = torch_generator(seed, "policy")
        collector = Collector(envs, UniformPolicy(envs.action_space), ROLLOUT, generator, torch.device("cpu"))
        paid: dict[str, list[Tensor]] = {name: [] for name in mixes}
        errors: dict[str, list[Tensor]] = {name: [] for name in mixes}
        models = {name: _curiosity(mix) for name, mix in mixes.items()}
        points, ends = [], []
        for _ in range(ROLLOUTS):
            rollout = collector.collect()
            points.append((rollout.transitions.env_reward > 0).float())
            ends.append(rollout.ended.clone())  # the collector's own tensors serve again
            for name, mix in mixes.items():
                steps = encode(rollout.transitions, mix.space, mix.code, rollout.ended)
                paid[name].append(models[name].reward(steps))
                errors[name].append(models[name].error(steps))
    finally:
        envs.close()
    scored, ended = torch.cat(points), torch.cat(ends)
    if not bool(scored.any()) or not bool(ended.any()):
        raise UserError(f"{game}: random play scores nothing, or loses no life, within {ROLLOUT * ROLLOUTS:,} steps")
    rows = {}
    for name, mix in mixes.items():
        error, dying = torch.cat(errors[name]), models[name].config.dying_steps
        rows[name] = judged(torch.cat(paid[name]), scored, ended, mix.terms["giril"].weight)
        rows[name] |= {"reach": reach(error, ended, dying)} | around_points(error, scored, ended, dying)
    print(f"{game}: {rows}", file=sys.stderr, flush=True)
    return {"game": game, "lives": int(ended.sum()), "scored": int(scored.sum()), "rows": rows}


def table(document: dict[str, Any]) -> WordTable:
    """One line for each game and reading."""
    lines = []
    for game in document["games"]:
        for reading, row in game["rows"].items():
            of_error = tuple(f"{row[key]:g}" if key in row else "-" for key in ("reach", "before", "after"))
            weight = (f"{row['weight']:g}", kind(row))
            figures = (row[key] for key in ("range", "living"))
            correlated = (row[f"{name}{part}"] for name in DISCOUNTS for part in ("_alive", "", "_together"))
            lines.append((game["game"], reading, *weight, *of_error, *(f"{x:.2f}" for x in (*figures, *correlated))))
    columns: tuple[str, ...] = ("game", "reading", "weight", "kind", "reach", "before points", "after points")
    columns += ("range", "living")
    columns += ("alive bonus and points", "curiosity and points", "together and points")
    columns += ("alive, soon", "curiosity, soon", "together, soon")
    return WordTable("Curiosity and points along random play", columns, tuple(lines), document["notes"])


def _measured(games: list[str], readings: dict[str, str], seed: int) -> dict[str, Any]:
    notes = [
        f"correlations of discounted returns (0.99 a step; `soon`: 0.94), {NUM_ENVS} games of random play, "
        f"{ROLLOUT * ROLLOUTS:,} steps each, seed {seed}",
        f"kind: bursts with a range above {STEADY:g}, else alive bonus with more than {ALIVE:g} for living, "
        "else steady",
        "reach: how many times its median the error is in one step of a hundred; before and after points: its mean "
        f"over {BEFORE} steps before and {AFTER} from one that scores, in medians",
        *(f"{name}: `{words}`" for name, words in readings.items() if name != TABLES),
        *(f"{TABLES}, {game}: `{as_tabled(game)}`" for game in games if TABLES in readings),
    ]
    named = " ".join(
        f"--reading {TABLES}" if name == TABLES else f'--reading "{name}: {words}"'
        for name, words in readings.items()
        if name not in READINGS
    )
    command = f"python tools/points_audit.py {' '.join(games)} --seed {seed} {named}".rstrip()
    return {"command": command, "notes": notes, "games": [measure(game, readings, seed) for game in games]}


def _chosen(words: list[str]) -> dict[str, str]:
    named = [(word, ":", "") if word == TABLES else word.partition(":") for word in words]
    if any(not colon for _, colon, _ in named):
        raise UserError(f"a reading is written NAME: SETTING=VALUE SETTING=VALUE, or {TABLES}")
    return {name.strip(): settings.strip() for name, _, settings in named} or READINGS


def main() -> int:
    """Measure or read, then print."""
    parser = audit_parser(__doc__, seed=100)
    parser.add_argument(
        "--reading", action="append", default=[], help=f"NAME: SETTINGS, or {TABLES}, instead of the usual ones"
    )
    return audit(
        parser,
        "Curiosity and points, audited",
        table,
        lambda args: _measured(args.games, _chosen(args.reading), args.seed),
    )


if __name__ == "__main__":
    sys.exit(main())

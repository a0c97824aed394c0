"""What is a way of playing worth to a curiosity? Chance, single actions, and the demonstrator along its own game.

    python tools/worth_audit.py demon_attack star_gunner --json results/worth-audit.json
    python tools/worth_audit.py --from results/worth-audit.json --markdown results/worth-audit.md

A curiosity can lead an agent through a game only if what lies ahead is worth more to it than what is there from the
start: than chance, than one action for ever (a corner, a wall, hiding), than hands that hold each action for a while.
For each game the generative model is fitted to a tenth of a life and asked for its error along such play and along the
demonstrator's recorded game, part by part, whatever terms and weights are put around it later:

- `distance`: the error of the predicted successor, as the paper has it, features limited to 5 spreads;
- `what lasts`: of each feature the least error of the last 32 steps, then the logarithm of 1 and their mean; features
  without a limit, floored at a tenth of the median spread. A flash, a death, whatever moves does not last; another
  scene, another score do;
- `what lasts beyond chance`: of each feature only what exceeds the 98% quantile of that along play of chance. What
  hands that know nothing come to see as well, a corner, lives lost, is no news.

Chance is random and held actions in whole games and single ones for 320 steps. It gives the last two the scale of their
features; that of the first comes from the first 312 steps of random games, as in a run of 32 games with 10,000
background steps. The last two are candidates: no reward of the library.

Only steps that are at least 32 into a life count; in the recorded game lives are not marked. `with points` is the rank
correlation of what the demonstrator's steps are worth with its score so far. No training and no GPU; points are read to
judge, never to pay. Single actions are judged over 320 steps, where less has happened than in a whole game, and the
last reading has seen nearly the same ones among chance: below 1 there is its making, not a finding. Some five minutes
a game on one core, 6 GiB.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from game_audits import audit, audit_parser
from scipy.stats import spearmanr
from torch import Tensor

from ilde.data import Transitions, UserError
from ilde.demos import resolve
from ilde.envs import make_envs
from ilde.envs.base import EnvBatch
from ilde.randomness import torch_generator
from ilde.reports.tables import WordTable
from ilde.rewards.base import encode
from ilde.rewards.build import build_reward
from ilde.rewards.compose import RewardMix
from ilde.rewards.generative import GenerativeReward
from ilde.settings import compose

NUM_ENVS, GAME, BEGINNING, ACTION = 8, 1800, 312, 320
"""Games side by side; steps that chance takes for a whole one, for the beginning of one, and of each single action."""
LASTING, HOLD = 32, 30.0
"""Steps an error has to last, and for how many on average a held action is held."""
PARTS, CHUNK = 8, 128
"""Parts of the demonstrator's game, and steps whose features are computed at a time."""
EVERY = 7
"""Of how many steps of chance one is kept, for the scale of features and to know what lasts there. They are counted
across games, so that it must not divide their number: it would keep the same games again and again."""


@dataclass(frozen=True)
class Reading:
    """One way to make a curiosity of the generative model."""

    settings: str
    lasts: bool
    """Whether only what lasts counts."""
    beyond: float | None = None
    """Quantile of what lasts along play of chance, beyond which it counts; None counts all."""


FIT = "rewards.generative.epochs=100 rewards.generative.log-variance-limit=4"
RAW = f"{FIT} rewards.features.clip=0 rewards.features.floor=0.1"
READINGS = {
    "distance": Reading(FIT, lasts=False),
    "what lasts": Reading(RAW, lasts=True),
    "what lasts beyond chance": Reading(RAW, lasts=True, beyond=0.98),
}


def least_of_the_last(deviation: Tensor, steps: int) -> Tensor:
    """The least of each step (T, ...) and those before it, so many in all, from the first that has as many."""
    return deviation.unfold(0, steps, 1).amin(-1)


def ages(ended: Tensor) -> Tensor:
    """Steps (T, N) since a life began, the very first step counting as a beginning."""
    step = torch.arange(len(ended)).unsqueeze(1).expand(ended.shape)
    ends = torch.where(ended, step, -1).cummax(0).values
    return step - 1 - torch.cat([torch.full_like(ends[:1], -1), ends[:-1]])


def play(envs: EnvBatch, steps: int, hold: float, generator: torch.Generator, action: int | None = None) -> Transitions:
    """Steps (T, N), with their points: one action for ever, or random ones, each held for so many steps on average."""
    obs, rows = envs.reset(), []
    act = _drawn(envs, generator) if action is None else np.full(envs.num_envs, action)
    for _ in range(steps):
        step = envs.step(act)
        rows.append((obs, act, step.next_obs, step.terminated, step.reward.astype(np.float32)))
        obs = step.obs
        if action is None:
            anew = (torch.rand(envs.num_envs, generator=generator) * hold < 1).numpy()
            act = np.where(anew, _drawn(envs, generator), act)
    return Transitions(*(torch.from_numpy(np.stack(column)) for column in zip(*rows, strict=True)))


def _actions(envs: EnvBatch) -> int:
    if not isinstance(envs.action_space, gym.spaces.Discrete):
        raise UserError(f"{envs.env_id}: only where there are so many actions")
    return int(envs.action_space.n)


def _drawn(envs: EnvBatch, generator: torch.Generator) -> Any:
    return torch.randint(_actions(envs), (envs.num_envs,), generator=generator).numpy()


def joined(*parts: Transitions) -> Transitions:
    """All steps of some (B,) in one."""
    return Transitions(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(Transitions)))


def fitted(settings: str, envs: EnvBatch, fragment: Transitions, chance: Transitions, seed: int) -> RewardMix:
    """A model that has learned what it learns before interaction."""
    words = [word.split("=", 1) for word in settings.split()]
    config = compose("giril", envs.env_id, "atari", [(name, value) for name, value in words]).rewards
    mix = build_reward(
        "giril", config, envs.obs_space, envs.action_space,
        num_envs=NUM_ENVS, clip_actions=True, seed=seed, device=torch.device("cpu"),
    )  # fmt: skip
    mix.fit(fragment, chance)
    return mix


@dataclass(frozen=True)
class Judge:
    """A fitted model and what it counts."""

    mix: RewardMix
    lasts: bool
    usual: Tensor | None = None
    """What lasts of each feature along play of chance, where only what exceeds it counts."""

    @torch.no_grad()
    def deviation(self, steps: Transitions) -> Tensor:
        """The squared error of each feature, or of what lasts of it, at all steps far enough into a life (B, F)."""
        model, found = self.mix.terms["giril"].model, []
        assert isinstance(model, GenerativeReward)
        for part in torch.arange(len(steps.terminated)).split(CHUNK):
            known = encode(steps[part], self.mix.space, self.mix.code)
            squared = (model.net.decode_next(known.action, known.features) - known.next_features).square()
            found.append(squared if self.lasts else squared.mean(-1, keepdim=True))
        settled = least_of_the_last(torch.cat(found), LASTING) if self.lasts else torch.cat(found)[LASTING - 1 :]
        return settled[ages(steps.terminated)[LASTING - 1 :] >= LASTING - 1]

    def worth(self, steps: Transitions) -> Tensor:
        """What steps (T, N) are worth, as one list in their order, those at the beginning of a life left out."""
        error = self.deviation(steps)
        if self.usual is not None:
            error = (error - self.usual).clamp(min=0.0)
        return error.mean(-1).log1p() if self.lasts else error.squeeze(-1)


def quantile(plays: Sequence[Transitions], judge: Judge, share: float) -> Tensor:
    """What lasts of each feature along some plays and is not exceeded in such a share of their steps."""
    known = torch.cat([judge.deviation(steps)[::EVERY] for steps in plays]).sort(0).values
    return known[int(share * (len(known) - 1))].clone()


def ways(envs: EnvBatch, seed: int, role: str) -> Iterator[tuple[str, Transitions]]:
    """Ways of playing that nobody has to learn."""
    generator = torch_generator(seed, role)
    yield "random", play(envs, GAME, 1.0, generator)
    yield "held", play(envs, GAME, HOLD, generator)
    for action in range(_actions(envs)):
        yield f"action {action}", play(envs, ACTION, 1.0, generator, action)


def judges(envs: EnvBatch, fragment: Transitions, seed: int) -> dict[str, Judge]:
    """Each reading, having learned what it learns before interaction."""
    chance = [steps for _, steps in ways(envs, seed, "background")]
    beginnings = chance[0].map(lambda x: x[:BEGINNING]).flatten()
    whole = joined(*(steps.map(lambda x: x[::EVERY]).flatten() for steps in chance))
    found = {}
    for name, reading in READINGS.items():
        mix = fitted(reading.settings, envs, fragment, whole if reading.lasts else beginnings, seed)
        judge = Judge(mix, reading.lasts)
        usual = None if reading.beyond is None else quantile(chance, judge, reading.beyond)
        found[name] = replace(judge, usual=usual)
    return found


def measure(game: str, seed: int) -> dict[str, Any]:
    """What each reading makes of each way of playing one game."""
    fragment, recorded = resolve(f"{game}/one-life-v0:0.1"), resolve(f"{game}/full-v0")
    envs = make_envs(recorded.header.env_id, NUM_ENVS, seed, clip_actions=True)
    try:
        known = judges(envs, fragment.transitions(), seed)
        rows: dict[str, dict[str, Any]] = {name: {} for name in READINGS}
        for way, steps in ways(envs, seed, "play"):
            for name, judge in known.items():
                rows[name][way] = float(judge.worth(steps).mean())
    finally:
        envs.close()
    whole = recorded.transitions().map(lambda x: x.unsqueeze(1))
    points = np.concatenate([episode.reward for episode in recorded.episodes]).cumsum()[LASTING - 1 :]
    for name, judge in known.items():
        along = judge.worth(whole)
        rows[name]["demonstrator"] = [float(part.mean()) for part in along.chunk(PARTS)]
        rows[name]["with_points"] = float(spearmanr(along.numpy(), points).statistic)
    scores = [float(part[0]) for part in torch.as_tensor(points).chunk(PARTS)]
    print(f"{game}: {rows}", file=sys.stderr, flush=True)
    return {"game": game, "scores": scores, "rows": rows}


def table(document: dict[str, Any]) -> WordTable:
    """The demonstrator's score on its way, and a line for each reading, in what random play is worth."""
    lines: list[tuple[str, ...]] = []
    for game in document["games"]:
        lines.append((game["game"], "points so far", *["-"] * 3, *(f"{score:,.0f}" for score in game["scores"]), "-"))
        for reading, row in game["rows"].items():
            best, action = max((value, way) for way, value in row.items() if way.startswith("action"))
            held, single, *along = (f"{x / row['random']:.2f}" for x in (row["held"], best, *row["demonstrator"]))
            ours = (f"{row['random']:.3g}", held, f"{single} ({action})", *along, f"{row['with_points']:.2f}")
            lines.append((game["game"], reading, *ours))
    parts = tuple(f"demonstrator, part {k + 1}" for k in range(PARTS))
    columns = ("game", "reading", "random play", "held actions", "best single action", *parts, "with points")
    return WordTable("What play is worth to a curiosity", columns, tuple(lines), document["notes"])


def _measured(games: list[str], seed: int) -> dict[str, Any]:
    notes = [
        f"mean worth of a step at least {LASTING} into a life, in that of random play; {NUM_ENVS} games of {GAME:,} "
        f"steps of random and of held actions, {ACTION} of each single one, seed {seed}; the demonstrator's recorded "
        f"game in {PARTS} parts of like length",
        f"held actions: each for {HOLD:g} steps on average; best single action: the one that is worth most, for ever",
        *(f"{name}: `{reading.settings}`" for name, reading in READINGS.items()),
    ]
    command = " ".join(["python tools/worth_audit.py", *games, f"--seed {seed}"])
    return {"command": command, "notes": notes, "games": [measure(game, seed) for game in games]}


def main() -> int:
    """Measure or read, then print."""
    parser = audit_parser(__doc__, seed=100)
    return audit(parser, "Worth of play, audited", table, lambda args: _measured(args.games, args.seed))


if __name__ == "__main__":
    sys.exit(main())

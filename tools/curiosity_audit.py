"""Does curiosity point towards good play? What it pays a demonstrator beyond its fragment, and a random policy.

    python tools/curiosity_audit.py beam_rider qbert --json results/curiosity-audit.json
    python tools/curiosity_audit.py --from results/curiosity-audit.json --markdown results/curiosity-audit.md

The curiosity of `giril` grows with the distance from the demonstrated states. For each game and each way to scale
features: the mean squared distance, per feature, from the nearest state of the fragment, for a random policy's steps
and along a whole recorded game of the demonstrator. Above 1, their ratio draws the agent towards the demonstrator's
later play; below, away from it. No training and no GPU: minutes on two cores. `--fit` asks the fitted model instead,
with and without a limit to the log-variance of its code, and how much of what it pays random play is noise: the spread
per step and of the discounted return, each over its mean, and the return's correlation with that of an alive bonus.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import torch
from game_audits import audit, audit_parser
from torch import Tensor

from ilde.config import find_preset
from ilde.data import Transitions
from ilde.demos import resolve
from ilde.envs import make_envs
from ilde.nets.features import FeatureConfig
from ilde.prepare import random_rollout
from ilde.reports.tables import WordTable
from ilde.rewards.base import encode
from ilde.rewards.build import build_reward
from ilde.rewards.compose import RewardMix

DISTANCES = {
    "limit 5, floor 1% (default)": (FeatureConfig(), 0.0),
    "no limit, floor 1%": (FeatureConfig(clip=0.0), 0.0),
    "no limit, floor 3%": (FeatureConfig(clip=0.0, floor=0.03), 0.0),
    "limit 5, floor 100%": (FeatureConfig(floor=1.0), 0.0),
}
FITS = {
    "limit 5, floor 1% (default)": (FeatureConfig(), 0.0),
    "the same, log-variance limited": (FeatureConfig(), 4.0),
    "no limit, floor 3%, log-variance limited": (FeatureConfig(clip=0.0, floor=0.03), 4.0),
}
"""How features are scaled, and the limit of the code's log-variance in the fit."""
NUM_ENVS, WALK, PARTS = 16, 500, 4
DISCOUNT, CUT = 0.99, 200
LONG_WALK, CHUNK = 2000, 50
"""Returns need many lives: steps of random play, and how many are looked at together."""
SPARED = 2
"""Every so many-th step is looked at: neighbours in time look alike."""


def distances(mix: RewardMix, fragment: Transitions) -> Callable[[Transitions], Tensor]:
    """Squared distance, per feature, of each successor from the nearest demonstrated one."""
    assert mix.space is not None
    shown = mix.space(fragment.next_obs)
    centre = shown.mean(0)

    def nearest(steps: Transitions) -> Tensor:
        assert mix.space is not None
        features = mix.space(steps.next_obs) - centre
        squared: Tensor = torch.cdist(features, shown - centre).amin(-1).square() / features.shape[-1]
        return squared

    return nearest


def errors(mix: RewardMix, fragment: Transitions) -> Callable[[Transitions], Tensor]:
    """The fitted generative model's error."""
    model = mix.terms["giril"].model
    model.fit(encode(fragment, mix.space, mix.code))
    return lambda steps: model.reward(encode(steps, mix.space, mix.code))


def part_of(steps: Transitions, number: int) -> Transitions:
    """One of equal parts, in the order they were played."""
    return steps.map(lambda x: x.chunk(PARTS)[number])


def returns(reward: Tensor, ended: Tensor) -> Tensor:
    """Discounted return of each step (T, N) to the end of its episode, but for the last steps, whose is cut off."""
    total, found = torch.zeros_like(reward[0]), []
    for paid, end in zip(reward.flip(0), ended.flip(0), strict=True):
        total = paid + DISCOUNT * total * ~end
        found.append(total)
    return torch.stack(found[::-1])[:-CUT]


def noise(reward: Tensor, ended: Tensor) -> dict[str, float]:
    """How a reward varies along random play, and how far it pays for survival."""
    own, alive = (returns(paid, ended).flatten() for paid in (reward, torch.ones_like(reward)))
    correlation = float(torch.corrcoef(torch.stack([own, alive]))[0, 1])
    spread, of_return, of_alive = (float(x.std() / x.mean()) for x in (reward, own, alive))
    return {"spread": spread, "return_spread": of_return, "alive_spread": of_alive, "correlation": correlation}


def measure(game: str, seed: int, epochs: int) -> dict[str, Any]:
    """What each reading pays on one game; the model is fitted for so many passes, if for any."""
    fragment, whole = resolve(f"{game}/one-life-v0:0.1"), resolve(f"{game}/full-v0")
    envs = make_envs(fragment.header.env_id, NUM_ENVS, seed, clip_actions=True)
    try:
        walk = random_rollout(envs, WALK, seed, "background")
        lives = random_rollout(envs, LONG_WALK if epochs else 1, seed, "lives")
        spaces = envs.obs_space, envs.action_space
    finally:
        envs.close()
    shown, played = fragment.transitions(), whole.transitions().map(lambda x: x[::SPARED])
    walked = walk.map(lambda x: x[::SPARED, ::SPARED]).flatten()
    rows = {}
    for name, (features, limit) in (FITS if epochs else DISTANCES).items():
        preset = find_preset("atari").rewards
        model = replace(preset.generative, log_variance_limit=limit, epochs=epochs)
        config = replace(preset, features=features, generative=model)
        mix = build_reward("giril", config, *spaces, num_envs=1, clip_actions=True, seed=seed, device=CPU)
        assert mix.space is not None
        mix.space.fit(walk.obs, shown.obs, shown.next_obs)
        pays = (errors if epochs else distances)(mix, shown)
        by_part = [float(pays(part_of(played, number)).mean()) for number in range(PARTS)]
        rows[name] = {
            **asdict(features),
            "log_variance_limit": limit,
            "fragment": float(pays(shown).mean()),
            "random": float(pays(walked).mean()),
            "game": by_part,
        }
        if epochs:
            paid = torch.cat([pays(lives[part]) for part in torch.arange(LONG_WALK).split(CHUNK)])
            rows[name] |= noise(paid, lives.terminated)
        print(f"{game}, {name}: {rows[name]}", file=sys.stderr, flush=True)
    return {"env": fragment.header.env_id, "fragment": len(shown), "game_steps": len(played) * SPARED, "rows": rows}


CPU = torch.device("cpu")
NOISE = {
    "spread": "spread per step",
    "return_spread": "spread of returns",
    "alive_spread": "that of an alive bonus",
    "correlation": "correlation of the two",
}


def table(document: dict[str, Any]) -> WordTable:
    """One line for each game and reading."""
    lines = []
    for game in document["games"]:
        for name, row in game["rows"].items():
            parts, ratio = row["game"], sum(row["game"]) / len(row["game"]) / row["random"]
            numbers = (row["fragment"], row["random"], *parts)
            more = tuple(f"{row[key]:.2f}" for key in NOISE if key in row)
            lines.append((game["env"], name, *(f"{x:.3g}" for x in numbers), f"{ratio:.2f}", *more))
    quarters = tuple(f"quarter {i + 1} of a game" for i in range(PARTS))
    columns = ("game", "reading", "fragment itself", "random play", *quarters, "demonstrator over random")
    columns += tuple(words for key, words in NOISE.items() if key in row)
    return WordTable("What curiosity pays a random policy and a demonstrator", columns, tuple(lines), document["notes"])


def _measured(games: list[str], epochs: int, seed: int) -> dict[str, Any]:
    fitted = f"error of a model fitted for {epochs} passes"
    what = fitted if epochs else "squared distance from the nearest demonstrated state"
    return {
        "command": " ".join(["python tools/curiosity_audit.py", *games, f"--fit {epochs}", f"--seed {seed}"]),
        "notes": [f"mean per step and feature: {what}; above 1 in `demonstrator over random` draws the agent on"],
        "games": [measure(game, seed, epochs) for game in games],
    }


def main() -> int:
    """Measure or read, then print."""
    parser = audit_parser(__doc__)
    parser.add_argument("--fit", type=int, default=0, metavar="N", help="fit the generative model, N passes")
    return audit(parser, "Curiosity, audited", table, lambda args: _measured(args.games, args.fit, args.seed))


if __name__ == "__main__":
    sys.exit(main())

"""What does a reward pay for where it is followed? `rewards.generative.settled_steps` along a trained policy's play.

    python tools/followed_audit.py demon_attack --policy runs/a/seed-0 --limit 5 --json results/followed-audit.json
    python tools/followed_audit.py --from results/followed-audit.json --markdown results/followed-audit.md

A reading may go with points along random play (`tools/settled_audit.py`) and be earned without any by whoever is
trained on it. For the play of a run or policy file, actions sampled and greedy, and for random play: `points` and
`soon`, the correlation of the reading's discounted returns with those of scoring steps (0.99 and 0.94 a step, each
ending with a life); `near points`, the part of its pay on a step that scores and the 8 after it, beside the part of all
steps that do; `idle`, what a stretch of 500 steps without a point is paid, in that of one with points, and behind it
how many stretches have none. 0 is what one hopes for; near 1 the reward pays as well for living without points.

Points are read to judge, never to pay. Some eight minutes on two cores, 6 GiB.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from game_audits import audit, audit_parser
from settled_audit import SETTINGS, along_random_play, paid
from torch import Tensor
from worth_audit import BEGINNING, NUM_ENVS, fitted, play

from ilde.data import Transitions, UserError
from ilde.demos import resolve
from ilde.envs import make_envs
from ilde.envs.base import EnvBatch
from ilde.nets.policy import Policy
from ilde.policies import load_policy
from ilde.randomness import torch_generator
from ilde.reports.tables import WordTable

SPANS = (0, 8, 16, 32)
"""States before and from a step that are compared; with 0 the error counts whole."""
STEPS, STRETCH = 2000, 500
"""Steps of each game, and of a stretch of it."""
LIMITED = "no step is worth more than {:g} times the mean over the same steps, which in training are a rollout's"


@torch.no_grad()
def followed(policy: Policy, envs: EnvBatch, generator: torch.Generator, *, greedy: bool) -> Transitions:
    """Steps (T, N) of a policy."""
    obs, rows = envs.reset(), []
    for _ in range(STEPS):
        action = policy.act(torch.from_numpy(obs), generator, greedy=greedy).action.numpy()
        step = envs.step(action)
        rows.append((obs, action, step.next_obs, step.terminated, step.reward.astype(np.float32)))
        obs = step.obs
    return Transitions(*(torch.from_numpy(np.stack(column)) for column in zip(*rows, strict=True)))


def idle(worth: Tensor, points: Tensor) -> tuple[float | None, int, int]:
    """The pay of stretches without points in that of those with some, and how many there are of each."""
    stretches = [x.unfold(0, STRETCH, STRETCH).mean(-1) for x in (worth, points)]
    scores = stretches[1] > 0
    none, some = (float(stretches[0][which].mean()) if which.any() else 0.0 for which in (~scores, scores))
    ratio = none / some if some and not scores.all() else None
    return ratio, int((~scores).sum()), int(scores.sum())


def judged(worth: Tensor, steps: Transitions) -> dict[str, Any]:
    """What a reading's pay (T, N) has to do with points, and whether it needs any."""
    ratio, none, some = idle(worth, steps.env_reward)
    return along_random_play(worth, steps) | {
        "idle": None if ratio is None else round(ratio, 2),
        "stretches": [none, some],
    }


def measure(game: str, path: Path, seed: int, limit: float) -> dict[str, Any]:
    """Each reading along each way of playing."""
    loaded = load_policy(path)
    envs = make_envs(resolve(f"{game}/full-v0").header.env_id, NUM_ENVS, seed, clip_actions=True)
    ways: dict[str, Any] = {}
    try:
        if loaded.config.env != envs.env_id:
            raise UserError(f"{path}: plays {loaded.config.env}, not {envs.env_id}")
        chance = play(envs, BEGINNING, 1.0, torch_generator(seed, "background"))
        mix = fitted(SETTINGS, envs, resolve(f"{game}/one-life-v0:0.1").transitions(), chance, seed)
        for way in ("random", "sampled", "greedy"):
            generator = torch_generator(seed, "play")
            if way == "random":
                steps = play(envs, STEPS, 1.0, generator)
            else:
                steps = followed(loaded.policy, envs, generator, greedy=way == "greedy")
            rows = {str(span): judged(worth, steps) for span, worth in paid(mix, steps, SPANS, limit).items()}
            ways[way] = {"scoring": round(1000 * float((steps.env_reward > 0).float().mean()), 1), "rows": rows}
            print(f"{game}, {way}: {ways[way]}", file=sys.stderr, flush=True)
    finally:
        envs.close()
    config = loaded.config
    trained = f"{config.method} after {loaded.env_steps:,} steps, seed {config.seed}"
    return {"game": game, "trained": trained, "ways": ways}


def table(document: dict[str, Any]) -> WordTable:
    """One line for each way of playing and reading."""
    lines = []
    for game in document["games"]:
        for way, found in game["ways"].items():
            for span, row in found["rows"].items():
                name = f"{span} states" if span != "0" else "the error whole"
                none, some = row["stretches"]
                ratio = "-" if row["idle"] is None else f"{row['idle']:.2f}"
                near = f"{row['near']:.2f} of {row['of']:.2f}"
                ours = (f"{row['points']:.2f}", f"{row['soon']:.2f}", near, f"{ratio} ({none} of {none + some})")
                lines.append((game["game"], way, f"{found['scoring']:.0f}", name, *ours))
    columns = ("game", "play", "scoring steps in 1,000", "compared", "points", "soon", "near points", "idle")
    return WordTable("What changes for good, where it is followed", columns, tuple(lines), document["notes"])


def _measured(args: argparse.Namespace) -> dict[str, Any]:
    if args.policy is None:
        raise UserError("--policy: name the run or policy file that plays")
    if len(args.games) > 1:
        raise UserError(f"{' '.join(args.games)}: a policy plays one game; name one")
    (game,) = args.games
    found = measure(game, args.policy, args.seed, args.limit)
    notes = [
        f"the policy: {found['trained']}; {NUM_ENVS} games, {STEPS:,} steps of each, seed {args.seed}",
        f"`{SETTINGS}`",
        *([LIMITED.format(args.limit)] if args.limit else []),
    ]
    command = f"python tools/followed_audit.py {game} --policy RUN --seed {args.seed} --limit {args.limit:g}"
    return {"command": command, "notes": notes, "games": [found]}


def main() -> int:
    """Measure or read, then print."""
    parser = audit_parser(__doc__, "one folder of bundled demonstrations, such as demon_attack", seed=100)
    parser.add_argument("--policy", type=Path, metavar="RUN", help="a run or policy file")
    parser.add_argument("--limit", type=float, default=0.0, help="largest worth of a step, in means; 0 sets none")
    return audit(parser, "What changes for good, where it is followed", table, _measured)


if __name__ == "__main__":
    sys.exit(main())

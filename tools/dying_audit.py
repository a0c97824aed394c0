"""When does a game show a death, and when does it count it? What moves on the screen before a life is lost.

    python tools/dying_audit.py BeamRider Qbert --json results/dying-audit.json
    python tools/dying_audit.py --from results/dying-audit.json --markdown results/dying-audit.md

An episode ends where the game counts a life less, which may be seconds after it showed the death; curiosity about what
changes is then paid for dying. For random play of each game: the squared change from one frame to the next, averaged
over pixels and lives, in medians of all steps, by blocks of steps before the end of a life; the same over all steps and
where points are scored. `shown` is the number of steps before the end from which on a block exceeds so many times the
mean of all steps, deaths among them; `rewards.generative.dying_steps` should not be less. 0 means that nothing flashes,
not that nothing shows, and what shows earlier than is looked at is not seen.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from game_audits import audit, audit_parser
from torch import Tensor

from ilde.collector import Collector
from ilde.data import UserError
from ilde.envs import make_envs
from ilde.nets.policy import UniformPolicy
from ilde.randomness import torch_generator
from ilde.reports.tables import WordTable

NUM_ENVS, STEPS, PART = 16, 1500, 100
"""Games side by side, steps of each, and how many are played before their frames are let go of."""
REACH, BLOCK = 80, 4
"""Steps before the end of a life that are looked at, and how many are averaged."""
UNUSUAL = 5.0
"""Means of all steps beyond which a block is counted as showing a death."""


def before_ends(change: Tensor, ended: Tensor) -> tuple[int, Tensor]:
    """How many lives were at least so long, and their mean change (REACH / BLOCK), last steps first, the end too."""
    lived, lives = torch.zeros_like(change[0]), []
    for step in range(len(change)):
        lived = lived + 1
        for env in ended[step].nonzero().flatten().tolist():
            if lived[env] >= REACH:
                lives.append(change[step + 1 - REACH : step + 1, env].flip(0))
            lived[env] = 0
    if not lives:
        raise UserError(f"no life of {REACH} steps among {int(ended.sum())} that ended")
    return len(lives), torch.stack(lives).mean(0).unflatten(0, (-1, BLOCK)).mean(-1)


def shown(blocks: Tensor, usual: float) -> int:
    """Steps before the end from which on the death shows; 0 where it never does."""
    unusual = (blocks > UNUSUAL * usual).nonzero().flatten()
    return BLOCK * (int(unusual[-1]) + 1) if len(unusual) else 0


def measure(game: str, seed: int) -> dict[str, Any]:
    """What moves before lives end and where points are scored, in medians."""
    envs = make_envs(f"ALE/{game}-v5", NUM_ENVS, seed, clip_actions=True)
    changes, ends, points = [], [], []
    try:
        random = UniformPolicy(envs.action_space)
        collector = Collector(envs, random, PART, torch_generator(seed, "policy"), torch.device("cpu"))
        for _ in range(STEPS // PART):
            play = collector.collect().transitions
            moved = play.next_obs[:, :, -1].float() - play.obs[:, :, -1].float()
            changes.append(moved.square().mean((-1, -2)))
            ends.append(play.terminated.clone())  # the collector's own tensors serve again
            points.append(play.env_reward > 0)
    finally:
        envs.close()
    change, ended, scored = torch.cat(changes), torch.cat(ends), torch.cat(points)
    median = change.median()
    lives, moved_before = before_ends(change, ended)
    blocks, mean = moved_before / median, float(change.mean() / median)
    scoring = change[scored & ~ended] / median
    if not len(scoring) or not float(median):
        raise UserError(f"{game}: random play scores nothing, or hardly anything moves")
    return {
        "game": game,
        "lives": lives,
        "median": float(median),
        "mean": round(mean, 2),
        "before_the_end": [round(x, 2) for x in blocks.tolist()],
        "scoring": round(float(scoring.mean()), 2),
        "shown": shown(blocks, mean),
    }


def table(document: dict[str, Any]) -> WordTable:
    """One line for each game."""
    wide = 4
    lines = [
        (
            game["game"],
            f"{game['lives']:,}",
            f"{game['median']:.3g}",
            f"{game['mean']:.1f}",
            *(f"{max(game['before_the_end'][i : i + wide]):.1f}" for i in range(0, REACH // BLOCK, wide)),
            f"{game['scoring']:.1f}",
            f"{game['shown']}",
        )
        for game in document["games"]
    ]
    spans = tuple(f"{i * BLOCK} to {(i + wide) * BLOCK - 1} before" for i in range(0, REACH // BLOCK, wide))
    columns = ("game", "lives", "median", "all steps", *spans, "where points are scored", "shown")
    return WordTable("What moves before a life is counted as lost", columns, tuple(lines), document["notes"])


def _measured(games: list[str], seed: int) -> dict[str, Any]:
    note = (
        f"squared change of a pixel from frame to frame, in its medians; {NUM_ENVS} games of random play, "
        f"{STEPS:,} steps each, and the lives of at least {REACH} steps; of each span the largest mean of {BLOCK}; "
        f"`shown`: steps before the end from which on one exceeds {UNUSUAL:g} times that of all steps"
    )
    command = " ".join(["python tools/dying_audit.py", *games, f"--seed {seed}"])
    return {"command": command, "notes": [note], "games": [measure(game, seed) for game in games]}


def main() -> int:
    """Measure or read, then print."""
    parser = audit_parser(__doc__, "such as BeamRider")
    return audit(parser, "Deaths, audited", table, lambda args: _measured(args.games, args.seed))


if __name__ == "__main__":
    sys.exit(main())

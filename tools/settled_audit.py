"""Does what changes for good show where points are scored? `rewards.generative.settled_steps`, judged without training.

    python tools/settled_audit.py demon_attack qbert --json results/settled-audit.json
    python tools/settled_audit.py --from results/settled-audit.json --markdown results/settled-audit.md

Most of what changes on a screen changes back: whatever moves, flickers, flashes. Of the model's error on each feature
that reading pays only that part by which all of so many states from a step on differ from all of as many before it,
within one life: a counter, a cube's colour, something that is gone. The first reading of each game pays the error
whole, as a comparison, and in the 60 steps before a death the median at most. The model is fitted to a tenth of a life
and adds what it predicts to the state; features are floored at the median spread and limited to 5 spreads.

Along random play: `points` and `soon`, the correlation of its discounted returns with those of the points (0.99 and
0.94 a step, each ending with a life); `near points`, the part of the pay that falls on a step that scores and the 8
after it, beside the part of all steps that do. Then what a step is worth, in that of random play, to hands that hold
each action for a while, to the single action that is worth most, and to the demonstrator along its recorded game in
four parts; behind each in brackets its scoring steps in a thousand. `with scoring` is the rank correlation of the two
over all these ways of playing: 1 where whoever scores more often is paid more.

With `--limit 4` no step is worth more than four times the mean over the same steps: a few large changes are most of
what is paid otherwise, and say little of how often there are points.

Points are read to judge, never to pay. Some three minutes a game on one core, 6 GiB.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from game_audits import audit, audit_parser
from points_audit import DISCOUNTS, correlation, returns
from scipy.stats import spearmanr
from torch import Tensor
from worth_audit import BEGINNING, NUM_ENVS, fitted, play, ways

from ilde.data import Transitions
from ilde.demos import resolve
from ilde.envs import make_envs
from ilde.randomness import torch_generator
from ilde.reports.tables import WordTable
from ilde.rewards.base import encode
from ilde.rewards.compose import RewardMix
from ilde.rewards.generative import GenerativeReward, ending_within
from ilde.rewards.settled import settled_change

SETTINGS = (
    "rewards.generative.predicts=change rewards.generative.epochs=100 rewards.generative.log-variance-limit=4 "
    "rewards.features.floor=1"
)
SPANS = (0, 8, 16, 32)
"""States before and from a step that are compared; with 0 the error counts whole."""
DYING = 60
"""Steps before a death whose error, where it counts whole, counts as the median at most: games show deaths early."""
NEAR, PARTS, CHUNK = 8, 4, 128
"""Steps after one that scores, parts of the demonstrator's game, and steps judged at a time."""


@torch.no_grad()
def paid(mix: RewardMix, steps: Transitions, spans: tuple[int, ...], limit: float = 0.0) -> dict[int, Tensor]:
    """What steps (T, N) are worth to each reading, at most so many times their mean."""
    model = mix.terms["giril"].model
    assert isinstance(model, GenerativeReward)
    found: dict[int, list[Tensor]] = {span: [] for span in spans}
    for env in range(steps.terminated.shape[1]):
        one, states, missed = steps.map(lambda x, env=env: x[:, env]), [], []  # type: ignore[misc]
        for part in torch.arange(len(one.terminated)).split(CHUNK):
            known = encode(one[part], mix.space, mix.code)
            states.append(known.next_features)
            missed.append((model.net.decode_next(known.action, known.features) - known.next_features).abs())
        error, after = torch.cat(missed), torch.cat(states)
        for span, column in found.items():
            part_paid = torch.minimum(error, settled_change(after, one.terminated, span)) if span else error
            column.append(part_paid.square().mean(-1) * ~one.terminated)
    worths = {span: torch.stack(column, 1) for span, column in found.items()}
    if 0 in worths:
        whole = worths[0]
        worths[0] = torch.where(ending_within(steps.terminated, DYING), whole.clamp(max=whole.median()), whole)
    return {span: worth.clamp(max=limit * worth.mean()) if limit else worth for span, worth in worths.items()}


def since(scored: Tensor, steps: int) -> Tensor:
    """Where (T, N) a step scores, or one of so many before it did."""
    return ending_within(scored.flip(0), steps).flip(0)


def along_random_play(worth: Tensor, steps: Transitions) -> dict[str, float]:
    """What a reading's pay (T, N) has to do with points."""
    scored, ended = steps.env_reward > 0, steps.terminated
    row = {
        name: correlation(returns(worth, ended, discount), returns(scored.float(), ended, discount))
        for name, discount in DISCOUNTS.items()
    }
    near = since(scored, NEAR)
    return row | {"near": round(float(worth[near].sum() / worth.sum()), 3), "of": round(float(near.float().mean()), 3)}


def measure(game: str, seed: int, limit: float = 0.0) -> dict[str, Any]:
    """What each reading makes of each way of playing one game."""
    fragment, recorded = resolve(f"{game}/one-life-v0:0.1"), resolve(f"{game}/full-v0")
    envs = make_envs(recorded.header.env_id, NUM_ENVS, seed, clip_actions=True)
    rows: dict[int, dict[str, Any]] = {span: {} for span in SPANS}
    pay: dict[str, dict[int, float]] = {}
    scoring: dict[str, float] = {}
    try:
        chance = play(envs, BEGINNING, 1.0, torch_generator(seed, "background"))
        mix = fitted(SETTINGS, envs, fragment.transitions(), chance, seed)
        for way, steps in ways(envs, seed, "play"):
            worths = paid(mix, steps, SPANS, limit)
            pay[way] = {span: float(worth.mean()) for span, worth in worths.items()}
            scoring[way] = 1000 * float((steps.env_reward > 0).float().mean())
            if way == "random":
                rows = {span: along_random_play(worth, steps) for span, worth in worths.items()}
    finally:
        envs.close()
    whole = recorded.transitions()
    reward = torch.cat([torch.as_tensor(episode.reward) for episode in recorded.episodes])
    scores = (reward > 0).float().chunk(PARTS)
    alone = whole.map(lambda x: x.unsqueeze(1))
    parts = {span: worth.chunk(PARTS) for span, worth in paid(mix, alone, SPANS, limit).items()}
    for k, scored in enumerate(scores):
        pay[f"part {k + 1}"] = {span: float(parts[span][k].mean()) for span in SPANS}
        scoring[f"part {k + 1}"] = 1000 * float(scored.mean())
    for span, row in rows.items():
        row["pay"] = {way: found[span] for way, found in pay.items()}
        row["with_scoring"] = round(float(spearmanr(list(row["pay"].values()), list(scoring.values())).statistic), 2)
    print(f"{game}: {rows}", file=sys.stderr, flush=True)
    return {"game": game, "scoring": scoring, "rows": {str(span): row for span, row in rows.items()}}


def table(document: dict[str, Any]) -> WordTable:
    """One line for each game and reading."""
    lines = []
    for game in document["games"]:
        scoring = game["scoring"]
        for span, row in game["rows"].items():
            pay = row["pay"]
            _, single = max((worth, way) for way, worth in pay.items() if way.startswith("action"))
            shown = ["held", single, *(f"part {k + 1}" for k in range(PARTS))]
            worths = [f"{pay[way] / pay['random']:.2f} ({scoring[way]:.0f})" for way in shown]
            worths[1] += f", {single}"
            near = f"{row['near']:.2f} of {row['of']:.2f}"
            ours = (f"{row['points']:.2f}", f"{row['soon']:.2f}", near, f"1.00 ({scoring['random']:.0f})", *worths)
            name = f"{span} states" if span != "0" else "the error whole"
            lines.append((game["game"], name, *ours, f"{row['with_scoring']:.2f}"))
    columns: tuple[str, ...] = ("game", "compared", "points", "soon", "near points", "random play", "held actions")
    columns += ("best single action", *(f"demonstrator, part {k + 1}" for k in range(PARTS)), "with scoring")
    return WordTable("What changes for good, and points", columns, tuple(lines), document["notes"])


UNMARKED = (
    "a recording does not mark lost lives: along the demonstrator's game what a death changes counts as changed for "
    "good, which training cuts off, so that those four columns are too high where lives are lost"
)


def _measured(games: list[str], seed: int, limit: float = 0.0) -> dict[str, Any]:
    notes = [
        f"points, soon, near points: along random play, {NUM_ENVS} games, seed {seed}; then the mean pay of a step in "
        "that of random play, and in brackets scoring steps in a thousand",
        f"`{SETTINGS}`",
        UNMARKED,
    ]
    command = " ".join(["python tools/settled_audit.py", *games, f"--seed {seed}"])
    if limit:
        notes.append(f"no step is worth more than {limit:g} times the mean over the same steps")
        command += f" --limit {limit:g}"
    return {"command": command, "notes": notes, "games": [measure(game, seed, limit) for game in games]}


def main() -> int:
    """Measure or read, then print."""
    parser = audit_parser(__doc__, seed=100)
    parser.add_argument("--limit", type=float, default=0.0, help="largest worth of a step, in means; 0 sets none")
    return audit(
        parser, "What changes for good, audited", table, lambda args: _measured(args.games, args.seed, args.limit)
    )


if __name__ == "__main__":
    sys.exit(main())

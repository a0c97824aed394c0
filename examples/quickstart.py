"""The main job: beat a mediocre HalfCheetah demonstrator from half of one of its episodes, on two CPU cores.

Trains ILDE, compares it with the demonstrator and a random policy on the same reset seeds, and films both side by side.

    python examples/quickstart.py --seed 0
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ilde.cli.main import main as ilde
from ilde.evaluation import Evaluation
from ilde.policies import LoadedPolicy, bundled_policy, evaluate_policy, load_policy, uniform_policy
from ilde.watching import film_side_by_side

ENV = "HalfCheetah-v5"
DEMONSTRATOR = "halfcheetah-v5/weak-v0"
FRAGMENT = f"{DEMONSTRATOR}:0.5"
EPISODES = 20
RESET_SEED = 20_000
"""Seeds the evaluation's episodes, the same for everyone; no training run uses it."""


def fresh_folder(base: Path) -> Path:
    """The first folder of that name that is not taken."""
    candidates = (base if number == 1 else base.with_name(f"{base.name}-{number}") for number in range(1, 10_000))
    return next(folder for folder in candidates if not folder.exists())


def train(seed: int, out: Path) -> None:
    """What `ilde train ilde ...` does; Ctrl-C leaves a run that `ilde resume` goes on with."""
    code = ilde(["train", "ilde", "--env", ENV, "--demos", FRAGMENT, "--seed", str(seed), "--out", str(out)])
    if code:
        raise SystemExit(code)


def score(policy: LoadedPolicy) -> tuple[Evaluation, Evaluation]:
    """Greedy and sampled returns on the common reset seeds."""
    greedy, sampled = (evaluate_policy(policy, episodes=EPISODES, seed=RESET_SEED, greedy=g) for g in (True, False))
    return greedy, sampled


def table(scores: dict[str, tuple[Evaluation, Evaluation]]) -> Table:
    """Who scored what, and how that compares with the demonstrator."""
    reference = scores["demonstrator"][0].mean
    result = Table(title=f"{ENV}: true return over {EPISODES} episodes")
    for column in ("policy", "greedy mean", "95% interval", "ratio", "sampled mean"):
        result.add_column(column, justify="left" if column == "policy" else "right")
    for name, (greedy, sampled) in scores.items():
        low, high = greedy.interval
        ratio = f"{greedy.mean / reference:.2f}"
        result.add_row(name, f"{greedy.mean:,.0f}", f"{low:,.0f} to {high:,.0f}", ratio, f"{sampled.mean:,.0f}")
    return result


def main() -> None:
    """Train, compare, film."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/quickstart"))
    options = parser.parse_args()
    out = fresh_folder(options.out)
    console = Console()
    console.print(f"ILDE learns from the first half of one episode of {DEMONSTRATOR}; the run goes to {out}")
    train(options.seed, out)
    policies = {
        "demonstrator": bundled_policy(DEMONSTRATOR),
        "random": uniform_policy(ENV),
        "ILDE": load_policy(out),
    }
    console.print(table({name: score(policy) for name, policy in policies.items()}))
    video = film_side_by_side(policies["demonstrator"], policies["ILDE"], out / "videos" / "side-by-side.mp4")
    console.print(f"demonstrator (left) and ILDE (right): {video}")
    console.print(
        "one seed is one draw: `python benchmarks/quickstart.py --seeds 5` shows the spread, with the controls"
    )


if __name__ == "__main__":
    main()

"""`ilde theory`: run the algorithm of the theorem, and measure its regret."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ilde.cli.printing import duration, print_json, print_table
from ilde.cli.verbs import Verb, natural_number, whole_number

if TYPE_CHECKING:
    from ilde.runs import RunDirectory
    from ilde.theory.presets import StudyConfig

LINE_SECONDS = 5.0


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", default="chain", metavar="NAME", help="chain, random, grid or linear")
    parser.add_argument("--seeds", type=whole_number, metavar="N", help="runs of each kind (default: the preset's, 20)")
    parser.add_argument(
        "--episodes",
        metavar="T,T,...",
        help="the values of T (default: the preset's, 1e4 to 1e6); ablations stop at 1e5",
    )
    parser.add_argument("--game-seed", type=natural_number, metavar="S", help="of the process and the demonstrations")
    parser.add_argument("--jobs", type=whole_number, default=os.cpu_count() or 1, metavar="N", help="processes at once")
    parser.add_argument("--out", type=Path, metavar="DIR", help="a run directory (default: a new one under runs/)")


def run_theory(args: argparse.Namespace) -> int:
    """Run a study, write its run directory, and print what came of it."""
    # The matrices are small and the processes many: threads inside them would only get in each other's way.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from ilde.cli.settings import default_out
    from ilde.fields import to_dict
    from ilde.runs import RunDirectory, collect_provenance
    from ilde.theory.study import run_study
    from ilde.theory.summary import summarise

    config = _configure(args)
    out = args.out or default_out("theory", config.name)
    provenance = collect_provenance(["ilde", "theory", *args.words], None, {})
    with RunDirectory.create(out, {"method": "ilde-npg"} | to_dict(config), provenance, tensorboard=False) as run:
        started, cpu = time.monotonic(), _cpu_seconds()
        with _progress(f"ILDE-NPG on {config.name}, {config.num_seeds} seeds, {args.jobs} processes") as progress:
            outcomes = run_study(config, args.jobs, progress)
        summary = summarise(config, outcomes)
        summary |= {"run": str(out), "wall_seconds": time.monotonic() - started, "cpu_seconds": _cpu_seconds() - cpu}
        _record(run, config, summary)
    if args.json:
        print_json(summary)
    else:
        _print(summary)
    return 0


def _configure(args: argparse.Namespace) -> StudyConfig:
    from ilde.data import UserError
    from ilde.theory.presets import find_preset

    config = find_preset(args.preset)
    if args.seeds is not None:
        config = replace(config, num_seeds=args.seeds)
    if args.game_seed is not None:
        config = replace(config, game_seed=args.game_seed)
    if args.episodes is not None:
        try:
            sizes = tuple(sorted({float(word) for word in args.episodes.split(",")}))
        except ValueError:
            sizes = ()
        if len(sizes) < 2 or not 10 <= sizes[0] <= sizes[-1] <= 1e9:
            raise UserError(
                f"--episodes {args.episodes!r}: write two or more numbers from 10 to 1e9, such as 1e4,1e5,1e6"
            )
        config = replace(config, episodes=sizes, ablation_episodes=tuple(size for size in sizes if size <= 1e5))
    return config


def _cpu_seconds() -> float:
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system


@contextmanager
def _progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, a line now and then elsewhere; on standard error, so that --json stays alone."""
    if not sys.stderr.isatty():
        yield _plain_progress(title)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _plain_progress(title: str) -> Callable[[int, int], None]:
    print(title, file=sys.stderr, flush=True)
    said = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal said
        if time.monotonic() - said >= LINE_SECONDS or done == total:
            said = time.monotonic()
            print(f"{done} of {total} runs", file=sys.stderr, flush=True)

    return progress


def _record(run: RunDirectory, config: StudyConfig, summary: dict[str, Any]) -> None:
    """Rows of the full algorithm as metrics, of every variant as evaluations; steps are agent steps."""
    from ilde.runs.durable import write_atomically
    from ilde.theory.plot import can_plot, plot_study

    horizon = config.world.horizon
    for row in summary["points"]:
        steps = row["episodes"] * horizon
        if row["variant"] == "full":
            run.log_metrics(
                steps, {f"theory/{name}": row[name][0] for name in ("regret", "saddle_regret", "mixture_error")}
            )
        run.log_evaluation(steps, row)
    write_atomically(run.path / "study.json", (json.dumps(_rounded(summary), indent=1) + "\n").encode())
    if can_plot():
        plot_study(summary, run.path / "regret.png")
    run.set_status("finished", max(row["episodes"] for row in summary["points"]) * horizon)


def _rounded(value: Any) -> Any:
    """Six figures of every number: more would only make the file long; what is not finite becomes null."""
    match value:
        case float():
            return float(f"{value:.6g}") if value - value == 0 else None
        case list():
            return [_rounded(item) for item in value]
        case dict():
            return {name: _rounded(item) for name, item in value.items()}
    return value


def _print(summary: dict[str, Any]) -> None:
    columns = (
        "variant",
        "T",
        "K",
        "N",
        "m",
        "regret / T",
        "95% interval",
        "saddle",
        "I1 + I3",
        "I2",
        "mixture",
        "eps_E",
    )
    print_table(columns, [_row(row) for row in summary["points"]], title="per episode")
    print()
    names = ("T", "played", "K", "N", "m", "c", "bound over trivial")
    keys = ("episodes", "played", "iterations", "batch", "period", "bonus_constant", "bound_over_trivial")
    title = "the theorem's own constants; a bound over 1 says less than nothing"
    print_table(names, [[_short(row[key]) for key in keys] for row in summary["theorem"]], title=title)
    print()
    _print_exponents(summary)


def _short(value: float) -> object:
    """Counts beyond any computer as powers of ten."""
    return f"{value:.1e}" if value >= 1e6 else value


def _print_exponents(summary: dict[str, Any]) -> None:
    fits = {**summary["exponents"], "mixture_error": summary["mixture_exponent"]}
    rows = [[name, fit["exponent"], fit["interval"], fit["last_decade"]] for name, fit in fits.items()]
    print_table(("quantity", "exponent of T", "95% interval", "last decade"), rows)
    print(f"\nregret ~ T^{summary['exponent']:.3f}, {_verdict(summary)}")
    wall, cpu = duration(summary["wall_seconds"]), duration(summary["cpu_seconds"])
    print(f"{wall} ({cpu} of processor time); wrote {summary['run']}")


def _verdict(summary: dict[str, Any]) -> str:
    """What the fitted exponent says of the theorem's; resampling one seed says nothing."""
    low, high = summary["interval"]
    if low == high:
        return "one seed: no interval, and nothing is claimed"
    verdict = "at or below" if summary["exponent"] <= 2 / 3 else "above"
    return f"95% interval [{low:.3f}, {high:.3f}]: {verdict} the theorem's 2/3"


def _row(row: dict[str, Any]) -> Sequence[object]:
    schedule = row["schedule"]
    mean, low, high = row["regret"]
    rest = [row[name][0] for name in ("saddle_regret", "policy_term", "reward_term", "mixture_error", "demo_error")]
    sizes = (schedule["iterations"], schedule["batch"], schedule["period"])
    return [row["variant"], row["episodes"], *sizes, mean, [low, high], *rest]


VERBS = (
    Verb(
        "theory",
        "run the algorithm of the paper's theorem and fit the exponent of its regret",
        "ilde theory --preset chain --seeds 20 --jobs 2",
        run_theory,
        _arguments,
        details="ILDE with natural policy gradient on a small decision process, where the regret is exact.\n"
        "docs/algorithms/ilde-npg.md says what is run and how to read it.",
    ),
)

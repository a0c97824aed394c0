"""`ilde train` and `ilde resume`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ilde.cli.demos import DEMOS_HELP
from ilde.cli.settings import NAMED, default_out, setting_names
from ilde.cli.verbs import UsageError, Verb, time_argument

if TYPE_CHECKING:
    from ilde.launch import Run


def _train_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", metavar="METHOD", help="a row of `ilde methods`, such as ilde, gail or expert")
    parser.add_argument("--env", required=True, metavar="ENV", help="one of `ilde envs`; an ALE id names the game only")
    parser.add_argument("--demos", metavar="DEMOS", help=DEMOS_HELP)
    parser.add_argument("--reward", metavar="EXPR", help="instead of the method's own: 'vail + 10*giril + entropy'")
    parser.add_argument("--steps", metavar="N", help="agent steps in all")
    parser.add_argument("--seed", metavar="S", help="decides every random number (default: 0)")
    parser.add_argument("--seeds", metavar="SEEDS", help="several runs: 0..3 is 0, 1, 2 and 3; or a list, 0,2,5")
    parser.add_argument("--device", metavar="NAME", help="where networks live: auto, cpu or cuda (default: auto)")
    parser.add_argument("--preset", metavar="NAME", help="one of `ilde presets` (default: by method and environment)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (default: runs/ENV-METHOD-SEED)")
    time_argument(parser)


def run_train(args: argparse.Namespace) -> int:
    """Begin a run, or one run per seed."""
    from ilde.cli.driving import drive, make_display
    from ilde.cli.seeds import train_seeds
    from ilde.launch import start
    from ilde.methods import find_method
    from ilde.prepare import action_remark, uses_demos
    from ilde.settings import compose, parse_seeds

    if args.seeds is not None and args.seed is not None:
        raise UsageError("--seed and --seeds: name the seeds once, as --seeds 0..3, or one of them with --seed")
    named = [(name, getattr(args, name)) for name in NAMED if getattr(args, name) is not None]
    settings = [*named, *args.settings]
    config = compose(args.method, args.env, args.preset, settings, mark="--")
    display = make_display(as_json=args.json)
    if args.seeds is not None:
        seeds = parse_seeds(args.seeds, mark="--")
        out = args.out or default_out(config.env, config.method)
        return train_seeds(config, seeds, out, minutes=args.minutes, as_json=args.json)
    out = args.out or default_out(config.env, config.method, config.seed)

    def begin() -> Run:
        run = start(config, out, display)
        if config.demos is not None and not uses_demos(config):
            display.noted(f"{config.method} learns from no demonstrations: {config.demos} is not looked at")
        foreign = find_method(config.method).foreign_settings
        for name in (name for name, _ in args.settings if name.replace("-", "_").startswith(foreign)):
            display.noted(f"{config.method} does not read --{name}")
        if remark := action_remark(config, run.trainer.envs.action_space):
            display.noted(remark)
        if args.preset is None:
            display.noted(f"preset {config.preset}, chosen for {config.method} on {config.env}; --preset names another")
        return run

    return drive(out, begin, display, minutes=args.minutes, as_json=args.json)


def _resume_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="a folder that `ilde train` wrote")
    parser.add_argument("--demos", metavar="DEMOS", help="where its demonstrations lie now, if not where they did")
    time_argument(parser)


def run_resume(args: argparse.Namespace) -> int:
    """Go on with a run, unless it is finished; of a finished one an evaluation that was lost is made up for."""
    from ilde.cli.driving import drive, make_display, print_outcome
    from ilde.launch import resume
    from ilde.runs import RunDirectory

    display = make_display(as_json=args.json)
    run = RunDirectory.read(args.run)
    status = run.status
    if status.state == "finished" and not (run.owes_evaluation and run.resumable):
        display.noted(f"{args.run}: finished at {status.env_steps:,} steps; nothing is left to do")
        print_outcome(args.run, as_json=args.json)
        return 0

    def begin() -> Run:
        return resume(args.run, display, args.demos)

    return drive(args.run, begin, display, minutes=args.minutes, as_json=args.json)


VERBS = (
    Verb(
        "train",
        "train a method on an environment, from demonstrations",
        "ilde train ilde --env HalfCheetah-v5 --demos halfcheetah-v5/weak-v0:0.1 --ppo.learning-rate 1e-4",
        run_train,
        _train_arguments,
        setting_names,
        "Any setting can be given by its dotted name; `ilde presets --json` shows them all.\n"
        "Ctrl-C finishes the update, saves a checkpoint and prints how to go on.",
    ),
    Verb(
        "resume",
        "go on exactly where a run stopped",
        "ilde resume runs/mine",
        run_resume,
        _resume_arguments,
    ),
)

"""`ilde methods`, `ilde envs`, `ilde presets`, `ilde settings`: what there is."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from ilde.cli.printing import print_json, print_table
from ilde.cli.verbs import Verb


def run_methods(args: argparse.Namespace) -> int:
    """Print the table of methods."""
    from ilde.methods import METHODS

    if args.json:
        print_json([asdict(method) for method in METHODS])
    else:
        rows = [(m.name, m.reward, m.learner, m.demos, m.control, m.summary) for m in METHODS]
        print_table(("method", "reward", "learner", "demos", "control", "what it is"), rows)
    return 0


def run_envs(args: argparse.Namespace) -> int:
    """Print the environments."""
    from ilde.envs import list_envs

    envs = list_envs()
    if args.json:
        print_json(envs)
    else:
        print_table(("environment", "kind", "installed"), [(e["name"], e["kind"], e["installed"]) for e in envs])
    return 0


def run_presets(args: argparse.Namespace) -> int:
    """Print the presets; with --json also their settings."""
    from ilde.config import PRESETS, to_dict

    if args.json:
        print_json([{"name": p.name, "summary": p.summary, "settings": to_dict(p.config)} for p in PRESETS])
    else:
        print_table(("preset", "what it is"), [(preset.name, preset.summary) for preset in PRESETS])
    return 0


def _settings_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("about", metavar="WORD", nargs="*", help="only settings whose name or meaning has all of them")
    parser.add_argument("--preset", metavar="NAME", default="quick", help="whose values to show (default: quick)")


def run_settings(args: argparse.Namespace) -> int:
    """Print the settings, what they are in a preset and what they mean."""
    from ilde.cli.settings import described
    from ilde.config import find_preset
    from ilde.data import UserError

    known = [setting for setting in described(find_preset(args.preset)) if setting.name not in ("method", "preset")]
    found = [s for s in known if all(word.lower() in f"{s.name} {s.meaning}".lower() for word in args.about)]
    if not found:
        raise UserError(f"no setting has {' and '.join(args.about)} in its name or meaning; `ilde settings` lists all")
    if args.json:
        print_json([asdict(setting) for setting in found])
    else:
        print_table(("setting", args.preset, "what it means"), [(s.name, s.value, s.meaning) for s in found])
    return 0


VERBS = (
    Verb("methods", "list the methods: reward, learner and demonstrations of each", "ilde methods --json", run_methods),
    Verb("envs", "list the environments that can be named", "ilde envs --json", run_envs),
    Verb("presets", "list the presets; --json shows every setting", "ilde presets --json", run_presets),
    Verb(
        "settings",
        "say what settings there are, what they mean and what they are in a preset",
        "ilde settings giril --preset atari",
        run_settings,
        _settings_arguments,
        details="Each can be given to `ilde train` by its name, as in --rewards.entropy.num-neighbors 5.",
    ),
)

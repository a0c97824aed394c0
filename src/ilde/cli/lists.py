"""`ilde methods`, `ilde envs`, `ilde presets`: what there is."""

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


VERBS = (
    Verb("methods", "list the methods: reward, learner and demonstrations of each", "ilde methods --json", run_methods),
    Verb("envs", "list the environments that can be named", "ilde envs --json", run_envs),
    Verb("presets", "list the presets; --json shows every setting", "ilde presets --json", run_presets),
)

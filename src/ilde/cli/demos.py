"""`ilde demos list|show|check`: what demonstrations hold."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ilde.cli.printing import cell_text, print_json, print_table
from ilde.cli.verbs import Verb

if TYPE_CHECKING:
    from ilde.demos import Demonstrations

DEMOS_HELP = "a bundled name or a file, with `:0.1` after it for the first 10 percent of each episode"


def summary(name: str, demos: Demonstrations) -> dict[str, Any]:
    """What one line of a list says."""
    from ilde.demos.bundled import expert_of
    from ilde.prepare import demonstrator_return

    return {
        "name": name,
        "env": demos.env_id,
        "transitions": demos.num_transitions,
        "episodes": len(demos.episodes),
        "mean_return": demos.mean_return,
        "demonstrator": demonstrator_return(demos),
        "recorder": demos.header.recorder,
        "expert": expert_of(demos),
    }


def print_summaries(rows: list[dict[str, Any]]) -> None:
    """A table of demonstrations; who was recorded stands in the JSON only."""
    columns = ("demos", "environment", "transitions", "episodes", "mean return", "demonstrator")
    print_table(columns, [list(row.values())[: len(columns)] for row in rows])


def run_list(args: argparse.Namespace) -> int:
    """Print the bundled demonstrations."""
    from ilde.demos.bundled import bundled_names, resolve

    rows = [summary(name, resolve(name)) for name in bundled_names()]
    if args.json:
        print_json(rows)
    else:
        print_summaries(rows)
    return 0


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("demos", metavar="DEMOS", help=DEMOS_HELP)
    parser.add_argument("--picture", type=Path, metavar="FILE", help="also draw the first episode, as a PNG")


def run_show(args: argparse.Namespace) -> int:
    """Print where demonstrations come from and what each episode holds."""
    from ilde.demos import resolve

    demos = resolve(args.demos)
    if args.picture is not None:
        from ilde.demos.picture import film_strip

        film_strip(demos, args.picture)
    episodes = _episodes(demos)
    if args.json:
        print_json(summary(args.demos, demos) | {"header": asdict(demos.header), "by_episode": episodes})
    else:
        _print_details(args.demos, demos, episodes)
    if args.picture is not None and not args.json:
        print(f"\nwrote {args.picture}")
    return 0


def _print_details(name: str, demos: Demonstrations, episodes: list[dict[str, Any]]) -> None:
    print_summaries([summary(name, demos)])
    print()
    hidden = ("seeds", "returns", "lives", "env_id")
    print_table(("origin", ""), [(k, cell_text(v)) for k, v in asdict(demos.header).items() if k not in hidden])
    print()
    rows = [[*list(episode.values())[:-1], str(episode["seed"])] for episode in episodes]
    print_table(("episode", "steps", "return", "ended by", "random actions", "seed"), rows)


def _episodes(demos: Demonstrations) -> list[dict[str, Any]]:
    return [
        {
            "episode": index,
            "steps": len(episode),
            "return": float(episode.reward.sum()) if demos.header.returns else None,
            "ended_by": _ending(episode.life_lost, episode.terminated, episode.truncated),
            "trembled": int(episode.trembled.sum()),
            "seed": episode.seed,
        }
        for index, episode in enumerate(demos.episodes)
    ]


def _ending(life_lost: bool, terminated: bool, truncated: bool) -> str:
    if life_lost:
        return "a lost life"
    if terminated:
        return "termination"
    return "a time limit" if truncated else "the cut"


def _check_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("demos", metavar="FILE", nargs="+", help=DEMOS_HELP)


def run_check(args: argparse.Namespace) -> int:
    """Read each file as if a stranger had written it."""
    results = [_check(name) for name in args.demos]
    if args.json:
        print_json(results)
    else:
        for result in results:
            print(f"{result['name']}: ok" if result["ok"] else result["error"])
    return 0 if all(result["ok"] for result in results) else 2


def _check(name: str) -> dict[str, Any]:
    from ilde.data import UserError
    from ilde.demos import resolve

    try:
        resolve(name)
    except UserError as error:
        return {"name": name, "ok": False, "error": str(error)}
    return {"name": name, "ok": True, "error": None}


VERBS = (
    Verb("demos list", "list the bundled demonstrations", "ilde demos list --json", run_list),
    Verb(
        "demos show",
        "say where demonstrations come from and what they hold",
        "ilde demos show halfcheetah-v5/weak-v0 --picture demo.png",
        run_show,
        _show_arguments,
    ),
    Verb(
        "demos check",
        "read demonstration files and name what is wrong with them",
        "ilde demos check mine.npz yours.npz",
        run_check,
        _check_arguments,
    ),
)

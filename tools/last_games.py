"""Play a run's last games at home: its policy and journals travel, its checkpoint of fifty times the size stays.

    python tools/last_games.py pack runs/a/seed-0 seed-0.tar.gz       # where it was trained, stopped or not
    python tools/last_games.py unpack seed-0.tar.gz runs/a/seed-0     # at home
    python tools/last_games.py play runs/a/seed-0

For machines that are lent by the minute: thirty games of an agent that lives long take longer than a million steps of
training. The games begin from the seeds that the run's own evaluation would have taken; sampled actions are drawn
elsewhere and differ. Provenance says which games were played at home, and on what. A run that did not take all its
steps is not finished by it, and one that has played its last games is left as it is.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tarfile
from functools import partial
from pathlib import Path
from typing import Any

from ilde.data import UserError
from ilde.envs import simulator_versions
from ilde.patience import heard_by
from ilde.policies import evaluate_policy, load_policy, load_policy_file, save_policy_file
from ilde.runs import RunDirectory, collect_provenance
from ilde.runs.directory import FOLDERS, PROVENANCE
from ilde.runs.durable import write_atomically

POLICY = "policy.safetensors"
LEFT_BEHIND = (*FOLDERS, "lock", POLICY)


def pack(run: Path, archive: Path) -> None:
    """Write the journals and the newest policy of a run as one archive."""
    loaded, policy = load_policy(run), run / f".{POLICY}"
    try:
        save_policy_file(loaded, policy)
        with tarfile.open(archive, "w:gz") as tar:
            for path in sorted(run.iterdir()):
                if path.name not in LEFT_BEHIND and path != policy:
                    tar.add(path, path.name)
            tar.add(policy, POLICY)
    finally:
        policy.unlink(missing_ok=True)


def unpack(archive: Path, run: Path) -> None:
    """Make the folder of a run of its archive."""
    if run.exists():
        raise UserError(f"{run} exists; name a folder that does not")
    unfinished = run.with_name(f".tmp-{run.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(unfinished, filter="data")
        unfinished.rename(run)
    except (OSError, EOFError, tarfile.TarError) as error:
        raise UserError(f"{archive}: cannot be unpacked ({error}); carry it again") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def play(run: Path) -> list[str]:
    """Play those of a run's last games that it has not played, and say that it is finished; returns which."""
    with RunDirectory.open(run, tensorboard=False) as folder:
        loaded, played = load_policy_file(run / POLICY), []
        config, planned = loaded.config.evaluation, loaded.config.steps
        if loaded.env_steps < planned:
            raise UserError(f"{run}: stopped at {loaded.env_steps:,} of {planned:,} steps; it is not finished by games")
        known = {row["greedy"] for row in folder.evaluations.rows() if row["final"]}
        for name, greedy in {"greedy": True, "sampled": False}.items():
            if greedy in known:
                continue
            evaluation = evaluate_policy(
                loaded,
                episodes=config.final_episodes,
                seed=loaded.config.seed,
                greedy=greedy,
                max_steps=config.final_max_steps or None,
            )
            played.append(name)
            _own_up(folder, name)
            folder.log_evaluation(loaded.env_steps, evaluation.row(loaded.demonstrator, final=True))
        folder.set_status("finished", loaded.env_steps)
    return played


def _own_up(folder: RunDirectory, name: str) -> None:
    here = collect_provenance(sys.argv, None, simulator_versions())
    known = folder.provenance
    known.setdefault("games_played_at_home", {})[name] = {
        fact: here[fact] for fact in ("started", "versions", "source", "platform", "cpu")
    }
    write_atomically(folder.path / PROVENANCE, (json.dumps(known, indent=2) + "\n").encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    packing, unpacking, playing = (verbs.add_parser(name) for name in ("pack", "unpack", "play"))
    packing.add_argument("run", type=Path)
    packing.add_argument("archive", type=Path, help="the file to write")
    unpacking.add_argument("archive", type=Path)
    unpacking.add_argument("run", type=Path, help="a folder that does not exist yet")
    playing.add_argument("run", type=Path)
    options = parser.parse_args()
    try:
        with heard_by(partial(print, file=sys.stderr, flush=True)):
            _work(options)
    except UserError as error:
        sys.exit(str(error))


def _work(options: Any) -> None:
    if options.verb == "pack":
        pack(options.run, options.archive)
        print(f"{options.archive}: {options.archive.stat().st_size:,} bytes")
    elif options.verb == "unpack":
        unpack(options.archive, options.run)
    else:
        print(", ".join(play(options.run)) or "played before")


if __name__ == "__main__":
    main()

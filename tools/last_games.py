"""Play a run's last games at home: its policy and journals travel, its checkpoint of fifty times the size stays.

    python tools/last_games.py pack runs/a/seed-0 seed-0.tar.gz       # where it was trained, stopped or not
    python tools/last_games.py unpack seed-0.tar.gz home/a/seed-0     # at home
    python tools/last_games.py play home/a/seed-0

For machines that are lent by the minute: thirty games of an agent that lives long take longer than a million steps of
training. The games begin from the seeds that the run's own evaluation would have taken; sampled actions are drawn
elsewhere and differ. Provenance says which games were played at home, and on what. A run that did not take all its
steps is not finished by it; what was evaluated before is not played again. At home `ilde eval` and `ilde export`
find the policy; `ilde resume` and `ilde watch` refuse, for the checkpoints are elsewhere.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
import tarfile
import zlib
from functools import partial
from pathlib import Path
from typing import Any

from ilde.cli.evaluate import open_policy
from ilde.data import UserError
from ilde.envs import simulator_versions
from ilde.methods import find_method
from ilde.patience import heard_by
from ilde.policies import LoadedPolicy, evaluate_policy, load_policy, save_policy_file
from ilde.runs import RunDirectory, collect_provenance
from ilde.runs.directory import CONFIG, FOLDERS, POLICY, PROVENANCE, holds_run
from ilde.runs.durable import write_atomically

LEFT_BEHIND = (*FOLDERS, "lock", POLICY)
KEPT = ("started", "versions", "source", "platform", "cpu", "threads", "gpu")
"""What provenance says of the machine that played."""
MIB = 2**20


def pack(run: Path, archive: Path) -> None:
    """Write the journals and the newest policy of a run as one archive."""
    loaded, policy = load_policy(run), run / f".{POLICY}"
    archive.parent.mkdir(parents=True, exist_ok=True)
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
        # To its very end, for that is where its checksum stands; tar files end before, and have none of their contents.
        with gzip.open(archive) as whole:
            while whole.read(MIB):
                pass
        with tarfile.open(archive) as tar:
            tar.extractall(unfinished, filter="data")
        if not ((unfinished / CONFIG).is_file() and (unfinished / POLICY).is_file()):
            raise UserError(f"{archive}: holds no run with its policy; name what `pack` wrote")
        unfinished.rename(run)
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise UserError(f"{archive}: cannot be unpacked ({error}); carry it again") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def play(run: Path) -> list[str]:
    """Play those of a run's last games that it has not played, and say that it is finished; returns which."""
    if not holds_run(run) or not (run / POLICY).is_file():
        raise UserError(f"{run}: no run with its policy beside it; name what `unpack` made")
    with RunDirectory.open(run, tensorboard=False) as folder:
        loaded, _ = open_policy(run / POLICY, "cpu")
        _check_it_is_trained(run, folder, loaded)
        folder.rewind(loaded.env_steps)  # a row may have been torn
        known = {row["greedy"] for row in folder.evaluations.rows() if row["final"]}
        missing = [name for name, greedy in {"greedy": True, "sampled": False}.items() if greedy not in known]
        for name in missing:
            _play(folder, loaded, name)
        if folder.status.state != "finished":
            folder.set_status("finished", loaded.env_steps)
    return missing


def _check_it_is_trained(run: Path, folder: RunDirectory, loaded: LoadedPolicy) -> None:
    config, steps = loaded.config, loaded.env_steps
    if find_method(config.method).learner != "bc" and steps < config.steps:
        raise UserError(f"{run}: stopped at {steps:,} of {config.steps:,} steps; it is not finished by games")
    every, updates = config.evaluation.every, steps // (config.num_envs * config.rollout_steps)
    measured = any(row["env_steps"] == steps and not row["final"] for row in folder.evaluations.rows())
    if every and updates and updates % every == 0 and not measured:
        remedy = "resume it where it was trained"
        raise UserError(f"{run}: the evaluation on the way at {steps:,} steps is missing; {remedy}")


def _play(folder: RunDirectory, loaded: LoadedPolicy, name: str) -> None:
    here = collect_provenance(sys.argv, None, simulator_versions())
    config = loaded.config
    evaluation = evaluate_policy(
        loaded,
        episodes=config.evaluation.final_episodes,
        seed=config.seed,
        greedy=name == "greedy",
        max_steps=config.evaluation.final_max_steps or None,
    )
    known = folder.provenance
    known.setdefault("games_played_at_home", {})[name] = {fact: here[fact] for fact in KEPT}
    write_atomically(folder.path / PROVENANCE, (json.dumps(known, indent=2) + "\n").encode())
    folder.log_evaluation(loaded.env_steps, evaluation.row(loaded.demonstrator, final=True))


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
    except KeyboardInterrupt:
        sys.exit(130)


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

"""Kills training runs with SIGKILL and proves that each, resumed, ends as if nothing had happened.

    python tools/kill_test.py --kills 40 --env HalfCheetah-v5 ALE/Breakout-v5

A tiny run, of ILDE with all its terms unless `--method` names another, is trained once undisturbed, in a process of
its own: the reference. Then it is trained again and again, killed at random moments and resumed, until enough kills
were delivered. Half of the kills wait until a checkpoint is being written. Every run must go on after every kill, and
end with the reference's last checkpoint (weights, optimisers, statistics, generators, environments), metrics and
evaluations, byte for byte.
The runs are forked from this process, because importing the libraries takes longer than the whole run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, NoReturn, TypeAlias, get_args

import safetensors.torch
import torch
from tiny_run import record_random_policy, tiny_config, train, warm_up

from ilde.config import RunConfig
from ilde.runs.checkpoint import REPLACED, TEMPORARY, TENSORS, TREE

Aim: TypeAlias = Literal["anywhere", "update", "save", "next save"]
"""From the fork on; some time after an update; while a checkpoint is written, soon or after some more updates."""

KILLS_PER_RUN = 6
PATIENCE_SECONDS = 900.0


class Child:
    """A forked process and the pipe it announces its updates on."""

    def __init__(self, work: Callable[[int], None]) -> None:
        self.pipe, announcing = os.pipe()
        os.set_blocking(self.pipe, False)
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _work_and_exit(work, announcing)
        os.close(announcing)

    def wait_for(self, happened: Callable[[], bool]) -> None:
        """Wait until something happened or the process has ended."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not happened() and not self.ended and time.monotonic() < deadline:
            time.sleep(0.0005)

    def has_updated(self) -> bool:
        """Whether the run has made an update since it was last asked."""
        try:
            return bool(os.read(self.pipe, 1024))
        except BlockingIOError:
            return False

    @property
    def ended(self) -> bool:
        """Whether the process is over; its status can still be taken."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def kill(self) -> int:
        """Kill, if there is still something to kill; returns how the process ended."""
        os.kill(self.pid, signal.SIGKILL)
        return self.join()

    def join(self) -> int:
        """Wait for the end; returns the exit status, negative for a signal."""
        self.wait_for(lambda: False)
        if not self.ended:
            print(f"no end after {PATIENCE_SECONDS:.0f} s: killed for good", file=sys.stderr)
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.pipe)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _work_and_exit(work: Callable[[int], None], pipe: int) -> NoReturn:
    status = 1
    try:
        work(pipe)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        # Whatever happens, a fork must not go on with the parent's work.
        os._exit(status)


@dataclass
class Tally:
    """What happened to the runs of one environment."""

    env: str
    kills: int = 0
    kills_inside_saves: int = 0
    unresumable: int = 0
    runs: int = 0
    identical: int = 0
    differences: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def count(self, unequal: list[str]) -> None:
        """Add a run and what of it differs from the reference."""
        self.differences += [f"{self.env}, run {self.runs}: {what}" for what in unequal]
        self.runs += 1
        self.identical += not unequal

    @property
    def fine(self) -> bool:
        """Whether every run went on after every kill and ended as the reference did."""
        return self.unresumable == 0 and self.identical == self.runs

    def __str__(self) -> str:
        return (
            f"{self.env}: {self.kills} kills, {self.kills_inside_saves} of them inside saves; "
            f"{self.unresumable} unresumable; {self.identical} of {self.runs} runs identical to the reference "
            f"({self.seconds:.0f} s)"
        )


def half_written(checkpoints: Path) -> set[tuple[str, int]]:
    """What lies there of checkpoints under way; with times, so that an older leftover is not taken for a new one."""
    try:
        entries = list(os.scandir(checkpoints))
        names = [e for e in entries if e.name.startswith(TEMPORARY) or e.name.endswith(REPLACED)]
        return {(entry.name, entry.stat().st_ctime_ns) for entry in names}
    except FileNotFoundError:
        return set()


class Killer:
    """Trains one configuration under fire."""

    def __init__(self, config: RunConfig, tally: Tally, chance: random.Random) -> None:
        self.config, self.tally, self.chance = config, tally, chance
        self.run_seconds = 5.0

    def undisturbed(self, folder: Path) -> bool:
        """A run without kills, which tells how long one takes; returns whether it ended well."""
        began = time.monotonic()
        ended = self._judge(self._fork(folder).join())
        self.run_seconds = time.monotonic() - began
        return ended

    def disturbed(self, folder: Path, kills: int) -> bool:
        """A run with at most so many kills, then left to its end; returns whether it reached it."""
        checkpoints = folder / "checkpoints"
        for _ in range(min(kills, KILLS_PER_RUN)):
            before = half_written(checkpoints)
            child = self._fork(folder)
            self._await_moment(child, checkpoints, self.chance.choice(get_args(Aim)))
            status = child.kill()
            if status != -signal.SIGKILL:
                return self._judge(status)
            inside = bool(half_written(checkpoints) - before)
            self.tally.kills += 1
            self.tally.kills_inside_saves += inside
        return self._judge(self._fork(folder).join())

    def _fork(self, folder: Path) -> Child:
        return Child(lambda pipe: train(self.config, folder, pipe))

    def _judge(self, status: int) -> bool:
        self.tally.unresumable += status != 0
        return status == 0

    def _await_moment(self, child: Child, checkpoints: Path, aim: Aim) -> None:
        """Let the process run to the moment of its death."""
        if aim == "anywhere":
            self._let_run(child, self.run_seconds)
            return
        child.wait_for(child.has_updated)
        if aim != "save":
            self._let_run(child, self.run_seconds / 3)
        if aim != "update":
            child.wait_for(lambda: bool(half_written(checkpoints)))

    def _let_run(self, child: Child, at_most: float) -> None:
        until = time.monotonic() + self.chance.uniform(0, at_most)
        child.wait_for(lambda: time.monotonic() >= until)


def differences(folder: Path, reference: Path) -> list[str]:
    """What is not equal, byte for byte, in two finished runs."""
    names = sorted(path.name for path in (reference / "checkpoints").iterdir())
    if names != sorted(path.name for path in (folder / "checkpoints").iterdir()):
        return ["checkpoints: other steps"]
    files = [
        "metrics.jsonl",
        "evaluations.jsonl",
        f"checkpoints/{names[-1]}/{TREE}",
        f"checkpoints/{names[-1]}/{TENSORS}",
    ]
    unequal = [name for name in files if (folder / name).read_bytes() != (reference / name).read_bytes()]
    return [part for name in unequal for part in _explained(folder / name, reference / name)]


def _explained(path: Path, reference: Path) -> list[str]:
    """The name of an unequal file, or of its unequal tensors."""
    if path.name != TENSORS:
        return [path.name]
    ours, theirs = (safetensors.torch.load(p.read_bytes()) for p in (path, reference))
    return [name for name in sorted(ours.keys() | theirs.keys()) if not _same(ours.get(name), theirs.get(name))]


def _same(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    return one is not None and other is not None and one.numpy().tobytes() == other.numpy().tobytes()


def reference_run(config: RunConfig, folder: Path) -> None:
    """The run nothing happens to, in a new process: it shares neither memory nor hash seed with the forks."""
    process = multiprocessing.get_context("spawn").Process(target=train, args=(config, folder))
    process.start()
    process.join()
    if process.exitcode != 0:
        raise SystemExit(f"{config.env}: the undisturbed run failed; nothing to compare with")


def trial(method: str, env: str, kills: int, updates: int, seed: int, work: Path, say: Callable[[str], None]) -> Tally:
    """Kill and resume runs on one environment until enough kills were delivered."""
    began = time.monotonic()
    work.mkdir(parents=True)
    demos, reference = work / "demos.npz", work / "reference"
    if Child(lambda _: record_random_policy(env, demos, seed)).join() != 0:
        raise SystemExit(f"{env}: no demonstration could be recorded")
    config = tiny_config(method, env, demos, updates, seed)
    reference_run(config, reference)
    tally = Tally(env)
    killer = Killer(config, tally, random.Random(seed))
    # A run may end before its killer strikes; the bound is for machines where it always would.
    while tally.kills < kills and tally.runs < 2 + kills:
        folder = work / f"run-{tally.runs}"
        first = tally.runs == 0
        ended = killer.undisturbed(folder) if first else killer.disturbed(folder, kills - tally.kills)
        unequal = differences(folder, reference) if ended else ["did not reach its end"]
        tally.count(unequal)
        tally.seconds = time.monotonic() - began
        say(str(tally))
        if not unequal:
            shutil.rmtree(folder)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=40, help="kills to deliver in each environment (default 40)")
    parser.add_argument("--env", nargs="+", default=["HalfCheetah-v5"], metavar="ENV", help="environments to train in")
    parser.add_argument("--method", default="ilde", help="what to train (default ilde)")
    parser.add_argument("--updates", type=int, default=18, help="length of each run (default 18)")
    parser.add_argument("--seed", type=int, default=0, help="of the run and of the moments (default 0)")
    parser.add_argument("--out", type=Path, help="keep the reference and the runs that differ in this new folder")
    parser.add_argument("--json", action="store_true", help="print the outcome as one JSON document")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warm_up()
    progress = sys.stderr if args.json else sys.stdout

    def say(line: str) -> None:
        print(line, file=progress, flush=True)

    with tempfile.TemporaryDirectory() as scratch:
        folders = {env: (args.out or Path(scratch)) / env.replace("/", "-") for env in args.env}
        tallies = [
            trial(args.method, env, args.kills, args.updates, args.seed, work, say) for env, work in folders.items()
        ]
    if args.json:
        print(json.dumps([asdict(tally) | {"fine": tally.fine} for tally in tallies], indent=2))
    for difference in (difference for tally in tallies for difference in tally.differences):
        print(difference, file=sys.stderr)
    return 0 if all(tally.fine and tally.kills >= args.kills for tally in tallies) else 1


if __name__ == "__main__":
    raise SystemExit(main())

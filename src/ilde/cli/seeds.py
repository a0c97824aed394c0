"""Several seeds of one configuration: a process each, a few at a time, and a table in the end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any

from ilde.cli.driving import outcome
from ilde.cli.printing import print_json, print_table
from ilde.cli.signals import StopRequest
from ilde.data import UserError
from ilde.envs.cores import usable_cores
from ilde.evaluation import mean_interval
from ilde.prepare import build, choose_device

if TYPE_CHECKING:
    from ilde.config import RunConfig

Note = Callable[[str], None]


def shared_out(cores: Sequence[int], shares: int) -> list[list[int]]:
    """The cores in neighbouring shares of about equal size, none of them empty; at most one share per core."""
    bounds = [round(len(cores) * k / shares) for k in range(shares + 1)]
    return [list(cores[first:last]) for first, last in pairwise(bounds)]


class Fleet:
    """The processes of several runs; a signal reaches each of them and keeps the rest from starting.

    Each has cores to itself while it runs: simulators that take all cores for granted slow each other down.
    """

    def __init__(self, commands: dict[int, list[str]], note: Note) -> None:
        self._commands, self._note = commands, note
        self._children: list[subprocess.Popen[str]] = []
        self._shares: Queue[list[int]] = Queue()
        self.stop = StopRequest(self._forward)

    def run(self, at_once: int) -> dict[int, int | None]:
        """The exit code of each seed's process; None for one that was not started."""
        for share in shared_out(usable_cores(), at_once):
            self._shares.put(share)
        with self.stop, ThreadPoolExecutor(at_once) as pool:
            return dict(zip(self._commands, pool.map(self._run_one, self._commands), strict=True))

    def _run_one(self, seed: int) -> int | None:
        if self.stop():
            return None
        share = self._shares.get()
        try:
            return self._run_on(share, seed)
        finally:
            self._shares.put(share)

    def _run_on(self, share: list[int], seed: int) -> int:
        # In a session of its own, so that Ctrl-C reaches it once, through `_forward`, and not from the terminal too.
        with subprocess.Popen(
            self._commands[seed],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as child:
            self._children.append(child)
            if hasattr(os, "sched_setaffinity"):
                with suppress(ProcessLookupError):  # it may be over already
                    os.sched_setaffinity(child.pid, share)  # before it has started a thread: all of them inherit it
            assert child.stdout is not None
            for line in child.stdout:
                self._note(f"seed {seed}: {line.rstrip()}")
        # A process that died of a signal has its number, negative; a shell would say 128 more than it.
        return child.returncode if child.returncode >= 0 else 128 - child.returncode

    def _forward(self, number: int) -> None:
        for child in self._children:
            child.send_signal(number)


def train_seeds(
    config: RunConfig,
    settings: Sequence[tuple[str, str]],
    seeds: Sequence[int],
    out: Path,
    note: Note,
    *,
    as_json: bool,
) -> int:
    """Train one run per seed in `out/seed-K`; returns 0 if all finished, else the first other exit code."""
    folders = {seed: out / f"seed-{seed}" for seed in seeds}
    _check(config, folders)
    at_once = min(len(seeds), max(1, len(usable_cores()) // 2))
    note(f"{len(seeds)} runs in {out}, preset {config.preset}, {at_once} at a time")
    fleet = Fleet({seed: _command(config, settings, seed, folders[seed]) for seed in seeds}, note)
    codes = fleet.run(at_once)
    outcomes = {seed: _outcome(folders[seed], code) for seed, code in codes.items()}
    if as_json:
        print_json({"runs": list(outcomes.values()), "mean": _means(outcomes)})
    else:
        _print(outcomes)
    return fleet.stop.exit_code or next((code for code in codes.values() if code), 0)


def _check(config: RunConfig, folders: dict[int, Path]) -> None:
    """Find every mistake once, here, rather than in each process."""
    for folder in folders.values():
        if folder.exists():
            raise UserError(
                f"{folder}: exists already; `ilde resume {folder}` goes on with it, or choose another --out"
            )
    choose_device(config.device)
    trainer, _ = build(replace(config, device="cpu"))
    trainer.envs.close()


def _command(config: RunConfig, settings: Sequence[tuple[str, str]], seed: int, folder: Path) -> list[str]:
    options = [f"--{name}={value}" for name, value in settings if name != "seed"]
    own = [f"--preset={config.preset}", f"--seed={seed}", f"--out={folder}"]
    return [sys.executable, "-m", "ilde", "train", config.method, *options, *own]


def _outcome(folder: Path, code: int | None) -> dict[str, Any]:
    if (folder / "config.json").exists():
        return outcome(folder) | {"exit_code": code}
    return {"run": str(folder), "state": "not started", "env_steps": 0, "evaluations": [], "exit_code": code}


def _scores(outcomes: dict[int, dict[str, Any]], *, greedy: bool) -> dict[int, dict[str, Any]]:
    return {seed: row for seed, result in outcomes.items() for row in result["evaluations"] if row["greedy"] is greedy}


def _means(outcomes: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """The mean over seeds of their final scores, with its interval."""
    means = {}
    for name, greedy in (("greedy", True), ("sampled", False)):
        scores = [row["mean"] for row in _scores(outcomes, greedy=greedy).values()]
        if scores:
            means[name] = {"mean": sum(scores) / len(scores), "interval": list(mean_interval(scores))}
    return means


def _print(outcomes: dict[int, dict[str, Any]]) -> None:
    greedy, sampled = (_scores(outcomes, greedy=flag) for flag in (True, False))
    rows: list[list[object]] = [
        [str(seed), result["state"], result["env_steps"], *_cells(greedy.get(seed)), sampled.get(seed, {}).get("mean")]
        for seed, result in outcomes.items()
    ]
    means = _means(outcomes)
    if len(means) == 2:
        mean, interval = means["greedy"].values()
        rows.append(["mean", "", None, mean, interval, None, means["sampled"]["mean"]])
    print_table(("seed", "state", "steps", "greedy", "95% interval", "ratio", "sampled"), rows)


def _cells(row: dict[str, Any] | None) -> list[object]:
    return [None, None, None] if row is None else [row["mean"], row["interval"], row["ratio"]]

"""The folder of one run: what it was asked to do, what it measured, and where it can go on.

The order of writing is the contract of a resume: rows of a step are logged before its checkpoint is saved, so
`load_latest` followed by `rewind` leaves every step exactly once. A folder is a run as soon as it has `config.json`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, final, get_args

from ilde.data import HindranceError, UserError
from ilde.envs.base import State
from ilde.runs.board import ScalarBoard
from ilde.runs.checkpoint import (
    Checkpoint,
    checkpoint_steps,
    clear_leftovers,
    discard,
    latest_checkpoint,
    prune,
    write_checkpoint,
)
from ilde.runs.durable import LASTING, FolderLock, nearest, reading, sync, write_atomically
from ilde.runs.journal import Journal

RunState: TypeAlias = Literal["running", "finished", "interrupted", "failed"]

CONFIG, PROVENANCE, STATUS = "config.json", "provenance.json", "status.json"
POLICY = "policy.safetensors"
"""What stands for the checkpoints of a run that were left where it was trained (`tools/last_games.py`)."""
FOLDERS = ("checkpoints", "tensorboard", "videos")
JOURNALS = ("metrics.jsonl", "timing.jsonl", "evaluations.jsonl")
OWN_NAMES = {CONFIG, PROVENANCE, STATUS, POLICY, "lock", *FOLDERS, *JOURNALS}


@dataclass(frozen=True)
class Status:
    """How far a run has come."""

    state: RunState
    env_steps: int
    message: str
    updated: str
    """UTC, ISO 8601."""


@final
class RunDirectory:
    """A run on disk; `create` and `open` hold its lock and may write, `read` may not."""

    def __init__(self, path: Path, lock: FolderLock | None, *, tensorboard: bool) -> None:
        self.path = path
        self.checkpoints, self.videos = path / "checkpoints", path / "videos"
        self.metrics, self.timing, self.evaluations = (Journal(path / name) for name in JOURNALS)
        self._lock = lock
        self._board = ScalarBoard(path / "tensorboard") if tensorboard else None

    @classmethod
    def create(
        cls,
        path: Path,
        config: Mapping[str, Any],
        provenance: Mapping[str, Any],
        *,
        required_bytes: int = 0,
        tensorboard: bool = True,
    ) -> RunDirectory:
        """Start a run in a new or empty folder, after checking that it can be written and has room."""
        with _writing(path):
            _check_free(path)
            _check_space(path, required_bytes)
            path.mkdir(parents=True, exist_ok=True)
            with ExitStack() as undo:
                run = undo.enter_context(cls(path, FolderLock(path), tensorboard=tensorboard))
                # Again, now that nobody else can: another process may have started a run here since.
                _check_free(path)
                run._initialise(config, provenance)
                undo.pop_all()
        return run

    @classmethod
    def open(cls, path: Path, *, tensorboard: bool = True) -> RunDirectory:
        """Take up an existing run, and remove what a killed process left half written."""
        _check_run(path)
        with _writing(path), ExitStack() as undo:
            run = undo.enter_context(cls(path, FolderLock(path), tensorboard=tensorboard))
            clear_leftovers(run.checkpoints)
            undo.pop_all()
        return run

    @classmethod
    def read(cls, path: Path) -> RunDirectory:
        """Look at a run, also while another process works on it."""
        _check_run(path)
        return cls(path, None, tensorboard=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finish the logs and release the lock; from here on the run can only be read."""
        if self._board is not None:
            self._board.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @property
    def config(self) -> dict[str, Any]:
        """What the run was asked to do."""
        return _read_json(self.path / CONFIG)

    @property
    def provenance(self) -> dict[str, Any]:
        """What the run was made with."""
        return _read_json(self.path / PROVENANCE)

    def require_named_env(self) -> None:
        """Raise where the environment was the user's own code, which only Python can bring back."""
        if self.provenance.get("own_env"):
            remedy = f"take it up in Python: Imitator.load({str(self.path)!r}, env=...)"
            raise UserError(f"{self.path}: made with an environment of your own; {remedy}")

    def require_checkpoints(self) -> None:
        """Raise where they were left behind: a resume would begin at the start, and forget all rows."""
        if (self.path / POLICY).is_file() and not self.resumable:
            raise UserError(f"{self.path}: its checkpoints, which this needs, stayed where it was trained")

    @property
    def status(self) -> Status:
        """How far the run said it had come; a killed one still says `running`."""
        content = _read_json(self.path / STATUS)
        try:
            status = Status(**content)
            if status.state not in get_args(RunState) or type(status.env_steps) is not int:
                raise TypeError(f"state {status.state!r} at {status.env_steps!r} steps")
            return status
        except TypeError as error:
            raise UserError(f"{self.path / STATUS}: {error}; restore it from a copy of the run") from None

    @property
    def owes_evaluation(self) -> bool:
        """Whether a last evaluation, greedy or sampled, is missing, of a finished run because its journal was lost."""
        measured = [row.get("greedy") for row in self.evaluations.rows() if row.get("final")]
        # What `Imitator.save` wrote names its environment's owner, and holds the evaluations that were asked for.
        return not (True in measured and False in measured) and "own_env" not in self.provenance

    @property
    def resumable(self) -> bool:
        """Whether a resume goes on from a checkpoint; else it begins at the start, and forgets all rows."""
        with reading(self.checkpoints):
            return bool(checkpoint_steps(self.checkpoints))

    def set_status(self, state: RunState, env_steps: int, message: str = "") -> None:
        """Say how far the run has come."""
        status = Status(state, env_steps, message, datetime.now(UTC).isoformat(timespec="seconds"))
        with self._locked():
            _write_json(self.path / STATUS, asdict(status))

    def log_metrics(self, env_steps: int, metrics: Mapping[str, float]) -> None:
        """Append one row of scalars; equal runs write equal bytes, so no times belong here."""
        scalars = {name: float(value) for name, value in metrics.items()}
        with self._locked():
            self.metrics.append(env_steps, scalars)
            if self._board is not None:
                self._board.add(env_steps, scalars)

    def log_timing(self, env_steps: int, timing: Mapping[str, float]) -> None:
        """Append one row of durations and speeds: what differs between equal runs."""
        with self._locked():
            self.timing.append(env_steps, {name: float(value) for name, value in timing.items()})

    def log_evaluation(self, env_steps: int, evaluation: Mapping[str, Any]) -> None:
        """Append the outcome of one evaluation: any JSON values."""
        with self._locked():
            self.evaluations.append(env_steps, evaluation)

    def save(
        self,
        env_steps: int,
        state: State,
        header: dict[str, Any],
        *,
        keep_last: int = 2,
        keep: Collection[int] = (),
    ) -> Path:
        """Checkpoint the state after the rows so far, then delete all but the last few and those at `keep`."""
        with self._locked():
            # A checkpoint that outlives a power cut must find its rows: they go to disk first.
            for journal in self._journals():
                journal.sync()
            sync(self.path)
            if self._board is not None:
                self._board.flush()
            path = write_checkpoint(self.checkpoints, env_steps, state, header=header)
            prune(self.checkpoints, keep_last, keep=keep)
        return path

    def load_latest(self) -> Checkpoint | None:
        """The newest readable checkpoint, with a note where newer ones were damaged; None before the first save."""
        return latest_checkpoint(self.checkpoints)

    def rewind(self, env_steps: int) -> None:
        """Forget all rows and checkpoints beyond the step a resume goes on from (-1: from the very start)."""
        with self._locked():
            for journal in self._journals():
                journal.rewind(env_steps)
            for steps in checkpoint_steps(self.checkpoints):
                if steps > env_steps:
                    discard(self.checkpoints, steps)
            if self._board is not None:
                self._board.rewind(env_steps)

    def _journals(self) -> tuple[Journal, ...]:
        return self.metrics, self.timing, self.evaluations

    def _initialise(self, config: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
        for name in FOLDERS:
            (self.path / name).mkdir(exist_ok=True)
        _write_json(self.path / PROVENANCE, provenance)
        self.set_status("running", 0)
        # Last, because it makes the folder a run: one killed before this line can be created again.
        _write_json(self.path / CONFIG, config)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Write, with the lock held; what the file system refuses becomes one line."""
        if self._lock is None:
            raise RuntimeError(f"{self.path}: open for reading only; `RunDirectory.open` takes the lock for writing")
        with _writing(self.path):
            yield


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn a refusal of the file system into one line for the user."""
    try:
        yield
    except OSError as error:
        if error.errno not in LASTING:
            raise HindranceError(f"{path}: cannot be written ({error.strerror}); mend that and try again") from error
        message = f"cannot be written ({error.strerror}); make {nearest(path)} writable or choose another folder"
        raise UserError(f"{path}: {message}") from error


def _check_free(path: Path) -> None:
    if (path / CONFIG).exists():
        raise UserError(f"{path}: already holds a run; `ilde resume {path}` goes on with it, or choose another --out")
    if not nearest(path).is_dir():
        raise UserError(f"{path}: {nearest(path)} is a file; choose another --out")
    others = [entry.name for entry in path.glob("[!.]*") if entry.name not in OWN_NAMES]
    if others:
        raise UserError(f"{path}: holds other files ({min(others)}); choose a new or empty folder as --out")


def _check_space(path: Path, required_bytes: int) -> None:
    total, _, free = shutil.disk_usage(nearest(path))
    # What has no room at all, such as /proc, is no full disk: writing to it says more.
    if total and free < required_bytes:
        needs = f"{free / 2**20:,.0f} MiB free, this run needs {required_bytes / 2**20:,.0f} MiB"
        raise HindranceError(f"{path}: {needs}; free some space or choose another --out")


def holds_run(path: Path) -> bool:
    """Whether a folder is a run."""
    with reading(path / CONFIG):
        return (path / CONFIG).is_file()


def _check_run(path: Path) -> None:
    if not holds_run(path):
        raise UserError(f"{path}: not a run (no {CONFIG}); name a folder that `ilde train` wrote")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        with reading(path):
            content = json.loads(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{path}: cannot be read ({error}); restore it from a copy of the run") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: is not a JSON object; restore it from a copy of the run")
    return content


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())

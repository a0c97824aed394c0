"""The run directory: configuration, provenance, logs, checkpoints and exact resume."""

from ilde.runs.checkpoint import (
    Checkpoint,
    CorruptCheckpoint,
    latest_checkpoint,
    prune,
    read_checkpoint,
    write_checkpoint,
)
from ilde.runs.directory import RunDirectory, RunState, Status
from ilde.runs.provenance import collect_provenance

__all__ = [
    "Checkpoint",
    "CorruptCheckpoint",
    "RunDirectory",
    "RunState",
    "Status",
    "collect_provenance",
    "latest_checkpoint",
    "prune",
    "read_checkpoint",
    "write_checkpoint",
]

"""Scalars for TensorBoard, opened when the first one comes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class ScalarBoard:
    """A TensorBoard log that can go back to an earlier step."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: SummaryWriter | None = None
        self._purge_step: int | None = None

    def add(self, env_steps: int, scalars: Mapping[str, float]) -> None:
        """Log the finite ones."""
        if self._writer is None:
            # TensorBoard takes a second to import, which readers of a run need not pay.
            from torch.utils.tensorboard import SummaryWriter

            self._outlive_the_second()
            self._writer = SummaryWriter(str(self._folder), purge_step=self._purge_step)
        for name, value in scalars.items():
            if math.isfinite(value):
                self._writer.add_scalar(name, value, env_steps)

    def _outlive_the_second(self) -> None:
        """Wait until a new file sorts behind the old: TensorBoard reads them by name, which begins with a second."""
        seconds = (path.name.split(".")[3] for path in self._folder.glob("events.out.tfevents.*"))
        newest = max((int(second) for second in seconds if second.isdigit()), default=0)
        # A clock that was set back may never catch up.
        time.sleep(min(max(newest + 1 - time.time(), 0.0), 1.0))

    def rewind(self, env_steps: int) -> None:
        """Have TensorBoard hide what was logged beyond `env_steps`."""
        self.close()
        self._purge_step = env_steps + 1

    def flush(self) -> None:
        """Write what is still in memory."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Write what is still in memory and stop the writer's thread."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

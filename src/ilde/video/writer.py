"""Frames to an mp4 file that browsers play, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from ilde.data import UserError
from ilde.video.canvas import Picture, caption

GAP = 8
"""Pixels between two films."""


def check_video(path: Path) -> Any:
    """Refuse, before any work, what could not be written; returns the writing library."""
    if path.suffix != ".mp4":
        raise UserError(f"{path}: videos are written as mp4; give it a name that ends in .mp4")
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise UserError(f"{path}: videos need imageio-ffmpeg: pip install ilde[video]") from error
    return imageio_ffmpeg


def write_video(frames: Iterable[Picture], path: Path, fps: float) -> Path:
    """Write frames of one size as they come; none is kept in memory."""
    imageio_ffmpeg = check_video(path)
    stream = iter(frames)
    first = next(stream, None)
    if first is None:
        raise ValueError(f"{path}: a video without frames")
    unfinished = path.with_name(f".{path.stem}.unfinished.mp4")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.touch()  # where nothing can be written, better our line than the encoder's many
        size = (_even(first).shape[1], _even(first).shape[0])
        # The index comes first, so that a browser can start before it has everything.
        options = ["-movflags", "+faststart"]
        sink = imageio_ffmpeg.write_frames(
            str(unfinished), size, fps=fps, quality=8, macro_block_size=2, output_params=options
        )
        with closing(sink):
            sink.send(None)
            for frame in chain((first,), stream):
                sink.send(np.ascontiguousarray(_even(frame)))
        os.replace(unfinished, path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error}); choose another file") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def side_by_side(
    left: Iterable[Picture], right: Iterable[Picture], labels: tuple[str, str], path: Path, fps: float
) -> Path:
    """One video of two films next to each other; the shorter one waits on its last frame."""
    return write_video(_pairs(left, right, labels), path, fps)


def _pairs(left: Iterable[Picture], right: Iterable[Picture], labels: tuple[str, str]) -> Iterator[Picture]:
    shown: list[Picture | None] = [None, None]
    for pair in zip_longest(left, right):
        shown = [fresh if fresh is not None else last for fresh, last in zip(pair, shown, strict=True)]
        panels = [caption(frame, label) for frame, label in zip(shown, labels, strict=True) if frame is not None]
        if len(panels) < 2:
            raise ValueError("a film without frames")
        height = max(len(panel) for panel in panels)
        panels = [np.pad(panel, ((0, height - len(panel)), (0, 0), (0, 0))) for panel in panels]
        yield np.concatenate([panels[0], np.zeros((height, GAP, 3), np.uint8), panels[1]], axis=1)


def _even(frame: Picture) -> Picture:
    """The codec wants even sides: a last odd row or column goes."""
    height, width = frame.shape[:2]
    return frame[: height - height % 2, : width - width % 2]

"""A glance at a demonstration: a film strip of images, or curves of vectors over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ilde.data import UserError
from ilde.demos.demonstrations import Demonstrations, Episode
from ilde.envs.base import Array

NUM_FRAMES = 10


def film_strip(demos: Demonstrations, path: str | Path) -> None:
    """Write a PNG of the first episode: evenly spaced frames, or observations and actions over time."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError(f"{path}: pictures need matplotlib: pip install ilde[plots]") from error
    episode = demos.episodes[0]
    # A figure of its own, without pyplot: the user's backend and open figures stay as they are.
    figure = Figure(figsize=(15, 2) if episode.obs.ndim == 4 else (9, 6), layout="constrained")
    if episode.obs.ndim == 4:
        _draw_frames(figure, episode.obs)
    else:
        _draw_curves(figure, episode)
    figure.suptitle(f"{demos.env_id}: {len(episode):,} steps, return {episode.reward.sum():g}")
    try:
        figure.savefig(path, format="png")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from error


def _draw_frames(figure: Any, obs: Array) -> None:
    steps = np.unique(np.linspace(0, len(obs) - 1, NUM_FRAMES).round().astype(int))
    for axes, step in zip(figure.subplots(1, len(steps), squeeze=False)[0], steps, strict=True):
        is_colour = obs.shape[-1] == 3
        axes.imshow(obs[step] if is_colour else obs[step, -1], cmap="gray", vmin=0, vmax=255)
        axes.set_title(f"step {step}", fontsize="small")
        axes.set_axis_off()


def _draw_curves(figure: Any, episode: Episode) -> None:
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.plot(episode.obs.reshape(len(episode.obs), -1), linewidth=0.8)
    upper.set_ylabel("observation")
    lower.step(np.arange(len(episode)), episode.action.reshape(len(episode), -1), where="post", linewidth=0.8)
    lower.set_ylabel("action")
    lower.set_xlabel("step")

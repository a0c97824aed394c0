"""The figure of a study; matplotlib is the extra `plots`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np


def can_plot() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def plot_study(summary: dict[str, Any], path: Path) -> None:
    """Cumulative regret with its decomposition, the ablations, and the mixture's error, on log-log axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.0, 4.0), layout="constrained")
    axes = figure.subplots(1, 3)
    rows = summary["points"]
    full = [row for row in rows if row["variant"] == "full"]
    _regret_panel(axes[0], summary, full)
    _ablation_panel(axes[1], rows)
    _mixture_panel(axes[2], summary, full)
    for axis in axes:
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("episodes T")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    figure.savefig(path, dpi=70)


def _curve(axis: Any, rows: Sequence[dict[str, Any]], name: str, label: str, *, cumulative: bool, **style: Any) -> None:
    episodes = np.array([row["episodes"] for row in rows], dtype=float)
    mean, low, high = np.array([row[name] for row in rows]).T * (episodes if cumulative else 1.0)
    shown = mean > 0
    axis.plot(episodes[shown], mean[shown], marker="o", markersize=3, label=label, **style)
    axis.fill_between(episodes[shown], np.maximum(low, mean / 100)[shown], high[shown], alpha=0.15)


def _power_line(axis: Any, rows: Sequence[dict[str, Any]], start: float, power: float, label: str) -> None:
    episodes = np.array([row["episodes"] for row in rows], dtype=float)
    axis.plot(episodes, start * (episodes / episodes[0]) ** power, "k--", linewidth=1, label=label)


def _regret_panel(axis: Any, summary: dict[str, Any], full: Sequence[dict[str, Any]]) -> None:
    low, high = summary["interval"]
    _curve(axis, full, "regret", f"regret: T^{summary['exponent']:.2f} [{low:.2f}, {high:.2f}]", cumulative=True)
    _curve(axis, full, "saddle_regret", "saddle regret", cumulative=True)
    _curve(axis, full, "policy_term", "I1 + I3 (policy player)", cumulative=True)
    _curve(axis, full, "reward_term", "I2 (reward player)", cumulative=True)
    _power_line(axis, full, full[0]["regret"][0] * full[0]["episodes"], 2 / 3, "T^(2/3)")
    axis.set_title(f"{summary['preset']}: cumulative regret")


def _ablation_panel(axis: Any, rows: Sequence[dict[str, Any]]) -> None:
    for label in dict.fromkeys(row["variant"] for row in rows):
        if label != "imitation":  # another game, with a regret of its own
            _curve(axis, [row for row in rows if row["variant"] == label], "regret", label, cumulative=False)
    axis.set_title("regret per episode")


def _mixture_panel(axis: Any, summary: dict[str, Any], full: Sequence[dict[str, Any]]) -> None:
    fitted = summary["mixture_exponent"]["exponent"]
    _curve(axis, full, "mixture_error", f"mixture: T^{fitted:.2f}", cumulative=False)
    alone = [row for row in summary["points"] if row["variant"] == "imitation"]
    if alone:
        _curve(axis, alone, "mixture_error", "lambda = 0: distance to the expert", cumulative=False)
    _power_line(axis, full, full[0]["mixture_error"][0], -1 / 3, "T^(-1/3), the remark's epsilon^-3")
    axis.set_title("error of the output mixture")

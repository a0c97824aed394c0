"""Where the numbers of a page come from: versions, commits, machines, demonstrations, commands."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ilde.reports.markup import Html, element
from ilde.reports.numbers import NOTHING, counted, number, plus_minus, score
from ilde.reports.outcomes import FinalScore, Outcome
from ilde.reports.score_section import table, table_row


def origin_section(outcomes: Sequence[Outcome]) -> Html:
    """Everything needed to trust a number, or to make it again."""
    runs = list({outcome.run: outcome for outcome in outcomes}.values())
    return element(
        "section",
        element("h2", "Provenance"),
        _machines(runs),
        _recordings(runs),
        element("details", element("summary", f"All {len(runs)} runs"), _runs(runs)),
        class_="origins",
    )


def _machines(outcomes: Sequence[Outcome]) -> Html:
    """Runs by what they were made with."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(json.dumps(setting(outcome.provenance), sort_keys=True), []).append(outcome)
    rows = []
    for key, runs in groups.items():
        facts = json.loads(key)
        others = [(name, facts[name]) for name in ("versions", "source", "machine")]
        rows.append(table_row([("runs", counted(len(runs), "run")), *others]))
    return table(("runs", "versions", "source", "machine"), rows, "plain")


def setting(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Versions, source and machine of a run, each in one line."""
    versions = provenance.get("versions")
    known = versions.items() if isinstance(versions, dict) else ()
    machine = [provenance.get(name) for name in ("cpu", "gpu", "platform")]
    cores = provenance.get("cores")
    return {
        "versions": ", ".join(f"{name} {version}" for name, version in known if version is not None) or "unknown",
        "source": _source(provenance.get("source")),
        "machine": ", ".join(str(part) for part in (*machine, f"{cores} cores" if cores else None) if part),
    }


def _source(source: object) -> str:
    if not isinstance(source, dict):
        return "no commit recorded"
    return f"{str(source.get('commit'))[:12]}{' with changes' if source.get('dirty') else ''}"


def _recordings(outcomes: Sequence[Outcome]) -> Html:
    known = {o.demos_hash: o for o in outcomes if o.demos_hash}
    if not known:
        return Html()
    columns = ("demonstrations", "used", "task", "demonstrator", "SHA-256")
    rows = []
    for digest, o in known.items():
        cells = (str(o.demos), f"{100 * o.fraction:.3g}%", o.task, score(o.demonstrator), element("code", digest))
        rows.append(table_row(list(zip(columns, cells, strict=True))))
    return table(columns, rows, "plain")


def _runs(outcomes: Sequence[Outcome]) -> Html:
    columns = ("run", "method", "seed", "state", "steps", "steps/s", "greedy", "sampled", "started", "command")
    rows = [table_row(list(zip(columns, _run_cells(outcome), strict=True))) for outcome in outcomes]
    return table(columns, rows, "runs")


def _run_cells(outcome: Outcome) -> tuple[str, ...]:
    speed = outcome.steps_per_second
    command = outcome.provenance.get("command")
    words = shlex.join(map(str, command)) if isinstance(command, list) else NOTHING
    return (
        outcome.run,
        outcome.method,
        str(outcome.seed),
        outcome.state,
        f"{outcome.env_steps:,}",
        NOTHING if speed is None else number(speed),
        _final(outcome.greedy),
        _final(outcome.sampled),
        str(outcome.provenance.get("started", NOTHING)),
        element("code", words),
    )


def _final(final: FinalScore | None) -> str:
    return NOTHING if final is None else plus_minus(final.mean, final.std if final.episodes > 1 else None)

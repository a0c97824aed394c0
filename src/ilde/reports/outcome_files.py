"""A set of outcomes as one small JSON file, from which every table and page can be made again, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NoReturn

from ilde.data import UserError
from ilde.reports.outcomes import MALFORMED, Outcome, canonical, final_score
from ilde.reports.thinned import Curve
from ilde.reports.writing import write_text

FORMAT = "ilde-outcomes-1"
FINALS = ("greedy", "sampled")


def save_outcomes(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write outcomes as JSON, one line each: the same outcomes give the same bytes, in whatever order they come."""
    lines = [json.dumps(_entry(o), separators=(",", ":"), allow_nan=False) for o in canonical(outcomes)]
    document = f'{{"format":"{FORMAT}","outcomes":[\n' + ",\n".join(lines) + "\n]}\n"
    write_text(path, document)


def _entry(outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON values; what was not kept of a score is left out, as files from before have it."""
    finals = {name: final and _known(asdict(final)) for name in FINALS for final in (getattr(outcome, name),)}
    entry = asdict(outcome) | finals
    return entry if outcome.lows.values else {name: value for name, value in entry.items() if name != "lows"}


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def load_outcomes(path: Path) -> tuple[Outcome, ...]:
    """Read what `save_outcomes` wrote."""
    try:
        document = json.loads(path.read_bytes(), parse_constant=_refuse)
        if document["format"] != FORMAT:
            raise ValueError(f"format {str(document['format'])[:40]!r}, expected {FORMAT!r}")
        return canonical(_outcome(entry) for entry in document["outcomes"])
    except (OSError, *MALFORMED, UserError) as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise UserError(f"{path}: not a file of outcomes ({reason}); `ilde report --outcomes` writes one") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")


def _outcome(entry: Mapping[str, Any]) -> Outcome:
    if missing := {field.name for field in fields(Outcome)} ^ {*entry, "lows"}:
        raise ValueError(f"fields {', '.join(sorted(missing))}")
    parts = {
        "variant": tuple(map(str, entry["variant"])),
        "training": _curve(entry["training"]),
        "evaluations": _curve(entry["evaluations"]),
        "lows": _curve(entry["lows"]) if "lows" in entry else Curve(),
        "terms": {str(name): _curve(curve) for name, curve in entry["terms"].items()},
    } | {name: entry[name] and final_score(entry[name]) for name in FINALS}
    return Outcome(**{**entry, **parts})


def _curve(entry: Mapping[str, Any]) -> Curve:
    return Curve(tuple(int(step) for step in entry["env_steps"]), tuple(float(value) for value in entry["values"]))

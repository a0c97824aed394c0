"""Pictures of policies at work, within the page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ilde.reports.markup import Html, element, join

MAX_VIDEO = 4 * 2**20
"""Bytes; a longer film would make the page too heavy to send."""


@dataclass(frozen=True)
class Film:
    """Stills of an episode in their order, or a video of it."""

    label: str = ""
    stills: tuple[bytes, ...] = ()
    """As WebP."""
    video: bytes = b""
    """As MP4."""


def newest_video(run: Path) -> bytes:
    """The last by name of a run's videos; nothing where there is none, or it is too large."""
    videos = [path for path in sorted((run / "videos").glob("*.mp4")) if path.stat().st_size <= MAX_VIDEO]
    return videos[-1].read_bytes() if videos else b""


def film_section(films: Sequence[Film]) -> Html:
    """Demonstrator and policies, one above the other."""
    if not films:
        return Html()
    return join(element("h3", "On film"), *map(_figure, films))


def _figure(film: Film) -> Html:
    stills = [_still(film, number) for number in range(len(film.stills))]
    shown = [element("div", *stills, class_="stills")] if stills else []
    if film.video:
        source = _data("video/mp4", film.video)
        label = f"Film of an episode: {film.label}"
        shown.append(element("video", src=source, controls="", muted="", playsinline="", aria_label=label))
    return element("figure", element("figcaption", film.label), *shown, class_="film")


def _still(film: Film, number: int) -> Html:
    told = f"{film.label}: picture {number + 1} of {len(film.stills)} of an episode, in their order"
    return element("img", src=_data("image/webp", film.stills[number]), alt=told, loading="lazy")


def _data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{b64encode(content).decode()}"

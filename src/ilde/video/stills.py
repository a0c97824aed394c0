"""A few pictures of an episode, for pages that do not move."""

from __future__ import annotations

import io
from collections.abc import Iterable

from ilde.video.canvas import Picture, fit

STILLS = 8
WIDTH = 252
"""Three times an Atari frame's."""
QUALITY = 80


def evenly(pictures: Iterable[Picture], count: int = STILLS) -> list[Picture]:
    """So many of the pictures, evenly spaced, with the first and the last; fewer where there are fewer."""
    every = list(pictures)
    if len(every) <= count:
        return every
    return [every[round(k * (len(every) - 1) / (count - 1))] for k in range(count)]


def webp(picture: Picture) -> bytes:
    """A picture as a small WebP file."""
    packed = io.BytesIO()
    fit(picture, WIDTH).save(packed, "WEBP", quality=QUALITY)
    return packed.getvalue()

"""HTML whose every text is escaped: what comes out of a run's folder is shown, never obeyed."""

from __future__ import annotations

from html import escape


class Html(str):
    """Text that is HTML already; any other text is escaped where it enters an element."""

    __slots__ = ()


VOID = frozenset({"meta", "link", "img", "br", "path", "line", "polygon"})
"""Elements without contents."""


def join(*parts: str) -> Html:
    """Parts one after another."""
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts))


def element(name: str, /, *contents: str, **attributes: str | float | None) -> Html:
    """An element; `class_` is `class`, other underscores are dashes, None leaves an attribute out."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    opening = "".join(f' {key}="{escape(str(value))}"' for key, value in given.items())
    # Within a drawing only `/>` closes an element without contents.
    return Html(f"<{name}{opening}/>" if name in VOID else f"<{name}{opening}>{join(*contents)}</{name}>")

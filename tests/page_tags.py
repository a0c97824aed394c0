"""A page of HTML as its elements."""

from __future__ import annotations

from html.parser import HTMLParser


class Tags(HTMLParser):
    """Every element that was opened, and those left open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def drawings(page: str) -> list[dict[str, str | None]]:
    """The attributes of everything that is read aloud as a picture."""
    return [attributes for _, attributes in Tags(page).seen if attributes.get("role") == "img"]

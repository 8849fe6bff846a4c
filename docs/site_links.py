"""Links of the built pages: those inside the site lead to a page and a place on it; those outside are well formed."""

import re
from collections.abc import Iterator
from html import unescape
from os.path import normpath
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LINK, _PLACE = re.compile(r'\s(?:href|src)="([^"]*)"'), re.compile(r'\s(?:id|name)="([^"]*)"')


class _Page:
    """What a page links to, and the places on it that can be linked to; Sphinx writes attributes in one way."""

    def __init__(self, text: str):
        self.links = dict.fromkeys(map(unescape, _LINK.findall(text)))
        self.places = set(map(unescape, _PLACE.findall(text)))


def broken(site: Path) -> Iterator[str]:
    """Yield a line for each link that leads nowhere."""
    pages = {
        page.resolve(): _Page(page.read_text(encoding="utf-8"))
        for page in site.rglob("*.html")
        if "_static" not in page.parts
    }
    for page, parsed in pages.items():
        for link in parsed.links:
            if reason := _wrong(page, link, pages):
                yield f"{page.relative_to(site.resolve())}: {link}: {reason}"


def _wrong(page: Path, link: str, pages: dict[Path, _Page]) -> str:
    """Return what is wrong with a link, or nothing."""
    parts = urlsplit(link)
    if parts.scheme in ("http", "https"):
        return "" if "." in parts.netloc and " " not in link else "is no address"
    if parts.scheme:
        return "" if parts.scheme in ("data", "mailto") else f"has the scheme {parts.scheme}"
    target = Path(normpath(page.parent / unquote(parts.path))) if parts.path else page
    if target not in pages and not target.exists():
        return "no such file"
    place = unquote(parts.fragment)
    missing = place and target in pages and place not in pages[target].places
    return f"no place {place} there" if missing else ""

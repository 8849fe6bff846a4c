"""Links of the built pages: those inside the site lead to a page and a place on it; those outside are well formed."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """What a page links to, and the places on it that can be linked to."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.places |= {value for key in ("id", "name") if (value := found.get(key))}
        self.links += [value for key in ("href", "src") if (value := found.get(key))]


def broken(site: Path) -> Iterator[str]:
    """Yield a line for each link that leads nowhere."""
    pages = {page.resolve(): _Page(page.read_text(encoding="utf-8")) for page in site.rglob("*.html")}
    for page, found in pages.items():
        for link in dict.fromkeys(found.links):
            if reason := _wrong(page, link, pages):
                yield f"{page.relative_to(site.resolve())}: {link}: {reason}"


def _wrong(page: Path, link: str, pages: dict[Path, _Page]) -> str:
    """Return what is wrong with a link, or nothing."""
    parts = urlsplit(link)
    if parts.scheme in ("http", "https"):
        return "" if "." in parts.netloc and " " not in link else "is no address"
    if parts.scheme:
        return "" if parts.scheme in ("data", "mailto") else f"has the scheme {parts.scheme}"
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.exists():
        return "no such file"
    place = unquote(parts.fragment)
    missing = place and target in pages and place not in pages[target].places
    return f"no place {place} there" if missing else ""

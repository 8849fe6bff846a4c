"""Catalogues of what is to be translated: made of the pages, compared with `docs/locale`."""

from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

HERE = Path(__file__).parent
LOCALES = HERE / "locale"
UNTRANSLATED = ("reference/", "gallery/", "errata/", "specification", "sg_")  # from code, or English only


def templates(build: Path) -> dict[str, Catalog]:
    """Return the messages of each page that is translated, by the name of its catalogue."""
    from sphinx.cmd.build import main

    out = build / "gettext"
    if main(["-b", "gettext", "-q", "-E", "-D", "plot_gallery=0", str(HERE), str(out)]):
        raise SystemExit("Sphinx failed")
    pages = {str(page.relative_to(out).with_suffix("")): page for page in out.rglob("*.pot")}
    return {name: _read(page) for name, page in sorted(pages.items()) if not name.startswith(UNTRANSLATED)}


def _read(file: Path) -> Catalog:
    with file.open("rb") as stream:
        return read_po(stream)


def differences(wanted: dict[str, Catalog], language: Path) -> list[str]:
    """Return a line for each page with entries that are missing, untranslated, or of no page any more."""
    found = []
    for name, template in wanted.items():
        file = language / "LC_MESSAGES" / f"{name}.po"
        have = {entry.id: entry for entry in _read(file) if entry.id} if file.exists() else {}
        asked = {entry.id for entry in template if entry.id}
        missing = [text for text in asked if text not in have or not have[text].string or have[text].fuzzy]
        stale = [text for text in have if text not in asked]
        if missing or stale:
            found.append(f"{language.name}: {name}: {len(missing)} of {len(asked)} missing, {len(stale)} stale")
    files = {str(f.relative_to(language / "LC_MESSAGES").with_suffix("")) for f in language.rglob("*.po")}
    return found + [f"{language.name}: {name}: no such page" for name in sorted(files - wanted.keys())]


def update(wanted: dict[str, Catalog], language: Path) -> None:
    """Bring the entries of a language up to date: new ones empty, those of changed sentences marked fuzzy."""
    for name, template in wanted.items():
        file = language / "LC_MESSAGES" / f"{name}.po"
        catalogue = _read(file) if file.exists() else Catalog(locale=language.name)
        catalogue.update(template, update_creation_date=False)
        catalogue.obsolete.clear()
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as stream:
            write_po(stream, catalogue, width=120, omit_header=False, no_location=True)


def main(build: Path, write: bool) -> int:
    """Print what is missing or stale in each language; return how many pages that is."""
    wanted = templates(build)
    languages = sorted(place for place in LOCALES.glob("*") if place.is_dir())
    lines = []
    for language in languages:
        if write:
            update(wanted, language)
        lines += differences(wanted, language)
    entries = sum(len(catalogue) for catalogue in wanted.values())
    print(
        f"{len(wanted)} pages, {entries} entries; languages: {', '.join(place.name for place in languages) or 'none'}"
    )
    print(*lines, sep="\n", end="\n" if lines else "")
    return len(lines)

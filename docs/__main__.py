"""Build the site, offline.

python -m docs                  the site, in docs/_build/html; warnings are errors, links are checked
python -m docs --no-gallery     the same without running the examples
python -m docs --language zh    in another language, from docs/locale
python -m docs --gettext        the catalogues of what is to be translated; what is missing or stale
python -m docs --gettext --write    and the entries of docs/locale brought up to date
"""

import argparse
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
BUILD = HERE / "_build"


def build(language: str, gallery: bool, jobs: int) -> int:
    """Build the site in one language; return how many links are broken, or 1 if Sphinx failed."""
    import site_links
    from sphinx.cmd.build import main

    os.environ["ASSAY_DOCS_LANGUAGE"] = language
    out = BUILD / ("html" if language == "en" else f"html_{language}")
    options = [] if gallery else ["-D", "plot_gallery=0"]
    if main(["-b", "html", "-W", "--keep-going", "-q", "-j", str(jobs), *options, str(HERE), str(out)]):
        return 1
    broken = list(site_links.broken(out))
    print(*broken, sep="\n", end="\n" if broken else "")
    return len(broken)


def main() -> int:
    """Do what the options say."""
    parser = argparse.ArgumentParser(prog="python -m docs", description="Build the site, offline.")
    parser.add_argument("--language", default="en")
    parser.add_argument("--no-gallery", action="store_true", help="do not run the examples")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--gettext", action="store_true", help="catalogues of what is to be translated")
    parser.add_argument("--write", action="store_true", help="with --gettext: bring docs/locale up to date")
    options = parser.parse_args()
    began = time.monotonic()
    if options.gettext:
        import site_catalogues

        failed = site_catalogues.main(BUILD, options.write)
    else:
        failed = build(options.language, not options.no_gallery, options.jobs)
    print(f"{time.monotonic() - began:.0f} s, {failed or 'nothing'} to mend")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())

"""The page about certificates runs, block by block."""

import doctest
import warnings
from pathlib import Path


def test_the_page_about_certificates():
    page = Path(__file__).parents[2] / "docs" / "certificates.md"
    with warnings.catch_warnings(action="ignore"):
        outcome = doctest.testfile(str(page), False, encoding="utf-8", optionflags=doctest.ELLIPSIS)
    assert outcome.attempted > 40
    assert outcome.failed == 0

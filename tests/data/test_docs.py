"""The page about tables: its block runs and prints what the page shows."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"


def test_the_block_prints_what_the_page_shows():
    text = PAGE.read_text(encoding="utf-8")
    code, shown = re.search(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", text, re.S).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert [" ".join(line.split()) for line in printed.getvalue().splitlines()] == [
        " ".join(line.split()) for line in shown.splitlines()
    ]

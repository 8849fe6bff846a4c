"""Cells of CSV that do nothing in a spreadsheet, nor on a terminal.

A spreadsheet takes a cell that begins with = + - @ for a formula, whatever the quotes around it. Such text gets an
apostrophe before it, and so does text that would be taken for one made so; numbers stay as they are. To read the text
back, take one apostrophe away where apostrophes stand before one of these signs (see `unguarded`).
"""

import re
from collections.abc import Callable, Iterable

from assay.text import shown

_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_QUOTED = re.compile(r"""[",;\t\r\n]|^\s|\s$|^$""")  # a semicolon divides cells where a comma is for decimals


def guarded(text: str) -> str:
    """Return text with an apostrophe before it if a spreadsheet would run it.

    >>> guarded("=1+1"), guarded("-1.5"), guarded("it's")
    ("'=1+1", '-1.5', "it's")
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def unguarded(text: str) -> str:
    """Return the text that `guarded` was given.

    >>> unguarded("'=1+1"), unguarded("''=1+1"), unguarded("'tis")
    ('=1+1', "'=1+1", "'tis")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def cells(raw: bool, terminal: bool) -> Callable[[Iterable[object]], str]:
    """Return what writes a row of CSV: guarded unless `raw`, and on a terminal with escapes for what cannot be seen."""
    known: dict[str, str] = {}

    def written(text: str) -> str:
        result = known.get(text)
        if result is None:
            result = text if raw else guarded(text)
            result = shown(result) if terminal else result
            result = '"' + result.replace('"', '""') + '"' if _QUOTED.search(result) else result
            if len(known) < 10_000:
                known[text] = result
        return result

    return lambda row: ",".join([written(cell) if isinstance(cell, str) else str(cell) for cell in row]) + "\n"

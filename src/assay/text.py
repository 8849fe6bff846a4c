"""Text from outside, as it may be shown to a person or sent to a program."""

import json
import math
from typing import Any


def shown(text: object) -> str:
    """Return text in which every character that cannot be seen is written as its escape.

    Line ends, terminal codes and marks that turn the direction of writing come from files and tables; printed as they
    are, they could fake or hide lines of ours.

    >>> print(shown("red\\x1b[31m\\nnext"))
    red\\x1b[31m\\nnext
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def json_text(record: Any, indent: int | None = 1) -> str:
    """Return a record as JSON that does nothing on a terminal: what cannot be seen is written as its escape. NaN and
    infinity, which JSON has not, are null.

    >>> print(json_text(["caf\u00e9\x9b31m", float("nan")], None))
    ["café\\u009b31m",null]
    """
    separators = None if indent else (",", ":")
    try:
        text = json.dumps(record, ensure_ascii=False, indent=indent, separators=separators, allow_nan=False)
    except ValueError:
        text = json.dumps(_with_nulls(record), ensure_ascii=False, indent=indent, separators=separators)
    return "\n".join(line if line.isprintable() else "".join(map(_seen, line)) for line in text.split("\n"))


def _seen(sign: str) -> str:
    return sign if sign.isprintable() else json.dumps(sign)[1:-1]


def _with_nulls(record: Any) -> Any:
    if isinstance(record, dict):
        return {name: _with_nulls(value) for name, value in record.items()}
    if isinstance(record, (list, tuple)):
        return [_with_nulls(value) for value in record]
    return None if isinstance(record, float) and not math.isfinite(record) else record

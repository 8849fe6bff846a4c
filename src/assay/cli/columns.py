"""How the columns of a table were read, as sentences for the terminal."""

from assay.data import Table
from assay.messages import render

MOST = 20


def sentences(table: Table) -> list[str]:
    """Return what was done in reading columns, and what to do if that is not what they mean; at most `MOST` columns."""
    told = []
    for item in table.summary():
        if item.kind == "left out" or not (item.note or item.advice):
            continue
        gaps = f", {item.missing} gaps" if item.missing else ""
        note, advice = (render(text, place="terminal") for text in (item.note, item.advice))
        done = f"; {note}" if note else ""
        told.append(f"Column {item.name!r}: {item.kind}, {item.holds}{gaps}{done}. {advice}".rstrip())
    rest = [f"... and {len(told) - MOST} more."] if len(told) > MOST else []
    return told[:MOST] + rest

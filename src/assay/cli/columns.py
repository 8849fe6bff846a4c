"""How the columns of a table were read, as sentences for the terminal."""

from assay.data import Table
from assay.messages import render

MOST = 20


def sentences(table: Table) -> list[str]:
    """Return what was done in reading columns, and what to do if that is not what they mean; at most `MOST` columns."""
    told = []
    for one in table.summary():
        if one.kind == "left out" or not (one.note or one.advice):
            continue
        gaps = f", {one.missing} gaps" if one.missing else ""
        note, advice = (render(text, place="terminal") for text in (one.note, one.advice))
        done = f"; {note}" if note else ""
        told.append(f"Column {one.name!r}: {one.kind}, {one.holds}{gaps}{done}. {advice}".rstrip())
    rest = [f"... and {len(told) - MOST} more."] if len(told) > MOST else []
    return told[:MOST] + rest

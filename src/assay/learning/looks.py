"""How often the rows that a certificate rests on were looked at: a ledger in the user's data folder.

Whoever opens hold-out rows, changes something and opens them again has let them choose the model: no bound is valid
for that. A study therefore writes down each time hold-out rows are opened, in one SQLite file for the command line,
Python and the studio, several processes at once:

    ASSAY_LOOKS             a path, or "off"; if it is not set:
    Linux                   $XDG_DATA_HOME/assay/looks.sqlite, or ~/.local/share/assay/looks.sqlite
    macOS                   ~/Library/Application Support/assay/looks.sqlite
    Windows                 %LOCALAPPDATA%\\assay\\looks.sqlite

Written are digests of 64 bits and the time, never a cell. The same rows are found again when columns are dropped,
renamed or added, rows are sorted otherwise, and seed, learners, file name or format are others: by each column's pairs
of cell and target, in any order; by the targets in their order; where rows were added or removed, by the smallest 256
digests of whole rows; and where the target is written otherwise (1 for yes, grams for kilograms, its logarithm), by
those of rows without it. What is missed: columns dropped or changed *and* either rows added or removed or the target
written otherwise; rows sorted otherwise *and* every column changed, where the target is a class. What is found wrongly:
another table of as many rows that agrees in the targets and in a column, or of the same rows of other columns, such as
two small tables of one design. A ledger that cannot be read or written is said, and ends no study.

The k-th look is certified at delta / (k (k + 1)), k > 1. All looks at analyses that were fixed in advance hold together
at the sum of what they spent, at most 1.5 delta. An analysis that was chosen after a look is not covered by any such
factor: it needs rows of its own. A *reserve* (`looks=3`) splits the hold-out rows in advance, by the seed; each look
opens a part that no earlier one has seen, at the whole delta, and what was opened before is fitted to.
"""

import os
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from assay.data import RawTable, digests
from assay.files import user_data_folder
from assay.guarantees import fingerprint
from assay.guarantees.ledger import DOWN, price_of_look
from assay.learning.problem import groups_of, hold_out
from assay.messages import Message

SKETCH = 256
_FEWEST = 3  # rows of a sketch that must be known
_SHARE = 0.1  # of the hold-out rows that could be known
_WAIT = 30.0  # seconds for other processes
_DISTINCT = 20
_APART = 0.9  # of the rows that must differ in the other columns


@dataclass(frozen=True)
class Looks:
    """How often rows were looked at, this time included (0: not known), what the earlier looks spent, and what is said
    about it; empty if nothing is."""

    count: int
    spent: Decimal = Decimal(0)
    note: str = ""


class Reserve(NamedTuple):
    """Hold-out rows that were split in advance: which reserve, which of its parts, and the rows of all."""

    key: str
    part: int
    parts: int
    held: np.ndarray  # in the table without the rows that are kept
    kept: np.ndarray  # rows for later looks, in the whole table
    units: int  # rows, or groups, of all parts
    whole: RawTable


def plain(reserve: Reserve | None) -> dict[str, Any]:
    """Return what a certificate says of a reserve: the rows that are kept, and how they and this part were drawn."""
    if reserve is None:
        return {"reserve": [], "part": 0, "parts": 0, "units": 0}
    return {
        "reserve": reserve.kept.tolist(), "part": reserve.part, "parts": reserve.parts, "units": reserve.units
    }  # fmt: skip


def share(delta: Decimal, k: int) -> Decimal:
    """Return the failure probability of the k-th look.

    >>> [str(share(Decimal("0.06"), k)) for k in (1, 2, 3)]
    ['0.06', '0.01', '0.005']
    """
    return delta if k <= 1 else DOWN.divide(delta, Decimal(price_of_look(k)))


def ledger() -> Path | None:
    """Return the file of the ledger; None if it is turned off."""
    given = os.environ.get("ASSAY_LOOKS", "")
    if given.lower() == "off":
        return None
    if given:
        return Path(given)
    return user_data_folder() / "looks.sqlite"


def record(table: RawTable, target: str, held: Any, delta: Decimal, reserve: Reserve | None = None) -> Looks:
    """Write down that rows of a table are about to be opened, and return how often they were before.

    `table` has the rows that are fitted to or held out, `held` the numbers of the latter. ValueError if the part of a
    reserve was opened by someone else in the meantime.
    """
    path = ledger()
    if path is None:
        return Looks(0)
    try:
        with closing(_opened(path)) as base, base:
            base.execute("BEGIN IMMEDIATE")
            known, earlier = _found(base, table, target, held, reserve)
            if reserve is not None and (reserve.key, reserve.part) in [item[:2] for item in earlier]:
                raise ValueError(Message("looks.taken", part=reserve.part))
            earlier = _others(earlier, reserve)
            count, spent = len(earlier) + 1, sum((Decimal(item[2]) for item in earlier), Decimal(0))
            note = _sentence(count, spent, share(delta, count), reserve)
            _write(base, known, table, target, share(delta, count), reserve)
    except _errors() as error:
        return Looks(0, note=_unreadable(path, error))
    return Looks(count, spent, note)


def number(table: RawTable, target: str, held: Any, reserve: Reserve | None = None) -> int:
    """Return the number that `record` would give the next look at these rows; 0 if it is not known."""
    path = ledger()
    if path is None:
        return 0
    try:
        with closing(_opened(path)) as base, base:
            return len(_others(_found(base, table, target, held, reserve)[1], reserve)) + 1
    except _errors():
        return 0


def reserved(
    table: RawTable, target: str, parts: int, share: float | None, seed: int, group: str | None
) -> tuple[RawTable, Reserve]:
    """Return the table without the rows that are kept for later looks, and the part of the hold-out rows that is next.

    The hold-out rows of the seed are cut into `parts`, groups whole; the parts before this one are fitted to.
    """
    path = ledger()
    if parts < 1:
        raise ValueError(Message("looks.number", parts=parts))
    if path is None:
        raise ValueError(Message("looks.off"))
    mark = None if group is None else groups_of(table, group)
    held = hold_out(table.n_rows, share, seed, mark, None)
    cut = _parts(held, parts, seed, mark)
    about = np.array([table.n_rows, seed % 2**64, parts, len(held)], dtype=np.uint64)
    key = f"{int(_summed_in_order(np.append(digests.of_cells(table, target), about))):016x}"
    try:
        with closing(_opened(path)) as base:
            used = {part for (part,) in base.execute("SELECT part FROM looks WHERE reserve = ?", (key,))}
    except _errors() as error:
        raise ValueError(_unreadable(path, error)) from None
    part = next((k for k in range(1, parts + 1) if k not in used), None)
    if part is None:
        raise ValueError(Message("looks.spent", parts=parts))
    kept = np.sort(np.concatenate([cut[k] for k in range(part, parts)])) if part < parts else np.empty(0, np.intp)
    rest = np.setdiff1d(np.arange(table.n_rows), kept)
    units = len(held) if mark is None else len(np.unique(mark[held]))
    return table.take(rest), Reserve(key, part, parts, np.searchsorted(rest, cut[part - 1]), kept, units, table)


def _parts(held: np.ndarray, parts: int, seed: int, group: np.ndarray | None) -> list[np.ndarray]:
    units = np.arange(len(held)) if group is None else np.unique(group[held], return_inverse=True)[1]
    count = int(units.max()) + 1
    if count < 2 * parts:
        code = "looks.few-rows" if group is None else "looks.few-groups"
        raise ValueError(Message(code, parts=parts, count=count))
    part = np.empty(count, dtype=np.intp)
    part[fingerprint.permutation(count, seed, fingerprint.RESERVE)] = np.arange(count) % parts
    return [held[part[units] == k] for k in range(parts)]


def _sentence(count: int, spent: Decimal, own: Decimal, reserve: Reserve | None) -> str:
    sure = 100 * max(Decimal(0), 1 - spent - own)
    if count > 1:
        before = Message("looks.once") if count == 2 else Message("looks.times", count=count - 1)
        return Message("looks.again", before=before, own=float(own), sure=float(sure))
    if reserve is not None:
        return Message("looks.part", part=reserve.part, parts=reserve.parts)
    return ""


def _unreadable(path: Path, error: Exception) -> Message:
    return Message("looks.unreadable", path=str(path), why=f"{type(error).__name__}: {error}")


def _errors() -> tuple[type[Exception], ...]:
    try:
        import sqlite3
    except ImportError:  # a Python that was built without it
        return OSError, ImportError
    return OSError, sqlite3.Error, ArithmeticError  # the last of numbers that are none


def _opened(path: Path) -> Any:
    import sqlite3

    path.parent.mkdir(parents=True, exist_ok=True)
    base = sqlite3.connect(path, timeout=_WAIT, isolation_level=None)
    base.execute(
        "CREATE TABLE IF NOT EXISTS looks "
        "(look INTEGER PRIMARY KEY, at TEXT, delta TEXT, reserve TEXT, part INTEGER, known INTEGER)"
    )
    base.execute("CREATE TABLE IF NOT EXISTS marks (mark INTEGER, look INTEGER, kind TEXT)")
    base.execute("CREATE INDEX IF NOT EXISTS by_mark ON marks (mark)")
    base.execute("CREATE INDEX IF NOT EXISTS by_look ON marks (look, kind, mark)")
    return base


def _found(base: Any, table: RawTable, target: str, held: Any, reserve: Reserve | None) -> tuple[int | None, list[Any]]:
    """Return the number under which the table is known, and the earlier looks at it or at some of its rows."""
    known = _known(base, table if reserve is None else reserve.whole, target)
    return known, _earlier(base, known, table.take(held), target)


def _others(earlier: list[Any], reserve: Reserve | None) -> list[Any]:
    """Return the looks that were not at another part of the same reserve."""
    return earlier if reserve is None else [item for item in earlier if item[0] != reserve.key]


def _known(base: Any, table: RawTable, target: str) -> int | None:
    """Return the number under which a table is known, whatever its columns; None if it is new.

    Two studies with no column in common may both be found again by a third: then they are of one table.
    """
    looks = {look for look, kind in _matches(base, _of_table(table, target)) if kind == "table"}
    numbers = sorted({base.execute("SELECT known FROM looks WHERE look = ?", (look,)).fetchone()[0] for look in looks})
    for other in numbers[1:]:
        base.execute("UPDATE looks SET known = ? WHERE known = ?", (numbers[0], other))
    return numbers[0] if numbers else None


def _earlier(base: Any, known: int | None, held: RawTable, target: str) -> list[tuple[str, int, str]]:
    """Return reserve, part and delta of each earlier look at the table, or at one that had some of the rows."""
    tables = set() if known is None else {known}
    for kind, own in _of_rows(held, target).items():
        counts = Counter(look for look, other in _matches(base, own) if other == kind)
        for look, count in counts.items():
            if count >= max(_FEWEST, _SHARE * sum(mark <= _reach(base, look, kind) for mark in own)):
                tables.add(base.execute("SELECT known FROM looks WHERE look = ?", (look,)).fetchone()[0])
    asked = "SELECT reserve, part, delta FROM looks WHERE known = ?"
    return [item for number in sorted(tables) for item in base.execute(asked, (number,)).fetchall()]


def _reach(base: Any, look: int, kind: str) -> int:
    """Return up to which digest all rows of a look are written down."""
    asked = "SELECT COUNT(*), MAX(mark) FROM marks WHERE look = ? AND kind = ?"
    count, largest = base.execute(asked, (look, kind)).fetchone()
    return largest if count == SKETCH else 2**63 - 1


def _matches(base: Any, marks: list[int]) -> list[tuple[int, str]]:
    results = []
    for i in range(0, len(marks), 500):
        some = marks[i : i + 500]
        asked = f"SELECT look, kind FROM marks WHERE mark IN ({','.join('?' * len(some))})"
        results += base.execute(asked, some).fetchall()
    return results


def _write(base: Any, known: int | None, table: RawTable, target: str, delta: Decimal, reserve: Reserve | None) -> None:
    key, part = (None, None) if reserve is None else (reserve.key, reserve.part)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    values = (now, str(delta), key, part, known)
    into = "INSERT INTO looks (at, delta, reserve, part, known) VALUES (?, ?, ?, ?, ?)"
    look = base.execute(into, values).lastrowid
    if known is None:
        base.execute("UPDATE looks SET known = look WHERE look = ?", (look,))
    marks = [(mark, look, "table") for mark in _of_table(table if reserve is None else reserve.whole, target)]
    marks += [(mark, look, kind) for kind, rows in _of_rows(table, target).items() for mark in rows]
    base.executemany("INSERT INTO marks VALUES (?, ?, ?)", marks)


def _of_table(table: RawTable, target: str) -> list[int]:
    """Return marks of the table as a whole: each column's pairs of cell and target, and the targets where they alone
    tell a table from others."""
    own = digests.of_cells(table, target)
    marks = []
    for name in table.names:
        cells = digests.of_cells(table, name)
        if name != target and (cells != cells[:1]).any():
            marks.append(digests.mixed(digests.mixed(own) + cells).sum(dtype=np.uint64))
    distinct, runs = len(np.unique(own)), int(np.sum(own[1:] != own[:-1])) + 1
    if distinct > max(_DISTINCT, len(own) // 10):
        marks.append(digests.mixed(own).sum(dtype=np.uint64))
    if runs > 2 * distinct:  # not sorted, so that the order says something
        marks.append(_summed_in_order(own))
    return _signed(digests.mixed(np.array(marks, dtype=np.uint64) ^ np.uint64(len(own))))


def _of_rows(table: RawTable, target: str) -> dict[str, list[int]]:
    """Return marks of rows by kind, whatever their columns are called: of whole ones and, where the other columns tell
    most rows apart, of rows without the target."""
    cells = {name: digests.mixed(digests.of_cells(table, name)) for name in table.names}
    whole = np.asarray(np.sum(list(cells.values()), axis=0, dtype=np.uint64))
    rest = whole - cells[target]
    marks = {"row": _sketch(digests.mixed(whole))}
    if len(cells) > 2 and len(np.unique(rest)) >= _APART * len(rest):
        marks["other columns"] = _sketch(digests.mixed(rest))
    return marks


def _summed_in_order(values: np.ndarray) -> np.uint64:
    places = digests.mixed(np.arange(len(values), dtype=np.uint64))
    return digests.mixed(values ^ places).sum(dtype=np.uint64)


def _sketch(rows: np.ndarray) -> list[int]:
    return _signed(np.unique(rows)[:SKETCH])


def _signed(values: np.ndarray) -> list[int]:
    """Return numbers of 64 bits as SQLite has them, in their order."""
    return [int(value) - 2**63 for value in values.tolist()]

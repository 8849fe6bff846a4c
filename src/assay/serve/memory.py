"""What requests may take of the memory, all together: bodies and answers that are held, rows that are worked on.

A body takes what of it has arrived, an answer what is not sent yet. The first bytes of each are free, since connections
are limited: many clients that send large bodies slowly do not keep out those that send a few rows.
"""

from dataclasses import dataclass

FREE = 2**16
"""Bytes of each request that count for nothing."""
LONGEST_HEADER, MOST_COLUMNS = 2**18, 10_000
"""Bytes and columns that the header of a CSV may have."""
HELD, WORKED = 0.25, 0.75
"""Shares of the memory for bodies and answers, and for the rows that are worked on."""


class Full(Exception):
    """Requests that wait, or the bytes that they hold, are too many."""


class Exhausting(Exception):
    """A request needs more memory than there would be for it alone."""

    def __init__(self, needed: int, most: int) -> None:
        super().__init__(
            f"the rows of this request may need {_megabytes(needed)} MB, and the service works on "
            f"{_megabytes(most)} MB at once; send fewer rows."
        )


def _megabytes(count: int) -> str:
    return f"{-(-count // 2**20):,}"


class Store:
    """The bytes that requests hold together, and may hold."""

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0


class Hold:
    """The bytes that one request holds."""

    def __init__(self, store: Store) -> None:
        self._store, self._count = store, 0

    def take(self, count: int) -> None:
        """Hold so many bytes more; raise `Full` if there is no room for them."""
        more = max(self._count + count - FREE, 0) - max(self._count - FREE, 0)
        if more and self._store.held + more > self._store.most:
            raise Full
        self._store.held += more
        self._count += count

    def free(self) -> None:
        """Hold nothing any more."""
        self._store.held -= max(self._count - FREE, 0)
        self._count = 0


def bytes_of_json(body: bytes) -> int:
    """Return a limit of the bytes that JSON takes as Python objects: text, dicts, lists, and what they hold."""
    text = len(body) * (4 if body.isascii() else 20)  # one character beyond U+FFFF makes all of them four bytes
    return text + 200 * body.count(b"{") + 80 * (body.count(b"[") + body.count(b","))


def bytes_of_csv(body: bytes) -> int:
    """Return a limit of the bytes that CSV takes as columns of text; Arrow takes a kilobyte for each in the header."""
    return 8 * len(body) + 1300 * min(MOST_COLUMNS, len(body))


@dataclass(frozen=True)
class RowCost:
    """Bytes that a row takes: read, encoded, predicted, as an answer."""

    columns: int
    encoded: int
    """Columns of the encoded rows."""
    classes: int

    def of(self, body: bytes, csv: bool, more: bool) -> int:
        """Return a limit of the bytes that it takes to answer a body; `more`: with sets or intervals."""
        rows = body.count(b"\n") + body.count(b"\r") + 1 if csv else body.count(b"{")
        row = 800 + 64 * self.columns + 24 * self.encoded + 160 * self.classes
        row += (300 + 40 * self.classes) * more
        return rows * row + (bytes_of_csv(body) if csv else bytes_of_json(body))

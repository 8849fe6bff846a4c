"""Quotes of a CSV file that hide rows: a quote that is opened and not closed makes one cell of all that follows it.

Arrow reads such a cell without a word. Here the bytes are looked at on their way to Arrow. Text of several lines is
what quotes are for; it is refused if the quote is never closed, if something follows the closing quote in its field, or
if the lines within look like rows of the table.
"""

import io
import re
from collections.abc import Sequence

from assay.data.places import ByteStream
from assay.messages import Message

_SAMPLE = 200  # lines from which it is learnt what rows look like
_EVIDENCE = 3  # figures that must stand where the table has figures
_LINES = 5  # where it has none: lines that must have as many delimiters as rows have
_FIGURES = re.compile(rb"[^A-Za-z\x80-\xff]*|NA|N/A|n/a|#N/A|<NA>|NaN|nan|null|NULL")
_QUOTED = re.compile(rb'"[^"]*"')
_DIGIT = re.compile(rb"\d")
_BOM = b"\xef\xbb\xbf"


class Checked(io.RawIOBase):
    """The bytes of a CSV file; reading them raises `ValueError` where a quote hides rows, or there is a NUL byte.

    A cell may have the `longest` bytes at most.
    """

    def __init__(self, stream: ByteStream, name: object, delimiter: str, columns: int, longest: int) -> None:
        self._stream, self._name, self._longest = stream, name, longest
        self._delimiter, self._columns = delimiter.encode(), columns
        mark = re.escape(self._delimiter)
        inside = rb'[^"\r\n]*+(?:""[^"\r\n]*+)*+'
        # what is not between quotes, quotes that are characters since no field begins with them, quotes of one line
        self._plain = re.compile(rb'(?:[^"]++|(?<=[^' + mark + rb'\r\n])"|"' + inside + rb'")*+')
        self._quoted = re.compile(rb'"[^"]*+(?:""[^"]*+)*+"')
        self._after = re.compile(rb" *+(?:[" + mark + rb"\r\n]|\Z)")
        self._left, self._line = b"", 1  # what is not settled yet, from the beginning of a row, and its line
        self._begin = stream.read(2**16).removeprefix(_BOM)
        self._rows = _Rows(self._begin, self._delimiter, columns)

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def read(self, size: int = 2**20) -> bytes:
        """Return the next bytes, and none at the end."""
        block, self._begin = self._begin[:size], self._begin[size:]
        block += self._stream.read(size - len(block))  # Arrow looks for the first row in what it gets first
        content = self._left + block
        if b"\0" in block:
            line = self._line + _line_ends(content[: content.index(b"\0")])
            raise ValueError(Message("file.nul", file=str(self._name), line=line))
        settled = self._look(content, not block)
        self._line += _line_ends(content[:settled])
        self._left = content[settled:]
        return block

    def _look(self, content: bytes, last: bool) -> int:
        """Return where the first row begins that is not settled."""
        row = at = 0
        if b'"' not in content:
            return _last_line(content, 0, len(content))
        while True:
            end = self._plain.match(content, at).end()  # type: ignore[union-attr]
            row = max(row, _last_line(content, at, end))
            if end == len(content):
                return row
            result = self._quoted.match(content, end)
            if result is None and last:
                raise self._refusal(content, end, Message("quote.open"))
            if result is None and len(content) - end > self._longest:
                raise self._refusal(content, end, Message("quote.long", bytes=self._longest))
            if result is None or (result.end() == len(content) and not last):
                return row  # it goes on
            at = result.end()
            if not self._after.match(content, at) or self._rows.hidden(content[row:end], content[end + 1 : at - 1]):
                lines = _line_ends(content[end:at])
                how = Message("quote.lines", lines=lines) if lines > 1 else Message("quote.line")
                raise self._refusal(content, end, how)

    def _refusal(self, content: bytes, begin: int, how: Message) -> ValueError:
        line = self._line + _line_ends(content[:begin])
        return ValueError(Message("file.quote", file=str(self._name), line=line, how=how))


class _Rows:
    """What the rows of a table look like, by some of its lines."""

    def __init__(self, content: bytes, delimiter: bytes, columns: int) -> None:
        self._delimiter, self._columns = delimiter, columns
        lines = (line.split(delimiter) for line in content.splitlines()[1 : 1 + _SAMPLE] if b'"' not in line)
        sample = list(zip(*(cells for cells in lines if len(cells) == columns), strict=True))
        self._figures = {place for place, cells in enumerate(sample) if _of_figures(cells)}

    def hidden(self, row: bytes, text: bytes) -> bool:
        """Tell whether a cell, after others of its row, holds the rest of it, rows, and a row's beginning."""
        if text.count(self._delimiter) % max(1, self._columns - 1):
            return False  # the usual case of prose, told at once
        before = _QUOTED.sub(b"", row).count(self._delimiter)
        lines = [line.split(self._delimiter) for line in text.splitlines()]
        first, *whole, last = lines if text[-1:] not in b"\r\n" else [*lines, [b""]]
        whole = [cells for cells in whole if cells != [b""]]
        lengths = [before + len(first), *map(len, whole), len(last) + self._columns - 1 - before]
        if any(length != self._columns for length in lengths):
            return False
        places = [*enumerate(first[1:], before + 1), *enumerate(last[:before])]
        places += [pair for cells in whole for pair in enumerate(cells)]
        figures = [cell.strip() for place, cell in places if place in self._figures]
        if not all(map(_FIGURES.fullmatch, figures)):
            return False
        if not self._figures:
            return len(whole) >= _LINES
        return sum(map(bool, map(_DIGIT.search, figures))) >= _EVIDENCE


def _of_figures(cells: Sequence[bytes]) -> bool:
    """Tell whether nearly all cells of a column are figures: numbers, dates, amounts, gaps."""
    stripped = [cell.strip() for cell in cells]
    return sum(map(bool, map(_FIGURES.fullmatch, stripped))) >= 0.9 * len(cells) and any(map(_DIGIT.search, stripped))


def _last_line(content: bytes, begin: int, end: int) -> int:
    """Return where the last line of a part begins; a line end may still be one half of two."""
    return max(content.rfind(b"\n", begin, end), content.rfind(b"\r", begin, min(end, len(content) - 1))) + 1


def _line_ends(content: bytes) -> int:
    return content.count(b"\n") + content.count(b"\r") - content.count(b"\r\n")

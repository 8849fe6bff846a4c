"""Where the bytes of a table come from, and in which form: files, standard input, bytes in memory; packed as gzip or
zip; as text in UTF-8 or in another encoding, which is then said."""

import codecs
import io
import re
import sys
import zipfile
from dataclasses import dataclass
from glob import glob, has_magic
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO, TypeAlias, TypeGuard

import pyarrow as pa

from assay._typing import FileName
from assay.messages import Message

STDIN = "-"
"""The source that is the standard input, a CSV file."""
_FORMATS = {
    ".parquet": "parquet", ".pq": "parquet", ".xlsx": "excel", ".xlsm": "excel", ".jsonl": "json lines",
    ".ndjson": "json lines", ".json": "json",
}  # fmt: skip
_PACKED = (".gz", ".zip")
_SEEN = 2**24  # bytes by which the encoding is told
_CHINESE = re.compile(rb"[\xa1-\xf7][\xa1-\xfe]")
_HIGH = re.compile(rb"[\x80-\xff]")
_LETTER = rb"[\xc0-\xd6\xd8-\xf6\xf8-\xff]"
_SIGN = rb"[\xa1\xab\xb0\xb4\xb7\xbb\xbf]"  # those that stand beside a letter: inverted marks, guillemets, degrees
_WESTERN = re.compile(
    rb"[\xd8-\xf6]" + _LETTER + rb"|(?<=[A-Za-z])" + _LETTER + rb"(?:" + _LETTER + rb"|" + _SIGN + rb")|"
    rb"(?:" + _LETTER + rb"|" + _SIGN + rb")" + _LETTER + rb"(?=[A-Za-z])"
)
"""Pairs that are two letters of a Western word rather than a Chinese character: they stand in a word, or the character
would be one of the rare ones, which begin with 0xd8 or more."""
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
UTF8 = "UTF-8"


@dataclass(frozen=True)
class Content:
    """Bytes of a table in memory, and what they are called."""

    data: bytes
    name: str = "the text"
    form: str = "csv"

    def __str__(self) -> str:
        return self.name

    def opened(self) -> BinaryIO:
        """Return a stream of the bytes."""
        return io.BytesIO(self.data)


class Stdin:
    """What came through the standard input, which can be read once only."""

    content: bytes | None = None

    def __str__(self) -> str:
        return "the standard input"

    def opened(self) -> pa.NativeFile:
        if Stdin.content is None:
            Stdin.content = sys.stdin.buffer.read()
        return pa.BufferReader(Stdin.content)


Place = Path | Stdin | Content
ByteStream: TypeAlias = BinaryIO | io.RawIOBase | pa.NativeFile


def is_file(source: object) -> TypeGuard[FileName | Content]:
    """Tell whether a source is bytes that must be read, and no table in memory."""
    return isinstance(source, (str, PathLike, Content))


def form_of(source: FileName | Content) -> str:
    """Return how a file holds its table, by its name: "parquet", "excel", "json lines", "json", and else "csv".

    >>> form_of("rows.CSV.gz"), form_of("rows.jsonl.gz"), form_of("rows.xlsx")
    ('csv', 'json lines', 'excel')
    """
    if isinstance(source, Content):
        return source.form
    path = Path(source)
    if parquet_files(path):
        return "parquet"
    if path.suffix.lower() in _PACKED:
        path = path.with_suffix("")
    return _FORMATS.get(path.suffix.lower(), "csv")


def parquet_files(path: Path) -> list[Path]:
    """Return the Parquet files of a folder, or those that a pattern names, sorted; none of one file."""
    if path.is_dir():
        return sorted(path.glob("**/*.parquet"))
    if not has_magic(str(path)) or path.exists():
        return []
    result = sorted(Path(item) for item in glob(str(path), recursive=True))
    return result if all(_FORMATS.get(item.suffix.lower()) == "parquet" for item in result) else []


def place_of(source: FileName | Content) -> Place:
    """Return where a source is, if it is there."""
    if isinstance(source, Content):
        return source
    if fspath(source) == STDIN:
        return Stdin()
    path = Path(fspath(source))
    if parquet_files(path):
        return path
    if path.is_dir():
        raise ValueError(Message("file.folder", file=str(path)))
    if not path.exists():
        raise FileNotFoundError(Message("file.missing", file=str(path)))
    return path


def opened(place: Place) -> ByteStream:
    """Return the unpacked bytes of a file."""
    if not isinstance(place, Path):
        return place.opened()
    if place.suffix.lower() == ".zip":
        return _member(place)
    return pa.input_stream(place)  # which unpacks gzip


def opened_text(place: Place) -> ByteStream:
    """Return the unpacked bytes of a text file, as UTF-8 whatever its encoding is."""
    encoding = encoding_of(place)
    return opened(place) if encoding == UTF8 else _Transcoded(opened(place), encoding)


def encoding_of(place: Place) -> str:
    """Return the encoding of a text file as Python calls it, told by its first bytes."""
    with opened(place) as stream:
        return guessed_encoding(stream.read(_SEEN))


def guessed_encoding(start: bytes) -> str:
    """Return the encoding of text by its first bytes: UTF-8 where that is possible, UTF-16 by its byte order mark,
    GB18030 where high bytes come in pairs as Chinese characters do and most of these are no two letters of a Western
    word, else Windows-1252, which has all of Latin-1's letters; of what is no text, UTF-8.

    >>> guessed_encoding("höhe,länge\\n".encode("latin-1")), guessed_encoding("城市,价格\\n".encode("gbk"))
    ('cp1252', 'gb18030')
    """
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if _decodes(start, UTF8) or _CONTROL.search(start):
        return UTF8
    high, pairs, western = (len(pattern.findall(start)) for pattern in (_HIGH, _CHINESE, _WESTERN))
    if 2 * pairs >= 0.8 * high and 2 * western <= pairs and _decodes(start, "gb18030"):
        return "gb18030"
    return "cp1252" if _decodes(start, "cp1252") else "latin-1"


def said_encoding(place: Place) -> str:
    """Return a sentence about the encoding of a text file, if it is not UTF-8."""
    encoding = encoding_of(place)
    if encoding == UTF8:
        return ""
    name = {"utf-16": "UTF-16", "gb18030": "GB18030 (GBK)"}.get(encoding, "Latin-1 (Windows-1252)")
    return Message("file.encoding", file=str(place), encoding=name)


def _decodes(start: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(start, final=len(start) < _SEEN)
    except UnicodeDecodeError:
        return False
    return True


class _Transcoded(io.RawIOBase):
    """Text of another encoding as UTF-8."""

    def __init__(self, stream: ByteStream, encoding: str) -> None:
        self._stream, self._decoder = stream, codecs.getincrementaldecoder(encoding)()
        self._left = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._left) < size:
            more = self._stream.read(2**20)
            try:
                self._left += self._decoder.decode(more, final=not more).encode()
            except UnicodeError as error:
                raise ValueError(Message("file.mixed-encoding", why=str(error))) from None
            if not more:
                break
        end = len(self._left) if size < 0 else size
        block, self._left = self._left[:end], self._left[end:]
        return block

    def close(self) -> None:
        self._stream.close()
        super().close()


def _member(path: Path) -> BinaryIO:
    """Return the one file that a zip archive holds."""
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise ValueError(Message("file.zip", file=str(path), why=str(error))) from None
    inside = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
    if len(inside) != 1:
        raise ValueError(Message("file.zip-many", file=str(path), count=len(inside)))
    try:
        return archive.open(inside[0])  # type: ignore[return-value]
    except (RuntimeError, NotImplementedError) as error:  # encrypted, or packed in a way that Python does not know
        raise ValueError(Message("file.packed", file=str(path), why=str(error))) from None

"""A project folder: tables, studies, models and reports of a studio, which stay when it ends.

    studio.sqlite            what there is: tables, studies, their names, notes, settings and ends
    tables/<key>.csv         uploaded tables, under names of the studio's own making; other files stay where they are
    studies/<key>/           model.assay, and found.json: what the pages show of the study

One studio works in a folder at a time. What a studio that was killed left half-done is found at the next start: a study
that ran is interrupted, an uploaded table that no study was made from is removed.
"""

import json
import re
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from assay.files import user_data_folder, written_whole
from assay.messages import Message, plain

_VERSION = 1
_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TABLES = """
CREATE TABLE IF NOT EXISTS tables (key TEXT PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS studies (key TEXT PRIMARY KEY, record TEXT NOT NULL);
"""


@dataclass
class TableRecord:
    """What is kept of a table."""

    key: str
    name: str
    source: dict[str, str]
    kinds: dict[str, Any] = field(default_factory=dict)
    target: str = ""


@dataclass
class StudyRecord:
    """What is kept of a study, beside what it found."""

    key: str
    table: str
    name: str
    target: str
    asked: dict[str, Any]
    kinds: dict[str, Any]
    note: str = ""
    status: str = "running"
    refusal: Any = ""
    began: float = field(default_factory=time.time)


_Record = TypeVar("_Record", TableRecord, StudyRecord)


def default_folder() -> Path:
    """Return the folder of a studio for which none is named."""
    return user_data_folder() / "studio"


class Project:
    """A folder that a studio keeps its tables and studies in, for itself alone while it runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        for part in (self.folder, self.folder / "tables", self.folder / "studies"):
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
            if part.is_symlink():  # files are removed from it
                raise ValueError(Message("project.broken", folder=str(folder)))
        self._lock = self._locked()
        self._index = sqlite3.connect(self.folder / "studio.sqlite", isolation_level=None)
        try:
            version = self._index.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise ValueError(Message("project.version", folder=str(folder)))
            self._index.executescript(f"{_TABLES} PRAGMA user_version = {_VERSION};")
            self.tables(), self.studies()  # what cannot be read is told now
        except sqlite3.DatabaseError:
            self.close()
            raise ValueError(Message("project.broken", folder=str(folder))) from None
        except ValueError:
            self.close()
            raise

    def _locked(self) -> sqlite3.Connection:
        """Hold a lock that goes with the process, however it ends."""
        lock = sqlite3.connect(self.folder / "lock.sqlite", timeout=0.0, isolation_level=None)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            lock.close()
            raise ValueError(Message("project.busy", folder=str(self.folder))) from None
        return lock

    def tables(self) -> list[TableRecord]:
        """Return the tables, the oldest first."""
        return self._all("tables", TableRecord)

    def studies(self) -> list[StudyRecord]:
        """Return the studies, the oldest first."""
        return self._all("studies", StudyRecord)

    def _all(self, kind: str, record: Callable[..., _Record]) -> list[_Record]:
        """Return the records. The folder may be from elsewhere: a key that is a path would lead out of it."""
        rows = self._index.execute(f"SELECT key, record FROM {kind} ORDER BY rowid").fetchall()
        try:
            result = [record(**json.loads(text)) for _, text in rows]
            keys = [own.key for own in result]
        except (TypeError, ValueError):
            keys, result = [], []
        if keys != [key for key, _ in rows] or not all(map(_KEY.fullmatch, keys)):
            raise ValueError(Message("project.broken", folder=str(self.folder)))
        return result

    def keep(self, record: TableRecord | StudyRecord) -> None:
        """Write a table or a study down, or what changed of it."""
        kind = "tables" if isinstance(record, TableRecord) else "studies"
        text = json.dumps(plain(asdict(record)))
        command = f"INSERT INTO {kind} VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET record = excluded.record"
        self._index.execute(command, (record.key, text))

    def drop_table(self, record: TableRecord) -> None:
        """Forget a table; the file goes with it if it was uploaded."""
        self._index.execute("DELETE FROM tables WHERE key = ?", (record.key,))
        if self.owns(record):
            Path(record.source["file"]).unlink(missing_ok=True)

    def drop_study(self, key: str) -> None:
        """Forget a study, with its model."""
        self._index.execute("DELETE FROM studies WHERE key = ?", (key,))
        shutil.rmtree(self.study_folder(key), ignore_errors=True)

    def drop_files_but(self, known: list[str]) -> None:
        """Remove uploads that ended half-way, when the studio was killed."""
        for path in (self.folder / "tables").iterdir():
            if str(path) not in known and not path.is_dir():
                path.unlink()

    def owns(self, record: TableRecord) -> bool:
        """Return whether the file of a table is the project's own copy."""
        return Path(record.source.get("file", "")).parent == self.folder / "tables"

    def table_file(self, key: str, ending: str) -> Path:
        """Return where an uploaded table goes."""
        return self.folder / "tables" / f"{key}{ending}"

    def study_folder(self, key: str) -> Path:
        """Return where a study's files are."""
        return self.folder / "studies" / key

    def keep_found(self, key: str, results: dict[str, Any]) -> None:
        """Write down what a study found."""
        with written_whole(self.study_folder(key) / "found.json") as path:
            path.write_text(json.dumps(results), encoding="utf-8")

    def found(self, key: str) -> dict[str, Any] | None:
        """Return what a study found; None if it is not there, or cannot be read."""
        with suppress(OSError, ValueError):
            result = json.loads((self.study_folder(key) / "found.json").read_text(encoding="utf-8"))
            return result if isinstance(result, dict) else None
        return None

    def close(self) -> None:
        """Let another studio work in the folder."""
        if index := getattr(self, "_index", None):
            index.close()
        self._lock.close()

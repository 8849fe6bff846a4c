"""What the studio holds: the tables and studies of its project folder, and the processes that work on them.

A project folder: tables, studies, models and reports of a studio, which stay when it ends.

    studio.sqlite            what there is: tables, studies, their names, notes, settings and ends
    tables/<key>.csv         uploaded tables, under names of the studio's own making; other files stay where they are
    studies/<key>/           model.assay, and found.json: what the pages show of the study

One studio works in a folder at a time. What a studio that was killed left half-done is found at the next start: a study
that ran is interrupted, an uploaded table that no study was made from is removed.
"""

import asyncio
import json
import re
import secrets
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, TypeVar

from assay.files import user_data_folder, written_whole
from assay.messages import Message, changed, from_plain, of_error, plain
from assay.studio.jobs import Child, Desk, Ended, Job, Question, Refused, memory_limit

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


LOOK_SECONDS, ASK_SECONDS, VERIFY_SECONDS = 120.0, 60.0, 600.0
MOST_TABLES, MOST_AT_ONCE = 200, 4
_LAST_SECONDS = 10.0  # that studies have to end with the best so far when the studio ends


@dataclass
class TableEntry(TableRecord):
    """A table: where it lies, how a person calls it, and what was seen of it."""

    sample: str = ""
    looked: Question | None = None

    @property
    def seen(self) -> dict[str, Any] | None:
        return None if self.looked is None else self.looked.result

    @property
    def refusal(self) -> str:
        return "" if self.looked is None else self.looked.refusal


@dataclass
class Run:
    """A study of a table, and what it found."""

    record: StudyRecord
    table: TableEntry
    folder: Path
    job: Job | Ended
    uploaded: bool = False
    verdict: Question | None = None
    tried: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return self.record.key

    @property
    def target(self) -> str:
        return self.record.target

    @property
    def asked(self) -> dict[str, Any]:
        return self.record.asked

    @property
    def kinds(self) -> dict[str, Any]:
        return self.record.kinds

    @property
    def found(self) -> dict[str, Any] | None:
        return self.job.result

    @property
    def model(self) -> str:
        """The file of the model."""
        return str(self.folder / "model.assay")


class Workspace:
    """Tables and studies of one studio; without a project folder they go when it ends."""

    def __init__(self, most_bytes: int | None = None, folder: Path | None = None) -> None:
        self._leaving = ExitStack()
        self.folder = Path(self._leaving.enter_context(tempfile.TemporaryDirectory(prefix="assay-studio-")))
        self.project = Project(folder or self.folder / "project")
        self._leaving.callback(self.project.close)
        self.most_bytes = most_bytes or memory_limit()
        self.tables = {record.key: TableEntry(**vars(record)) for record in self.project.tables()}
        self.runs = {record.key: self._restored(record) for record in self.project.studies()}
        self._drop_idle()
        self.project.drop_files_but([entry.source["file"] for entry in self.tables.values() if "file" in entry.source])
        self.desk = Desk(self._child("trying"))  # what is answered at once
        self.lab = Desk(self._child("stepping", "learning"))  # what takes longer
        self.next = self._student()  # waits for the next study
        self._looks = asyncio.Lock()

    def _restored(self, record: StudyRecord) -> Run:
        """Return a study of an earlier life of the studio; one that still ran was interrupted."""
        result = self.project.found(record.key)
        if record.status == "running" or (record.status == "done" and result is None):
            record.status = "interrupted"
            self.project.keep(record)
        entry = self.tables.get(record.table) or TableEntry(record.table, record.name, {})
        job = Ended(record.status, result, from_plain(record.refusal))
        return Run(record, entry, self.project.study_folder(record.key), job, self.project.owns(entry))

    def _drop_idle(self) -> None:
        """Forget uploaded tables that no study was made from."""
        for entry in list(self.tables.values()):
            if self.project.owns(entry) and not self._studies_of(entry):
                self.drop(entry.key)

    def _studies_of(self, entry: TableEntry) -> list[Run]:
        return [run for run in self.runs.values() if run.table is entry]

    async def begin(self) -> None:
        """Start the processes that will be needed, so that they load while a person reads."""
        for entry in self.tables.values():
            self.look(entry)
        await asyncio.gather(self.next.begin(), self.desk.child.begin())

    def _child(self, *ready: str) -> Child:
        return Child(self.most_bytes, ready, self.folder, self.project.folder / "tables")

    def _student(self) -> Child:
        return self._child("learning")

    def new_file(self, ending: str) -> Path:
        """Return a path of our own making, for as long as the studio runs."""
        return self.folder / f"{secrets.token_hex(16)}{ending}"

    def add(self, name: str, source: dict[str, str], key: str = "") -> TableEntry:
        """Take a table in; a file or a bundled table that is known already is the same table."""
        for entry in self.tables.values():
            if entry.source == source:
                return entry
        idle = [key for key, entry in self.tables.items() if not self._studies_of(entry)]
        if len(self.tables) >= MOST_TABLES and idle:
            self.drop(idle[0])
        entry = TableEntry(key or secrets.token_hex(8), name, source)
        self.tables[entry.key] = entry
        self.keep(entry)
        return entry

    def upload(self, ending: str) -> tuple[str, Path]:
        """Return a key and a place for a table that is uploaded; names from outside are never part of it."""
        key = secrets.token_hex(8)
        return key, self.project.table_file(key, ending)

    def keep(self, entry: TableEntry) -> None:
        """Write down what a person chose for a table."""
        self.project.keep(TableRecord(entry.key, entry.name, entry.source, entry.kinds, entry.target))

    def drop(self, key: str) -> None:
        """Forget a table; an uploaded file goes with it."""
        entry = self.tables.pop(key)
        Path(entry.sample).unlink(missing_ok=True) if entry.sample else None
        self.project.drop_table(entry)

    async def delete(self, run: Run) -> None:
        """Remove a study with its model, and an uploaded table that no other study was made from."""
        await run.job.end()
        del self.runs[run.key]
        self.project.drop_study(run.key)
        if run.table.key in self.tables and self.project.owns(run.table) and not self._studies_of(run.table):
            self.drop(run.table.key)

    def look(self, entry: TableEntry) -> Question:
        """Begin to sum a table up, in a process with limits."""
        old, entry.sample = entry.sample, str(self.new_file(".parquet"))
        if old:
            Path(old).unlink(missing_ok=True)
        entry.looked = Question(self._look(entry))
        return entry.looked

    async def _look(self, entry: TableEntry) -> dict[str, Any]:
        child = self._child()
        try:
            async with self._looks:
                await self.next.begin()
                asked = {"source": entry.source, "kinds": entry.kinds, "target": entry.target, "sample": entry.sample}
                seen = await child.ask("look", LOOK_SECONDS, **asked)
            entry.target = seen["target"]
            self.keep(entry)
            return seen
        except Refused as error:
            own = Path(entry.source.get("file", ""))
            said = of_error(error)
            if own.name:
                said = changed(said, lambda text: text.replace(str(own), entry.name).replace(own.name, entry.name))
            raise Refused(said) from None
        finally:
            await child.end()

    def start(self, entry: TableEntry, asked: dict[str, Any], seconds: float) -> Run:
        """Begin a study; too many at once are refused."""
        if sum(run.job.status == "running" for run in self.runs.values()) >= MOST_AT_ONCE:
            raise Refused(Message("studies.busy", count=MOST_AT_ONCE))
        name = f"{entry.name}: {entry.target}"[:100]
        record = StudyRecord(secrets.token_hex(8), entry.key, name, entry.target, asked, dict(entry.kinds))
        folder = self.project.study_folder(record.key)
        folder.mkdir()
        job = Job(self.next)
        run = Run(record, entry, folder, job, self.project.owns(entry))
        self.project.keep(record)
        self.runs[run.key], self.next = run, self._student()
        job.start(
            "learn",
            seconds,
            source=entry.source,
            kinds=run.kinds,
            target=run.target,
            folder=str(folder),
            asked=asked,
        )
        job.then(lambda: self._ended(run))
        return run

    def _ended(self, run: Run) -> None:
        """Write down how a study ended."""
        if run.key not in self.runs:
            return  # it was deleted
        if run.found:
            self.project.keep_found(run.key, run.found)
        run.record.status, run.record.refusal = run.job.status, run.job.refusal
        self.project.keep(run.record)

    def verify(self, run: Run) -> None:
        """Begin to check a certificate again, in a process of its own."""
        if run.verdict is None or not run.verdict.waiting:
            run.verdict = Question(self._verify(run))

    async def _verify(self, run: Run) -> dict[str, Any]:
        child = self._child()
        try:
            return await child.ask("verify", VERIFY_SECONDS, source=run.table.source, kinds=run.kinds, file=run.model)
        finally:
            await child.end()

    async def close(self) -> None:
        """Let studies end with the best so far, end every process, and leave the project to the next studio."""
        running = [run.job for run in self.runs.values() if run.job.status == "running"]
        await asyncio.gather(*(job.stop() for job in running))
        if running:
            await asyncio.wait([asyncio.ensure_future(job.done()) for job in running], timeout=_LAST_SECONDS)
        looks = [entry.looked for entry in self.tables.values()] + [run.verdict for run in self.runs.values()]
        await asyncio.gather(*(look.end() for look in looks if look is not None))
        await asyncio.gather(
            self.desk.end(), self.lab.end(), self.next.end(), *(run.job.end() for run in self.runs.values())
        )
        self._drop_idle()
        self._leaving.close()


def display_name(name: str) -> str:
    """Return the last part of a file name from outside, to be shown and for nothing else.

    >>> display_name("..\\\\..\\\\etc/passwd")
    'passwd'
    """
    last = PurePosixPath(PureWindowsPath(name).name).name
    return last[:100] or "table"

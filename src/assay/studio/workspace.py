"""What the studio holds: tables and studies, in a folder of its own that goes when the studio ends."""

import asyncio
import secrets
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from assay.messages import Message, changed, of_error
from assay.studio.jobs import Child, Desk, Job, Question, Refused, memory_limit

LOOK_SECONDS, ASK_SECONDS, VERIFY_SECONDS = 120.0, 60.0, 600.0
MOST_TABLES, MOST_STUDIES = 50, 4


@dataclass
class TableEntry:
    """A table: where it lies, how a person calls it, and what was seen of it."""

    key: str
    name: str
    source: dict[str, str]
    sample: str = ""
    kinds: dict[str, Any] = field(default_factory=dict)
    target: str = ""
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

    key: str
    table: TableEntry
    target: str
    asked: dict[str, Any]
    folder: Path
    job: Job
    kinds: dict[str, Any]
    verdict: Question | None = None
    tried: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def found(self) -> dict[str, Any] | None:
        return self.job.result

    @property
    def model(self) -> str:
        """The file of the model."""
        return str(self.folder / "model.assay")


class Workspace:
    """Tables and studies of one studio."""

    def __init__(self, most_bytes: int | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="assay-studio-"))
        self.most_bytes = most_bytes or memory_limit()
        self.tables: dict[str, TableEntry] = {}
        self.runs: dict[str, Run] = {}
        self.desk = Desk(self._child("planning", "trying"))  # what is answered at once
        self.lab = Desk(self._child("stepping", "learning"))  # what takes longer
        self.next = self._student()  # waits for the next study
        self._looks = asyncio.Lock()

    async def begin(self) -> None:
        """Start the processes that will be needed, so that they load while a person reads."""
        for entry in self.tables.values():
            self.look(entry)
        await asyncio.gather(self.next.begin(), self.desk.child.begin())

    def _child(self, *ready: str) -> Child:
        return Child(self.most_bytes, ready, self.folder)

    def _student(self) -> Child:
        return self._child("learning")

    def new_file(self, ending: str) -> Path:
        """Return a path of our own making; names from outside are never part of it."""
        return self.folder / f"{secrets.token_hex(16)}{ending}"

    def add(self, name: str, source: dict[str, str]) -> TableEntry:
        """Take a table in."""
        if len(self.tables) >= MOST_TABLES:
            self.drop(next(iter(self.tables)))
        entry = TableEntry(secrets.token_hex(8), name, source)
        self.tables[entry.key] = entry
        return entry

    def drop(self, key: str) -> None:
        """Forget a table; files of ours go with it, unless a study was made from them."""
        entry = self.tables.pop(key)
        Path(entry.sample).unlink(missing_ok=True) if entry.sample else None
        path = Path(entry.source.get("file", ""))
        if path.parent == self.folder and not any(run.table is entry for run in self.runs.values()):
            path.unlink(missing_ok=True)

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
        if sum(run.job.status == "running" for run in self.runs.values()) >= MOST_STUDIES:
            raise Refused(Message("studies.busy", count=MOST_STUDIES))
        key = secrets.token_hex(8)
        folder = self.folder / key
        folder.mkdir()
        run = Run(key, entry, entry.target, asked, folder, Job(self.next), dict(entry.kinds))
        self.runs[key], self.next = run, self._student()
        run.job.start(
            "learn",
            seconds,
            source=entry.source,
            kinds=run.kinds,
            target=run.target,
            folder=str(folder),
            asked=asked,
        )
        return run

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
        """End every process and remove the folder."""
        looks = [entry.looked for entry in self.tables.values()] + [run.verdict for run in self.runs.values()]
        await asyncio.gather(*(one.end() for one in looks if one is not None))
        await asyncio.gather(
            self.desk.end(), self.lab.end(), self.next.end(), *(run.job.end() for run in self.runs.values())
        )
        shutil.rmtree(self.folder, ignore_errors=True)


def display_name(name: str) -> str:
    """Return the last part of a file name from outside, to be shown and for nothing else.

    >>> display_name("..\\\\..\\\\etc/passwd")
    'passwd'
    """
    last = PurePosixPath(PureWindowsPath(name).name).name
    return last[:100] or "table"

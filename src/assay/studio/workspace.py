"""What the studio holds: tables and studies, in a folder of its own that goes when the studio ends."""

import asyncio
import secrets
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from assay.studio.jobs import Child, Job, memory_limit

LOOK_SECONDS, ASK_SECONDS, MOST_TABLES = 120.0, 60.0, 50


@dataclass
class TableEntry:
    """A table: where it lies, how a person calls it, and what was seen of it."""

    key: str
    name: str
    source: dict[str, str]
    sample: str
    kinds: dict[str, Any] = field(default_factory=dict)
    target: str = ""
    seen: dict[str, Any] | None = None
    refusal: str = ""


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
    verdict: dict[str, Any] | None = None

    @property
    def found(self) -> dict[str, Any] | None:
        return self.job.result


class Workspace:
    """Tables and studies of one studio."""

    def __init__(self, most_bytes: int | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="assay-studio-"))
        self.most_bytes = most_bytes or memory_limit()
        self.tables: dict[str, TableEntry] = {}
        self.runs: dict[str, Run] = {}
        self.desk = Child(self.most_bytes, ("planning", "trying", "stepping"))
        self.next = self._student()  # waits for the next study
        self._looks = asyncio.Lock()

    def _student(self) -> Child:
        return Child(self.most_bytes, ("learning",))

    def new_file(self, ending: str) -> Path:
        """Return a path of our own making; names from outside are never part of it."""
        return self.folder / f"{secrets.token_hex(16)}{ending}"

    def add(self, name: str, source: dict[str, str]) -> TableEntry:
        """Take a table in."""
        if len(self.tables) >= MOST_TABLES:
            self.drop(next(iter(self.tables)))
        key = secrets.token_hex(8)
        entry = TableEntry(key, name, source, str(self.new_file(".parquet")))
        self.tables[key] = entry
        return entry

    def drop(self, key: str) -> None:
        """Forget a table; a file of ours goes with it."""
        entry = self.tables.pop(key)
        path = Path(entry.source.get("file", ""))
        if path.parent == self.folder:
            path.unlink(missing_ok=True)

    async def look(self, entry: TableEntry) -> None:
        """Sum a table up, in a process with limits."""
        from assay.studio.jobs import Refused

        child = Child(self.most_bytes)
        try:
            async with self._looks:
                await self.next.begin()
                entry.seen = await child.ask(
                    "look",
                    LOOK_SECONDS,
                    source=entry.source,
                    kinds=entry.kinds,
                    target=entry.target,
                    sample=entry.sample,
                )
            entry.refusal, entry.target = "", entry.seen["target"]
            await self.desk.begin()  # while the person reads
        except Refused as error:
            entry.refusal = str(error)
        finally:
            await child.end()

    def start(self, entry: TableEntry, asked: dict[str, Any], seconds: float) -> Run:
        """Begin a study; one that still runs on the same table is asked to end."""
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
            name=entry.name,
            asked=asked,
        )
        return run

    async def close(self) -> None:
        """End every process and remove the folder."""
        await asyncio.gather(self.desk.end(), self.next.end(), *(run.job.end() for run in self.runs.values()))
        shutil.rmtree(self.folder, ignore_errors=True)


def display_name(name: str) -> str:
    """Return the last part of a file name from outside, to be shown and for nothing else.

    >>> display_name("..\\\\..\\\\etc/passwd")
    'passwd'
    """
    last = PurePosixPath(PureWindowsPath(name).name).name
    return last[:100] or "table"

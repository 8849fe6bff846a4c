"""Processes of the studio: one for each study, one that answers small questions; each can be ended."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

from assay.messages import Message, changed, from_plain, of_error

_LINE = 64 * 2**20  # the longest line that a child may write
_GRACE = 30.0  # seconds that a study has to end after it was asked to
_WAITING, _KEPT = 20, 40  # questions of one desk without an answer, and with one


class Refused(Exception):
    """What was asked could not be done; the sentence says why."""


def memory_limit() -> int:
    """Return the bytes that a child may have: three quarters of the machine's memory."""
    try:
        return int(0.75 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return 8 * 2**30


class Child:
    """A process that answers requests one after the other; `ready` are the tasks that it loads as it begins.

    Its temporary files go to `folder`: it may be ended at any time, and removes nothing then.
    """

    def __init__(
        self, most_bytes: int, ready: tuple[str, ...] = (), folder: Path | None = None, tables: Path | None = None
    ) -> None:
        self._most_bytes, self._ready = most_bytes, ready
        self._folders = [f"{item}{os.sep}" for item in (tables, folder) if item]
        self._env = os.environ | ({"TMPDIR": str(folder)} if folder else {})
        self._process: asyncio.subprocess.Process | None = None
        self._lock, self._birth = asyncio.Lock(), asyncio.Lock()

    async def begin(self) -> None:
        """Start the process before there is a request."""
        async with self._birth:
            await self._running()

    async def ask(self, task: str, seconds: float, **arguments: Any) -> Any:
        """Return the answer to a request; raise `Refused` with a sentence if there is none."""
        async with self._lock:
            async for record in self.records(task, seconds, **arguments):
                if "result" in record:
                    return record["result"]
        raise Refused(Message("child.silent"))

    async def records(self, task: str, seconds: float, **arguments: Any) -> AsyncIterator[dict[str, Any]]:
        """Yield what the child tells until its result, which is the last; after `seconds` it is ended."""
        async with self._birth:
            process = await self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"task": task, "arguments": arguments}).encode() + b"\n")
        try:
            async with asyncio.timeout(seconds):
                await process.stdin.drain()
                while line := await process.stdout.readline():
                    record = json.loads(line)
                    if "refused" in record:
                        raise Refused(changed(from_plain(record["refused"]), self._without_folder))
                    yield record
                    if "result" in record:
                        return
        except asyncio.CancelledError:
            await self.end()  # an answer that nobody waits for must not be taken for the next one's
            raise
        except TimeoutError:
            await self.end()
            raise Refused(Message("child.slow", seconds=seconds)) from None
        except (ConnectionError, ValueError):
            await self.end()
        raise Refused(Message("child.ended"))

    def _without_folder(self, text: str) -> str:
        """Return a text that does not tell where the studio keeps its files."""
        for folder in self._folders:
            text = text.replace(folder, "")
        return text

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "assay.studio.child",
                json.dumps({"bytes": self._most_bytes, "ready": self._ready}),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=_LINE,
                env=self._env,
            )
        return self._process

    async def stop(self) -> None:
        """Ask what runs to end with the best so far."""
        if self._process is not None and self._process.stdin is not None and self._process.returncode is None:
            self._process.stdin.write(b"stop\n")

    async def end(self) -> None:
        """End the process at once."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


class Question:
    """What a child was asked, and its answer once it is there."""

    def __init__(self, answer: Coroutine[Any, Any, Any]) -> None:
        self.result: Any = None
        self.refusal = ""
        self._task = asyncio.create_task(self._follow(answer))

    async def _follow(self, answer: Coroutine[Any, Any, Any]) -> None:
        try:
            self.result = await answer
        except Refused as error:
            self.refusal = of_error(error)

    @property
    def waiting(self) -> bool:
        """Whether there is no answer yet."""
        return not self._task.done()

    async def wait(self, seconds: float | None = None) -> None:
        """Wait for the answer, but not longer than so many seconds."""
        await asyncio.wait([self._task], timeout=seconds)

    async def end(self) -> None:
        """Wait no more."""
        self._task.cancel()
        await self.wait()


class Desk:
    """Asks a child; what was asked before is not asked again. One question that takes long holds up the others."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self._kept: dict[str, Question] = {}

    def ask(self, task: str, seconds: float, **arguments: Any) -> Question:
        """Return the question, new or asked before and answered."""
        key = json.dumps([task, arguments], sort_keys=True)
        result = self._kept.pop(key, None)
        if result is None or result.refusal:
            if sum(item.waiting for item in self._kept.values()) >= _WAITING:
                raise Refused(Message("desk.busy"))
            result = Question(self.child.ask(task, seconds, **arguments))
        self._kept[key] = result
        done = [name for name, item in self._kept.items() if not item.waiting]
        for name in done[: max(0, len(self._kept) - _KEPT)]:
            del self._kept[name]
        return result

    async def end(self) -> None:
        """End the process and all that waits for it."""
        await asyncio.gather(*(item.end() for item in self._kept.values()))
        await self.child.end()


class Ended:
    """A study that ended in an earlier life of the studio: as a job, but nothing more comes."""

    events: tuple[dict[str, Any], ...] = ()
    stopping = False
    version = 1_000_000

    def __init__(self, status: str, result: Any, refusal: str) -> None:
        self.status, self.result, self.refusal = status, result, refusal
        self.seconds = 0.0

    async def changed(self, seen: int, seconds: float) -> bool:
        """Return whether a reader has not seen the end yet; wait if it has."""
        if seen == self.version:
            await asyncio.sleep(seconds)
        return seen != self.version

    async def done(self) -> None:
        """Return at once."""

    stop = end = done


class Job:
    """A study in a process of its own, and what it has told so far."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.events: list[dict[str, Any]] = []
        self.status = "running"  # then "done", "failed" or "stopped"
        self.result: Any = None
        self.refusal = ""
        self.began, self.ended = time.monotonic(), 0.0
        self.stopping = False
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    def start(self, task: str, seconds: float, **arguments: Any) -> None:
        """Begin in the background."""
        self._task = asyncio.create_task(self._follow(task, seconds, arguments))

    def then(self, act: Callable[[], None]) -> None:
        """Do something at the end."""
        assert self._task is not None
        self._task.add_done_callback(lambda _: act())

    async def _follow(self, task: str, seconds: float, arguments: dict[str, Any]) -> None:
        try:
            async for record in self.child.records(task, seconds, **arguments):
                if "result" in record:
                    self.result, self.status = record["result"], "done"
                else:
                    self.events.append(record["event"])
                await self._tell()
        except Refused as error:
            self.refusal, self.status = of_error(error), "stopped" if self.stopping else "failed"
        finally:
            self.ended = time.monotonic()
            await self.child.end()
            await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    @property
    def version(self) -> int:
        """A number that changes with what there is to show."""
        return len(self.events) + (self.status != "running") * 1_000_000

    async def changed(self, seen: int, seconds: float) -> bool:
        """Wait until there is more than a reader has seen; False if nothing came in time."""
        try:
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: self.version != seen)
        except TimeoutError:
            return False
        return True

    @property
    def seconds(self) -> float:
        """How long it has taken."""
        return (self.ended or time.monotonic()) - self.began

    async def done(self) -> None:
        """Wait for the end."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def stop(self) -> None:
        """Ask for the best so far, and end the process if it does not answer."""
        if self.status != "running" or self.stopping:
            return
        self.stopping = True
        await self.child.stop()
        asyncio.get_running_loop().call_later(_GRACE, lambda: asyncio.ensure_future(self._late()))

    async def _late(self) -> None:
        if self.status == "running":
            await self.child.end()

    async def end(self) -> None:
        """End it at once."""
        await self.child.end()
        if self._task is not None:
            await self._task

"""Requests that come while others are answered are gathered, and answered together."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from starlette.concurrency import run_in_threadpool

MOST_TOGETHER = 64
MOST_WAITING = 1024
"""Requests that are answered together, and that may wait; more are told to come again."""


class Full(Exception):
    """Too many requests wait."""


class Batches:
    """One worker; whoever asks while it is at work is answered with all others who did.

    Nobody waits for others to come: a request that finds the worker idle is answered at once.
    """

    def __init__(self, answer: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        self._answer = answer
        self._waiting: asyncio.Queue[tuple[Any, asyncio.Future[Any]]] = asyncio.Queue(MOST_WAITING)
        self._worker: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start the worker."""
        self._worker = asyncio.create_task(self._work())

    async def end(self) -> None:
        """Stop it."""
        if self._worker is not None:
            self._worker.cancel()
            with suppress(asyncio.CancelledError):
                await self._worker

    async def ask(self, request: Any) -> Any:
        """Return the answer to a request, or raise why there is none."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        try:
            self._waiting.put_nowait((request, future))
        except asyncio.QueueFull:
            raise Full from None
        return await future

    async def _work(self) -> None:
        while True:
            batch = [await self._waiting.get()]
            while len(batch) < MOST_TOGETHER and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            batch = [(request, future) for request, future in batch if not future.done()]  # whoever has not gone
            try:
                answers = await run_in_threadpool(self._answer, [request for request, _ in batch])
            except Exception as error:  # of ours: every one who waits is told, and the next are answered
                answers = [error] * len(batch)
            for (_, future), answer in zip(batch, answers, strict=True):
                if future.done():
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

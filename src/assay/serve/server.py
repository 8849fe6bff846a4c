"""`assay serve`: the web application, its addresses and limits.

Requests that arrive while others are being answered are predicted as one batch.
"""

import asyncio
import hmac
import logging
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.claims.claim import Certificate
from assay.claims.words import assumptions
from assay.learning import TableModel
from assay.serve import openapi, watching
from assay.serve.answering import Answers, Ask
from assay.serve.memory import HELD, WORKED, Exhausting, Full, Hold, Store
from assay.serve.watching import Watch
from assay.text import json_text
from assay.web import (
    LOOPBACK,
    Connection,
    Counted,
    TooLarge,
    authorities,
    declared,
    ended_by_signals,
    headers_of,
    host_of,
    icon,
    listener,
    server,
)

MOST_TOGETHER = 64
MOST_WAITING = 1024
"""Requests that are answered together, and that may wait; more are told to come again."""


class Batches:
    """One worker; whoever asks while it is at work is answered with all others who did.

    Nobody waits for others to come: a request that finds the worker idle is answered at once. Those that are answered
    together cost at most `most` bytes together.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[Any]], Sequence[Any]],
        cost: Callable[[Any], int] = lambda _: 0,
        most: int = 0,
    ) -> None:
        self._answer, self._cost, self._most = answer, cost, most
        self._waiting: deque[tuple[Any, int, asyncio.Future[Any]]] = deque()
        self._came = asyncio.Event()
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
        cost = self._cost(request)
        if cost > self._most:
            raise Exhausting(cost, self._most)
        if len(self._waiting) >= MOST_WAITING:
            raise Full
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, cost, future))
        self._came.set()
        return await future

    def _next(self) -> list[tuple[Any, asyncio.Future[Any]]]:
        """Return the requests that are answered next, of those whose clients have not gone."""
        batch: list[tuple[Any, asyncio.Future[Any]]] = []
        cost = 0
        while self._waiting and len(batch) < MOST_TOGETHER and cost + self._waiting[0][1] <= self._most:
            request, own, future = self._waiting.popleft()
            if not future.done():
                batch.append((request, future))
                cost += own
        return batch

    async def _work(self) -> None:
        while True:
            await self._came.wait()
            batch = self._next()
            if not self._waiting:
                self._came.clear()
            await self._answered(batch)
            await asyncio.sleep(0)  # these write their answers before the next are worked on

    async def _answered(self, batch: list[tuple[Any, asyncio.Future[Any]]]) -> None:
        """Answer requests together."""
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


MOST_BYTES = 16 * 2**20
"""What a request may have."""
MEMORY = 2**30
"""What all may take together."""
HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
_OPEN = ("/health", "/favicon.ico")
"""Addresses that need no token."""


@dataclass(frozen=True)
class Settings:
    """Host headers that are answered (of any host: none given), the token if one is asked for, the chance of a false
    alarm, the file that keeps what is known of outcomes, and the bytes that a request and that all may take."""

    authorities: frozenset[str] = frozenset()
    token: str | None = None
    alarm: float = 0.01
    state: Path | None = None
    most_bytes: int = MOST_BYTES
    memory: int = MEMORY


class Reply(Response):
    """JSON, numbers that are none as null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json_text(content, None).encode()


def service(model: TableModel, certificate: Certificate | None, settings: Settings) -> ASGIApp:
    """Return the application that answers for a model."""
    watch = Watch(model, certificate, settings.alarm, settings.state)
    answers = Answers(model, certificate, watch)
    batches = Batches(answers, answers.cost, int(WORKED * settings.memory))
    counted = watching.Metrics(watch)
    document = openapi.description(model, watch.certificate, settings.token is not None)
    about = _about(model, certificate, watch)

    async def post(request: Request) -> Response:
        ask = Ask(request.url.path[1:], await request.body(), _is_csv(request), _coverage(request))
        reply = Reply(await batches.ask(ask))
        request.scope[_HOLD].take(len(reply.body))
        return reply

    async def get(request: Request) -> Response:
        path = request.url.path
        if path == "/metrics":
            return Response(counted.text(), media_type=watching.TYPE)
        if path == "/docs":
            return HTMLResponse(openapi.page(document))
        return Reply(
            {"/health": {"status": "ok"}, "/model": about, "/openapi.json": document}.get(path) or watch.plain()
        )

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        batches.begin()
        try:
            yield
        finally:
            await batches.end()

    posted = [Route(path, post, methods=["POST"]) for path in ("/predict", "/outcome")]
    got = [Route(path, get) for path in ("/health", "/model", "/monitor", "/metrics", "/openapi.json", "/docs")]
    refusals: Any = {ValueError: _unreadable, Full: _full, TooLarge: _too_large, HTTPException: _http, 500: _broken}
    refusals |= {Exhausting: _exhausting, ClientDisconnect: _gone}
    app = Starlette(routes=[*posted, *got, Route("/favicon.ico", icon)], lifespan=life, exception_handlers=refusals)
    return _Door(app, settings, counted, frozenset(route.path for route in (*posted, *got)))


class _Door:
    """Lets requests in, counts them and their bytes."""

    def __init__(self, app: ASGIApp, settings: Settings, counted: watching.Metrics, paths: frozenset[str]) -> None:
        self.app, self.settings, self.counted, self.paths = app, settings, counted, paths
        self._store = Store(int(HELD * settings.memory))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        begun, path = time.perf_counter(), scope["path"] if scope["path"] in self.paths else "other"

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
                self.counted.requests.labels(path, message["status"]).inc()
            body = message.get("body", b"")
            last = max(len(body) - 1, 0) // _PIECE * _PIECE
            for start in range(0, last, _PIECE):  # each waits until the client has read those before
                await send({**message, "body": body[start : start + _PIECE], "more_body": True})
            await send({**message, "body": body[last:]} if last else message)

        async def receiving() -> Message:
            message = await counted()
            hold.take(len(message.get("body", b"")))
            return message

        hold, counted = Hold(self._store), Counted(receive, self.settings.most_bytes)
        answer = self._refusal(scope, headers_of(scope))
        try:
            await (answer or self.app)({**scope, _HOLD: hold}, receiving, sending)
        finally:
            hold.free()
        self.counted.seconds.labels(path).observe(time.perf_counter() - begun)

    def _refusal(self, scope: Scope, headers: dict[str, list[str]]) -> Response | None:
        known, hosts = self.settings.authorities, headers.get("host", [])
        if known and (len(hosts) != 1 or hosts[0].lower() not in known):
            return Reply({"error": "this address is not the service's."}, 421)
        if self.settings.token is not None and scope["path"] not in _OPEN:
            given = headers.get("authorization", [""])[0].removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), self.settings.token.encode()):
                return Reply(
                    {"error": "send the header Authorization: Bearer <token>."}, 401, {"www-authenticate": "Bearer"}
                )
        if declared(headers) > self.settings.most_bytes:
            return Reply({"error": _LARGE}, 413)
        return None


_HOLD = "assay.hold"
"""Where a request has the bytes that it holds."""
_PIECE = 2**16
_LARGE = "the request is too large; send fewer rows at once."


def _is_csv(request: Request) -> bool:
    """Tell which of two kinds of body a request has; browsers send neither for a page of another site."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/json", "text/csv"):
        raise HTTPException(415, "send JSON (Content-Type: application/json) or CSV (text/csv).")
    return kind == "text/csv"


def _coverage(request: Request) -> float | None:
    given = request.query_params.get("coverage")
    if given is None:
        return None
    try:
        return float(given)
    except ValueError:
        raise HTTPException(
            400, f"coverage must be a share between 0 and 1, such as 0.9; got {given[:40]!r}."
        ) from None


def _about(model: TableModel, certificate: Certificate | None, watch: Watch) -> dict[str, Any]:
    """Return what a client may want to know of the model."""
    columns = [{"name": column.name, "kind": column.kind, "levels": list(column.levels)} for column in model.columns]
    results: dict[str, Any] = {
        "target": model.target.name, "task": model.task, "learner": type(model.learner).__name__, "columns": columns,
        "certificate": watch.certificate,
    }  # fmt: skip
    if model.task == "classify":
        results["classes"] = model.classes_.tolist()
    if certificate is not None:
        results["model"] = certificate.model.digest
        results["delta"] = certificate.delta_total
        results["about new data"] = [claim.statement for claim in certificate.claims if not claim.is_fact]
        results["if"] = assumptions(certificate)
    return results


async def _unreadable(request: Request, error: Exception) -> Response:
    return Reply({"error": str(error)}, 400)


async def _full(request: Request, error: Exception) -> Response:
    return Reply({"error": "too many or too large requests wait; come again."}, 503, {"retry-after": "1"})


async def _exhausting(request: Request, error: Exception) -> Response:
    return Reply({"error": str(error)}, 413)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=400)


async def _too_large(request: Request, error: Exception) -> Response:
    return Reply({"error": _LARGE}, 413)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Reply({"error": error.detail}, error.status_code, error.headers)


async def _broken(request: Request, error: Exception) -> Response:
    """Answer without the error's own words, which may hold paths; the log has them."""
    logging.getLogger("uvicorn").error("%s: %s", type(error).__name__, error)
    return Reply({"error": f"this should not have happened ({type(error).__name__})."}, 500)


TOKEN = "ASSAY_SERVE_TOKEN"
_SHORTEST = 16
_MOST = 1024


class Client(Connection):
    """A connection of a service, of which one client may have many."""

    def limits(self) -> tuple[int, int]:
        return _MOST, _MOST


def serve(
    model: TableModel,
    certificate: Certificate | None,
    host: str,
    port: int,
    alarm: float,
    state: Path | None,
    memory: int = MEMORY,
) -> None:
    """Serve until Ctrl-C. Another host than this machine's own needs a token."""
    token = _token(host)
    socket = listener("the service", host, port)
    port = socket.getsockname()[1]
    known = authorities(host_of(host), port) if token is None else frozenset()
    running = server(service(model, certificate, Settings(known, token, alarm, state, memory=memory)), Client)
    name = f"[{host}]" if ":" in host else host
    with ended_by_signals(running):
        print(f"Predictions of {model.target.name!r} are at http://{name}:{port}/predict; see /docs.", flush=True)
        print("Ctrl-C ends the service.", flush=True)
        running.run(sockets=[socket])


def _token(host: str) -> str | None:
    """Return the token that clients must send, from the environment; on this machine's own address it may be absent."""
    given = os.environ.get(TOKEN) or None
    if given is None and host not in LOOPBACK:
        raise ValueError(f"on another host than this machine's own the service needs a token; set {TOKEN}.")
    if given is not None and len(given) < _SHORTEST:
        raise ValueError(f"{TOKEN} must have at least {_SHORTEST} characters.")
    return given

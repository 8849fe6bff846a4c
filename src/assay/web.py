"""What studio and `assay serve` share: listening on an address, limits of connections, headers and bodies of requests.

Uvicorn closes idle connections between two requests, and no others. Here a client must also send the head of its
request within some seconds, its body at some rate, and read the response. Connections are limited in total and for
each address; beyond the limit, a new connection replaces the one that has waited longest without a request.

It needs the extra `studio` or `serve`.
"""

import asyncio
import ipaddress
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import h11
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from assay.report.env import asset
from assay.text import shown

LOOPBACK = ("127.0.0.1", "localhost", "::1")


async def icon(request: Request) -> Response:
    """Answer with the icon."""
    return Response(asset("icon.svg"), media_type="image/svg+xml")


class TooLarge(Exception):
    """A body has more bytes than it may have."""


class Counted:
    """Receive a body, counting its bytes."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self._left = receive, limit

    async def __call__(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise TooLarge
        return message


def headers_of(scope: Scope) -> dict[str, list[str]]:
    """Return the headers of a request by their names in small letters."""
    results: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        results.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return results


def declared(headers: dict[str, list[str]]) -> int:
    """Return how many bytes a request says that its body has."""
    text = headers.get("content-length", ["0"])[0]
    return int(text) if text.isdecimal() and len(text) < 19 else 2**63


def authorities(hosts: tuple[str, ...], port: int) -> frozenset[str]:
    """Return the Host headers under which a server on these hosts is asked for."""
    return frozenset(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host in hosts)


def host_of(name: str) -> tuple[str, ...]:
    """Return the names under which a host may be asked for.

    >>> host_of("127.0.0.1")
    ('127.0.0.1', 'localhost', '::1')
    """
    return LOOPBACK if name in LOOPBACK else (name.lower(),)


def network_of(client: tuple[str, int] | list[str | int] | None) -> str:
    """Return the address of a client; of an IPv6 address, the half that one household has in common.

    >>> network_of(("10.0.0.5", 4711)), network_of(("2001:db8::5:6:7:8", 4711))
    ('10.0.0.5', '2001:db8::')
    """
    try:
        address = ipaddress.ip_address(str(client[0]) if client else "")
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(address.ipv4_mapped or ipaddress.IPv6Address(int(address) >> 64 << 64))


HEAD_SECONDS, BODY_SECONDS, UNREAD_SECONDS, LINGER_SECONDS = 10.0, 30.0, 60.0, 5.0
"""For the head of a request; for its body, beside one second for `BODY_RATE` bytes; for an answer that the client does
not read; for a body that nobody wants any more."""
STILL_SECONDS = 30.0
"""The longest between two pieces of a body, however much came before."""
BODY_RATE = 16 * 2**10
MOST, MOST_OF_ONE = 128, 64
"""Connections at once, in all and from one address."""


class Connection(H11Protocol):
    """A connection with a client that must not dawdle."""

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options)
        self.network = ""
        self._awaited: Any = None  # the state of h11 that the timer is about
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._deadline = 0.0

    def limits(self) -> tuple[int, int]:
        """Return how many connections there may be, in all and from one address."""
        return MOST, MOST_OF_ONE

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.network = network_of(self.client)
        others = [
            connection
            for connection in self.connections
            if connection is not self and isinstance(connection, Connection)
        ]
        near = [other for other in others if other.network == self.network]
        most, most_of_one = self.limits()
        if len(others) >= most or len(near) >= most_of_one:
            idle = [item for item in (near if len(near) >= most_of_one else others) if item._awaited is h11.IDLE]
            min(idle, key=lambda item: item._deadline, default=self)._drop()
        self._await(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._read()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.is_closing():
            return
        state = self.conn.their_state
        if state not in (h11.IDLE, h11.SEND_BODY):
            self._forget()
        elif state is not self._awaited:
            self._await(HEAD_SECONDS if state is h11.IDLE else BODY_SECONDS)
        if state is h11.SEND_BODY and not self.cycle.response_complete:
            longest = self.loop.time() + STILL_SECONDS  # however much came before
            self._deadline = min(self._deadline + len(data) / BODY_RATE, longest)

    def on_response_complete(self) -> None:
        super().on_response_complete()  # which may begin with the next request
        state, done = self.conn.their_state, self.cycle.response_complete
        if state is h11.SEND_BODY:  # if it was refused unread, let the client see that, then close
            self._await(LINGER_SECONDS if done else BODY_SECONDS)
        elif state is h11.IDLE:
            self._await(HEAD_SECONDS)
        else:
            self._forget()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._read()
        self._unread = self.loop.call_later(UNREAD_SECONDS, self._drop)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._read()

    def _await(self, seconds: float) -> None:
        self._forget()
        self._awaited, self._deadline = self.conn.their_state, self.loop.time() + seconds
        self._timer = self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        left = self._deadline - self.loop.time()
        if self.flow.read_paused:  # we do not read: that is not the client's fault
            left = max(left, STILL_SECONDS)
            self._deadline = self.loop.time() + left
        if left <= 0:
            self._drop()
        else:
            self._timer = self.loop.call_later(left, self._late)

    def _forget(self) -> None:
        self._awaited = None
        if self._timer is not None:
            self._timer.cancel()

    def _read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()

    def _drop(self) -> None:
        self.connections.discard(self)
        self.transport.abort()


BACKLOG = 128
"""Connections that wait to be taken up; so many are taken up at once."""


def listener(who: str, host: str, port: int) -> socket.socket:
    """Return a socket that listens; `who` is named if that is not possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    result = socket.socket(family, socket.SOCK_STREAM)
    result.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        result.bind(("127.0.0.1" if host == "localhost" else host, port))
        result.listen(BACKLOG)  # the address is printed before the server runs: who comes early waits
    except OSError as error:
        result.close()
        raise ValueError(f"{who} cannot listen on {host}, port {port}: {error.strerror}.") from None
    return result


def server(app: Any, connection: type[Connection] = Connection) -> uvicorn.Server:
    """Return a server of an application that tells nobody what it is."""
    log()
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=connection,
            ws="none",
            backlog=BACKLOG,
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
    )


class Shown(logging.Formatter):
    """Lines of a log in which nothing that came from outside moves the cursor."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(shown(line) for line in super().format(record).split("\n"))


def log() -> None:
    """Let errors of the server be seen on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(Shown("%(levelname)s: %(message)s"))
    logging.getLogger("uvicorn").addHandler(handler)


@contextmanager
def ended_by_signals(running: uvicorn.Server) -> Iterator[None]:
    """Let the server end in order when the machine or the terminal ends it, and then end as the signal would have."""
    came: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        came.append(number)
        running.should_exit = True

    both = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
    heeded = [item for item in both if signal.getsignal(item) is not signal.SIG_IGN]  # nohup ignores SIGHUP
    for item in heeded:
        signal.signal(item, end)  # uvicorn heeds SIGTERM in its own way and, when it has ended, gives it to us
    yield
    for item in heeded:
        signal.signal(item, signal.SIG_DFL)
    for number in came:
        signal.raise_signal(number)

"""Connections that wait for nothing are closed, so that nobody can use up a server's by opening them.

Uvicorn closes a connection that rests between two requests, and no other. Here a client must also send the head of its
request in some seconds, its body at some rate, and read what it is sent. There is a limit of connections, and one for
each address; a new connection beyond it takes the place of the one that has waited longest without a request.
"""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from assay.web.requests import network_of

HEAD_SECONDS, BODY_SECONDS, UNREAD_SECONDS, LINGER_SECONDS = 10.0, 30.0, 60.0, 5.0
"""For the head of a request; for its body, beside one second for `BODY_RATE` bytes; for an answer that the client does
not read; for a body that nobody wants any more."""
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
        others = [one for one in self.connections if one is not self and isinstance(one, Connection)]
        near = [one for one in others if one.network == self.network]
        most, most_of_one = self.limits()
        if len(others) >= most or len(near) >= most_of_one:
            idle = [one for one in (near if len(near) >= most_of_one else others) if one._awaited is h11.IDLE]
            min(idle, key=lambda one: one._deadline, default=self)._drop()
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
            self._deadline += len(data) / BODY_RATE

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
            left = max(left, 1.0)
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

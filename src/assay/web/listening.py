"""A server on an address of this machine, ended in order by signals, with a log that nothing from outside disturbs."""

import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn

from assay.text import shown
from assay.web.connections import Connection

BACKLOG = 128
"""Connections that wait to be taken up; so many are taken up at once."""


def listener(who: str, host: str, port: int) -> socket.socket:
    """Return a socket that listens; `who` is named if that is not possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1" if host == "localhost" else host, port))
        found.listen(BACKLOG)  # the address is printed before the server runs: who comes early waits
    except OSError as error:
        found.close()
        raise ValueError(f"{who} cannot listen on {host}, port {port}: {error.strerror}.") from None
    return found


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
    heeded = [one for one in both if signal.getsignal(one) is not signal.SIG_IGN]  # nohup ignores SIGHUP
    for one in heeded:
        signal.signal(one, end)  # uvicorn heeds SIGTERM in its own way and, when it has ended, gives it to us
    yield
    for one in heeded:
        signal.signal(one, signal.SIG_DFL)
    for number in came:
        signal.raise_signal(number)

"""`assay studio`: start the server on this machine and open the browser."""

import getpass
import logging
import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import uvicorn

from assay.studio.app import known, studio
from assay.studio.connections import Connection
from assay.studio.security import LOOPBACK, Settings, host_of
from assay.text import shown

BACKLOG = 128
"""Connections that wait to be taken up; so many are taken up at once."""
_PAGE = (
    '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
    '<meta http-equiv="refresh" content="0;url={0}"><title>Assay</title><a href="{0}">Assay</a>'
)


def serve(source: str, host: str, port: int, browser: bool) -> None:
    """Serve until Ctrl-C. Another host than this machine's own asks for a password first."""
    if source:
        known(source)
    outside = host not in LOOPBACK
    password = _password() if outside else None
    listener = _listener(host, port)
    port = listener.getsockname()[1]
    settings = Settings(host_of(host), port, password=password)
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{port}" + ("/login" if outside else f"/open?token={settings.token}")
    server = uvicorn.Server(
        uvicorn.Config(
            studio(settings, source),
            http=Connection,
            ws="none",
            backlog=BACKLOG,
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
    )
    _log()
    with _ended_by_signals(server), _opened(address) if browser and not outside else nullcontext():
        print(f"The studio is at {address}", flush=True)
        print("Ctrl-C ends the studio." if outside else "The address works once. Ctrl-C ends the studio.", flush=True)
        server.run(sockets=[listener])


class _Shown(logging.Formatter):
    """Lines of a log in which nothing that came from outside moves the cursor."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(shown(line) for line in super().format(record).split("\n"))


def _log() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_Shown("%(levelname)s: %(message)s"))
    logging.getLogger("uvicorn").addHandler(handler)


@contextmanager
def _ended_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Let the server end in order when the machine or the terminal ends it, and then end as the signal would have."""
    came: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        came.append(number)
        server.should_exit = True

    both = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
    heeded = [one for one in both if signal.getsignal(one) is not signal.SIG_IGN]  # nohup ignores SIGHUP
    for one in heeded:
        signal.signal(one, end)  # uvicorn heeds SIGTERM in its own way and, when it has ended, gives it to us
    yield
    for one in heeded:
        signal.signal(one, signal.SIG_DFL)
    for number in came:
        signal.raise_signal(number)


@contextmanager
def _opened(address: str) -> Iterator[None]:
    """Open the browser in a moment, on a file that leads to the address.

    Command lines are seen by everybody on the machine; the file, with the token in it, by its owner alone.
    """
    with TemporaryDirectory(prefix="assay-studio-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "open.html"
        path.touch(mode=0o600)
        path.write_text(_PAGE.format(escape(address)), encoding="utf-8")
        timer = threading.Timer(0.5, webbrowser.open, [path.as_uri()])
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1" if host == "localhost" else host, port))
        listener.listen(BACKLOG)  # the address is printed before the server runs: who comes early waits
    except OSError as error:
        listener.close()
        raise ValueError(f"the studio cannot listen on {host}, port {port}: {error.strerror}.") from None
    return listener


def _password() -> str:
    """Return the password of a studio that others can reach: from the environment, else from the keyboard."""
    given = os.environ.get("ASSAY_STUDIO_PASSWORD", "")
    if not given and sys.stdin.isatty():
        given = getpass.getpass("Password for the studio (at least 12 characters): ")
    if len(given) < 12:
        raise ValueError(
            "on another host than this machine's own the studio needs a password of at least 12 characters; set "
            "ASSAY_STUDIO_PASSWORD."
        )
    return given

"""`assay studio`: start the server on this machine and open the browser."""

import getpass
import os
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from assay.studio.app import known, studio
from assay.studio.project import Project, default_folder
from assay.studio.security import Settings
from assay.web import LOOPBACK, ended_by_signals, host_of, listener, server

_PAGE = (
    '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
    '<meta http-equiv="refresh" content="0;url={0}"><title>Assay</title><a href="{0}">Assay</a>'
)


def serve(source: str, host: str, port: int, browser: bool, folder: Path | None = None) -> None:
    """Serve until Ctrl-C. Another host than this machine's own asks for a password first."""
    if source:
        known(source)
    folder = folder or default_folder()
    Project(folder).close()  # is it free?
    outside = host not in LOOPBACK
    password = _password() if outside else None
    socket = listener("the studio", host, port)
    port = socket.getsockname()[1]
    settings = Settings(host_of(host), port, password=password)
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{port}" + ("/login" if outside else f"/open?token={settings.token}")
    running = server(studio(settings, source, folder=folder))
    with ended_by_signals(running), _opened(address) if browser and not outside else nullcontext():
        print(f"The studio is at {address}", flush=True)
        print(f"Tables and studies are kept in {folder}.", flush=True)
        print("Ctrl-C ends the studio." if outside else "The address works once. Ctrl-C ends the studio.", flush=True)
        running.run(sockets=[socket])


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

"""`assay studio`: start the server on this machine and open the browser."""

import getpass
import os
import socket
import sys
import threading
import webbrowser

import uvicorn

from assay.studio.app import studio
from assay.studio.security import LOOPBACK, Settings, host_of


def serve(source: str, host: str, port: int, browser: bool) -> None:
    """Serve until Ctrl-C. Another host than this machine's own asks for a password first."""
    outside = host not in LOOPBACK
    password = _password() if outside else None
    listener = _listener(host, port)
    port = listener.getsockname()[1]
    settings = Settings(host_of(host), port, password=password)
    app = studio(settings, source)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}" + ("/login" if outside else f"/open?token={settings.token}")
    print(f"The studio is at {address}", flush=True)
    print("The address works once. Ctrl-C ends the studio." if not outside else "Ctrl-C ends the studio.", flush=True)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=2
    )
    server = uvicorn.Server(config)
    if browser and not outside:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    server.run(sockets=[listener])


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1" if host == "localhost" else host, port))
        listener.listen(128)  # the address is printed before the server runs: who comes early waits
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

"""`assay serve`: load the model, listen, answer until Ctrl-C."""

import os
from pathlib import Path

from assay.claims.claim import Certificate
from assay.learning import TableModel
from assay.serve.app import Settings, service
from assay.web.connections import Connection
from assay.web.listening import ended_by_signals, listener, server
from assay.web.requests import LOOPBACK, authorities, host_of

TOKEN = "ASSAY_SERVE_TOKEN"
_SHORTEST = 16
_MOST = 1024


class Client(Connection):
    """A connection of a service, of which one client may have many."""

    def limits(self) -> tuple[int, int]:
        return _MOST, _MOST


def serve(
    model: TableModel, certificate: Certificate | None, host: str, port: int, alarm: float, state: Path | None
) -> None:
    """Serve until Ctrl-C. Another host than this machine's own needs a token."""
    token = _token(host)
    socket = listener("the service", host, port)
    port = socket.getsockname()[1]
    known = authorities(host_of(host), port) if token is None else frozenset()
    running = server(service(model, certificate, Settings(known, token, alarm, state)), Client)
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

"""The web application: its addresses, its errors, its life.

`assay studio`: start the server on this machine and open the browser.
"""

import getpass
import os
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from html import escape
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assay.datasets import TARGETS
from assay.messages import Message, of_error
from assay.report.env import asset
from assay.studio.jobs import Refused
from assay.studio.pages import model, page, run, table
from assay.studio.security import Guard, Settings, too_large
from assay.studio.workspace import Project, Workspace, default_folder
from assay.web import LOOPBACK, TooLarge, ended_by_signals, host_of, icon, listener, server

ROUTES = [
    Route("/", table.home),
    Route("/tables", table.add, methods=["POST"]),
    Route("/tables/{key}", table.show),
    Route("/tables/{key}/look", table.look, methods=["POST"]),
    Route("/tables/{key}/learn", table.learn, methods=["POST"]),
    Route("/runs/{key}", run.show),
    Route("/runs/{key}/live", run.live),
    Route("/runs/{key}/events", run.events),
    Route("/runs/{key}/stop", run.stop, methods=["POST"]),
    Route("/runs/{key}/files/{name}", run.download),
    Route("/runs/{key}/about", run.describe, methods=["POST"]),
    Route("/runs/{key}/delete", run.delete, methods=["POST"]),
    Route("/runs/{key}/code", run.code),
    Route("/runs/{key}/model", model.show),
    Route("/runs/{key}/verify", model.verify, methods=["POST"]),
    Route("/runs/{key}/try", model.try_row, methods=["GET", "POST"]),
    Route("/compare", model.compare),
    Route("/plan", model.plan),
    Route("/learn", model.learn),
    Route("/learn/{which}", model.steps),
    Route("/language", model.choose_language, methods=["POST"]),
    Route("/login", model.login),
]
_SENTENCES = {"Not Found": Message("no-page"), "Method Not Allowed": Message("no-request")}
_TYPES = {"style.css": "text/css; charset=utf-8", "studio.js": "text/javascript; charset=utf-8"}


def studio(settings: Settings, source: str = "", most_bytes: int | None = None, folder: Path | None = None) -> Guard:
    """Return the application.

    `source` is a table to begin with, a file of this machine or a bundled name; tables and studies are kept in the
    project `folder`, or go when the studio ends.
    """

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        held = app.state.workspace = Workspace(most_bytes, folder)
        app.state.patience = settings.patience
        try:
            if source:
                held.add(*known(source))
            await held.begin()
            yield
        finally:
            await held.close()

    app = Starlette(
        routes=[*ROUTES, Route("/static/{name}", _static), Route("/favicon.ico", icon)],
        lifespan=life,
        exception_handlers={TooLarge: too_large, Refused: _busy, HTTPException: _refused, 500: _broken},
    )
    return Guard(app, settings)


def known(source: str) -> tuple[str, dict[str, str]]:
    """Return the name and the place of the table that the studio is started with."""
    path = Path(source)
    if path.is_file():
        path.open("rb").close()  # may it be read?
        return path.name, {"file": str(path.resolve())}
    if source in TARGETS:
        return source, {"bundled": source}
    if path.is_dir():
        raise ValueError(f"{source} is a folder; give a CSV or Parquet file.")
    raise ValueError(f"there is no file {source}, and no bundled table of that name.")


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _TYPES:
        raise HTTPException(404, Message("no-file"))
    text = asset(name) if name == "style.css" else (files("assay.studio") / "static" / name).read_text(encoding="utf-8")
    return Response(text, media_type=_TYPES[name], headers={"cache-control": "no-cache"})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = _SENTENCES.get(error.detail, error.detail)
    return page(request, "refused.html", error.status_code, sentence=sentence)


async def _busy(request: Request, error: Exception) -> Response:
    return page(request, "refused.html", 503, sentence=of_error(error))


async def _broken(request: Request, error: Exception) -> Response:
    """Answer without the error's own words, which may hold paths; the terminal has them."""
    return page(request, "refused.html", 500, sentence=Message("broken", error=type(error).__name__))


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

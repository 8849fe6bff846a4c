"""The web application: its addresses, its errors, its life."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assay.datasets import TARGETS
from assay.messages import Message, of_error
from assay.report.env import asset
from assay.studio.jobs import Refused
from assay.studio.pages import model, more, page, run, table
from assay.studio.security import Guard, Settings, too_large
from assay.studio.workspace import Workspace
from assay.web import TooLarge, icon

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
    Route("/compare", more.compare),
    Route("/plan", more.plan),
    Route("/learn", more.learn),
    Route("/learn/{which}", more.steps),
    Route("/language", more.choose_language, methods=["POST"]),
    Route("/login", more.login),
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

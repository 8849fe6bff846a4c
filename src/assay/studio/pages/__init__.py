"""The pages: what each shows and what its forms do."""

import hmac
from typing import Any

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from assay.messages import Message
from assay.report.env import LANGUAGES, language_of, render
from assay.studio.jobs import Question
from assay.studio.workspace import Run, TableEntry, Workspace

ROOMS = ("report", "studio")


def workspace(request: Request) -> Workspace:
    """Return what the studio holds."""
    return request.app.state.workspace


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page in the reader's language."""
    session = getattr(request.state, "session", None)
    run = values.get("run")
    common = {
        "csrf": session.csrf if session else "",
        "languages": {key: name for key, (name, _) in LANGUAGES.items()},
        "path": request.url.path,
        "here": "",
        "table": run.table if run else None,
        "run": None,
        "model": run if run and run.found else None,
        "refresh": 1 if values.get("waiting") else 0,
        "waiting": False,
    }
    text = render(f"studio/{template}", language(request), ROOMS, **(common | values))
    return HTMLResponse(text, status)


async def answered(request: Request, question: Question) -> Question:
    """Wait for an answer as long as a page may: then it is shown without, and asks again by itself."""
    await question.wait(request.app.state.patience)
    return question


def language(request: Request) -> str:
    """Return the language to answer in."""
    return language_of(request.cookies.get("assay_language"), request.headers.get("accept-language", ""))


async def form(request: Request, files: int = 0) -> FormData:
    """Return a form whose secret is that of the session; refuse it otherwise."""
    if not request.headers.get("content-type", "").startswith(
        ("application/x-www-form-urlencoded", "multipart/form-data")
    ):
        raise HTTPException(415, Message("no-form"))
    given = await request.form(max_files=files, max_fields=2_000, max_part_size=2**20)
    secret = given.get("csrf")
    if not isinstance(secret, str) or not hmac.compare_digest(secret.encode(), request.state.session.csrf.encode()):
        raise HTTPException(403, Message("no-session"))
    return given


def text_of(given: FormData, name: str, default: str = "") -> str:
    """Return a field of a form as text."""
    value = given.get(name, default)
    return value if isinstance(value, str) else default


def number_in(text: str | None, default: float, low: float, high: float) -> float:
    """Return a number that a person typed, held between two ends; the default if it is none."""
    try:
        value = float(text or "")
    except ValueError:
        return default
    return min(max(value, low), high) if value == value else default


def table_of(request: Request) -> TableEntry:
    """Return the table that the address names."""
    result = workspace(request).tables.get(request.path_params["key"])
    if result is None:
        raise HTTPException(404, Message("no-table"))
    return result


def run_of(request: Request) -> Run:
    """Return the study that the address names."""
    result = workspace(request).runs.get(request.path_params["key"])
    if result is None:
        raise HTTPException(404, Message("no-study"))
    return result


def go(path: str) -> Response:
    """Return an answer that sends the browser to another page."""
    return RedirectResponse(path, 303)

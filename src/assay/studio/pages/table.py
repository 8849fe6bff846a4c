"""Table: choose a table, see its columns, correct their types, choose the target."""

import shutil
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response

from assay.datasets import TARGETS
from assay.studio.pages import answered, form, go, number_in, page, table_of, text_of, workspace
from assay.studio.workspace import display_name

AT_ONCE = 100
"""Columns on one page."""


async def home(request: Request) -> Response:
    """The first page: which table?"""
    tables = list(workspace(request).tables.values())
    return page(request, "home.html", here="table", tables=tables, bundled=list(TARGETS), refusal="")


async def add(request: Request) -> Response:
    """Take a table in: a file that is uploaded, or a bundled one."""
    async with request.form(max_files=1, max_fields=10):
        given = await form(request, files=1)
        held, sent = workspace(request), given.get("file")
        bundled = text_of(given, "bundled")
        if bundled in TARGETS:
            entry = held.add(bundled, {"bundled": bundled})
        elif isinstance(sent, UploadFile) and sent.size:
            path = held.new_file(_ending(await sent.read(4)))
            await sent.seek(0)
            await run_in_threadpool(_copy, sent.file, path)
            entry = held.add(display_name(sent.filename or ""), {"file": str(path)})
        else:
            return page(request, "home.html", 400, here="table", tables=[], bundled=list(TARGETS), refusal="empty")
    held.look(entry)
    return go(f"/tables/{entry.key}")


def _ending(first: bytes) -> str:
    return ".parquet" if first == b"PAR1" else ".csv"


def _copy(file: Any, path: Path) -> None:
    with path.open("wb") as out:
        shutil.copyfileobj(file, out, 2**20)


async def show(request: Request) -> Response:
    """The table: columns, warnings, target."""
    entry = table_of(request)
    looked = await answered(request, entry.looked or workspace(request).look(entry))
    start = int(number_in(request.query_params.get("from"), 0, 0, 10**7)) // AT_ONCE * AT_ONCE
    return page(
        request,
        "table.html",
        here="table",
        table=entry,
        seen=entry.seen,
        start=start,
        at_once=AT_ONCE,
        waiting=looked.waiting,
    )


async def look(request: Request) -> Response:
    """Take a target and corrections of types, and look again."""
    entry = table_of(request)
    given = await form(request)
    names = [one["name"] for one in entry.seen["columns"]] if entry.seen else []
    for i, name in enumerate(names):
        kind = text_of(given, f"kind{i}")
        levels = [word.strip() for word in text_of(given, f"levels{i}").split(",") if word.strip()]
        if kind == "ordered" and len(levels) > 1:
            entry.kinds[name] = levels
        elif kind in ("nominal", "out"):
            entry.kinds[name] = kind
        elif kind in ("numeric", "date", "text"):
            entry.kinds.pop(name, None)
    for name in given.getlist("back"):
        if entry.kinds.get(str(name)) == "out":
            del entry.kinds[str(name)]
    if text_of(given, "target") in names:
        entry.target = text_of(given, "target")
    workspace(request).look(entry)
    return go(f"/tables/{entry.key}")


async def learn(request: Request) -> Response:
    """Begin a study."""
    entry = table_of(request)
    given = await form(request)
    await (entry.looked or workspace(request).look(entry)).wait()
    if not entry.seen:
        return go(f"/tables/{entry.key}")
    seconds = number_in(text_of(given, "time"), 0, 0, 3600)
    confidence = number_in(text_of(given, "confidence"), 0.95, 0.5, 0.999)
    clip = number_in(text_of(given, "clip"), 0, 0, 1e300)
    asked: dict[str, Any] = {"time": seconds or None, "confidence": f"{confidence:g}", "clip": clip or None}
    asked["metric"] = text_of(given, "metric") or None
    asked["certify"] = "folds" if text_of(given, "certify") == "folds" else None
    asked["learners"] = [word for word in text_of(given, "learners").replace(",", " ").split() if word][:50]
    run = workspace(request).start(entry, asked, 4 * (seconds or 60) + 300)
    return go(f"/runs/{run.key}")

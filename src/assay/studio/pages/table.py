"""Table: choose a table, see its columns, correct their types, choose the target."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from assay.datasets import TARGETS
from assay.studio.pages import answered, form, go, number_in, page, table_of, text_of, workspace
from assay.studio.workspace import Run, TableEntry, display_name

AT_ONCE = 50
"""Columns on one page."""


async def home(request: Request) -> Response:
    """The first page: studies made before, and the table of the next one."""
    return _home(request)


def _home(request: Request, status: int = 200, refusal: str = "") -> Response:
    held = workspace(request)
    runs = [{"run": run, **_summary(run)} for run in reversed(held.runs.values())]
    shown = {"tables": list(held.tables.values()), "runs": runs, "bundled": list(TARGETS), "refusal": refusal}
    return page(request, "home.html", status, here="home", **shown)


def _summary(run: Run) -> dict[str, Any]:
    """Return what the list of studies says of one: the model that was chosen, its bound, the baseline's error."""
    rows = run.found["leaderboard"] if run.found else []
    chosen = next((row for row in rows if row["status"] == "chosen"), None)
    baseline = next((row for row in rows if row["status"] == "baseline"), None)
    when = datetime.fromtimestamp(run.record.began, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    return {"chosen": chosen, "baseline": baseline, "when": when, "task": run.found["task"] if run.found else ""}


async def add(request: Request) -> Response:
    """Take a table in: a file that is uploaded, or a bundled one."""
    async with request.form(max_files=1, max_fields=10):
        given = await form(request, files=1)
        held, sent = workspace(request), given.get("file")
        bundled = text_of(given, "bundled")
        if bundled in TARGETS:
            entry = held.add(bundled, {"bundled": bundled})
        elif isinstance(sent, UploadFile) and sent.size:
            key, path = held.upload(_ending(await sent.read(4)))
            await sent.seek(0)
            await run_in_threadpool(_copy, sent.file, path)
            entry = held.add(display_name(sent.filename or ""), {"file": str(path)}, key)
        else:
            return _home(request, 400, "empty")
    held.look(entry)
    return go(f"/tables/{entry.key}")


def _ending(first: bytes) -> str:
    return ".parquet" if first == b"PAR1" else ".csv"


def _copy(file: Any, path: Path) -> None:
    with path.open("wb") as out:
        shutil.copyfileobj(file, out, 2**20)


async def show(request: Request) -> Response:
    """The table: columns, warnings, target, and the form that begins a study."""
    entry = table_of(request)
    looked = await answered(request, entry.looked or workspace(request).look(entry))
    words = request.query_params.get("q", "")[:100]
    start = int(number_in(request.query_params.get("from"), 0, 0, 10**7)) // AT_ONCE * AT_ONCE
    result = _matching(entry, words)
    return page(
        request,
        "table.html",
        here="table",
        table=entry,
        seen=entry.seen,
        listed=_listed(entry, result, start),
        matching=len(result),
        words=words,
        start=start,
        at_once=AT_ONCE,
        waiting=looked.waiting,
    )


def _matching(entry: TableEntry, words: str) -> list[int]:
    """Return the places of the columns whose names hold some text."""
    columns = entry.seen["columns"] if entry.seen else []
    return [i for i, column in enumerate(columns) if words.casefold() in column["name"].casefold()]


def _listed(entry: TableEntry, results: list[int], start: int) -> list[tuple[int, dict[str, Any]]]:
    """Return a page of columns with their places; the target is always the first."""
    if not entry.seen:
        return []
    columns = entry.seen["columns"]
    target = [i for i, column in enumerate(columns) if column["name"] == entry.seen["target"]]
    shown = results[start : start + AT_ONCE]
    return [(i, columns[i]) for i in dict.fromkeys(target + shown)]


async def look(request: Request) -> Response:
    """Take a target and corrections of types, look again, and show the columns that were asked for."""
    entry = table_of(request)
    given = await form(request)
    if _correct(entry, given):
        workspace(request).look(entry)
    asked = {"q": text_of(given, "q")[:100], "from": text_of(given, "from")}
    query = urlencode({name: value for name, value in asked.items() if value})
    return go(f"/tables/{entry.key}{'?' if query else ''}{query}")


def _correct(entry: TableEntry, given: FormData) -> bool:
    """Take the target and the types that a form names; return whether they differ from what was looked at."""
    columns = entry.seen["columns"] if entry.seen else []
    before = dict(entry.kinds), entry.target
    for i, column in enumerate(columns):
        name, kind = column["name"], text_of(given, f"kind{i}")
        levels = [word.strip() for word in text_of(given, f"levels{i}").split(",") if word.strip()]
        if kind == "ordered" and len(levels) > 1:
            entry.kinds[name] = levels
        elif kind == column["kind"]:
            continue
        elif kind in ("nominal", "out"):
            entry.kinds[name] = kind
        elif kind in ("numeric", "date", "text"):
            entry.kinds.pop(name, None)
    for name in given.getlist("back"):
        if entry.kinds.get(str(name)) == "out":
            del entry.kinds[str(name)]
    if any(column["name"] == text_of(given, "target") for column in columns):
        entry.target = text_of(given, "target")
    return (entry.kinds, entry.target) != before


async def learn(request: Request) -> Response:
    """Begin a study."""
    entry = table_of(request)
    given = await form(request)
    await (entry.looked or workspace(request).look(entry)).wait()
    task = entry.seen and entry.seen["task"]
    if _correct(entry, given):
        wanted = entry.target
        await workspace(request).look(entry).wait()
        if entry.target != wanted:  # it was left out, or is no column of the table
            return go(f"/tables/{entry.key}")
    if not entry.seen:
        return go(f"/tables/{entry.key}")
    seconds = number_in(text_of(given, "time"), 0, 0, 3600)
    confidence = number_in(text_of(given, "confidence"), 0.95, 0.5, 0.999)
    clip = number_in(text_of(given, "clip"), 0, 0, 1e300)
    trials = int(number_in(text_of(given, "trials"), 0, 0, 10_000))
    if trials:
        seconds = 0
    asked: dict[str, Any] = {
        "time": seconds or None,
        "trials": trials or None,
        "confidence": f"{confidence:g}",
        "clip": clip or None,
    }
    asked["metric"] = text_of(given, "metric") or None
    if entry.seen["task"] != task:  # the choices stood there for another target
        asked |= {"metric": None, "clip": None}
    asked["certify"] = "folds" if text_of(given, "certify") == "folds" else None
    asked["learners"] = [word for word in text_of(given, "learners").replace(",", " ").split() if word][:50]
    run = workspace(request).start(entry, asked, 4 * (3600 if trials else seconds or 60) + 300)
    return go(f"/runs/{run.key}")

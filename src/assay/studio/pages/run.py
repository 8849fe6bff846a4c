"""Run: the leaderboard as it fills up, and the button that ends the study with the best so far."""

import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response, StreamingResponse

from assay.messages import Message
from assay.report.env import page as report
from assay.report.views import best_first
from assay.studio.pages import form, go, language, page, run_of
from assay.studio.workspace import Run

_HEARTBEAT, _MOST = 15.0, 40


async def show(request: Request) -> Response:
    """The study as it stands."""
    run = run_of(request)
    running = run.job.status == "running"
    return page(request, "run.html", here="run", run=run, refresh=2 if running else 0, **_standing(run))


async def live(request: Request) -> Response:
    """The part of the page that changes, by itself."""
    run = run_of(request)
    return page(request, "parts/standing.html", run=run, **_standing(run))


async def events(request: Request) -> Response:
    """Tell the browser, whenever there is something new, to fetch it."""
    return StreamingResponse(_stream(run_of(request)), media_type="text/event-stream")


async def _stream(run: Run) -> AsyncIterator[str]:
    seen = -1
    while True:
        if await run.job.changed(seen, _HEARTBEAT):
            seen = run.job.version
            yield f"data: {seen}\n\n"
            if run.job.status != "running":
                yield "event: end\ndata: end\n\n"
                return
        else:
            yield ": still there\n\n"


async def stop(request: Request) -> Response:
    """End the study; what is best so far is kept."""
    await form(request)
    run = run_of(request)
    await run.job.stop()
    return go(f"/runs/{run.key}")


async def download(request: Request) -> Response:
    """The model, or the report, as a file."""
    run, name = run_of(request), request.path_params["name"]
    if name not in ("model.assay", "report.html") or not run.found:
        raise HTTPException(404, Message("no-file"))
    if name == "model.assay":
        return FileResponse(run.model, media_type="application/octet-stream", filename=name)
    text = await run_in_threadpool(report, run.found, run.table.name, language(request))
    return HTMLResponse(text, headers={"content-disposition": f'attachment; filename="{name}"'})


def _standing(run: Run) -> dict[str, Any]:
    """Return rows, what is done now, and how long it has taken."""
    events, found = run.job.events, run.found
    rows = {(event["row"]["name"], event["row"]["settings"]): event["row"] for event in events if "row" in event}
    started = [event["name"] for event in events if event["kind"] == "started"]
    left = [event for event in events if event["kind"] == "left"]
    ordered = sorted(rows.values(), key=_place)
    shown = found["leaderboard"] if found else best_first(ordered)[:_MOST]
    bounds = [row for row in ordered if row["bound"] is not None]
    return {
        "rows": shown,
        "started": started,
        "left": left[-1]["seconds"] if left else None,
        "notes": [event["text"] for event in events if event["kind"] == "note"],
        "seconds": time.monotonic() - run.job.began,
        "task": found["task"] if found else (run.table.seen or {}).get("task", "classify"),
        "metric": found["metric"] if found else run.asked["metric"] or "error",
        "best": bounds[0] if bounds else None,
        "found": found,
        "folds": run.asked["certify"] == "folds",
    }


def _place(row: dict[str, Any]) -> tuple[bool, bool, float, float]:
    bound, judged = row["bound"], row["cv"]
    return row["status"] == "left out", bound is None, bound or 0.0, float("inf") if judged is None else judged

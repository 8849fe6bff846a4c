"""Run: the leaderboard as it fills up, and the button that ends the study with the best so far.

A study as code: the Python script, the command line and the notebook that run it again.
"""

import io
import json
import shlex
import zipfile
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse

from assay.messages import Message
from assay.report.env import page as report
from assay.report.views import best_first
from assay.studio.pages import form, go, language, page, run_of, text_of, workspace
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


async def describe(request: Request) -> Response:
    """Name a study, and note something about it."""
    given = await form(request)
    run = run_of(request)
    run.record.name = text_of(given, "name").strip()[:100] or run.record.name
    run.record.note = text_of(given, "note").strip()[:4000]
    workspace(request).project.keep(run.record)
    return go(f"/runs/{run.key}")


async def delete(request: Request) -> Response:
    """Remove a study, and its uploaded table with the last study of it."""
    await form(request)
    await workspace(request).delete(run_of(request))
    return go("/")


async def code(request: Request) -> Response:
    """The study as a script, a command line and a notebook."""
    run = run_of(request)
    texts: dict[str, Any] = {"script": script(run), "command": command(run)}
    return page(request, "code.html", here="code", run=run, exact=bool(run.asked.get("trials")), **texts)


_TYPES = {
    "model.assay": "application/octet-stream",
    "report.html": "text/html; charset=utf-8",
    "study.py": "text/x-python; charset=utf-8",
    "study.ipynb": "application/x-ipynb+json",
    "study.zip": "application/zip",
}


async def download(request: Request) -> Response:
    """A file of the study: model, report, script, notebook, or all of them."""
    run, name = run_of(request), request.path_params["name"]
    if name not in _TYPES or not run.found:
        raise HTTPException(404, Message("no-file"))
    if name == "model.assay":
        return FileResponse(run.model, media_type=_TYPES[name], filename=name)
    content = await run_in_threadpool(_content, run, name, language(request))
    return Response(content, media_type=_TYPES[name], headers={"content-disposition": f'attachment; filename="{name}"'})


def _content(run: Run, name: str, language: str) -> bytes:
    assert run.found is not None
    if name == "report.html":
        return report(run.found, run.table.name, language).encode()
    if name == "study.py":
        return script(run).encode()
    if name == "study.ipynb":
        return notebook(run).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(run.model, "model.assay")
        for part in ("report.html", "study.py", "study.ipynb"):
            archive.writestr(part, _content(run, part, language))
    return packed.getvalue()


def _standing(run: Run) -> dict[str, Any]:
    """Return rows, what is done now, and how long it has taken."""
    events, result = run.job.events, run.found
    rows = {(event["row"]["name"], event["row"]["settings"]): event["row"] for event in events if "row" in event}
    started = [event["name"] for event in events if event["kind"] == "started"]
    left = [event for event in events if event["kind"] == "left"]
    ordered = sorted(rows.values(), key=_place)
    shown = result["leaderboard"] if result else best_first(ordered)[:_MOST]
    bounds = [row for row in ordered if row["bound"] is not None]
    return {
        "rows": shown,
        "started": started,
        "left": left[-1]["seconds"] if left else None,
        "notes": [event["text"] for event in events if event["kind"] == "note"],
        "seconds": run.job.seconds,
        "task": result["task"] if result else (run.table.seen or {}).get("task", "classify"),
        "metric": result["metric"] if result else run.asked.get("metric") or "error",
        "best": bounds[0] if bounds else None,
        "found": result,
        "folds": run.asked.get("certify") == "folds",
    }


def _place(row: dict[str, Any]) -> tuple[bool, bool, float, float]:
    bound, judged = row["bound"], row["cv"]
    return row["status"] == "left out", bound is None, bound or 0.0, float("inf") if judged is None else judged


def command(run: Run) -> str:
    """Return the command line of a study.

    What the form left empty is left out, as the defaults are those of `assay learn`.
    """
    words = ["assay", "learn", _source(run), "--target", run.target]
    nominal, ordered, drop = _kinds(run)
    options = {
        "--nominal": ",".join(nominal),
        "--drop": ",".join(drop),
        **{name: value for name, value in _options(run).items() if not isinstance(value, list)},
        "--learners": ",".join(run.asked.get("learners") or []),
    }
    for name, value in options.items():
        option = name if name.startswith("--") else f"--{name}"
        words += [option, f"{value:g}" if isinstance(value, float) else str(value)] if value not in ("", None) else []
    for column, levels in ordered.items():
        words += ["--ordered", f"{column}={','.join(levels)}"]
    return shlex.join(words)


def script(run: Run) -> str:
    """Return a Python script that runs a study again."""
    nominal, ordered, drop = _kinds(run)
    read = {"nominal": nominal, "ordered": ordered, "drop": drop}
    corrections = "".join(f", {name}={value!r}" for name, value in read.items() if value)
    source = repr(_source(run)) if "bundled" not in run.table.source else f"assay.datasets.load({_source(run)!r})"
    arguments = "".join(f", {name}={value!r}" for name, value in _options(run).items())
    return f"""import assay
from assay.data import raw_table

table = raw_table({source}{corrections})
study = assay.learn(table, {run.target!r}{arguments})
print(study)
print(study.certificate)
study.save("model.assay")
"""


def notebook(run: Run) -> str:
    """Return a Jupyter notebook that runs a study again, and reads its certificate."""
    texts = (
        ("markdown", f"# {run.record.name}\n\n{run.record.note}".rstrip()),
        ("code", script(run).replace("print(study)\nprint(study.certificate)\n", "").rstrip() + "\nstudy"),
        ("code", "study.certificate"),
        ("code", 'model, certificate = assay.load("model.assay")\nmodel'),
    )
    cells = [_cell(i, kind, text) for i, (kind, text) in enumerate(texts)]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def _cell(number: int, kind: str, text: str) -> dict[str, Any]:
    more: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text, **more}


def _source(run: Run) -> str:
    """Return the table as a person would name it: what was uploaded goes by its own name."""
    source = run.table.source
    if "bundled" in source:
        return source["bundled"]
    return run.table.name if run.uploaded else source.get("file", run.table.name)


def _options(run: Run) -> dict[str, Any]:
    return {name: value for name, value in run.asked.items() if value not in (None, "", [])}


def _kinds(run: Run) -> tuple[list[str], dict[str, list[str]], list[str]]:
    """Return the columns that a person called nominal, ordered, or left out."""
    nominal, drop = ([name for name, kind in run.kinds.items() if kind == word] for word in ("nominal", "out"))
    return nominal, {name: kind for name, kind in run.kinds.items() if isinstance(kind, list)}, drop

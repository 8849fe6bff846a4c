"""Model and Try: the certificate in plain words, thresholds, prediction sets, figures; a row of one's own."""

import secrets
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from assay.studio.jobs import Question
from assay.studio.pages import answered, form, go, number_in, page, run_of, text_of, workspace
from assay.studio.workspace import ASK_SECONDS, Run

MOST_FIELDS, _REMEMBERED = 60, 20


async def show(request: Request) -> Response:
    """The model that a study chose."""
    run = run_of(request)
    if not run.found:
        return go(f"/runs/{run.key}")
    asked = request.query_params
    miss, alarm = (number_in(asked.get(name), 1.0, 0.0, 1e6) for name in ("miss", "alarm"))
    curve = run.found["figures"].get("threshold")
    chosen = number_in(asked.get("threshold"), 0.5, 0.0, 1.0)
    costs = cost_lines(curve, miss, alarm) if curve else None
    coverage = run.found["figures"]["coverage"]
    if run.verdict is not None:
        await answered(request, run.verdict)
    place = int(number_in(asked.get("coverage"), min(4, max(len(coverage) - 1, 0)), 0, max(len(coverage) - 1, 0)))
    return page(
        request,
        "model.html",
        here="model",
        run=run,
        model=run,
        found=run.found,
        figures=run.found["figures"],
        curve=curve,
        costs=costs,
        at=at_threshold(curve, costs, chosen) if curve and costs else None,
        miss=miss,
        alarm=alarm,
        coverage=coverage,
        place=place,
        verdict=run.verdict,
        waiting=run.verdict is not None and run.verdict.waiting,
    )


def cost_lines(curve: dict[str, Any], miss: float, alarm: float) -> dict[str, list[float]]:
    """Return the mean cost of a row at each threshold, with limits that hold at all of them and for all costs."""
    lines = {"low": ("missed_low", "called_low"), "seen": ("missed", "called"), "high": ("missed_high", "called_high")}
    return {
        name: [miss * a + alarm * b for a, b in zip(curve[missed], curve[called], strict=True)]
        for name, (missed, called) in lines.items()
    }


def at_threshold(curve: dict[str, Any], costs: dict[str, list[float]], chosen: float) -> dict[str, Any]:
    """Return the shares and the cost at a threshold, and where the certified cost is least."""
    i = round(100 * chosen)
    best = min(range(101), key=lambda k: costs["high"][k])
    shares = ("missed", "missed_low", "missed_high", "called", "called_low", "called_high")
    return {
        "threshold": curve["at"][i],
        **{name: curve[name][i] for name in shares},
        "cost": costs["seen"][i],
        "cost_low": costs["low"][i],
        "cost_high": costs["high"][i],
        "best": curve["at"][best],
    }


async def verify(request: Request) -> Response:
    """Check the certificate again, in a process of its own."""
    await form(request)
    run = run_of(request)
    if run.found:
        workspace(request).verify(run)
    return go(f"/runs/{run.key}/model#verified")


async def try_row(request: Request) -> Response:
    """A form made from the columns, and what the model says of what is typed."""
    run = run_of(request)
    if not run.found:
        return go(f"/runs/{run.key}")
    columns = _fields(run)
    if request.method == "POST":
        given = await form(request)
        key = secrets.token_hex(4)
        run.tried[key] = {column["name"]: text_of(given, f"c{column['place']}")[:1000] for column in columns}
        if len(run.tried) > _REMEMBERED:
            del run.tried[next(iter(run.tried))]
        return go(f"/runs/{run.key}/try?row={key}")
    typed = run.tried.get(request.query_params.get("row", ""))
    values = {result["name"]: str(result["usual"]) for result in run.found["columns"]} | (typed or {})
    asked = None if typed is None else await answered(request, _asked(request, run, values))
    status = 400 if asked is not None and asked.refusal else 200
    shown = {"columns": columns, "values": values, "asked": asked, "found": run.found}
    waiting = asked is not None and asked.waiting
    return page(request, "try.html", status, here="try", run=run, model=run, waiting=waiting, **shown)


def _asked(request: Request, run: Run, values: dict[str, str]) -> Question:
    assert run.found is not None
    return workspace(request).desk.ask(
        "predict",
        ASK_SECONDS,
        file=run.model,
        values=values,
        columns=run.found["columns"],
        coverages=[line["coverage"] for line in run.found["figures"]["coverage"]],
        confidence=run.found["confidence"],
    )


def _fields(run: Run) -> list[dict[str, Any]]:
    """Return the columns to ask for: those that matter most first, and no more than a person can fill in."""
    assert run.found is not None
    order = {line[0]: i for i, line in enumerate(run.found["figures"]["importance"])}
    columns = [result | {"place": i} for i, result in enumerate(run.found["columns"])]
    return sorted(columns, key=lambda item: order.get(item["name"], len(order)))[:MOST_FIELDS]

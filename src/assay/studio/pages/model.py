"""Model and Try: the certificate in plain words, thresholds, prediction sets, figures; a row of one's own.

Compare, Plan and Learn; the language; signing in.
"""

import secrets
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from assay.messages import Message
from assay.report.env import LANGUAGES
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


ALGORITHMS = ("perceptron", "kmeans", "adaboost", "smo", "em", "backprop")


async def compare(request: Request) -> Response:
    """Two studies of one table on the rows that neither was fitted to, with the difference that is proved."""
    held, asked = workspace(request), request.query_params
    runs = {run.key: run for run in held.runs.values() if run.found}
    first = runs.get(asked.get("a", "")) or next(reversed(runs.values()), None)
    rivals = [run for run in runs.values() if first and run is not first and _comparable(run, first)]
    second = next((run for run in rivals if run.key == asked.get("b")), rivals[-1] if rivals else None)
    question = None
    if first and second:
        files = {"first": first.model, "second": second.model}
        question = await answered(
            request, held.lab.ask("compare", ASK_SECONDS, source=first.table.source, kinds=first.kinds, **files)
        )
    shown: dict[str, Any] = {"first": first, "second": second, **_answer(question)}
    return page(request, "compare.html", here="compare", runs=list(runs.values()), **shown)


def _answer(question: Question | None) -> dict[str, Any]:
    """Return what a template needs of a question."""
    if question is None:
        return {"answer": None, "refusal": "", "waiting": False}
    return {"answer": question.result, "refusal": question.refusal, "waiting": question.waiting}


def _comparable(run: Run, other: Run) -> bool:
    return run.table.source == other.table.source and run.target == other.target and run.kinds == other.kinds


async def plan(request: Request) -> Response:
    """How many rows for which error."""
    asked = request.query_params
    values: dict[str, Any] = {
        "error": number_in(asked.get("error"), 10.0, 0.0, 90.0),
        "width": number_in(asked.get("width"), 2.0, 0.1, 50.0),
        "confidence": number_in(asked.get("confidence"), 95.0, 50.0, 99.99),
        "candidates": int(number_in(asked.get("candidates"), 1, 1, 10_000)),
        "dimension": int(number_in(asked.get("dimension"), 10, 1, 1_000)),
    }
    values["width"] = min(values["width"], 99.0 - values["error"])
    shares = {name: values[name] / 100 for name in ("error", "width", "confidence")}
    if 0 < shares["error"] < 1e-3:
        shares["error"] = 1e-3
    question = await answered(request, workspace(request).desk.ask("plan", ASK_SECONDS, **(values | shares)))
    return page(request, "plan.html", here="plan", values=values, **_answer(question))


async def learn(request: Request) -> Response:
    """The learners' cards; one learner's page; an algorithm step by step."""
    held, name = workspace(request), request.query_params.get("name", "")[:100]
    await held.lab.child.begin()  # the steps are near
    asked = {"name": name} if name else {}
    result = _answer(await answered(request, held.desk.ask("methods", ASK_SECONDS, **asked)))
    shown = {"name": name, "algorithms": ALGORITHMS, **result}
    return page(request, "learn.html", 400 if result["refusal"] else 200, here="learn", **shown)


async def steps(request: Request) -> Response:
    """An algorithm on two columns of the table, one step at a time."""
    held, asked = workspace(request), request.query_params
    which = request.path_params["which"]
    table = held.tables.get(asked.get("table", "")) or next(reversed(held.tables.values()), None)
    if table:
        await answered(request, table.looked or held.look(table))
    numbers = (
        [item["name"] for item in table.seen["columns"] if item["kind"] == "numeric"] if table and table.seen else []
    )
    numbers = [name for name in numbers if table is None or name != table.target][:200]
    x = asked.get("x") if asked.get("x") in numbers else (numbers[0] if numbers else "")
    y = asked.get("y") if asked.get("y") in numbers else next((name for name in numbers if name != x), "")
    question = None
    if which not in ALGORITHMS:
        raise HTTPException(404, Message("no-algorithm"))
    if table and x and y:
        question = await answered(
            request,
            held.lab.ask("steps", ASK_SECONDS, which=which, sample=table.sample, x=x, y=y, target=table.target),
        )
    result = _answer(question or (table.looked if table and not table.seen else None))
    last = len(result["answer"]["frames"]) - 1 if result["answer"] else 0
    step = int(number_in(asked.get("step"), 0, 0, last))
    shown = {"which": which, "algorithms": ALGORITHMS, "numbers": numbers, "x": x, "y": y, **result}
    return page(request, "steps.html", here="learn", table=table, step=step, last=last, **shown)


async def choose_language(request: Request) -> Response:
    """Keep the language that a reader chose."""
    given = await form(request)
    back = text_of(given, "back", "/")
    answer = go(back if back.startswith("/") and not back.startswith(("//", "/\\")) else "/")
    chosen = text_of(given, "language")
    if chosen in LANGUAGES:
        answer.set_cookie("assay_language", chosen, samesite="strict", httponly=True, max_age=31_536_000)
    return answer


async def login(request: Request) -> Response:
    """Ask for the password of a studio that listens on another address than this machine's own."""
    secret = getattr(request.state, "form", "")
    return page(request, "login.html", secret=secret, wrong=bool(request.query_params.get("wrong")))

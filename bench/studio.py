"""The studio's speed, as a person meets it: seconds from the command to the first certified row, how long pages take
to answer while a study runs, and a table of 500,000 rows."""

import argparse
import http.client
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np

from bench.harness import save

ALGORITHMS = ("perceptron", "kmeans", "adaboost", "smo", "em", "backprop")
_CERTIFIED = re.compile(r'[\d.]+ %</td><td class="n">[\d.]+ %</td><td class="n">[\d.]+</td></tr>')
_BOUND = re.compile(r'<tr class="chosen">.*?([\d.]+ %)</td><td class="n">[\d.]+</td></tr>', re.DOTALL)


class Visitor:
    """A person without JavaScript: follows redirects by hand, keeps the cookie, sends forms with their secret."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.host, self.cookie = parts.netloc, ""
        self.get(f"{parts.path}?{parts.query}")

    def get(self, path: str) -> str:
        return self._ask("GET", path)[1]

    def post(self, path: str, **fields: str) -> str:
        """Send a form; return where it leads."""
        found = re.search(r'name="csrf" value="([^"]+)"', self.get("/"))
        assert found is not None
        return self._ask("POST", path, urlencode({"csrf": found[1], **fields}))[0]

    def _ask(self, method: str, path: str, body: str | None = None) -> tuple[str, str]:
        headers = {"Cookie": self.cookie, "Origin": f"http://{self.host}"}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection = http.client.HTTPConnection(self.host, timeout=120)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        given = answer.getheader("set-cookie")
        self.cookie = given.partition(";")[0] if given and not self.cookie else self.cookie
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:300]}")
        return answer.getheader("location") or path, text


def opened(process: subprocess.Popen[str]) -> tuple[Visitor, str]:
    """Return a visitor of a studio that was started with a table, and the table's address."""
    assert process.stdout is not None
    found = re.search(r"http\S+", process.stdout.readline())
    assert found is not None
    visitor = Visitor(found[0])
    address = re.search(r'href="(/tables/[^"]+)"', visitor.get("/"))
    assert address is not None
    while "data-wait" in visitor.get(address[1]):
        time.sleep(0.02)
    return visitor, address[1]


def followed(table: str, seconds: str, every: bool) -> dict[str, Any]:
    """Run a study as a person would; return what was waited for."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "assay", "studio", table, "--no-browser"]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen([*command, "--folder", folder], stdout=subprocess.PIPE, text=True) as process,
    ):
        try:
            visitor, address = opened(process)
            shown = time.perf_counter() - began
            found = _watched(visitor, address, visitor.post(f"{address}/learn", time=seconds), began, every)
        finally:
            process.terminate()
    return {"table on the page": shown, **found}


def _watched(visitor: Visitor, address: str, run: str, began: float, every: bool) -> dict[str, Any]:
    """Look at every page until the study is done, and at the model's after it; return how long each answer took, and
    how long until a page that was shown without its answer had it."""
    places = {"run": f"{run}/live", "table": address, "plan": "/plan"}
    if every:
        places |= {"learn": "/learn", "home": "/", "card": "/learn?name=SVC", "compare": "/compare"}
        places |= {name: f"/learn/{name}" for name in ALGORITHMS}
    answers: dict[str, list[float]] = {name: [] for name in places}
    asked: dict[str, float] = {}
    filled: dict[str, float] = {}
    first = done = 0.0
    standing = ""
    while not done:
        for name, path in places.items():
            page, took = _timed(visitor, path)
            answers[name].append(took)
            asked.setdefault(name, time.perf_counter() - took)
            if "data-wait" not in page:
                filled.setdefault(name, time.perf_counter() - asked[name])
            if name == "run":
                standing = page
                if _CERTIFIED.search(page):
                    first = first or time.perf_counter() - began
                if "/model" in page or "alert" in page:
                    done = time.perf_counter() - began
                    break
        time.sleep(0.05)
    for name, path in {"model": f"{run}/model", "try": f"{run}/try", "report": f"{run}/files/report.html"}.items():
        answers[name] = [_timed(visitor, path)[1] for _ in range(3)]
    tried = time.perf_counter()
    path = visitor.post(f"{run}/try")
    while "data-wait" in _timed(visitor, path)[0]:
        time.sleep(0.02)
    filled["a row tried"] = time.perf_counter() - tried
    return {
        "certified row on the page": first or done,
        "model": done,
        "certified": "".join(_BOUND.findall(standing)),
        "slowest answer": max(max(times) for times in answers.values()),
        "answers": {
            name: f"first {times[0]:.3f}, median {statistics.median(times):.3f}, slowest {max(times):.3f}"
            for name, times in answers.items()
        },
        "filled in after": {name: round(took, 2) for name, took in filled.items() if took > 0.2},
    }


def _timed(visitor: Visitor, path: str) -> tuple[str, float]:
    asked = time.perf_counter()
    return visitor.get(path), time.perf_counter() - asked


def large(folder: Path, rows: int) -> Path:
    """Write a table of many rows."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 10))
    label = np.where(X[:, 0] + X[:, 1] ** 2 + rng.normal(size=rows) > 1, "yes", "no")
    columns = {f"x{j}": X[:, j] for j in range(10)} | {"y": label}
    path = folder / "large.parquet"
    parquet.write_table(pa.table(columns), path)
    return path


def main(arguments: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench studio", description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--time", default="30", help="seconds of the study of the large table")
    asked = parser.parse_args(arguments)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, table, seconds, every in (
            ("credit, first run", "credit", "", False),
            ("credit, warm", "credit", "", False),
            ("credit, every page at once", "credit", "", True),
            (f"{asked.rows:,} x 10, {asked.time} s", str(large(Path(folder), asked.rows)), asked.time, True),
        ):
            line = {"table": name, **followed(table, seconds, every)}
            found.append(line)
            print(json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in line.items()}), flush=True)
    save("studio", found)

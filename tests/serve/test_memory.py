"""What requests take of the memory together. The oracles are the system, which says what the process has, and
tracemalloc, which counts what Python and NumPy ask for."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tracemalloc
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("prometheus_client", reason="the extra serve is not installed")
from starlette.testclient import TestClient

import assay
from assay.serve.answering import Answers, Ask
from assay.serve.memory import FREE, Full, Hold, Store
from assay.serve.server import Batches, Settings, service
from assay.serve.watching import Watch

MB = 2**20


def frame(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, town = rng.normal(size=rows), rng.choice(["Ulm", "Bonn", "Trier"], rows)
    return pd.DataFrame({"x": x, "town": town, "y": np.where(x + (town == "Ulm") > 0.3, "yes", "no")})


@pytest.fixture(scope="module")
def fitted():
    study = assay.learn(frame(300), "y", learners=["DecisionTreeClassifier"], trials=1, workers=0)
    return study.model, study.certificate


def rows(count: int) -> bytes:
    return json.dumps(count * [{"x": 0.5, "town": "Ulm"}], separators=(",", ":")).encode()


def lines(count: int) -> bytes:
    return b"x,town\n" + count * b"1,Ulm\n"


def test_the_first_bytes_of_each_are_free_and_all_are_given_back():
    store = Store(100)
    first, second, third = Hold(store), Hold(store), Hold(store)
    first.take(FREE - 1)
    first.take(51)
    second.take(FREE + 50)
    assert store.held == 100
    with pytest.raises(Full):
        second.take(1)
    third.take(FREE)
    first.free()
    second.take(1)
    for one in (first, second, third):
        one.free()
    assert store.held == 0


def test_what_costs_too_much_together_is_worked_on_one_after_the_other():
    sizes = []

    def answer(asked):
        sizes.append(sum(asked))
        return asked

    async def run():
        batches = Batches(answer, lambda one: one, 100)
        many = [asyncio.ensure_future(batches.ask(one)) for one in (60, 40, 1, 101, 99, 100, 100)]
        await asyncio.sleep(0)
        batches.begin()
        found = await asyncio.gather(*many, return_exceptions=True)
        await batches.end()
        return found

    found = asyncio.run(run())
    assert [one for one in found if isinstance(one, int)] == [60, 40, 1, 99, 100, 100]
    assert "send fewer rows" in str(found[3])
    assert sizes == [100, 100, 100, 100]


@pytest.mark.parametrize(
    ("body", "csv", "coverage"),
    [
        (rows(5000), False, None),
        (rows(5000), False, 0.9),
        (lines(5000), True, 0.9),
        (b"x,town\n" + 9000 * b",\n", True, None),
        (b"x,town\r" + 9000 * b"1,a\r", True, None),
        (b"x;town;" + b";".join(b"%x" % i for i in range(3000)) + 50 * (b"\n1;Ulm" + 3000 * b";"), True, None),
        (b"[" + b",".join(60_000 * [b"[]"]) + b"]", False, None),
        (b'[{"x":1,"town":"a","z":[' + b",".join(30_000 * [b'{"":0}']) + b"]}]", False, None),
        (b'[{"x":1,"town":"a","z":[' + b",".join(b'"%03x"' % i for i in range(30_000)) + b"]}]", False, None),
        ('[{"x":1,"town":"\U0001f600'.encode() + 300_000 * b"a" + b'"}]', False, None),
    ],
    ids=["rows", "sets", "csv", "gaps", "returns", "columns", "lists", "dicts", "names", "wide characters"],
)
def test_no_request_takes_more_than_it_is_said_to(fitted, body, csv, coverage):
    answers = Answers(*fitted, Watch(*fitted, 0.01, None))
    ask = Ask("predict", body, csv, coverage)
    answers([Ask("predict", rows(1), False, coverage)])  # what is imported and kept once
    tracemalloc.start()
    try:
        answers([ask])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < answers.cost(ask) < 12 * peak + 16 * MB


@pytest.mark.parametrize("separator", [b"", b"sep=|\n"])
def test_a_header_of_very_many_columns_is_refused_before_they_are_read(fitted, separator):
    answers = Answers(*fitted, Watch(*fitted, 0.01, None))
    mark = b"|" if separator else b","
    for head in (mark.join(b"%x" % i for i in range(20_000)), 20_000 * mark, mark.join([b"x", b"town", b"z" * 2**18])):
        (found,) = answers([Ask("predict", separator + b"x" + mark + b"town" + mark + head + b"\n", csv=True)])
        assert "header has more than" in str(found)


def test_rows_that_would_take_too_much_are_refused_and_fewer_are_answered(fitted):
    with TestClient(service(*fitted, Settings(memory=32 * MB))) as at:
        for body, kind in ((rows(50_000), "application/json"), (lines(50_000), "text/csv")):
            answer = at.post("/predict", content=body, headers={"content-type": kind})
            assert answer.status_code == 413
            assert re.search(r"may need \d+ MB, and the service works on 24 MB", answer.json()["error"])
        answer = at.post("/predict", content=rows(500), headers={"content-type": "application/json"})
        assert len(answer.json()["predictions"]) == 500


def test_answers_that_nobody_reads_are_counted(fitted):
    """Of answers of 170 kB, of which 64 are free beside the body, 1.5 MB hold few; one that is read makes room."""
    app = service(*fitted, Settings(memory=6 * MB))
    head = {"type": "http", "method": "POST", "path": "/predict", "query_string": b"", "http_version": "1.1",
            "scheme": "http", "raw_path": b"/predict", "root_path": "",
            "headers": [(b"host", b"h"), (b"content-type", b"application/json")]}  # fmt: skip
    statuses = []

    async def ask(body: bytes, read: asyncio.Event) -> None:
        async def receive():
            return {"type": "http.request", "body": body}

        async def send(message):
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            else:
                await read.wait()

        await app(dict(head), receive, send)

    async def run() -> None:
        never, now, later = asyncio.Event(), asyncio.Event(), asyncio.Event()
        now.set()
        async with app.app.router.lifespan_context(app.app):
            first = asyncio.ensure_future(ask(rows(2000), later))
            while not statuses:
                await asyncio.sleep(0.01)
            others = [asyncio.ensure_future(ask(rows(2000), never)) for _ in range(20)]
            while len(statuses) < 21:
                await asyncio.sleep(0.01)
            kept = statuses.count(200)
            assert 4 < kept < 12
            assert statuses.count(503) == 21 - kept
            await ask(rows(1), now)
            await ask(rows(2000), now)
            later.set()
            await first
            await ask(rows(2000), now)
            assert statuses[-3:] == [200, 503, 200]
            for one in others:
                one.cancel()

    asyncio.run(run())


def memory_of(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is read from /proc")
def test_many_half_sent_bodies_take_no_more_than_the_limit_and_others_are_served(fitted, tmp_path):
    """Sixty clients send fifteen of sixteen megabytes; together they would be 900."""
    assay.save(fitted[0], tmp_path / "m.assay", fitted[1])
    command = [sys.executable, "-m", "assay", "serve", str(tmp_path / "m.assay"), "--port", "0", "--memory", "128"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    clients: list[socket.socket] = []
    try:
        port = int(re.search(r":(\d+)/", process.stdout.readline())[1])

        def post(body: bytes) -> int:
            address = f"http://127.0.0.1:{port}/predict"
            request = urllib.request.Request(address, body, {"content-type": "application/json"})
            with urllib.request.urlopen(request, timeout=120) as answer:
                return len(json.load(answer)["predictions"])

        assert post(rows(2)) == 2
        before, most = memory_of(process.pid), 0
        head = b"POST /predict HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-type: application/json\r\n" % port
        head += b"content-length: %d\r\n\r\n" % (16 * MB)
        refused, piece = 0, b" " * MB
        for _ in range(60):
            clients.append(socket.create_connection(("127.0.0.1", port), timeout=60))
            try:
                clients[-1].sendall(head)
                for _ in range(15):
                    clients[-1].sendall(piece)
            except ConnectionError:  # refused, and closed while we went on sending
                refused += 1
            most = max(most, memory_of(process.pid))
        assert post(rows(100)) == 100
        most = max(most, memory_of(process.pid))
        told = []
        for one in clients[-3:]:
            try:
                told.append(one.recv(4096))
            except ConnectionError:
                continue
        assert most - before < 300 * MB
        for said in filter(None, told):
            assert said.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after: 1\r\n" in said
            assert b"come again" in said
        assert refused or any(told)
        for one in clients:
            one.close()
        assert post(rows(40_000)) == 40_000
    finally:
        for one in clients:
            one.close()
        process.terminate()
        process.communicate(timeout=120)

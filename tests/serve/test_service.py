"""`assay serve` as a client meets it. The oracle is the model itself, which reads a frame and not a request."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("prometheus_client", reason="the extra serve is not installed")
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

import assay
from assay.claims.document import digest
from assay.serve.answering import Answers, Ask
from assay.serve.server import Batches, Full, Settings, service
from assay.serve.watching import Watch, bound_of

ROWS = 600


def frame(rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x, town = rng.normal(size=rows), rng.choice(["Ulm", "Bonn", "Köln"], rows)
    clear = x + (town == "Ulm") > 0.3
    flipped = rng.random(rows) < 0.05
    income = np.char.add(np.round(100 + 10 * x, 2).astype(str), " EUR")
    return pd.DataFrame({"x": x, "town": town, "income": income, "y": np.where(clear ^ flipped, "yes", "no")})


def saved(table: pd.DataFrame, **options):
    study = assay.learn(table, "y", trials=1, workers=0, **options)
    return study.model, study.certificate


@pytest.fixture(scope="module")
def classifier():
    return saved(frame(), learners=["DecisionTreeClassifier"])


@pytest.fixture(scope="module")
def regressor():
    table = frame()
    return saved(table.assign(y=3 * table["x"] + np.sin(np.arange(ROWS))), learners=["Ridge"])


def client(model, **settings) -> TestClient:
    return TestClient(service(*model, Settings(**settings)), raise_server_exceptions=False)


def records(table: pd.DataFrame) -> list[dict]:
    return table.to_dict("records")


def test_json_and_csv_are_answered_with_what_the_model_says_of_the_frame(classifier):
    model, certificate = classifier
    new = frame(40, 7)
    with client(classifier) as at:
        rows = records(new.drop(columns="y"))
        answer = at.post("/predict?coverage=0.9", json={"rows": rows}).json()
        text = at.post("/predict", content=new.to_csv(index=False), headers={"content-type": "text/csv"}).json()
        alone = [at.post("/predict", json=row).json()["predictions"][0] for row in rows[:5]]
    said = [one["prediction"] for one in answer["predictions"]]
    assert said == model.predict(new).tolist() == [one["prediction"] for one in text["predictions"]]
    assert [one["prediction"] for one in alone] == said[:5]
    shares = [[one["probabilities"][c] for c in model.classes_] for one in answer["predictions"]]
    assert np.allclose(shares, model.predict_proba(new))
    inside = model.predict_set(new, 0.9, float(certificate.delta_total))
    assert [one["set"] for one in answer["predictions"]] == [model.classes_[row].tolist() for row in inside]
    assert answer["certificate"] == digest(certificate)
    assert answer["notes"] == []


def test_columns_that_the_model_does_not_read_cost_nothing(classifier):
    rows = [row | {f"more {i}": i} for i, row in enumerate(records(frame(3000, 7)))]
    with client(classifier) as at:
        answer = at.post("/predict", json={"rows": rows})
    said = [one["prediction"] for one in answer.json()["predictions"]]
    assert said == classifier[0].predict(frame(3000, 7)).tolist()


def test_numbers_get_intervals(regressor):
    model, certificate = regressor
    new = frame(10, 3)
    with client(regressor) as at:
        found = at.post("/predict?coverage=0.8", json={"rows": records(new)}).json()["predictions"]
    low, high = model.predict_interval(new, 0.8, float(certificate.delta_total))
    assert np.allclose([[one["low"], one["high"]] for one in found], np.column_stack([low, high]))
    assert np.allclose([one["prediction"] for one in found], model.predict(new))


def test_gaps_new_levels_and_other_spellings(classifier):
    model, _ = classifier
    rows = [{"x": None, "town": "?", "income": "NA"}, {"x": "0.5", "town": "Trier", "income": 101.5}]
    with client(classifier) as at:
        answer = at.post("/predict", json={"rows": rows}).json()
    same = pd.DataFrame({"x": [None, 0.5], "town": [None, "Trier"], "income": [None, "101.5 EUR"]})
    assert [one["prediction"] for one in answer["predictions"]] == model.predict(same).tolist()
    assert answer["notes"] == ["column 'town' has values unknown to the model: Trier"]


@pytest.mark.parametrize(
    ("body", "kind", "status", "said"),
    [
        (b"{", "application/json", 400, "not JSON"),
        (b"[" * 100_000, "application/json", 400, "not JSON"),
        (b"[]", "application/json", 400, "send a row"),
        (b'{"x": 1, "town": "Ulm"}', "application/json", 400, "lacks the column 'income'"),
        (b'{"rows": [1]}', "application/json", 400, "row 0"),
        (b'{"x": "far", "town": "Ulm", "income": "1 EUR"}', "application/json", 400, "column 'x'"),
        (b'{"x": [1], "town": "Ulm", "income": "1 EUR"}', "application/json", 400, "column 'x'"),
        (b'{"x": 1e999, "town": "Ulm", "income": "1 EUR"}', "application/json", 400, "column 'x'"),
        (b'{"x": 1' + b"0" * 400 + b', "town": "Ulm", "income": "1 EUR"}', "application/json", 400, "column 'x'"),
        (b"x,town\n1,Ulm\n", "text/csv", 400, "lacks the column"),
        (b"x=1", "application/x-www-form-urlencoded", 415, "application/json"),
        (b"x=1", "text/plain", 415, "application/json"),
        (b" " * 3000, "application/json", 413, "too large"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(classifier, body, kind, status, said):
    with client(classifier, most_bytes=200_000 if status != 413 else 2000) as at:
        answer = at.post("/predict", content=body, headers={"content-type": kind})
        assert answer.status_code == status
        assert said in answer.json()["error"]
        assert at.get("/health").json() == {"status": "ok"}


def test_browsers_that_read_the_description_get_their_icon(classifier):
    with client(classifier, token="a secret") as at:
        answer = at.get("/favicon.ico")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")
        assert '<link rel="icon"' in at.get("/docs", headers={"authorization": "Bearer a secret"}).text


def test_what_is_asked_wrongly_is_refused(classifier, regressor):
    row = records(frame(1))[0]
    with client(classifier) as at:
        assert at.post("/predict?coverage=2", json=row).status_code == 400
        assert at.post("/predict?coverage=x", json=row).status_code == 400
        assert at.get("/predict").status_code == 405
        assert at.get("/nothing").status_code == 404
        assert at.post("/outcome", json={"outcomes": [{"id": "x", "outcome": "yes"}]}).status_code == 400
        assert at.post("/outcome", json=row | {"y": None}).status_code == 400
        assert at.post("/outcome", json={"outcomes": "yes"}).status_code == 400


def test_a_row_that_the_learner_refuses_is_refused_alone():
    """A network that saw no gap in fit refuses one; requests that are answered together with it are answered."""
    table = frame()[["x", "town", "y"]]
    model, certificate = saved(table, learners=["BayesianNetworkClassifier"])
    ask = [
        Ask("predict", json.dumps({"x": x, "town": town}).encode())
        for x, town in ((0.5, "Ulm"), (None, "Ulm"), (-0.5, "Bonn"))
    ]
    first, refused, last = Answers(model, certificate, Watch(model, certificate, 0.01, None))(ask)
    assert isinstance(refused, ValueError)
    wanted = model.predict({"x": [0.5, -0.5], "town": ["Ulm", "Bonn"]}).tolist()
    assert [one["predictions"][0]["prediction"] for one in (first, last)] == wanted


def test_an_outcome_that_is_told_twice_at_once_is_named(classifier):
    with client(classifier) as at:
        key = at.post("/predict", json=records(frame(1))[0]).json()["predictions"][0]["id"]
        answer = at.post("/outcome", json={"outcomes": 2 * [{"id": key, "outcome": "yes"}]})
        assert (answer.status_code, key in answer.json()["error"]) == (400, True)


def test_outcomes_by_id_and_by_row_count_alike_and_each_prediction_once(classifier):
    model, _ = classifier
    new = frame(50, 11)
    with client(classifier) as at:
        said = at.post("/predict", json={"rows": records(new.drop(columns="y"))}).json()["predictions"]
        told = [{"id": one["id"], "outcome": y} for one, y in zip(said, new["y"], strict=True)]
        by_id = at.post("/outcome", json={"outcomes": told}).json()["promise"]
        again = at.post("/outcome", json={"outcomes": told[:1]})
        assert again.status_code == 400
        assert "no open prediction" in again.json()["error"]
    with client(classifier) as at:
        by_row = at.post("/outcome", json={"rows": records(new)}).json()["promise"]
    with client(classifier) as at:
        kind = {"content-type": "text/csv"}
        by_csv = at.post("/outcome", content=new.to_csv(index=False), headers=kind).json()["promise"]
    assert by_id == by_row == by_csv
    assert by_id["outcomes"] == 50
    assert by_id["mean"] == pytest.approx(np.mean(model.predict(new) != new["y"]))
    assert by_id["low"] <= by_id["mean"] <= by_id["high"]
    assert not by_id["broken"]


def test_a_broken_promise_is_told_and_kept_over_a_restart(classifier, tmp_path):
    file = tmp_path / "state.json"
    wrong = frame(200, 5)
    wrong["y"] = np.where(wrong["y"] == "yes", "no", "yes")
    with client(classifier, state=file) as at:
        at.post("/outcome", json={"rows": records(frame(100, 6))})
        assert not at.get("/monitor").json()["promise"]["broken"]
        found = at.post("/outcome", json={"rows": records(wrong)}).json()["promise"]
        assert found["broken"]
        assert 100 < found["broken_after"] < 150
    with client(classifier, state=file) as at:
        assert at.get("/monitor").json()["promise"] == found
    with pytest.raises(ValueError, match="another alarm"):
        service(*classifier, Settings(alarm=0.05, state=file))


def test_the_state_of_another_model_is_refused(classifier, regressor, tmp_path):
    with client(classifier, state=tmp_path / "s.json") as at:
        at.post("/outcome", json={"rows": records(frame(3))})
    with pytest.raises(ValueError, match="about another model"):
        service(*regressor, Settings(state=tmp_path / "s.json"))


def test_the_bound_is_that_of_the_certificate_for_classes_numbers_and_folds(classifier, regressor):
    assert bound_of(*classifier).value == classifier[1].tightest.value
    bound = bound_of(*regressor)
    assert bound.value < bound.most
    losses = bound.losses(np.array([0.0, 0.0]), np.array([bound.most / 2, 1e9]), False)
    assert losses.tolist() == [0.5, 1.0]
    folds = saved(frame(300), learners=["DecisionTreeClassifier"], certify="folds")
    mean = next(one.value for one in folds[1].claims if one.name.startswith("cross-validation.mean"))
    assert mean <= bound_of(*folds).value <= 2 * mean  # two of three models must err for their vote to
    assert bound_of(classifier[0], None) == "the model file holds no certificate."


def test_kept_promises_are_said_to_be_broken_no_more_often_than_told():
    """Known truth: rows of one source, a model whose certified bound holds; 10 %, looked at after every outcome."""
    model, certificate = saved(frame(300, 1), learners=["DecisionTreeClassifier"])
    many = frame(20_000, 2)
    wrong = (model.predict(many) != many["y"]).to_numpy()
    bound = bound_of(model, certificate)
    assert wrong.mean() < bound.value  # the certificate is right, so every alarm is false
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(60):
        watch = Watch(model, certificate, 0.1, None)
        part = rng.choice(wrong, 200)
        watch.outcomes(part, np.zeros(200, dtype=bool))
        alarms += watch.promise.broken
    assert alarms <= 13  # more than 13 of 60 has a chance below 0.5 % at 10 %


def test_rows_that_look_otherwise_are_counted_by_column(classifier):
    moved = frame(400, 8).assign(x=5.0)
    with client(classifier) as at:
        at.post("/predict", json={"rows": records(frame(300, 9))})
        assert at.get("/monitor").json()["drift"]["moved"] == {}
        at.post("/predict", json={"rows": records(moved)})
        found = at.get("/monitor").json()["drift"]
    assert list(found["moved"]) == ["x"]
    assert (found["rows"], found["windows"]) == (700, 2)


def test_windows_of_the_same_source_are_rarely_said_to_differ(classifier):
    """Over ten windows of one service the chance is 1 %; of 12 services more than 2 would have one below 0.1 %."""
    model, certificate = classifier
    count = 0
    for seed in range(12):
        watch = Watch(model, certificate, 0.01, None)
        for part in range(10):
            watch.windows.see(model.read(frame(300, 1000 + 10 * seed + part)))
        count += bool(watch.windows.moved)
    assert count <= 2


def test_metrics_are_what_prometheus_reads(classifier):
    with client(classifier) as at:
        at.post("/predict", json={"rows": records(frame(30, 2))})
        at.post("/predict", content=b"{", headers={"content-type": "application/json"})
        at.post("/outcome", json={"rows": records(frame(20, 2))})
        text = at.get("/metrics").text
        at.get("/../../etc/passwd")
    found = {(one.name, *sorted(one.labels.values())): one.value
             for family in text_string_to_metric_families(text) for one in family.samples}  # fmt: skip
    assert found["assay_requests_total", "/predict", "200"] == 1
    assert found["assay_requests_total", "/predict", "400"] == 1
    assert found["assay_rows",] == 30
    assert found["assay_outcomes",] == 20
    assert found["assay_promise_broken",] == 0
    assert found["assay_certified_loss",] == classifier[1].tightest.value


def test_the_description_names_columns_and_addresses(classifier):
    with client(classifier) as at:
        document = at.get("/openapi.json").json()
        page = at.get("/docs").text
        about = at.get("/model").json()
        for path, methods in document["paths"].items():
            assert ("get" in methods) == (at.get(path).status_code == 200)
    row = document["components"]["schemas"]["Row"]
    assert row["required"] == [column.name for column in classifier[0].columns]
    assert row["properties"]["town"]["examples"] == ["Bonn", "Köln", "Ulm"]
    assert set(re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(document))) <= set(
        document["components"]["schemas"]
    )
    assert "POST /predict" in page
    assert "http" not in page.replace("http-equiv", "")  # it loads nothing
    assert about["certificate"] == digest(classifier[1])
    assert any("error rate" in one or "errs" in one for one in about["about new data"])


def test_only_who_has_the_token_is_answered(classifier):
    row = records(frame(1))[0]
    with client(classifier, token="a long enough secret") as at:
        assert at.get("/health").status_code == 200
        for path in ("/metrics", "/model", "/docs", "/monitor"):
            assert at.get(path).status_code == 401
        assert at.post("/predict", json=row, headers={"authorization": "Bearer wrong"}).status_code == 401
        assert (
            at.post("/predict", json=row, headers={"authorization": "Bearer a long enough secret"}).status_code == 200
        )


def test_a_foreign_name_for_this_machine_reaches_nothing(classifier):
    with client(classifier, authorities=frozenset({"127.0.0.1:8000"})) as at:
        assert at.get("/health").status_code == 421
        assert at.get("/health", headers={"host": "127.0.0.1:8000"}).status_code == 200


def test_what_is_answered_together_is_what_is_answered_alone(classifier):
    model, certificate = classifier
    rows = records(frame(8, 4).drop(columns="y"))
    rows[3] |= {"x": "far"}  # refused alone, and a gap among many if rows were judged together
    rows[5] |= {"town": "Trier"}
    asked = [Ask("predict", json.dumps(row).encode()) for row in rows]
    apart = [Answers(model, certificate, Watch(model, certificate, 0.01, None))([one])[0] for one in asked]
    for order in (asked, asked[:3], [asked[0], asked[5]]):
        together = Answers(model, certificate, Watch(model, certificate, 0.01, None))(order)
        for one, answer in zip(order, together, strict=True):
            expected = apart[asked.index(one)]
            if isinstance(expected, Exception):
                assert str(answer) == str(expected)
            else:
                assert answer["notes"] == expected["notes"]
                assert [p | {"id": ""} for p in answer["predictions"]] == [
                    p | {"id": ""} for p in expected["predictions"]
                ]


def test_requests_are_gathered_while_others_are_answered():
    sizes = []

    def slow(asked):
        sizes.append(len(asked))
        return [ValueError("no") if one == 3 else one * 10 for one in asked]

    async def run():
        batches = Batches(slow)
        many = [asyncio.ensure_future(batches.ask(one)) for one in range(200)]
        await asyncio.sleep(0)
        batches.begin()
        found = await asyncio.gather(*many, return_exceptions=True)
        await batches.end()
        return found

    found = asyncio.run(run())
    assert [one for one in found if not isinstance(one, Exception)] == [10 * i for i in range(200) if i != 3]
    assert sizes == [64, 64, 64, 8]


def test_who_comes_when_too_many_wait_is_told_so():
    async def run():
        batches = Batches(lambda asked: asked)
        many = [asyncio.ensure_future(batches.ask(one)) for one in range(1100)]
        await asyncio.sleep(0)
        batches.begin()
        found = await asyncio.gather(*many, return_exceptions=True)
        await batches.end()
        return found

    assert sum(isinstance(one, Full) for one in asyncio.run(run())) == 1100 - 1024


def test_the_command_serves_and_ends_by_a_signal(classifier, tmp_path):
    assay.save(classifier[0], tmp_path / "m.assay", classifier[1])
    command = [sys.executable, "-m", "assay", "serve", str(tmp_path / "m.assay"), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line)[0]
        body = json.dumps(records(frame(2).drop(columns="y"))).encode()
        request = urllib.request.Request(f"{address}predict", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            assert len(json.load(answer)["predictions"]) == 2
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert process.returncode == -signal.SIGTERM


@pytest.mark.parametrize(
    ("options", "token", "said"),
    [
        (["--host", "0.0.0.0"], "", "needs a token"),
        (["--host", "0.0.0.0"], "short", "at least 16 characters"),
        (["--alarm", "2"], "", "alarm must lie"),
    ],
)
def test_the_command_refuses_what_is_unsafe(classifier, options, token, said, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from assay.cli.app import app

    monkeypatch.setenv("ASSAY_SERVE_TOKEN", token)
    path = Path(tmp_path / "m.assay")
    assay.save(classifier[0], path, classifier[1])
    found = CliRunner().invoke(app, ["serve", str(path), "--port", "0", *options])
    assert found.exit_code == 2
    assert said in found.output

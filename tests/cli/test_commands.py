"""The command line, as a user types it."""

import csv
import io
import json
import math
import os
import random
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from rich.console import Console
from typer.testing import CliRunner

import assay
from assay import datasets
from assay.cli.app import app
from assay.cli.learning import Options, _with_time_left, leaderboard
from assay.learning.metrics import Metric
from assay.learning.search import Candidate
from tests.test_persist import forged, members

ROWS = datasets.load("credit").n_rows


@pytest.fixture(autouse=True, scope="module")
def wide_terminal():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "400")
        yield


def run(*words, code: int = 0):
    if words[0] == "learn":  # in this process, and few settings
        words = (*words, "--workers", "0", "--trials", "2")
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, (result.output, result.exception)
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def credit(folder):
    path = folder / "credit.csv"
    pyarrow.csv.write_csv(datasets.load("credit").to_arrow().cast(_plain_types()), path)
    return path


def _plain_types():
    table = datasets.load("credit").to_arrow()
    return pa.schema([(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in table.schema])


@pytest.fixture(scope="module")
def learnt(folder, credit):
    """Run the main job once; return what it printed, with the files beside it."""
    options = ["--target", "default", "--learners", "LogisticRegression,Perceptron"]
    return run("learn", credit, *options, "--out", folder / "m.assay", "--report", folder / "r.html").output


@pytest.fixture
def changed(credit, tmp_path):
    """Write the table with its lines changed by a function."""

    def write(change):
        lines = credit.read_text().splitlines()
        path = tmp_path / "changed.csv"
        path.write_text("\n".join(change(lines)) + "\n")
        return path

    return write


def _flipped(line: str) -> str:
    other = {'"no"': '"yes"', '"yes"': '"no"'}
    start, label = line.rsplit(",", 1)
    return f"{start},{other[label]}"


def test_learn_shows_a_leaderboard_and_says_why(learnt):
    assert re.search(r"Held-out\s+Certified\s+Learner\s+CV error\s+error\s+at most\s+Seconds", learnt)
    assert {"LogisticRegression", "Perceptron", "Baseline"} <= set(learnt.split())
    assert re.search(r"is chosen: of 2 learners tried on the 750 training rows", learnt)
    assert "95 % confidence" in learnt
    assert "Held-out values are shares of rows predicted wrongly" in learnt
    assert "always predicting no" in learnt


def test_the_leaderboard_fits_a_terminal(credit, tmp_path, monkeypatch):
    """On 80 columns headings wrap and numbers stay whole."""
    monkeypatch.setenv("COLUMNS", "80")
    names = "QuadraticDiscriminantAnalysis,LogisticRegression"
    options = ("--learners", names, "--out", tmp_path / "m.assay", "--report", tmp_path / "r.html")
    printed = run("learn", credit, "--target", "default", *options).output
    assert "…" not in printed
    assert re.search(r"^LogisticRegression( +\d+\.\d\d %){1,3} +\d+\.\d\d *$", printed, re.MULTILINE)


def test_long_names_of_a_leaderboard_leave_room_for_its_numbers():
    name = "Stack of LinearDiscriminantAnalysis, LogisticRegression, KNeighborsClassifier"
    rows = [
        Candidate("SVC", status="chosen", cv=0.218, holdout_metric=0.216, bound=0.2663, seconds=0.31),
        Candidate(name, cv=0.2227, seconds=0.05),
    ]
    found = SimpleNamespace(candidates=rows, chosen=rows[0], metric=Metric("error"), task="classify")
    console = Console(width=80, file=io.StringIO())
    console.print(leaderboard(found))
    lines = console.file.getvalue().splitlines()
    assert any(line.split() == ["SVC", "21.80", "%", "21.60", "%", "26.63", "%", "0.31"] for line in lines)
    assert any(line.split()[-3:] == ["22.27", "%", "0.05"] for line in lines)


def test_the_certified_bound_is_exact_for_its_share(learnt, folder):
    """Clopper-Pearson: at the bound, so few errors have the probability that the ledger gives it."""
    from scipy.stats import binom

    claim = assay.load(folder / "m.assay").certificate.find("holdout.binomial")
    errors, rows = claim.params["errors"], claim.params["rows"]
    assert 0.7 * 0.05 < float(claim.delta) < 0.05
    assert binom.cdf(errors, rows, claim.value) == pytest.approx(float(claim.delta), rel=1e-6)
    assert f"at most {math.ceil(10_000 * claim.value) / 100:.2f} %" in learnt  # rounded up, so that it is true


def test_the_encoder_never_sees_the_hold_out_rows(learnt, folder):
    """Brute force: mean and spread of a numeric column over the training rows of the stored split."""
    model, certificate = assay.load(folder / "m.assay")
    train = certificate.split["train"]
    ages = datasets.load("credit").column("age").data[train]
    mean, scale = next(part.scaling for part in model.encoding.parts if part.type.name == "age")
    assert mean == pytest.approx(ages.mean(), rel=1e-12)
    assert scale == pytest.approx(ages.std(), rel=1e-12)
    assert len(np.intersect1d(train, certificate.split["holdout"])) == 0
    assert len(train) + len(certificate.split["holdout"]) == ROWS


def test_verify_passes_on_the_same_table(learnt, folder, credit):
    output = run("verify", folder / "m.assay", credit).output
    assert "The certificate holds" in output
    assert f"The claims are about all {ROWS} rows of this table and its column 'default'." in output
    assert "Its encoding is what the training rows give" in output


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda lines: [*lines[:4], "99" + lines[4][lines[4].index(",") :], *lines[5:]],
            "rows the certificate is about: their fingerprint differs",
        ),
        (
            lambda lines: [*lines[:4], _flipped(lines[4]), *lines[5:]],
            "rows the certificate is about: their fingerprint differs",
        ),
        (lambda lines: lines[:-1], f"The table has {ROWS - 1} rows; the certificate is about {ROWS}"),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "about: their fingerprint differs"),
        (lambda lines: [line.split(",", 1)[1] for line in lines], "The column 'age' is not there"),
        (
            lambda lines: [*lines[:4], "old" + lines[4][lines[4].index(",") :], *lines[5:]],
            "rows the certificate is about: their fingerprint differs",  # a word is a gap there
        ),
    ],
    ids=["cell", "label", "row", "order", "column", "text"],
)
def test_verify_fails_on_a_changed_table_and_says_what_differs(change, says, learnt, folder, changed):
    output = run("verify", folder / "m.assay", changed(change), code=1).output
    assert "FAILED" in output
    assert says in " ".join(output.split())


def test_verify_fails_on_a_model_with_other_coefficients(learnt, folder, credit, tmp_path):
    model, certificate = assay.load(folder / "m.assay")
    model.learner.coef_ = model.learner.coef_ * 1.01
    assay.save(model, tmp_path / "forged.assay", certificate)
    assert "another fingerprint" in run("verify", tmp_path / "forged.assay", credit, code=1).output


def test_verify_fails_on_an_encoding_fitted_to_all_rows(learnt, folder, credit, tmp_path):
    model, certificate = assay.load(folder / "m.assay")
    table = datasets.load("credit").require_same_columns(model.columns)[0]
    model.encoding = assay.data.Encoding.fit(table)
    assay.save(model, tmp_path / "forged.assay", certificate)
    output = run("verify", tmp_path / "forged.assay", credit, code=1).output
    assert "is not what its training rows give" in " ".join(output.split())


def test_predict_agrees_with_the_library(learnt, folder, credit, tmp_path):
    model = assay.load(folder / "m.assay").model
    wanted = model.predict(datasets.load("credit")).tolist()
    printed = run("predict", folder / "m.assay", credit).output.splitlines()
    assert printed[0] == "prediction"
    assert printed[1:] == wanted
    run("predict", folder / "m.assay", credit, "--out", tmp_path / "p.parquet")
    assert pa.parquet.read_table(tmp_path / "p.parquet")["prediction"].to_pylist() == wanted
    run("predict", folder / "m.assay", credit, "--out", tmp_path / "p.csv")
    with open(tmp_path / "p.csv", newline="") as file:
        assert [row["prediction"] for row in csv.DictReader(file)] == wanted


def test_predict_streams_the_same_in_small_parts(learnt, folder, credit, monkeypatch):
    whole = run("predict", folder / "m.assay", credit).output
    monkeypatch.setattr("assay.cli.predicting.rows_at_once", lambda columns: 7)
    assert run("predict", folder / "m.assay", credit).output == whole


def test_predict_tells_of_unknown_values_and_needs_no_target(learnt, folder, changed):
    rows = changed(lambda lines: [line.rsplit(",", 1)[0].replace("manager", "astronaut") for line in lines])
    result = run("predict", folder / "m.assay", rows)
    assert "unknown to the model: astronaut" in result.stderr
    assert len(result.stdout.splitlines()) == ROWS + 1


def test_the_report_is_one_file_that_escapes_what_comes_from_the_data(tmp_path):
    bad = "<script>alert(1)</script>"
    rng = np.random.default_rng(0)
    values = rng.normal(size=200)
    labels = np.where(values + 0.3 * rng.normal(size=200) > 0, bad, "b & c")
    path = tmp_path / "t.csv"
    pa.csv.write_csv(pa.table({f"x{bad}": values, "z": rng.normal(size=200), "<b>y": labels}), path)
    out = ("--out", tmp_path / "m.assay", "--report", tmp_path / "r.html")
    run("learn", path, "--target", "<b>y", "--learners", "LogisticRegression", *out)
    page = (tmp_path / "r.html").read_text()
    assert bad not in page
    assert "<b>y" not in page
    assert "&lt;b&gt;y" in page
    assert page.count("<figure>") >= 3
    assert not re.search(r"(src|href)=['\"](?!data:)", page)
    for part in ("Learners compared", "The method", "What is certified", "What no checker can detect"):
        assert part in page


def test_the_report_does_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    run("learn", "iris", "--learners", "GaussianNB", "--out", tmp_path / "m.assay", "--report", tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text().count("<figure") >= 2


def test_regression_has_a_bound_without_the_user_knowing_what_a_clip_is(tmp_path):
    files = ["--out", tmp_path / "m.assay", "--report", tmp_path / "r.html"]
    files += ["--learners", "LinearRegression,Ridge"]
    assert re.search(r"errors clipped at \d", run("learn", "diabetes", *files).output)
    assert "errors clipped at 300" in run("learn", "diabetes", "--clip", "300", *files).output
    certificate = assay.load(tmp_path / "m.assay").certificate
    assert certificate.delta_total == "0.05"
    assert certificate.find("holdout.betting").params["clip"] == 300
    assert "The certificate holds" in run("verify", tmp_path / "m.assay", "diabetes").output


def test_scripts_read_json_and_a_log(tmp_path):
    files = ["--out", tmp_path / "m.assay", "--report", tmp_path / "r.html", "--log", tmp_path / "log"]
    done = run("learn", "iris", "--learners", "GaussianNB", "--json", *files)
    found = json.loads(done.stdout)
    assert found["chosen"] == "GaussianNB"
    assert found["leaderboard"][-1]["status"] == "baseline"
    assert "finished GaussianNB" in (tmp_path / "log").read_text()
    quiet = run("learn", "iris", "--learners", "GaussianNB", "--quiet", *files)
    assert quiet.output == ""


def test_json_tells_every_claim_and_a_second_run_by_folds_resumes(tmp_path):
    rng = np.random.default_rng(20_26)
    lines = [f"{x:.6f},{'a' if x + 0.2 * e > 0 else 'b'}" for x, e in rng.normal(size=(150, 2))]
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *lines]))
    words = ["learn", tmp_path / "t.csv", "--target", "y", "--learners", "GaussianNB", "--certify", "folds"]
    words += ["--json", "--quiet", "--resume"]
    files = ["--out", tmp_path / "m.assay", "--report", tmp_path / "r.html", "--log", tmp_path / "log.txt"]
    first = json.loads(run(*words, *files).stdout)
    scores = (tmp_path / "m.assay.scores").read_text().splitlines()
    assert first["certify"] == "folds"
    assert [one["code"] for one in first["claims"]] == ["D01/1", "P22/1", "P62/1"]
    assert all(one["says"] for one in first["claims"])
    second = json.loads(run(*words, *files).stdout)
    again = (tmp_path / "m.assay.scores").read_text().splitlines()
    assert again == scores, "nothing is judged again"
    assert second["bound"] == first["bound"]
    assert "Fold 3 of 3" in (tmp_path / "log.txt").read_text()


def test_rows_appear_as_learners_finish_without_a_terminal(tmp_path):
    files = ["--out", tmp_path / "m.assay", "--report", tmp_path / "r.html"]
    done = run("learn", "iris", "--learners", "GaussianNB", *files)
    assert re.search(r"^GaussianNB: 0\.\d+ in cross-validation", done.stderr, re.MULTILINE)


def test_the_version_is_printed():
    assert assay.__version__ in run("--version").output


def test_an_error_of_assay_itself_is_no_failed_verification(tmp_path, monkeypatch):
    def broken(*words, **options):
        raise RuntimeError("lost")

    monkeypatch.setattr("assay.learning.learn", broken)
    files = ["--out", tmp_path / "m.assay", "--report", tmp_path / "r.html"]
    assert "please report it" in run("learn", "iris", *files, code=4).stderr


def test_a_learner_that_cannot_take_part_is_listed_with_its_reason(tmp_path, monkeypatch):
    from assay.linear_model import Perceptron

    def refuse(self, X, y):
        raise ValueError("these rows are not for me")

    monkeypatch.setattr(Perceptron, "fit", refuse)
    files = ["--out", tmp_path / "m.assay", "--report", tmp_path / "r.html"]
    output = run("learn", "iris", "--learners", "Perceptron,LogisticRegression", *files).output
    assert re.search(r"Perceptron\s+left out", output)
    assert "these rows are not for me" in output
    assert assay.load(tmp_path / "m.assay").certificate.find("holdout.binomial").value < 0.3


def test_the_same_seed_gives_the_same_model_and_another_seed_another_split(tmp_path):
    def split(seed):
        path = tmp_path / "m.assay"
        run(
            "learn",
            "iris",
            "--seed",
            seed,
            "--learners",
            "LogisticRegression",
            "--out",
            path,
            "--report",
            tmp_path / "r.html",
        )
        model, certificate = assay.load(path)
        return model.learner.coef_.tobytes(), certificate.split["holdout"].tolist()

    assert split(3) == split(3)
    assert split(3)[1] != split(4)[1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["learn", "nowhere.csv", "--target", "y"], "no file nowhere.csv"),
        (["learn", "{csv}"], "Pass --target with one of"),
        (["learn", "{csv}", "--target", "defualt"], "did you mean 'default'"),
        (["learn", "{csv}", "--target", "Default"], "did you mean 'default'"),
        (["learn", "{csv}", "--target", "default", "--metric", "rmse"], "must be one of error"),
        (["learn", "{csv}", "--target", "default", "--exclude", "Nobody"], "not a learner for classification"),
        (["learn", "{csv}", "--target", "default", "--confidence", "1"], "between 0 and 1"),
        (["learn", "{csv}", "--target", "default", "--confidence", "much"], "between 0 and 1"),
        (["learn", "{csv}", "--target", "default", "--confidence", "nan"], "between 0 and 1"),
        (["learn", "{csv}", "--target", "default", "--holdout", "0"], "between 0 and 1"),
        (["learn", "{csv}", "--target", "default", "--holdout", "0.9999"], "too few rows"),
        (
            ["learn", "{csv}", "--target", "default", "--learners", "Ridge"],
            "not a learner for classification",
        ),
        (["learn", "{csv}", "--target", "default", "--task", "regress"], "holds text"),
        (["learn", "{csv}", "--target", "default", "--task", "guess"], "classify or regress"),
        (["learn", "{csv}", "--target", "default", "--clip", "3"], "--clip is for regression"),
        (["learn", "{csv}", "--target", "default", "--ordered", "history"], "from lowest to highest"),
        (["learn", "{csv}", "--target", "default", "--out", "no/folder/m.assay"], "does not exist"),
        (["verify", "{csv}", "{csv}"], "not a sound model file"),
        (["verify", "nothing.assay", "{csv}"], "no file nothing.assay"),
        (["predict", "{model}", "{csv}", "--out", "p.xlsx"], "must end in .csv or .parquet"),
        (["predict", "{model}", "{model}"], "assay:"),
        (["fit"], "No such command"),
    ],
)
def test_bad_usage_and_bad_data_give_a_message_and_exit_code_2(words, says, learnt, folder, credit):
    words = [word.format(csv=credit, model=folder / "m.assay") for word in words]
    result = run(*words, code=2)
    assert says in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("a,y\n", "no rows"),
        ("a,y\n1,x\n2,x\n3,x\n4,x\n5,x\n", "one class"),
        ("y\nx\nz\n", "no column to learn from"),
        ("a,a,y\n1,2,x\n", "two columns are called 'a'"),
        ("a,y\n1,x\n2\n", "cannot be read as CSV"),
        ("a,y\ninf,x\n2,z\n3,x\n", "infinite value in row 0"),
    ],
    ids=["empty", "header", "one-class", "only-target", "twice", "ragged", "infinity"],
)
def test_bad_tables_are_explained(text, says, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    seed = next(s for s in range(99) if 40 in np.random.default_rng(s).permutation(41)[:10])
    result = run(
        "learn",
        path,
        "--target",
        "y",
        "--seed",
        seed,
        "--out",
        tmp_path / "m",
        "--report",
        tmp_path / "r",
        code=2,
    )
    assert says in result.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["bad.csv"]


def test_methods_lists_every_learner_as_table_and_json():
    listed = run("methods").output
    cards = json.loads(run("methods", "--json").output)
    assert [card["learner"] for card in cards] == [kind.__name__ for kind in assay.learners()]
    for card in cards:
        assert card["learner"] in listed
        assert card["strategy"]
        assert card["algorithm"]
        assert card["task"] in ("classify", "regress", "density", "cluster", "transform")
        assert {*card["input"]} <= {"numbers", "nominal", "missing", "counts"}
    assert "nominal" in next(card["input"] for card in cards if card["learner"] == "RandomForestClassifier")


def test_warmup_studies_small_tables_and_leaves_no_trace(monkeypatch):
    """Two and three classes and numbers, with and without nominal columns; the ledger knows nothing of them."""
    from assay import warmup

    studies, ledgers, learn = [], [], assay.learn

    def few(table, target):
        ledgers.append(os.environ["ASSAY_LOOKS"])
        studies.append(learn(table, target, trials=1, workers=0))

    before = os.environ.get("ASSAY_LOOKS")
    monkeypatch.setattr(warmup, "learn", few)
    assert "Compiled the loops of assay learn." in run("warmup").stderr
    assert {(one.task, len(getattr(one.model, "classes_", ()))) for one in studies} == {
        ("classify", 2), ("classify", 3), ("regress", 0)
    }  # fmt: skip
    kinds = [{column.type.kind for column in one.features.columns.values()} for one in studies]
    assert sorted(map(sorted, kinds)) == [["nominal", "numeric"]] * 3 + [["numeric"]] * 3
    assert set(ledgers) == {"off"}
    assert os.environ.get("ASSAY_LOOKS") == before


def test_warmup_of_every_learner(monkeypatch):
    from assay import warmup
    from assay.cli import listing

    done = []
    monkeypatch.setattr(warmup, "studies", lambda: [("studies", lambda: done.append("studies"))])
    monkeypatch.setattr(warmup, "_exercise", done.append)
    listing.warmup(True)
    assert done == ["studies", *assay.learners()]


def test_help_loads_nothing_that_is_slow_to_load():
    command = [sys.executable, "-X", "importtime", "-m", "assay", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "learn" in done.stdout
    loaded = {line.split("|")[-1].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "typer" in loaded
    assert not loaded & {"numba", "sklearn", "scipy", "pandas", "pyarrow", "matplotlib"}


def test_a_reader_that_leaves_early_is_no_error(learnt, folder, credit):
    line = f"{sys.executable} -m assay predict {folder / 'm.assay'} {credit} | head -n 2"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "prediction"
    assert "Traceback" not in done.stderr


def test_mutated_models_never_end_in_a_traceback(learnt, folder, credit, tmp_path):
    """Files whose hashes are right and whose content is not, as `verify` and `predict` meet them."""
    rng = random.Random(0)
    parts = members((folder / "m.assay").read_bytes())
    names = sorted(set(parts) - {"manifest.json"})
    path = tmp_path / "forged.assay"
    codes = []
    for i in range(120):
        name = rng.choice(names)
        data = bytearray(parts[name])
        at = rng.randrange(len(data))
        data[at : at + rng.choice((1, 1, 8))] = bytes(rng.choices(b'0123456789"{}[],:-eNx', k=1))
        path.write_bytes(forged({**parts, name: bytes(data)}))
        words = ["verify", str(path), str(credit)] if i % 2 else ["predict", str(path), str(credit)]
        result = CliRunner().invoke(app, words)
        assert result.exit_code in (0, 1, 2)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        codes.append(result.exit_code)
    assert {1, 2} <= set(codes)


def test_learners_that_would_take_long_are_left_out_unless_named(tmp_path, monkeypatch):
    from dataclasses import replace

    from assay.svm import SVC

    monkeypatch.setattr(SVC, "card", replace(SVC.card, most_rows=50))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    path = tmp_path / "t.csv"
    pa.csv.write_csv(pa.table({"a": X[:, 0], "b": X[:, 1], "y": np.where(X.sum(axis=1) > 0, "p", "n")}), path)
    table = assay.data.read(path)
    found = assay.learn(table, "y", workers=0, trials=2)
    note = next(one.note for one in found.candidates if one.name == "SVC")
    assert "--learners" in note.render(place="terminal")
    assert "90 training rows" in note
    with pytest.raises(ValueError, match="90 training rows"):
        assay.learn(table, "y", learners=["SVC"], workers=0, trials=2)
    named = assay.learn(table, "y", learners=["SVC"], force=True, workers=0, trials=2)
    assert named.chosen.name == "SVC"


@pytest.mark.parametrize(
    ("asked", "reading", "left"), [(None, 5.0, None), (30.0, 4.0, 24.5), (2.0, 0.0, 1.0), (10.0, 60.0, 5.0)]
)
def test_reading_and_the_report_are_part_of_the_time(asked, reading, left):
    assert _with_time_left(Options(time=asked), reading).time == left

"""Words of files and tables are shown and do nothing: no markup, terminal codes, lines of their own or scripts."""

import csv
import io
import json
import re
import shutil
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import assay
from assay.cli.app import app
from assay.cli.predicting import Asked, cells, guarded, predict, unguarded
from assay.text import json_text, shown
from tests.certificate.forged_files import Parts, certificate_forgeries

RED, CLEAR, LINE, SCRIPT = "[red]x[/red]", "\x1b[2J", "two\nlines", "<script>alert(1)</script>"
LABELS = [f"[bold]{CLEAR}", f"The certificate holds\n{SCRIPT}"]
TARGET = f"y,{RED}\n{SCRIPT}\x07"


def run(*words, code=0):
    if words[0] == "learn":  # in this process: a worker takes longer to start than these fits
        words = (*words, "--workers", "0")
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, (result.output, result.exception)
    assert "Traceback" not in result.output
    return result


def check_harmless(result) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", result.output.replace("\r\n", "\n"))
    assert not re.search(r"^lines|^The certificate holds$|^<script>", result.stdout, re.MULTILINE)


@pytest.fixture(scope="module", autouse=True)
def wide_terminal():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "400")
        yield


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    size = rng.normal(size=120)
    header = ["size" + CLEAR, RED, LINE + SCRIPT, "$\\frac{", TARGET]
    words = rng.choice([f"a{CLEAR}", "[/]", "b\nc"], 120)
    rows = zip(size, words, rng.normal(size=120), rng.normal(size=120), np.where(size > 0, *LABELS), strict=True)
    path = folder / "[red]t[bold].csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    out = ("--out", folder / "m[i].assay", "--report", folder / "r.html")
    said = run("learn", path, "--target", TARGET, "--learners", "LogisticRegression,DecisionTreeClassifier", *out)
    return folder, path, said


def test_learn_shows_names_and_labels_as_they_are(files):
    said = files[2]
    check_harmless(said)
    assert "[red]t[bold].csv" in said.stdout
    assert r"\x07" in said.stdout
    assert "m[i].assay" in said.stdout
    assert "t[bold].csv'" in said.stdout  # the command to check with can be typed as it stands


def test_verify_and_predict_read_the_same_header(files):
    folder, path, _ = files
    found = run("verify", folder / "m[i].assay", path)
    check_harmless(found)
    assert "The certificate holds: " in found.stdout
    printed = run("predict", folder / "m[i].assay", path).stdout
    labels = [row[0] for row in csv.reader(printed.splitlines(keepends=True))]
    assert {*labels[1:]} <= {*LABELS}


def test_verify_shows_forged_words_of_a_certificate_harmlessly(files, tmp_path):
    """Each text of each claim is replaced by one that brings lines, codes and markup of its own."""
    folder, path, _ = files
    parts = Parts.of((folder / "m[i].assay").read_bytes())
    hostile = [(name, change) for name, change in certificate_forgeries(parts) if name.endswith("[2J[red]'")]
    assert len(hostile) > 10
    for name, change in hostile[:: len(hostile) // 10]:
        forged = parts.copy()
        change(forged)
        (tmp_path / "m.assay").write_bytes(forged.content())
        said = CliRunner().invoke(app, ["verify", str(tmp_path / "m.assay"), str(path)])
        assert said.exit_code in (1, 2), name
        check_harmless(said)
        assert "\n  - The error rate is 0 %." not in said.output, name


def test_verify_stops_at_its_limit(files):
    folder, path, _ = files
    said = run("verify", folder / "m[i].assay", path, "--limit", "1e-9", code=1)
    assert "cannot be checked within the limit of 1e-09 s" in " ".join(said.stdout.split())
    assert "limit" in run("verify", folder / "m[i].assay", path, "--limit", "0", code=2).stderr


def test_a_changed_table_is_named_harmlessly(files, tmp_path):
    folder, path, _ = files
    text = path.read_text().replace("[/]", "[bold]", 1)
    (tmp_path / "t.csv").write_text(text)
    said = run("verify", folder / "m[i].assay", tmp_path / "t.csv", code=1)
    check_harmless(said)
    assert "rows the certificate is about: their fingerprint differs" in " ".join(said.stdout.split())


def test_unknown_values_and_errors_are_told_harmlessly(files, tmp_path):
    folder, path, _ = files
    (tmp_path / "t.csv").write_text(path.read_text().replace("[/]", f"new{CLEAR}\x9b31m[red]"))
    said = run("predict", folder / "m[i].assay", tmp_path / "t.csv", "--out", tmp_path / "p.csv")
    check_harmless(said)
    assert r"new\x1b[2J\x9b31m[red]" in said.stderr
    said = run("learn", path, "--target", "nothing", code=2)
    check_harmless(said)
    assert said.stderr.count("\n") == 1
    hostile = tmp_path / f"x{CLEAR}\n.csv"
    shutil.copy(tmp_path / "t.csv", hostile)
    said = run("learn", hostile, "--target", "nothing", code=2)
    check_harmless(said)


def test_the_report_shows_text_and_runs_nothing(files):
    folder, _, _ = files
    page = (folder / "r.html").read_text()
    assert SCRIPT not in page
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", page)
    assert "&lt;script&gt;" in page
    images = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert images
    for image in images:
        assert ElementTree.fromstring(image).tag == "svg"


@pytest.mark.parametrize("text", ["plain", "größer 树 🌳", "[red]", ""])
def test_what_can_be_seen_is_shown_as_it_is(text):
    assert shown(text) == text


@pytest.mark.parametrize("text", ["\x1b", "\n", "\r", "\x9b", "\u202e", "\u2028", "\udc80", "\u200b"])
def test_what_cannot_be_seen_is_shown_as_its_escape(text):
    assert shown(f"a{text}b") == f"a{ascii(text)[1:-1]}b"


FORMULAS = ["=1+1", "@SUM(A1)"]


@pytest.fixture(scope="module")
def formulas(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formulas")
    size = np.random.default_rng(0).normal(size=200)
    (folder / "t.csv").write_text("size,y\n" + "".join(f"{x},{FORMULAS[int(x > 0)]}\n" for x in size))
    found = assay.learn(folder / "t.csv", "y", learners=["LogisticRegression"], workers=0)
    assay.save(found.model, folder / "m.assay", found.certificate)
    return folder


def test_labels_that_spreadsheets_run_get_an_apostrophe(formulas):
    safe = run("predict", formulas / "m.assay", formulas / "t.csv")
    assert {*safe.stdout.splitlines()[1:]} == {f"'{label}" for label in FORMULAS}
    run("predict", formulas / "m.assay", formulas / "t.csv", "--out", formulas / "p.csv")
    assert (formulas / "p.csv").read_text() == safe.stdout
    raw = run("predict", formulas / "m.assay", formulas / "t.csv", "--raw", "--proba").stdout
    assert {row[0] for row in csv.reader(raw.splitlines()[1:])} == {*FORMULAS}
    assert [unguarded(line) for line in safe.stdout.splitlines()] == [line.split(",")[0] for line in raw.splitlines()]
    run("predict", formulas / "m.assay", formulas / "t.csv", "--out", formulas / "p.parquet")
    assert {*assay.data.read(formulas / "p.parquet").column("prediction").values()} == {*FORMULAS}


@pytest.mark.parametrize("text", ["-5", "+5", "-1.5e-3", "-.5", "+7.", "12", "a=b", "it's", "'tis", "", "树"])
def test_numbers_and_plain_text_are_not_guarded(text):
    assert guarded(text) == unguarded(text) == text


@pytest.mark.parametrize(
    "text", ["=1", "+1+1", "-", "-5%", "--5", "@x", "\t=1", "\r=1", "\n=1", "＝1", "'=1", "''+x", "-٣", "'-5"]
)
def test_formulas_are_guarded(text):
    assert guarded(text) == f"'{text}"


@given(st.text(alphabet="'=+-@1.e\t\ra ;\""))
def test_cells_are_read_back(text):
    assert unguarded(guarded(text)) == text
    line = cells(raw=False, terminal=False)([text, 0.1, 3])
    assert next(csv.reader(io.StringIO(line, newline=""))) == [guarded(text), "0.1", "3"]


def test_a_semicolon_in_a_label_begins_no_cell():
    """Where numbers have a decimal comma, spreadsheets divide cells at semicolons."""
    assert cells(raw=False, terminal=False)(["a;=1+1", "b\t=1+1"]) == '"a;=1+1","b\t=1+1"\n'


@pytest.mark.parametrize("raw", [[], ["--raw"]])
@pytest.mark.parametrize("asked", [["--proba"], ["--sets", "0.8"], []])
def test_a_terminal_gets_no_codes_of_labels(files, monkeypatch, raw, asked):
    """The header names the classes too."""
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("assay.cli.predicting.sys", SimpleNamespace(stdout=screen, stderr=io.StringIO()))
    folder, path, _ = files
    asked = Asked("--proba" in asked, 0.8 if "--sets" in asked else None)
    predict(folder / "m[i].assay", str(path), None, bool(raw), asked)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", screen.getvalue())
    assert len(screen.getvalue().splitlines()) == 121
    assert r"\x1b[2J" in screen.getvalue()


def test_labels_that_differ_by_a_trailing_nul_are_refused():
    table = {"x": np.arange(40.0), "y": ["a", "a\0"] * 20}
    with pytest.raises(ValueError, match=r"the label 'a\\x00'; labels must not end in a NUL"):
        assay.learn(table, "y", learners=["LogisticRegression"], workers=0)


@pytest.mark.parametrize("link", [False, True])
def test_no_command_overwrites_what_it_reads(formulas, link, tmp_path):
    table, model = formulas / "t.csv", formulas / "m.assay"
    before = table.read_bytes(), model.read_bytes()
    name = table
    if link:
        name = tmp_path / "link.csv"
        name.symlink_to(table)
    learn = ("learn", table, "--target", "y", "--learners", "LogisticRegression")
    for out in (("--report", name, "--out", tmp_path / "m"), ("--out", name, "--report", tmp_path / "r")):
        assert "would overwrite" in run(*learn, *out, code=2).stderr
    assert "are one file" in run(*learn, "--out", tmp_path / "x", "--report", tmp_path / "." / "x", code=2).stderr
    assert "would overwrite" in run("predict", model, table, "--out", name, code=2).stderr
    assert (table.read_bytes(), model.read_bytes()) == before


def _broken(error):
    def method(*words, **options):
        raise error

    return method


def test_errors_of_libraries_reach_nobody_as_a_traceback(formulas, monkeypatch):
    import pyarrow as pa
    from numba.core.errors import TypingError

    for error in (TypingError("cannot type\nthis"), pa.ArrowNotImplementedError("no"), MemoryError(), KeyError("k")):
        monkeypatch.setattr("assay.cli.predicting.open_model", _broken(error))
        code = 2 if isinstance(error, (MemoryError, ValueError)) else 4
        said = run("predict", formulas / "m.assay", formulas / "t.csv", code=code)
        assert said.stderr.startswith("assay: ")
        assert said.stderr.count("\n") == 1


def test_json_for_programs_does_nothing_on_a_terminal(tmp_path):
    """C1 controls are two bytes of UTF-8, which some terminals obey; JSON has escapes for all of them."""
    label = "a\x9b31m\u202e\x7f\u00e9"
    values = np.random.default_rng(0).normal(size=120)
    path = tmp_path / "t.jsonl"
    rows = [{"x": float(v), "y": label if v > 0 else "no"} for v in values]
    path.write_text("\n".join(map(json.dumps, rows)))
    words = ("--target", "y", "--learners", "LogisticRegression", "--trials", 1, "--workers", 0)
    model = tmp_path / "m.assay"
    out = ("--out", model, "--report", tmp_path / "r.html", "--json")
    for said in (run("learn", path, *words, *out), run("verify", model, path, "--json"),
                 run("predict", model, path, "--proba", "--keep", "all", "--json")):  # fmt: skip
        assert all(line.isprintable() for line in said.stdout.split("\n"))
        json.loads(said.stdout)
    assert json.loads(said.stdout)["predictions"][0]["y"] in (label, "no")


def test_numbers_that_json_has_not_are_null():
    assert json_text({"a": [float("nan"), 1.5, (float("-inf"),)]}, None) == '{"a":[null,1.5,[null]]}'

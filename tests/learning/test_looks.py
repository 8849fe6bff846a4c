"""Hold-out rows that are opened again are known, whatever else was changed, and the bound pays for it."""

import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest
from typer.testing import CliRunner

import assay
from assay.claims.document import from_json, to_json
from assay.cli.app import app
from assay.data import raw_table, read
from assay.guarantees.seal import RepeatedUseWarning
from assay.learning import looks
from assay.messages import Message
from assay.theory.concentration import clopper_pearson_upper

ASKED = {"learners": ["LogisticRegression"], "trials": 1, "workers": 0}
DELTA = Decimal("0.05")
pytestmark = pytest.mark.filterwarnings("ignore::assay.guarantees.seal.RepeatedUseWarning")


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_LOOKS", str(tmp_path / "of its own" / "looks.sqlite"))
    return tmp_path / "of its own" / "looks.sqlite"


def columns(n=200, seed=0, numbers=False):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    noisy = x + rng.normal(size=n)
    y = noisy if numbers else np.where(noisy > 0, "yes", "no")
    return {"x": x, "z": rng.normal(size=n), "town": rng.choice(["Bonn", "Ulm"], n), "y": y}


def seen(table, held=None):
    rows = raw_table(table)
    return looks.record(rows, "y", np.arange(0, rows.n_rows, 4) if held is None else held, DELTA).count


def without(table, name):
    return {key: values for key, values in table.items() if key != name}


def reordered(table, seed=1):
    order = np.random.default_rng(seed).permutation(len(table["y"]))
    return {name: values[order] for name, values in table.items()}


@pytest.mark.parametrize("numbers", [False, True])
def test_the_same_rows_are_known_again(numbers, tmp_path):
    table = columns(numbers=numbers)
    read(table).to_frame().to_csv(tmp_path / "t.csv", index=False)
    read(table).to_frame().to_parquet(tmp_path / "other name.parquet")
    renamed = {"other" if name == "x" else name: values for name, values in table.items()}
    again = [
        table, without(table, "x"), without(without(table, "x"), "town"), reordered(table), renamed,
        {**table, "more": np.arange(200.0)}, reordered(without(table, "z")),
        raw_table(tmp_path / "t.csv"), raw_table(tmp_path / "other name.parquet"),
        {"only": table["x"] ** 2, "y": table["y"]},
        {name: values[:150] for name, values in table.items()},
        {name: np.concatenate([values, columns(40, 9, numbers)[name]]) for name, values in table.items()},
    ]  # fmt: skip
    assert [seen(one) for one in again] == list(range(1, len(again) + 1))


def test_other_rows_are_not():
    assert seen(columns()) == 1
    for seed in range(1, 30):
        assert seen(columns(seed=seed)) == 1
    half = {"x": np.arange(40.0), "y": np.repeat(["a", "b"], 20)}  # a design: sorted targets of equal counts
    assert seen(half) == 1
    assert seen({"x": np.random.default_rng(3).normal(size=40), "y": half["y"]}) == 1
    assert seen(columns(seed=31, numbers=True)) == 1
    design = {"a": np.arange(40.0), "y": np.random.default_rng(4).normal(size=40)}  # one column says too little
    assert seen(design) == 1
    assert seen({**design, "y": np.random.default_rng(5).normal(size=40)}) == 1


@pytest.mark.parametrize(
    ("numbers", "written"),
    [
        (False, lambda y: (y == "yes").astype(int)),
        (False, lambda y: np.where(y == "yes", "a", "b")),
        (True, lambda y: 1000 * y),
        (True, lambda y: np.exp(y).round(3)),
        (True, lambda y: np.where(y > 0, "high", "low")),
    ],
)
def test_a_target_that_is_written_otherwise_hides_nothing(numbers, written):
    table = columns(numbers=numbers)
    other = {**table, "y": written(table["y"])}
    renamed = {"other" if name == "x" else name: values[:150] for name, values in other.items()}
    assert [seen(one) for one in (table, other, reordered(other), renamed)] == [1, 2, 3, 4]


def test_new_rows_that_are_held_out_alone_are_not_looked_at():
    """Rows are added and the newest held out, as with a time column: what was seen before is fitted to."""
    old, new = columns(), columns(60, 5)
    assert seen(old) == 1
    both = raw_table({name: np.concatenate([old[name], new[name]]) for name in old})
    assert seen(both, np.arange(200, 260)) == 1
    assert seen(both, np.arange(100, 260)) == 3  # the table itself is known now, and so are the old rows


def test_a_second_study_says_so_and_pays(ledger):
    table = columns()
    first = assay.learn(table, "y", **ASKED)
    assert ledger.exists()
    assert first.certificate.looks == {"count": 1, "reserve": [], "part": 0, "parts": 0, "units": 0}
    assert Decimal(first.certificate.delta_total) == DELTA
    with pytest.warns(RepeatedUseWarning, match="looked at once before"):
        again = assay.learn(table, "y", **ASKED)
    assert again.chosen.bound > first.chosen.bound
    assert Decimal(again.certificate.delta_total) <= DELTA / 6
    assert again.certificate.looks["count"] == 2
    assert "look 2 at these rows" in again.why
    assert any("hold together with 94.17 % confidence" in note for note in again.notes)
    assert "have been looked at 2 times" in str(again.certificate)
    assert isinstance(again.why, Message)
    assert all(isinstance(note, Message) for note in again.notes)
    assert from_json(to_json(again.certificate)).looks == again.certificate.looks
    other = assay.learn(without(table, "z"), "y", seed=3, **ASKED)
    assert other.certificate.looks["count"] == 3
    folds = assay.learn(table, "y", certify="folds", **ASKED)
    assert folds.certificate.looks["count"] == 4
    assert Decimal(folds.certificate.delta_total) <= DELTA / 20


def command(tmp_path, *more):
    return ["learn", str(tmp_path / "t.csv"), "--target", "y", "--learners", "LogisticRegression", "--trials", "1",
            "--workers", "0", "--out", str(tmp_path / "m.assay"), "--report", str(tmp_path / "r.html"),
            *more]  # fmt: skip


def test_the_command_line_and_python_share_a_ledger(tmp_path):
    table = columns()
    read(table).to_frame().to_csv(tmp_path / "t.csv", index=False)
    done = CliRunner().invoke(app, command(tmp_path))
    assert done.exit_code == 0
    assert "looked at" not in done.output
    assert "looked at once before" in " ".join(CliRunner().invoke(app, command(tmp_path, "--seed", "4")).output.split())
    assert "looked at once before" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert assay.learn(table, "y", **ASKED).certificate.looks["count"] == 3
    checked = CliRunner().invoke(app, ["verify", str(tmp_path / "m.assay"), str(tmp_path / "t.csv")])
    assert checked.exit_code == 0, checked.output


def test_two_processes_at_once_are_both_counted(ledger):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from decimal import Decimal; import numpy as np\n"
        "from assay.data import raw_table; from assay.learning import looks\n"
        "table = raw_table({'x': np.arange(50.0), 'y': np.arange(50.0) ** 2})\n"
        "print(*[looks.record(table, 'y', np.arange(9), Decimal('0.05')).count for _ in range(10)])"
    )
    source = str(Path(assay.__file__).parents[1])
    words = [sys.executable, "-c", code, source]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ.copy()) for _ in range(2)]
    told = [int(word) for one in both for word in one.communicate(timeout=120)[0].split()]
    assert sorted(told) == list(range(1, 21))


def test_it_can_be_turned_off_and_moved(ledger, monkeypatch):
    monkeypatch.setenv("ASSAY_LOOKS", "off")
    assert [assay.learn(columns(), "y", **ASKED).certificate.looks for _ in range(2)] == [None, None]
    assert not ledger.exists()
    monkeypatch.delenv("ASSAY_LOOKS")
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere")
    monkeypatch.setattr(sys, "platform", "linux")
    assert looks.ledger() == Path("/somewhere/assay/looks.sqlite")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert looks.ledger() == Path.home() / "Library" / "Application Support" / "assay" / "looks.sqlite"


@pytest.mark.parametrize("how", ["a file for a folder", "no database"])
def test_a_ledger_that_cannot_be_used_is_a_note(how, tmp_path, monkeypatch):
    (tmp_path / "f").write_bytes(b"this is not a database, " * 100)
    monkeypatch.setenv("ASSAY_LOOKS", str(tmp_path / "f" / "looks.sqlite" if "folder" in how else tmp_path / "f"))
    found = assay.learn(columns(), "y", **ASKED)
    assert found.certificate.looks is None
    note = next(note for note in found.notes if "is not known" in note)
    assert isinstance(note, Message)


@pytest.mark.parametrize("delta", ["NaN", "a little"])
def test_a_ledger_with_a_number_that_is_none_is_a_note(delta, ledger):
    assert seen(columns()) == 1
    with sqlite3.connect(ledger) as base:
        base.execute("UPDATE looks SET delta = ?", (delta,))
    found = assay.learn(columns(), "y", **ASKED)
    assert any("is not known" in note for note in found.notes)


@pytest.mark.parametrize("confidence", ["nan", "0", "1", "1.5", "", "95 %", float("nan"), 95])
def test_a_confidence_that_is_none_is_refused_before_a_look_is_written_down(confidence, ledger):
    with pytest.raises(ValueError, match="confidence must be a number between 0 and 1"):
        assay.learn(columns(), "y", confidence=confidence, **ASKED)
    assert seen(columns()) == 1


def test_a_confidence_may_be_a_float():
    told = [assay.learn(columns(), "y", confidence=own, **ASKED).certificate for own in ("0.9", 0.9)]
    assert [one.delta_total for one in told] == ["0.1", "0.0166666666666"]  # the second look at the same rows pays


def test_a_reserve_gives_each_look_rows_of_its_own(tmp_path):
    table = columns(400)
    read(table).to_frame().to_csv(tmp_path / "t.csv", index=False)
    opened, trained = [], []
    for k in (1, 2, 3):
        found = assay.learn(read(without(table, "z") if k == 2 else table), "y", looks=3, **ASKED)
        assert Decimal(found.certificate.delta_total) == DELTA
        assert found.certificate.looks["count"] == 1
        assert any(f"This is look {k} of 3" in note for note in found.notes)
        rest = np.setdiff1d(np.arange(400), found.certificate.looks["reserve"])
        opened.append(rest[found.certificate.split["holdout"]])
        trained.append(rest[found.certificate.split["train"]])
        found.save(tmp_path / "m.assay")
        checked = CliRunner().invoke(app, ["verify", str(tmp_path / "m.assay"), str(tmp_path / "t.csv")])
        assert checked.exit_code == 0, checked.output
    assert len(np.unique(np.concatenate(opened))) == 100
    for k in range(3):
        for later in range(k, 3):
            assert not np.isin(trained[k], opened[later]).any()
    with pytest.raises(ValueError, match="all 3 parts of the hold-out set have been used"):
        assay.learn(table, "y", looks=3, **ASKED)
    assert assay.learn(table, "y", looks=3, seed=1, **ASKED).certificate.looks["count"] == 4


def test_more_hold_out_rows_than_the_table_has_are_not_drawn():
    """A certificate that names 10^15 of them would need memory for each."""
    found = assay.learn(columns(400), "y", looks=3, **ASKED)
    for units in (401, 10**15):
        forged = replace(found.certificate, looks={**found.certificate.looks, "units": units})
        report = assay.verify(forged, found.model, columns(400))
        assert f"{units} hold-out rows or groups were drawn, and the table has 400" in report.reason


def test_a_reserve_keeps_groups_whole_and_needs_the_ledger(monkeypatch):
    table = {**columns(400), "who": np.repeat(np.arange(80), 5).astype(str)}
    found = assay.learn(table, "y", looks=2, group="who", **ASKED)
    rest = np.setdiff1d(np.arange(400), found.certificate.looks["reserve"])
    who = table["who"][rest]
    assert not np.isin(who[found.certificate.split["holdout"]], who[found.certificate.split["train"]]).any()
    assert not np.isin(table["who"][found.certificate.looks["reserve"]], who).any()
    for asked, says in (({"certify": "folds"}, "need new rows instead"), ({"holdout": 0.01}, "too few")):
        with pytest.raises(ValueError, match=says):
            assay.learn(table, "y", looks=3, **ASKED, **asked)
    monkeypatch.setenv("ASSAY_LOOKS", "off")
    with pytest.raises(ValueError, match="needs the ledger"):
        assay.learn(table, "y", looks=2, **ASKED)


def test_shares_add_up():
    for delta in (Decimal("0.05"), Decimal("0.001")):
        assert sum(looks.share(delta, k) for k in range(1, 2000)) <= Decimal("1.5") * delta
        assert sum(looks.share(delta, k) for k in range(2, 2000)) <= delta / 2


@pytest.mark.long
def test_the_best_of_fixed_analyses_is_wrong_at_most_as_often_as_all_spend():
    """Ten models of error 0.3 on the same 80 rows, each at the share of its look: the least of their bounds."""
    rng, wrong, k = np.random.default_rng(0), 0, 10
    shares = [float(looks.share(Decimal("0.1"), i)) for i in range(1, k + 1)]
    limits = [[clopper_pearson_upper(e, 80, one) for e in range(81)] for one in shares]
    for _ in range(4000):
        errors = rng.binomial(80, 0.3, k)
        wrong += min(limits[i][errors[i]] for i in range(k)) < 0.3
    assert binomtest(wrong, 4000, sum(shares), "greater").pvalue > 1e-3

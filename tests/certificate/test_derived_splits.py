"""How hold-out rows came about, and how cells are read, cannot be said in a way that hides what was chosen."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

import assay
from assay.checker.reader import raw_column
from assay.checker.record import Rejected
from assay.claims.document import from_json, to_json
from assay.claims.words import DECLARED, assumptions
from assay.data import ColumnType, Encoding, raw_table
from assay.data.dates import FORMATS
from assay.data.number_formats import Style
from assay.guarantees.ledger import CertifyOptions
from assay.learning.model import TableModel
from assay.linear_model import LogisticRegression, Ridge


def rows(n=300):
    rng = np.random.default_rng(1)
    x = rng.normal(size=n)
    return x, np.where(x + 1.5 * rng.normal(size=n) > 0, "yes", "no")


def picked(predicted, y, count=80):
    """Return rows that the model is right about."""
    return np.flatnonzero(predicted == y)[:count]


@pytest.mark.parametrize("said", ["seed", "time", "looks"])
def test_nothing_is_said_of_a_split_that_nobody_checks(said):
    x, y = rows()
    model = LogisticRegression().fit(x[:, None], y)
    honest = model.certify(x[:, None], y, holdout=picked(model.predict(x[:, None]), y))
    assert DECLARED in assumptions(honest)
    forged = {
        "seed": replace(honest, split={**honest.split, "seed": np.array([0])}),
        "time": replace(honest, time={"name": "day", "kind": "date", "levels": [], "written": []}),
        "looks": replace(honest, looks={"count": 1, "reserve": [], "part": 0, "parts": 0, "units": 0}),
    }[said]
    forged = from_json(to_json(forged))
    assert assay.verify(honest, model, x[:, None], y).holds
    assert "how the hold-out rows were drawn" in assay.verify(forged, model, x[:, None], y).reason
    if said != "seed":  # of rows that are given apart
        train = honest.split["train"]
        X, held = x[:, None], honest.split["holdout"]
        apart = model.certify(X[train], y[train], holdout=(X[held], y[held]))
        forged = replace(apart, time=forged.time, looks=forged.looks)
        report = assay.verify(forged, model, X[train], y[train], holdout=(X[held], y[held]))
        assert "how the hold-out rows were drawn" in report.reason


def table_model(target, encoding_of, y, held, learner):
    """Return a model of a table with a column x, fitted to the rows that are not held out."""
    train = np.setdiff1d(np.arange(encoding_of.n_rows), held)
    known = encoding_of.take(train).select(["x"]).typed()
    encoding = Encoding.fit(known, frozenset({"numbers"}))
    return TableModel(target, encoding, learner.fit(encoding.apply(known), y[train]))


def test_an_order_that_the_certificate_chooses_makes_no_newest_rows():
    x, y = rows()
    names = np.array([f"r{i:03d}" for i in range(len(x))])
    source = raw_table({"id": names.tolist(), "x": x, "y": y.tolist()})
    target = ColumnType("y", "nominal", ("no", "yes"))
    first = table_model(target, source, y, np.arange(1), LogisticRegression())
    held = picked(first.predict(source), y)
    model = table_model(target, source, y, held, LogisticRegression())
    levels = (*np.delete(names, held).tolist(), *names[held].tolist())
    when = ColumnType("id", "ordered", levels)
    honest = model.certify(source, held, delta=Decimal("0.05"), asked=CertifyOptions(), time=when)
    assert DECLARED in assumptions(honest)
    assert assay.verify(honest, model, source).holds
    forged = replace(honest, time={"name": "id", "kind": "ordered", "levels": list(levels), "written": []})
    assert "cannot be told" in assay.verify(forged, model, source).reason


def test_an_ordered_column_of_times_is_declared():
    pandas = pytest.importorskip("pandas")
    x, y = rows(120)
    months = ["early", "spring", "autumn"]
    frame = pandas.DataFrame({"x": x, "when": np.repeat(months, 40), "y": y})
    frame["when"] = pandas.Categorical(frame["when"], months, ordered=True)
    study = assay.learn(frame, "y", time_column="when", learners=["LogisticRegression"], trials=1, workers=0)
    assert set(frame["when"].iloc[study.certificate.split["holdout"]]) == {"autumn"}
    assert DECLARED in assumptions(study.certificate)
    assert assay.verify(study.certificate, study.model, frame).holds


def test_a_digit_is_no_sign_of_a_currency():
    """The targets are 15.26, 13.74, ...; read without their first digit they are 5.26, 3.74."""
    x, _ = rows()
    cells = [f"1{value:.3f}" for value in np.clip(5 + x, 1, 9)]
    source = raw_table({"x": x, "y": cells})
    held = np.arange(0, 300, 4)
    numbers = np.array([float(cell[1:]) for cell in cells])
    model = table_model(ColumnType("y", "numeric", (), (".", "", "1", "")), source, numbers, held, Ridge())
    asked = CertifyOptions(clip=2.0)
    forged = model.certify(source, held, delta=Decimal("0.05"), asked=asked)
    assert "not written in such a form" in assay.verify(forged, model, source).reason


def test_how_targets_are_read_is_said():
    x, _ = rows()
    source = raw_table({"x": x, "y": [f"{value:,.0f}" for value in 5000 + 500 * x]})
    held = np.arange(0, 300, 4)
    small = np.array([(5000 + 500 * value).round() / 1000 for value in x])
    model = table_model(ColumnType("y", "numeric", (), (",", "", "", "")), source, small, held, Ridge())
    told = model.certify(source, held, delta=Decimal("0.05"), asked=CertifyOptions(clip=2.0))
    assert "read as numbers written like 1234,5" in assay.verify(told, model, source).about


@pytest.mark.parametrize("form", [("5", "", "", ""), (".", "0", "", ""), (".", "", "1", ""), (".", "", "", "0"),
                                  (".", "", "", "m2"), (".", ".", "", ""), (".", "", "-", "")])  # fmt: skip
def test_a_form_that_takes_digits_for_signs_is_rejected(form):
    with pytest.raises(Rejected, match="not written in such a form"):
        raw_column({"name": "x", "kind": "numeric", "written": list(form)}, np.array(["1"], dtype=object))


@pytest.mark.parametrize("form", ["1%Y-%m-%d", "%Y-%m", "%Y-%m-%d %d", "%d of %B %Y"])
def test_a_form_of_other_dates_is_rejected(form):
    with pytest.raises(Rejected, match="not written in such a form"):
        raw_column({"name": "x", "kind": "date", "written": [form]}, np.array(["2020-01-01"], dtype=object))


def test_every_form_that_is_found_is_read():
    for form in FORMATS:
        for time in ("", " %H:%M", " %H:%M:%S") if form != FORMATS[0] else ("",):
            raw_column({"name": "x", "kind": "date", "written": [form + time]}, np.array(["x"], dtype=object))
    for before in ("", "$", "€", "₹"):
        for after in ("", "%", "‰", "€", "kg", "°C", "km/h", "Std."):
            raw_column(
                {"name": "x", "kind": "numeric", "written": list(Style(",", ".", before, after))},
                np.array(["x"], dtype=object),
            )

"""Dates become parts and prose words: against Python's calendar, the checker's own lines, models that need them."""

import datetime as dt
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import assay
from assay.checker.reader import raw_column
from assay.checker.rules.encodings import date_part
from assay.data import Encoding, chunks, read
from assay.data.dates import PARTS, part
from assay.data.words import commonest, has_words, words_of

FORMS = {
    "iso": "%Y-%m-%d",
    "slashes": "%Y/%m/%d",
    "american": "%m/%d/%Y",
    "european": "%d.%m.%Y",
    "with time": "%Y-%m-%d %H:%M:%S",
    "iso T": "%Y-%m-%dT%H:%M:%S",
    "words": "%d %b %Y",
    "american time": "%m/%d/%Y %H:%M",
}
START = dt.datetime(1999, 11, 20, 13, 45)
DAYS = [START + dt.timedelta(days=17 * i, minutes=7 * i) for i in range(120)]


def checked_words(texts, words):
    """The same by the checker."""
    return raw_column({"name": "t", "kind": "text", "words": list(words)}, np.array([*texts, None], dtype=object))[:-1]


def moment(when, form):
    known = dt.datetime.strptime(when.strftime(form), form)
    return known.replace(tzinfo=dt.UTC).timestamp()


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_a_date_gives_its_moment_whole_and_streamed(form, tmp_path):
    path = tmp_path / "t.csv"
    cells = [when.strftime(FORMS[form]) for when in DAYS]
    cells[5] = "n/a"
    path.write_text("when;x\n" + "".join(f"{cell};{i % 7}\n" for i, cell in enumerate(cells)))
    table = read(path)
    wanted = [np.nan if i == 5 else moment(when, FORMS[form]) for i, when in enumerate(DAYS)]
    assert table.column("when").type.kind == "date"
    np.testing.assert_array_equal(table.column("when").data, wanted)
    for later in (read(path, schema=table.schema), read(table.to_arrow(), schema=table.schema), read(table.to_frame())):
        np.testing.assert_array_equal(later.column("when").data, wanted)
    parts = [one.require_same_columns(table.schema)[0].column("when").data for one in chunks(path, 50, table.schema)]
    np.testing.assert_array_equal(np.concatenate(parts), wanted)


def test_days_that_do_not_exist_are_no_dates():
    column = read({"when": ["31.02.2020", *(f"{1 + i % 28:02d}.01.2020" for i in range(40))]}).column("when")
    assert column.type.kind == "date"
    assert np.flatnonzero(column.missing).tolist() == [0]


def test_the_day_and_the_month_are_told_apart_by_the_whole_column():
    column = read({"when": ["03/04/2020", "25/12/2020"]}).column("when")
    assert column.values()[0] == np.datetime64("2020-04-03")
    doubtful = read({"when": ["03/04/2020", "05/12/2020"]}).column("when")
    assert doubtful.values()[0] == np.datetime64("2020-03-04")
    assert "could be exchanged" in doubtful.note


def test_frames_bring_dates_and_time_zones():
    stamps = pa.array([0, 86_400_000_000], pa.timestamp("us", "Europe/Berlin"))
    assert read(pa.table({"t": stamps})).column("t").data.tolist() == [0, 86_400]
    assert read({"t": [dt.date(1970, 1, 2), None]}).column("t").values()[0] == np.datetime64("1970-01-02")
    hours = read({"t": [dt.time(7, 30), dt.time(23, 0)]}).column("t")
    assert (hours.type.kind, hours.data.tolist()) == ("numeric", [7.5, 23.0])


def test_times_of_the_day_are_hours_then_and_later(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("t,x\n07:30:00,1\n23:15:00,2\n")
    table = read(path)
    assert table.column("t").data.tolist() == [7.5, 23.25]
    assert read(path, schema=table.schema).column("t").data.tolist() == [7.5, 23.25]


@settings(max_examples=200)
@given(st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)))
def test_parts_are_those_of_the_calendar_and_of_the_checker(when):
    at = np.array([when.replace(tzinfo=dt.UTC).timestamp(), np.nan])
    wanted = {"year": when.year, "month": when.month, "day": when.day, "weekday": when.weekday()}
    for name in PARTS:
        ours, theirs = part(at, name), date_part(at, name)
        assert ours.tobytes() == theirs.tobytes()
        assert np.isnan(ours[1])
        if name in wanted and (when.hour, when.minute, when.second) < (23, 59, 59):
            assert ours[0] == wanted[name]


@settings(max_examples=100)
@given(st.lists(st.text(max_size=30), max_size=5), st.lists(st.text(min_size=1, max_size=5), max_size=5))
def test_the_checker_finds_the_same_words(texts, more):
    words = sorted({word for text in [*texts, *more] for word in words_of(text)})
    np.testing.assert_array_equal(has_words(texts, words), checked_words(texts, words))


def test_the_commonest_words_are_taken_in_order():
    texts = ["a red house", "a blue house", "a red car"]
    assert commonest(texts, np.array([1, 1, 1])) == ["house", "red"]
    assert commonest(["alone"], np.array([1])) == ["alone"]


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    n = 320
    mood = rng.random(n) < 0.5
    good, bad = ["lovely", "great", "friendly", "quiet"], ["dirty", "noisy", "rude", "cold"]
    filler = ["the", "room", "was", "and", "staff", "hotel", "we", "stayed", "nights", "with"]
    texts = [" ".join([*rng.choice(filler, 6), *rng.choice(good if m else bad, 2)]).capitalize() + "." for m in mood]
    when = [dt.datetime(2021, 1, 1) + dt.timedelta(hours=int(h)) for h in rng.integers(0, 20_000, n)]
    weekend = np.array([one.weekday() >= 5 for one in when])
    answers = {"mood": np.where(mood, "good", "bad"), "rest": np.where(weekend, "yes", "no")}
    return {"review": texts, "when": when, **answers}


@pytest.mark.parametrize("target", ["mood", "rest"])
@pytest.mark.parametrize("learner", ["LogisticRegression", "DecisionTreeClassifier"])
def test_what_words_or_weekdays_tell_is_learnt_certified_saved_and_predicted(columns, target, learner, tmp_path):
    table = read({name: columns[name] for name in ("review", "when", target)})
    assert [one.type.kind for one in table.columns.values()] == ["text", "date", "nominal"]
    found = assay.learn(table, target, learners=[learner], trials=1, workers=0)
    assert found.chosen.holdout_error < 0.1
    model = found.model
    assert assay.verify(found.certificate, model, table).holds
    assay.save(model, tmp_path / "m.assay", found.certificate)
    again = assay.load(tmp_path / "m.assay").model
    assert again.predict(table.take([3, 4])).tolist() == model.predict(table.take([3, 4])).tolist()
    path = tmp_path / "t.csv"
    table.to_frame().to_csv(path, index=False)
    rows = np.concatenate([again.predict(part) for part in chunks(path, 100, again.columns)])
    assert rows.tolist() == model.predict(table).tolist()


def test_the_plain_form_of_dates_and_words_goes_through_json(columns):
    table = read({name: columns[name] for name in ("review", "when")})
    for reads in (("numbers",), ("numbers", "nominal", "missing")):
        encoding = Encoding.fit(table, reads)
        again = Encoding.from_plain(json.loads(json.dumps(encoding.plain(), allow_nan=False)))
        assert again == encoding
        assert again.apply(table).tobytes() == encoding.apply(table).tobytes()
        assert len(encoding.feature_names()) == encoding.apply(table).shape[1] == len(encoding.sources())


def test_parts_that_do_not_differ_are_not_read():
    table = read({"when": ["2020-01-05", "2020-01-09", None], "x": [1.0, 2.0, 3.0]})
    assert Encoding.fit(table, ("numbers", "missing")).feature_names() == [
        "when day", "when weekday", "when elapsed days", "x",
    ]  # fmt: skip
    parts = ["when day", "when weekday", "when elapsed days"]
    assert Encoding.fit(table).feature_names() == [*parts, "x", *(f"{one} missing" for one in parts)]


@pytest.mark.parametrize(
    ("at", "field", "value"),
    [
        (0, "words", ["Room"]),
        (0, "words", ["room", "room"]),
        (0, "words", ["two words"]),
        (0, "words", [7]),
        (0, "words", "room"),
        (0, "kept", True),
        (0, "levels", ["a"]),
        (1, "parts", []),
        (1, "parts", [{"part": "century", "kept": True}]),
        (1, "parts", [{"part": "year", "kept": True}] * 2),
        (1, "parts", [{"part": "year"}]),
        (1, "parts", {"part": "year"}),
        (1, "kept", True),
        (1, "kind", "numeric"),
    ],
)
def test_a_plain_form_that_lies_about_dates_or_words_is_refused(columns, at, field, value):
    from assay.checker.record import Rejected
    from assay.checker.rules.encodings import TableModel

    forged = Encoding.fit(read({name: columns[name] for name in ("review", "when")})).plain()
    forged[at][field] = value
    with pytest.raises(ValueError, match="encoding"):
        Encoding.from_plain(forged)

    class Inner:
        classes, columns = None, 0

    with pytest.raises(Rejected):
        TableModel({"encoding": forged, "target": {"name": "y", "kind": "numeric", "levels": []}}, Inner())


@pytest.mark.parametrize("written", [["%c"], ["ISO 8601", "x"], "ISO 8601", [1], []])
def test_a_form_that_is_none_is_refused(columns, written):
    forged = Encoding.fit(read({"when": columns["when"]})).plain()
    forged[0]["written"] = written
    with pytest.raises(ValueError, match="encoding"):
        Encoding.from_plain(forged)

"""What a model remembers: sets and intervals cover, rows of one source raise no alarm, and lies are found out."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import assay
from assay.cli.app import app
from assay.data import Table, read
from assay.learning.memory import Drift, Memory, remember


def columns(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    x, town = rng.normal(shift, 1, n), rng.choice(["Ulm", "Bonn", "Kiel"], n)
    noisy = x + (town == "Kiel") + rng.normal(0, 0.7, n)
    label = np.where(noisy > 0.4, "yes", "no")
    gaps = np.where(rng.random(n) < 0.2, np.nan, rng.random(n))
    return {"x": x, "town": town, "gaps": gaps, "label": label, "amount": noisy}


def learnt(target, learner, seed=0, n=800):
    table = columns(n, seed)
    used = {name: table[name] for name in ("x", "town", "gaps", target)}
    return assay.learn(used, target, learners=[learner], trials=1, workers=0)


@pytest.mark.parametrize("coverage", [0.6, 0.9])
def test_sets_and_intervals_cover_new_rows_and_are_not_everything(coverage):
    new = columns(20_000, 99)
    found = learnt("label", "LogisticRegression").model
    inside = found.predict_set(new, coverage)
    true = inside[np.arange(20_000), np.searchsorted(found.classes_, new["label"])]
    assert coverage - 0.01 <= true.mean() < max(coverage + 0.06, (found.predict(new) == new["label"]).mean() + 0.01)
    assert inside.any(axis=1).all()
    low, high = (number := learnt("amount", "Ridge").model).predict_interval(new, coverage)
    covered = ((low <= new["amount"]) & (new["amount"] <= high)).mean()
    assert coverage - 0.01 <= covered < coverage + 0.1
    np.testing.assert_allclose((low + high) / 2, number.predict(new))


def test_no_rounding_takes_a_number_that_many_rows_have_out_of_its_interval():
    """The size of a hold-out row is that of a share of the new ones: if f + |y - f| is below y, all of them are out."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 2, 240)
        table = {"x": 1.0 * x, "y": np.round(rng.choice([0.1, 0.7, 5.0], 240, p=[0.68, 0.29, 0.03]) + 1.1 * x, 2)}
        asked = {"learners": ["DecisionTreeRegressor"], "trials": 1, "workers": 0, "seed": seed}
        found = assay.learn(table, "y", task="regress", **asked)
        rows, y = found.holdout
        low, high = found.model.predict_interval(rows, 0.8)
        near = np.abs(y - found.model.predict(rows)) <= found.model.memory.size(0.8, 0.05)
        assert ((low <= y) & (y <= high))[near].all()


def test_the_size_is_the_order_statistic_of_the_binomial_tail():
    from scipy.stats import binom

    sizes = np.random.default_rng(0).permutation(np.arange(1.0, 201.0))
    memory = remember(sizes, 3, Table([]))
    size = memory.size(0.9, 0.06)
    assert binom.sf(size - 1, 200, 0.9) <= 0.02 < binom.sf(size - 2, 200, 0.9)
    many = remember(np.arange(1.0, 50_001.0), 1, Table([]))
    exact = next(j for j in range(45_000, 50_001) if binom.sf(j - 1, 50_000, 0.9) <= 0.05)
    assert exact <= many.size(0.9, 0.05) <= exact + 50
    with pytest.raises(ValueError, match="cannot promise"):
        memory.size(0.999, 0.05)


def test_rows_of_one_source_raise_an_alarm_no_more_often_than_said():
    wanted, alarms = learnt("label", "LogisticRegression").model, 0
    for seed in range(200):
        drift = Drift(wanted.memory, [one.name for one in wanted.columns])
        drift.see(wanted.read(columns(300, 1000 + seed)).require_same_columns(wanted.columns)[0])
        alarms += bool(drift.moved(0.1))
    assert alarms <= 30  # 20 expected at most


@pytest.mark.parametrize("change", ["x", "town", "gaps"])
def test_columns_that_moved_are_named(change):
    model = learnt("label", "LogisticRegression").model
    new = columns(400, 5)
    if change == "x":
        new["x"] = new["x"] + 0.5
    elif change == "town":
        new["town"][:150] = "Kiel"
    else:
        new["gaps"][:80] = np.nan
    drift = Drift(model.memory, [one.name for one in model.columns])
    for part in (slice(0, 130), slice(130, 400)):
        rows = model.read({name: values[part] for name, values in new.items()})
        drift.see(rows.require_same_columns(model.columns)[0])
    assert drift.moved() == [change]


def test_frames_dicts_tables_and_files_are_predicted_alike(tmp_path):
    pd = pytest.importorskip("pandas")
    found = learnt("label", "LogisticRegression")
    assay.save(found.model, tmp_path / "m.assay", found.certificate)
    model = assay.load(tmp_path / "m.assay").model
    assert model.memory == found.model.memory
    new = columns(50, 7)
    frame = pd.DataFrame(new)
    frame.to_csv(tmp_path / "t.csv", index=False)
    wanted = model.predict_proba(new)
    assert wanted.shape == (50, 2)
    for source in (frame, read(new), tmp_path / "t.csv"):
        np.testing.assert_array_equal(model.predict_proba(source), wanted)
        assert model.predict(source).tolist() == model.classes_[wanted.argmax(axis=1)].tolist()


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    pd = pytest.importorskip("pandas")
    folder = tmp_path_factory.mktemp("memory")
    for target, learner in (("label", "LogisticRegression"), ("amount", "Ridge")):
        frame = pd.DataFrame(columns(400, 0))[["x", "town", "gaps", target]]
        frame.to_csv(folder / f"{target}.csv", index=False)
        found = assay.learn(folder / f"{target}.csv", target, learners=[learner], trials=1, workers=0)
        assay.save(found.model, folder / f"{target}.assay", found.certificate)
    pd.DataFrame(columns(300, 3, shift=1.0)).to_csv(folder / "moved.csv", index=False)
    return folder


def test_predict_writes_what_is_asked_and_warns_of_rows_that_look_otherwise(files, tmp_path):
    pd = pytest.importorskip("pandas")
    out = tmp_path / "p.csv"
    result = run("predict", files / "label.assay", files / "moved.csv", "--proba", "--sets", "0.9", "--out", out)
    assert "do not look like those that the model was learnt from, in x;" in result.stderr
    got = pd.read_csv(out)
    assert list(got) == ["prediction", "probability of no", "probability of yes", "set"]
    np.testing.assert_allclose(got.iloc[:, 1] + got.iloc[:, 2], 1)
    assert set(got["set"]) <= {"no", "yes", "no | yes"}
    run("predict", files / "label.assay", files / "label.csv", "--threshold", "0.8", "--proba", "--out", out)
    got = pd.read_csv(out)
    assert (got.prediction == np.where(got["probability of yes"] >= 0.8, "yes", "no")).all()
    result = run("predict", files / "amount.assay", files / "amount.csv", "--intervals", "0.8", "--out", out)
    assert "look" not in result.stderr
    got = pd.read_csv(out)
    assert ((got.low < got.prediction) & (got.prediction < got.high)).all()


@pytest.mark.parametrize(
    ("model", "words", "says"),
    [
        ("label", ["--intervals", "0.9"], "--intervals is for numbers"),
        ("amount", ["--sets", "0.9"], "are for classes"),
        ("amount", ["--threshold", "0.9"], "are for classes"),
        ("label", ["--threshold", "2"], "--threshold is a probability between 0 and 1"),
        ("label", ["--sets", "1.5"], "coverage must be a share between 0 and 1"),
        ("label", ["--sets", "0.9999"], "cannot promise a coverage"),
    ],
)
def test_a_failed_predict_prints_no_header(files, model, words, says):
    result = run("predict", files / f"{model}.assay", files / f"{model}.csv", *words, code=2)
    assert says in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("lie", ["sizes", "counts", "rows"])
def test_a_memory_that_is_not_that_of_the_rows_fails_verification(files, lie, tmp_path):
    run("verify", files / "label.assay", files / "label.csv")
    found = assay.learn(files / "label.csv", "label", learners=["LogisticRegression"], trials=1, workers=0)
    model, old = found.model, found.model.memory
    columns = [dict(one) for one in old.columns]
    columns[1]["counts"] = columns[1]["counts"][::-1]
    model.memory = {
        "sizes": Memory(old.rows, old.compared, tuple(size / 2 for size in old.sizes), old.columns),
        "counts": Memory(old.rows, old.compared, old.sizes, tuple(columns)),
        "rows": Memory(old.rows + 100, old.compared, old.sizes, old.columns),
    }[lie]
    reference = replace(found.certificate.model, digest=model.stored().digest())
    certificate = replace(found.certificate, model=reference)
    assay.save(model, tmp_path / "m.assay", certificate)
    result = run("verify", tmp_path / "m.assay", files / "label.csv", code=1)
    assert "that the model remembers are not what its rows give" in " ".join(result.stdout.split())


def test_a_bound_that_says_nothing_is_no_other_model_that_intervals_pay_for():
    """Every error is beyond the clip, so that the bound of the model itself is paid for and not reported."""
    rng = np.random.default_rng(5)
    table = {"x": rng.normal(size=120).tolist(), "y": (100 * rng.normal(size=120)).tolist()}
    found = assay.learn(table, "y", learners=["Ridge"], trials=1, workers=0, clip=1e-3)
    assert "holdout.betting" in [code for code, _ in found.certificate.unreported]
    assert found.model.memory.compared == 1
    assert assay.verify(found.certificate, found.model, table).holds
    found.certificate = replace(
        found.certificate, unreported=(*found.certificate.unreported, ("holdout.betting", "0.001"))
    )
    assert not assay.verify(found.certificate, found.model, table).holds  # another model, which nobody paid for

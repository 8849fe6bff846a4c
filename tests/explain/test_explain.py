"""Explanations on hold-out rows: known causes are found, limits are those of the binomial, comparisons are paid for."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta
from typer.testing import CliRunner

import assay
from assay.cli.app import app
from assay.data import read
from assay.data.columns import NEW_LEVEL
from assay.explain import compare, explain
from assay.guarantees.fingerprint import fold_of_rows
from assay.learning.problem import hold_out


def columns(n, seed):
    rng = np.random.default_rng(seed)
    x, noise, town = rng.normal(size=n), rng.normal(size=n), rng.choice(["Ulm", "Bonn", "Kiel"], n)
    value = 2 * x + 3 * (town == "Kiel") + rng.normal(0, 0.4 + 2 * (town == "Ulm"), n)
    return {"x": x, "noise": noise, "town": town, "amount": value, "label": np.where(value > 1, "yes", "no")}


def learnt(target, learners, n=900, names=("x", "noise", "town")):
    table = read({name: columns(n, 0)[name] for name in (*names, target)})
    return assay.learn(table, target, learners=learners, trials=1, workers=0), table


@pytest.fixture(scope="module")
def classes():
    found, table = learnt("label", ["LogisticRegression"])
    return found.explain(), found, table


@pytest.fixture(scope="module")
def numbers():
    found, table = learnt("amount", ["Ridge"])
    return explain(found.model, table, found.certificate.split["holdout"]), found, table


def test_what_matters_is_important_and_noise_is_not(classes, numbers):
    for found, _, _ in (classes, numbers):
        assert set(found.importance["column"][:2]) == {"x", "town"}
        at = {name: i for i, name in enumerate(found.importance["column"])}
        low, high = found.importance["low"], found.importance["high"]
        assert low[at["x"]] > 0 < low[at["town"]]
        assert low[at["noise"]] <= 0.01
        assert high[at["noise"]] < low[at["x"]]


def test_the_effect_of_a_linear_model_is_its_line(numbers):
    found, _, _ = numbers
    rows = [i for i, name in enumerate(found.effects["column"]) if name == "x"]
    values, means = (np.array([found.effects[field][i] for i in rows]) for field in ("value", "mean"))
    slopes = np.diff(means) / np.diff(values)
    np.testing.assert_allclose(slopes, slopes[0], rtol=1e-9)
    assert abs(slopes[0] - 2) < 0.3
    frame = found.frame("effects")
    towns = frame[frame.column == "town"].set_index("value")["mean"]
    assert 2 < towns["Kiel"] - towns["Bonn"] < 4


def test_confusion_hardest_rows_and_subgroups_count_the_hold_out_rows(classes):
    found, learnt, table = classes
    held = learnt.certificate.split["holdout"]
    y, said = learnt.model.labels(table)[held], learnt.model.predict(table.take(held))
    assert found.confusion["said yes"] == [int(((y == true) & (said == "yes")).sum()) for true in ("no", "yes")]
    worst = found.hardest["row"]
    assert set(worst) <= set(held.tolist())
    assert found.hardest["size"] == sorted(found.hardest["size"], reverse=True)
    i = next(i for i, group in enumerate(found.subgroups["group"]) if group == "Ulm")
    inside = table.column("town").values()[held] == "Ulm"
    errors, rows = int((y != said)[inside].sum()), int(inside.sum())
    share = 0.05 / 3 / 3 / 3  # a third for subgroups, for each of three columns, and for each of three towns
    assert (found.subgroups["rows"][i], found.subgroups["loss"][i]) == (rows, errors / rows)
    assert found.subgroups["high"][i] == pytest.approx(beta.isf(share / 2, errors + 1, rows - errors), rel=1e-9)
    assert found.subgroups["low"][i] == pytest.approx(beta.ppf(share / 2, errors, rows - errors + 1), rel=1e-9)


def test_calibration_bins_hold_all_rows(classes):
    found, learnt, _ = classes
    assert sum(found.calibration["rows"]) == len(learnt.certificate.split["holdout"])
    frame = found.frame("calibration")
    assert ((frame.low <= frame.probability) & (frame.probability <= frame.high)).all()


def test_frames_and_figure(classes, numbers):
    pytest.importorskip("matplotlib")
    for found, _, _ in (classes, numbers):
        assert list(found.frame("importance").columns) == ["column", "importance", "low", "high"]
        assert len(found.plot().axes) >= 5


def test_a_better_model_is_proved_better_and_the_choice_is_paid_for(tmp_path):
    good, table = learnt("label", ["LogisticRegression"])
    poor, _ = learnt("label", ["LogisticRegression"], names=("noise",))
    for found, name in ((good, "a"), (poor, "b")):
        assay.save(found.model, tmp_path / f"{name}.assay", found.certificate)
    a, b = (assay.load(tmp_path / f"{name}.assay") for name in "ab")
    same = compare(a, b, table)
    assert same.verdict == "first"
    assert same.rows == len(np.intersect1d(good.certificate.split["holdout"], poor.certificate.split["holdout"]))
    good.model.memory = replace(good.model.memory, compared=100)
    paid = compare(_saved(good), b, table)
    assert "Bonferroni-corrected for 100 models" in " ".join(paid.sentences)
    assert paid.low < same.low <= same.high < paid.high
    new = compare(b, a, columns(500, 5))
    assert (new.verdict, new.rows) == ("second", 500)
    assert "is assumed" in new.sentences[0]
    assert new.losses[0] - new.losses[1] == pytest.approx((new.low + new.high) / 2, abs=0.02)
    assert compare(a, a, columns(500, 5)).verdict == "neither"
    table.to_frame().to_csv(tmp_path / "t.csv", index=False)
    done = CliRunner().invoke(app, ["compare", *(str(tmp_path / name) for name in ("a.assay", "b.assay", "t.csv"))])
    assert "The first model is proved better" in " ".join(done.output.split())


def test_regressions_are_compared_by_how_often_they_are_nearer(tmp_path):
    good, _ = learnt("amount", ["Ridge"])
    poor, _ = learnt("amount", ["Ridge"], names=("noise",))
    found = compare(_saved(good), _saved(poor), columns(400, 8))
    assert found.verdict == "first"
    with pytest.raises(ValueError, match="they cannot be compared"):
        compare(_saved(good), _saved(learnt("label", ["LogisticRegression"])[0]), columns(400, 8))


def _saved(found):
    from assay.persist import Saved

    return Saved(found.model, found.certificate)


def test_a_level_that_no_training_row_has_is_explained_and_reported(tmp_path):
    """Most rows have a town of their own, so that the commonest value is a level that no training row has."""
    rng = np.random.default_rng(0)
    town = np.array(["Ulm" if i % 10 == 0 else f"town {i}" for i in range(200)])
    table = {"town": town, "x": rng.normal(size=200), "label": np.where(rng.random(200) < 0.5, "yes", "no")}
    found = assay.learn(table, "label", learners=["LogisticRegression"], trials=1, workers=0)
    effects = found.explain(["town"]).effects
    assert NEW_LEVEL in effects["value"]
    new = {name: [NEW_LEVEL if name == "town" else one for one in values] for name, values in table.items()}
    held = np.asarray(found.certificate.split["holdout"])
    new = {name: np.asarray(values)[held] for name, values in new.items()}
    at = [i for i, value in enumerate(effects["value"]) if value == NEW_LEVEL]
    means = {effects["class"][i]: effects["mean"][i] for i in at}
    shares = dict(zip(found.model.classes_, found.model.predict_proba(new).mean(axis=0), strict=True))
    assert means == pytest.approx(shares)
    found.report(tmp_path / "report.html")
    assert NEW_LEVEL in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("column", "certify"),
    [("y", "holdout"), ("size", "holdout"), ("day", "holdout"), ("size", "folds"), ("day", "folds")],
)
def test_cells_of_hold_out_rows_that_cannot_be_read_end_no_report(tmp_path, column, certify):
    """Words among classes 0 and 1, among numbers and among dates: in hold-out rows alone, of which they are many."""
    n, rng = 160, np.random.default_rng(3)
    held = hold_out(n, None, 0, None, None) if certify == "holdout" else np.flatnonzero(fold_of_rows(n, 3, 0) == 0)
    size = rng.normal(size=n).round(2)
    table = {
        "size": size.astype(str).astype(object),
        "day": (np.datetime64("2024-01-01") + rng.integers(0, 300, n)).astype(str).astype(object),
        "y": (size > 0).astype(int).astype(str).astype(object),
    }
    table[column][held[::4]] = "word"
    file = tmp_path / "table.csv"
    lines = [",".join(table), *(",".join(row) for row in zip(*table.values(), strict=True))]
    file.write_text("\n".join(lines) + "\n")
    given = {"trials": 1, "workers": 0, "certify": certify, "task": "classify"}
    found = assay.learn(file, "y", learners=["LogisticRegression"], **given)
    assert assay.verify(found.certificate, found.model, file).holds
    assert sum(found.explain().confusion["said 0"]) > 0
    found.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 1000

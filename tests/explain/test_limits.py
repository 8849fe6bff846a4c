"""Limits at thresholds and in explanations hold together as often as they say, against worlds whose truth is known."""

import numpy as np
import pytest
from scipy.stats import beta, binomtest, norm

import assay
from assay.data import Column as Cells
from assay.data import ColumnType, Table, read
from assay.explain import explain
from assay.report.views import _thresholds
from assay.theory.holdout import joint_limits

# Thresholds: s is uniform on [0, 1] and y = 1 with probability s, so P[y=1, s<t] = t^2/2 and P[y=0, s>=t] = (1-t)^2/2.
AT = np.linspace(0, 1, 101)
MISSED, CALLED = AT**2 / 2, (1 - AT) ** 2 / 2


class Score:
    """A classifier whose probability of 1 is its only column."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def violated(rng, m, delta, strange=0.0):
    """Tell whether any limit at any threshold is wrong; a share of rows is of a third class."""
    s = rng.random(m)
    y = (rng.random(m) < s).astype(int)
    y[rng.random(m) < strange] = 2
    found = _thresholds(Score(), s[:, None], y, delta)
    missed = (1 - strange) * MISSED + strange * AT
    called = (1 - strange) * CALLED + strange * (1 - AT)
    inside = [
        np.all(np.array(found[f"{what}_low"]) <= truth + 1e-12)
        and np.all(truth <= np.array(found[f"{what}_high"]) + 1e-12)
        for what, truth in (("missed", missed), ("called", called))
    ]
    return not all(inside)


@pytest.mark.parametrize("strange", [0.0, 0.1])
def test_limits_hold_at_every_threshold_at_once(strange):
    rng = np.random.default_rng(0)
    wrong = sum(violated(rng, 120, 0.5, strange) for _ in range(60))
    assert wrong <= 38  # of 60 at one half: a chance below 2 % to be more


@pytest.mark.long
@pytest.mark.parametrize("m", [60, 400])
def test_limits_hold_at_every_threshold_in_many_worlds(m):
    rng = np.random.default_rng(1)
    wrong = sum(violated(rng, m, 0.05) for _ in range(1500))
    assert binomtest(wrong, 1500, 0.05, "greater").pvalue > 1e-3


def test_limits_at_a_threshold_are_those_of_the_binomial():
    found = joint_limits([5], [7], 50, 0.05)
    assert found.missed_high[0] == pytest.approx(beta.isf(0.05 / 4, 6, 45), rel=1e-6)
    assert found.called_low[0] == pytest.approx(beta.ppf(0.05 / 4, 7, 44), rel=1e-6)


# Explanations: x is normal, the label is that of x but for a share of errors that depends on the town; a fixed model
# answers by the sign of x.

TOWNS, RATES = ("Bonn", "Kiel", "Ulm"), np.array([0.05, 0.2, 0.35])


class Sign:
    """A model of the sign of x with a probability that is too sure."""

    classes_ = np.array(["no", "yes"])

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]

    def predict_proba(self, X):
        yes = np.where(X[:, 0] > 0, 0.95, 0.05)
        return np.column_stack([1 - yes, yes])


class Plain:
    """An encoding that leaves rows as they are."""

    schema = (ColumnType("x", "numeric"), ColumnType("town", "nominal", TOWNS))

    def fitting(self, table):
        return Table([table.column(one.name) for one in self.schema]), {}

    def raw(self, table):
        return np.column_stack([table.column(one.name).data for one in self.schema]), {}

    def apply_raw(self, raw):
        return raw

    def spans(self):
        return [slice(0, 1), slice(1, 2)]


class Fixed:
    encoding, learner, task = Plain(), Sign(), "classify"

    def labels(self, table):
        return table.text("y").astype(str)


def world(rng, n):
    x, town = rng.normal(size=n), rng.integers(0, 3, n)
    wrong = rng.random(n) < RATES[town]
    y = ((x > 0) ^ wrong).astype(float)
    kinds = (*Plain.schema, ColumnType("y", "nominal", ("no", "yes")))
    return Table([Cells(kind, data) for kind, data in zip(kinds, (x, town.astype(float), y), strict=True)])


def page_is_wrong(rng, delta, sort):
    """Tell whether any limit of importance, calibration or subgroups is wrong."""
    table = world(rng, 300)
    held = np.sort(rng.permutation(300)[:200])
    if sort:  # by the target, and by the error
        y, x = table.column("y").data, table.column("x").data
        order = np.lexsort(((x > 0) != y, y))
        table, held = table.take(order), np.sort(np.argsort(order)[held])
    found = explain(Fixed(), table, held, delta=delta)
    mean = RATES.mean()
    truth = {"x": 0.5 * (1 - 2 * mean), "town": 0.0}  # a sign that is another row's is wrong half the time
    wrong = not _inside(found.importance, [truth[name] for name in found.importance["column"]])
    yes = [mean if p < 0.5 else 1 - mean for p in found.calibration["probability"]]
    wrong |= not _inside(found.calibration, yes)
    rates = [RATES[TOWNS.index(g)] if g in TOWNS else mean for g in found.subgroups["group"]]
    return wrong | (not _inside(found.subgroups, rates))


def _inside(frame, truth):
    limits = zip(frame["low"], truth, frame["high"], strict=True)
    return all(low <= value <= high for low, value, high in limits)


@pytest.mark.parametrize("sort", [False, True])
def test_limits_of_a_page_hold_together(sort):
    rng = np.random.default_rng(2)
    wrong = sum(page_is_wrong(rng, 0.5, sort) for _ in range(60))
    assert wrong <= 38


@pytest.mark.long
def test_limits_of_a_page_hold_together_in_many_worlds():
    rng = np.random.default_rng(3)
    wrong = sum(page_is_wrong(rng, 0.05, True) for _ in range(1000))
    assert binomtest(wrong, 1000, 0.05, "greater").pvalue > 1e-3


def test_numbers_have_limits_of_errors_that_count_up_to_a_limit():
    rng = np.random.default_rng(4)
    x = rng.normal(size=600)
    table = read({"x": x, "z": rng.normal(size=600), "y": x + rng.standard_cauchy(600)})
    found = assay.learn(table, "y", learners=["Ridge"], trials=1, workers=0, clip=3.0)
    said = found.explain()
    assert said.clip == 3.0
    assert "clipped at 3" in said.limits
    assert max(said.subgroups["high"]) <= 3.0
    assert all(a <= b <= c for a, b, c in zip(said.subgroups["low"], said.subgroups["loss"], said.subgroups["high"]))


def test_rows_of_groups_have_no_limits_and_it_is_said_why():
    rng = np.random.default_rng(5)
    x, who = rng.normal(size=400), np.repeat(np.arange(40), 10)
    table = read({"x": x, "who": who.astype(str), "y": np.where(x + norm.rvs(size=400, random_state=1) > 0, "a", "b")})
    found = assay.learn(table, "y", group="who", learners=["LogisticRegression"], trials=1, workers=0)
    said = found.explain()
    assert set(said.importance["low"]) == set(said.subgroups["high"]) == set(said.calibration["low"]) == {None}
    assert "not independent draws" in said.limits


def test_the_page_pays_for_the_finalists():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(400, 2))
    table = read({"a": x[:, 0], "b": x[:, 1], "y": np.where(x[:, 0] + rng.normal(size=400) > 0, "yes", "no")})
    found = assay.learn(table, "y", learners=["LogisticRegression"], trials=1, workers=0)
    assert found.explaining["delta"] == pytest.approx(0.05)
    found.chosen.share = 0.1
    narrow, wide = explain(*_args(found), delta=0.05), found.explain()
    assert wide.subgroups["high"][0] > narrow.subgroups["high"][0]
    assert wide.subgroups["high"] == explain(*_args(found), delta=0.005).subgroups["high"]
    assert "except with probability 0.05." in wide.limits, "whichever finalist is chosen: that of all of them together"


def _args(found):
    return found.model, found.table, found.certificate.split["holdout"]


def test_the_report_of_groups_is_written(tmp_path):
    rng = np.random.default_rng(5)
    x, who = rng.normal(size=400), np.repeat(np.arange(40), 10)
    table = read({"x": x, "who": who.astype(str), "y": np.where(x > 0, "a", "b")})
    found = assay.learn(table, "y", group="who", learners=["LogisticRegression"], trials=1, workers=0)
    found.report(tmp_path / "r.html")
    assert "There are no limits in figures and tables" in (tmp_path / "r.html").read_text(encoding="utf-8")

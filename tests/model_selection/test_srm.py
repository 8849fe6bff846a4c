"""Structural risk minimisation: the choice, what it costs, that it verifies, and that it keeps its promise."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.utils.estimator_checks import parametrize_with_checks

import assay
from assay.discriminant_analysis import QuadraticDiscriminantAnalysis
from assay.linear_model import LogisticRegression, Perceptron
from assay.model_selection import LearningCurve, StructuralRiskMinimizer
from assay.theory.concentration import clopper_pearson_upper
from tests.certificate.test_validity import gaussians, noise

pytestmark = pytest.mark.filterwarnings("ignore:.*still making mistakes")


@parametrize_with_checks(
    [StructuralRiskMinimizer([LogisticRegression(), QuadraticDiscriminantAnalysis()], holdout=0.0, random_state=0)]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def rows(seed=0, n=1500):
    rng = np.random.default_rng(seed)
    return gaussians(rng, n, d=3)


@pytest.mark.parametrize("holdout", [0.0, 0.3])
def test_the_smallest_bound_wins_and_the_certificate_pays_for_it(holdout):
    X, y = rows()
    model = StructuralRiskMinimizer(
        [("a line", LogisticRegression()), QuadraticDiscriminantAnalysis(), ("one pass", Perceptron(max_iter=1))],
        weights=[2, 1, 1],
        holdout=holdout,
        random_state=0,
    ).fit(X, y)
    bounds = [one.bound for one in model.candidates_]
    assert bounds[model.best_index_] == min(bounds) < 0.5
    assert [one.name for one in model.candidates_] == ["a line", "QuadraticDiscriminantAnalysis", "one pass"]
    assert [Fraction(one.delta) for one in model.candidates_] == [Fraction("0.025"), *[Fraction("0.0125")] * 2]
    assert model.certificate_.tightest.value == min(bounds)
    spent = sum(Fraction(delta) for _, delta in model.certificate_.unreported)
    spent += sum(Fraction(claim.delta) for claim in model.certificate_.claims)
    assert Fraction("0.0499") < spent <= Fraction("0.05") == Fraction(model.certificate_.delta_total)
    report = assay.verify(model.certificate_, model.best_estimator_, X, y)
    assert report.holds, report.reason
    assert np.array_equal(model.predict(X), model.best_estimator_.predict(X))
    assert (model.certificate_.split is not None) == (holdout > 0)


def test_bounds_are_those_of_the_formula_at_the_weighted_share():
    X, y = rows(1)
    model = StructuralRiskMinimizer([Perceptron(), LogisticRegression()], [3, 1], holdout=0.4, random_state=0)
    model.fit(X, y)
    held = model.certificate_.split["holdout"]
    for one, share in zip(model.candidates_, (0.0375, 0.0125)):
        wrong = int(np.sum(one.learner.predict(X[held]) != y[held]))
        by_holdout = clopper_pearson_upper(wrong, len(held), share / 2)  # half goes to the training rows
        assert one.bound == pytest.approx(by_holdout, abs=1e-8)


def test_a_ledger_that_hides_the_others_is_only_worth_its_own_share():
    from dataclasses import replace

    X, y = rows(2)
    model = StructuralRiskMinimizer([LogisticRegression(), Perceptron()], random_state=0).fit(X, y)
    greedy = replace(
        model.certificate_,
        unreported=(*model.certificate_.unreported, ("holdout.binomial", "0.01")),
    )
    assert "ledger" in assay.verify(greedy, model.best_estimator_, X, y).reason


def test_choosing_keeps_its_promise_and_choosing_for_free_does_not():
    """Labels are coins: no classifier errs less than half of the time."""
    delta, repetitions, paid, free = 0.2, 120, 0, 0
    for seed in range(repetitions):
        rng = np.random.default_rng([7, seed])
        X, y = noise(rng, 120, d=8)
        candidates = [_one_column(j) for j in range(8)]
        model = StructuralRiskMinimizer(candidates, holdout=0.75, delta=delta, random_state=seed).fit(X, y)
        paid += min(one.bound for one in model.candidates_) < 0.5
        held = model.certificate_.split["holdout"]
        wrong = min(int(np.sum(one.learner.predict(X[held]) != y[held])) for one in model.candidates_)
        free += clopper_pearson_upper(wrong, len(held), delta) < 0.5
    assert paid <= binom.isf(1e-6, repetitions, delta)
    assert free > binom.isf(1e-6, repetitions, delta)


class _Column(LogisticRegression):
    def __init__(self, column=0):
        super().__init__(n_jobs=1)
        self.column = column

    @classmethod
    def _get_param_names(cls):
        return ["column"]

    def fit(self, X, y):
        self.classes_, self.n_features_in_, self.n_iter_ = np.unique(y), X.shape[1], 1
        self.coef_, self.intercept_ = np.eye(X.shape[1])[[self.column]], np.zeros(1)
        self.separator_ = None
        return self


def _one_column(j):
    return _Column(j)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"estimators": []}, "one or more classifiers"),
        ({"estimators": [assay.linear_model.Ridge()]}, "one or more classifiers"),
        ({"weights": [1.0]}, "2 positive numbers"),
        ({"weights": [1.0, -1.0]}, "2 positive numbers"),
        ({"delta": 0.0}, "delta must be"),
        ({"holdout": 1.5}, "holdout must be"),
    ],
)
def test_refusals(options, word):
    given = {"estimators": [LogisticRegression(), Perceptron()], **options}
    with pytest.raises(ValueError, match=word):
        StructuralRiskMinimizer(**given).fit(*rows(n=40))


def test_a_class_that_is_only_held_out_is_refused_by_name():
    X, y = rows(n=40)
    y = y.astype(object)
    y[:] = np.where(y == 1, "common", "usual")
    y[3] = "rare"
    words = []
    for seed in range(8):
        try:
            StructuralRiskMinimizer([LogisticRegression()], holdout=0.5, random_state=seed).fit(X, y.astype(str))
        except ValueError as error:
            words.append(str(error))
    assert any("rare" in word and "merge" in word for word in words)


def test_learning_curve_is_what_fits_of_that_size_give():
    X, y = rows(3, n=2000)
    curve = LearningCurve(LogisticRegression(), [100, 400, 1500], random_state=1).fit(X, y)
    order = np.random.RandomState(1).permutation(2000)
    test, rest = order[:500], order[500:]
    for i, size in enumerate((100, 400, 1500)):
        model = LogisticRegression().fit(X[rest[:size]], y[rest[:size]])
        assert curve.frame_["rows"][i] == size
        assert curve.frame_["training error"][i] == np.mean(model.predict(X[rest[:size]]) != y[rest[:size]])
        assert curve.frame_["held-out error"][i] == np.mean(model.predict(X[test]) != y[test])
        certificate = model.certify(X[rest[:size]], y[rest[:size]])
        assert curve.frame_["vc"][i] == certificate.find("vc").value
    assert (np.diff(curve.frame_["vc"]) < 0).all()
    axes = curve.plot().axes[0]
    assert len(axes.lines) == len(curve.frame_) - 1
    assert list(axes.lines[1].get_ydata()) == list(curve.frame_["held-out error"])


def test_learning_curve_refusals():
    X, y = rows(n=40)
    for options, word in (({"test": 0.0}, "both sides"), ({"sizes": [30, 20]}, "must rise"), ({"sizes": [1]}, "rise")):
        with pytest.raises(ValueError, match=word):
            LearningCurve(LogisticRegression(), **options).fit(X, y)
    with pytest.raises(ValueError, match="classifier of Assay"):
        LearningCurve(assay.linear_model.Ridge()).fit(X, y)


def test_many_weights_share_delta_exactly():
    model = StructuralRiskMinimizer([LogisticRegression()] * 7, weights=[1 / (j * (j + 1)) for j in range(1, 8)])
    assert sum(model._check(), Decimal(0)) <= Decimal("0.05")


def test_examples_in_docstrings():
    import doctest
    from importlib import import_module

    for name in ("_srm", "_validation"):
        outcome = doctest.testmod(import_module(f"assay.model_selection.{name}"))
        assert outcome.attempted > 0
        assert not outcome.failed


def test_the_example_chooses_the_tree_of_four_leaves(capsys, tmp_path):
    from examples import choosing

    model = choosing.main(str(tmp_path / "curve.png"))
    assert model.candidates_[model.best_index_].name == "4 leaves"  # as many as the quarters of the square
    X, y = choosing.table(40_000, seed=2)
    assert np.mean(model.predict(X) != y) < model.certificate_.tightest.value < 0.2
    assert "the certificate verifies" in capsys.readouterr().out
    assert (tmp_path / "curve.png").stat().st_size > 1000


def test_tightness_compares_bounds_with_rows_that_took_no_part():
    from bench.tightness import goals, measure

    X, y = rows(5, n=1200)
    lines = list(measure("made", X, y, "LogisticRegression"))
    assert {line.claim for line in lines} >= {"vc", "cross-validation.mean"}
    order = np.random.default_rng(0).permutation(1200)
    test, train = order[:300], order[300:]
    model = LogisticRegression().fit(X[train], y[train])
    found = next(line for line in lines if line.claim == "vc")
    assert found.error == np.mean(model.predict(X[test]) != y[test])
    assert found.bound == model.certify(X[train], y[train]).find("vc").value
    assert goals(lines).startswith("1 data sets of 500 rows or more; a bound below 0.5 on 1, within 0.10")

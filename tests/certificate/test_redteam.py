"""Forgeries that the checker once accepted: each goes around a rule instead of using wrong numbers."""

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from assay.checker.bounds.margins import ln_counts
from assay.checker.rules.kernels import read_kernel_machine
from assay.checker.verify import verify
from assay.claims.claim import Certificate
from assay.data.blocks import Block
from assay.ensemble import BaggingClassifier, RandomForestClassifier
from assay.svm import LinearSVC
from tests.certificate import forge, tree_forge

DELTA = "0.05"


def reading_labels_as(case, labels):
    """Return the case sealed again with other lists of labels, and labels that go with them."""
    data = {}
    for name, (X, y) in {"train": (case.X, case.y), "holdout": case.holdout or (None, None)}.items():
        if X is not None:
            data[name] = forge.data_reference(X, y, labels=labels)
    certificate = Certificate(case.claims, forge.model_reference(case.model), data)
    return replace(case, sealed=certificate)


# Rows whose labels are not classes of the model -------------------------------------------------------------


def always_wrong():
    """holdout.paired: this model errs on every row, the other on none."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 1))
    y = (X[:, 0] > 0).astype(int)
    model = forge.model([[-1.0]], 0.0, [0, 1])
    high = float(stats.beta.ppf(1 - 0.025, 1, 60)) + 1e-9
    params = {"alone": 0, "other_alone": 0, "rows": 60, "high": high, "low": 0.0}
    stated = forge.claim(
        "holdout.paired", high + 1e-9, delta=DELTA, params=params, data=("holdout",), witness={"predictions": y}
    )
    return forge.Case((stated,), model, X[:4] + 0.5, y[:4], holdout=(X, y))


def machine_without_vectors():
    """kernel-duality-gap: a machine that learnt nothing, called optimal for rows that it could separate."""
    X, y = np.array([[-1.0], [-2.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    model = forge.Forged(
        family="kernel.classifier",
        support_vectors_=np.empty((0, 1)),
        pair_coef_=np.empty((1, 0)),
        intercept_=np.zeros(1),
        support_=np.empty(0, dtype=int),
        kernel_numbers_=np.array([0.0, 0.0, 1.0, 0.0, 1.0]),
        classes_=np.array([0, 1]),
    )
    params = forge.machine_params("hinge", 1.0, 1.0, True, class_weight=None)
    return forge.Case((forge.claim("kernel-duality-gap", 1e-6, params=params),), model, X, y)


@pytest.mark.parametrize("labels", [None, ["0", "1"]], ids=["read as numbers", "not the model's"])
@pytest.mark.parametrize("make", [always_wrong, machine_without_vectors])
def test_labels_must_be_classes_of_the_model(make, labels):
    case = make()
    if labels is not None:
        case = replace(case, model=case.model.but(classes_=np.array(["no", "yes"])))
    assert not reading_labels_as(case, labels).verify().holds


# Nominal columns in a vote of stumps ------------------------------------------------------------------------


def test_a_stump_that_lists_the_rows_is_not_a_stump():
    """margin.boosting: one member whose branch table holds the label of every row; new rows are right half of the
    time."""
    n, rng = 2000, np.random.default_rng(2)
    y = rng.integers(0, 2, n)
    X = np.arange(n, dtype=float)[:, None]
    model = forge.Forged(
        family="trees.weighted-vote",
        n_features_in_=1,
        tree_root_=np.array([0]),
        node_column_=np.array([0, -1, -1]),
        node_threshold_=np.zeros(3),
        node_table_=np.array([0, -1, -1]),
        node_child_=np.array([1, -1, -1]),
        node_value_=np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),
        branch_tables_=y[None, :],
        **tree_forge.unread(3),
        estimator_weights_=np.ones(1),
        classes_=np.array([0, 1]),
    )
    bound = 2 * math.sqrt(2 * math.log(2 + 2 * (n - 1)) / n) + math.sqrt(math.log(11 / 0.05) / (2 * n))
    params = {"class": {"class": "stumps", "d": 1}, "exponent": 0, "rows": n}
    stated = forge.claim("margin.boosting", bound + 1e-6, delta=DELTA, params=params)
    assert bound < 0.3
    assert not forge.Case((stated,), model, X, y).verify().holds


# What follows from a gap --------------------------------------------------------------------------------------


def test_rows_that_keep_their_class_are_told_of_linear_models_alone():
    """solution.enclosure: rows near the origin are short, but not in the space of a Gaussian kernel, where all have
    length 1."""
    X, y = np.array([[1e-9], [2e-9], [3e-9], [4e-9]]), np.array([0, 0, 0, 1])
    model = forge.Forged(
        family="expansion.classifier",
        support_vectors_=X,
        pair_coef_=np.array([[0.0, 0.0, 0.0, 1e-3]]),
        intercept_=np.zeros(1),
        support_=np.arange(4),
        kernel_numbers_=np.array([2.0, 1.0, 1.0, 0.0, 1.0]),
        classes_=np.array([0, 1]),
    )
    params = forge.machine_params("logistic", 1.0, 1.0, False, class_weight=None)
    gap, near = forge.claim("kernel-duality-gap", 10.0, params=params), {"gap": "kernel-duality-gap", "strength": 1.0}
    assert forge.Case((gap, forge.claim("solution.enclosure", 5.0, params=near)), model, X, y).verify().holds
    told = forge.claim(
        "solution.enclosure", 5.0, params={**near, "fixed_rows": 4}
    )  # the optimum is negative on every row
    assert not forge.Case((gap, told), model, X, y).verify().holds


def test_the_gap_of_one_class_says_nothing_of_the_others():
    """solution.enclosure: the first hyperplane is optimal, the others are anything."""
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((30, 2)), np.arange(30) % 3
    fitted = LinearSVC(C=0.1, tol=1e-10).fit(X, y)
    gap = next(claim for claim in fitted.certify(X, y).claims if claim.name == "duality-gap")
    coef = fitted.coef_ * np.array([[1.0], [-50.0], [0.0]])
    model = forge.model(coef, fitted.intercept_, [0, 1, 2])
    near = forge.claim("solution.enclosure", 1e-3, params={"gap": "duality-gap", "strength": 1.0})
    assert forge.Case((gap,), model, X, y).verify().holds
    assert not forge.Case((gap, near), model, X, y).verify().holds


# Bags of an earlier fit -------------------------------------------------------------------------------------


def test_members_of_an_earlier_fit_are_not_judged_on_rows_they_saw():
    """A warm start keeps members that were fitted to other bags than the ones that are drawn again."""
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((300, 5)), rng.integers(0, 2, 300)
    model = BaggingClassifier(n_estimators=40, warm_start=True, random_state=0, n_jobs=1).fit(X, y)
    model.set_params(n_estimators=41, max_samples=5).fit(X, y)
    found = [claim.value for claim in model.certify(X, y).claims if claim.name == "pac-bayes.vote"]
    assert not found or min(found) > 0.4


@pytest.mark.parametrize("make", [BaggingClassifier, RandomForestClassifier])
def test_bags_that_were_never_drawn_are_not_believed(make):
    """Every member saw every row; a parameter that is set afterwards says that each saw a bag."""
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((300, 5)), rng.integers(0, 2, 300)
    model = make(n_estimators=40, bootstrap=False, random_state=0, n_jobs=1).fit(X, y)
    found = model.set_params(bootstrap=True).certify(X, y)
    assert all(claim.name != "pac-bayes.vote" for claim in found.claims)


# Scores that overflow ---------------------------------------------------------------------------------------


def overflowing(rows=100):
    """Return a quadratic classifier whose scores are infinity minus infinity, and rows with labels drawn by coins."""
    rng = np.random.default_rng(7)
    X, y = 1e100 * rng.uniform(1, 2, (rows, 2)), rng.integers(0, 2, rows)
    model = forge.Forged(
        family="discriminant.quadratic",
        center_=np.zeros(2),
        quadratic_=np.array([[[1e149, 0.0], [0.0, -1e149]]]),
        linear_=np.zeros((1, 2)),
        constant_=np.zeros(1),
        classes_=np.array([0, 1]),
    )
    return model, X, y


def test_scores_that_overflow_are_no_hits():
    """holdout.binomial, train.errors: not a number is neither above nor below zero, and was counted as right."""
    model, X, y = overflowing()
    params = {"errors": 0, "rows": len(y)}
    none = forge.claim("holdout.binomial", 0.04, delta=DELTA, params=params, data=("holdout",))
    assert not forge.Case((none,), model, X[:4] / 3, y[:4], holdout=(X, y)).verify().holds
    fact = forge.claim("train.errors", 0.0, params={"set": "train", "rows": len(y), "loss": "zero-one", "low": 0})
    assert not forge.Case((fact,), model, X, y).verify().holds


def test_scores_that_overflow_do_not_rank_rows():
    """holdout.auc: sorting puts what is not a number above all numbers."""
    model, X, y = overflowing()
    X[y == 0] /= 1e100
    model.quadratic_ = model.quadratic_ * np.array([[[1.0], [1.0]]])
    a, b = int(y.sum()), int((1 - y).sum())
    X[y == 1, 0], X[y == 1, 1] = 1e100, 2e100  # the scores of positive rows are far below those of negative ones
    width = math.sqrt((a + b) * math.log(1 / 0.05) / (2 * a * b))
    params = {"positives": a, "negatives": b, "compared": 1}
    stated = forge.claim("holdout.auc", 1 - width - 1e-9, "lower", DELTA, params=params, data=("holdout",))
    assert not forge.Case((stated,), model, np.ones((2, 2)), np.arange(2), holdout=(X, y)).verify().holds


def test_weights_whose_length_overflows_are_not_short():
    """regression.rademacher: an interpolation of coins by quadratic functions, with weights of length 1e200 called
    2^-10."""
    n, d, rng = 300, 24, np.random.default_rng(8)
    X, y = 1e-100 * rng.standard_normal((n, d)), rng.integers(0, 2, n).astype(float)
    vectors = 1e100 * rng.standard_normal((n, d))
    coef = np.linalg.solve((X @ vectors.T / d) ** 2, y)
    model = forge.Forged(
        family="kernel.regressor",
        support_vectors_=vectors,
        pair_coef_=coef[None, :],
        intercept_=np.zeros(1),
        support_=np.arange(n),
        kernel_numbers_=np.array([1.0, 1 / d, 2.0, 0.0, d]),
    )
    params = {"clip": 1.0, "rows": n, "scale": 2.0**-10, "intercept": False}
    stated = forge.claim("regression.rademacher", 0.36, delta=DELTA, params=params)
    assert not forge.Case((stated,), model, X, y).verify().holds


# Rows that come in one buffer -------------------------------------------------------------------------------


class OneBuffer:
    """Rows in blocks of fifty that are all the same array, filled anew."""

    def __init__(self, X, y):
        self.X, self.y = X, y

    def blocks(self):
        buffer = np.empty((50, self.X.shape[1]))
        for start in range(0, len(self.X), 50):
            buffer[:] = self.X[start : start + 50]
            yield Block(buffer, self.y[start : start + 50], None, start)


def test_predictions_are_not_remembered_from_other_rows_of_the_same_array():
    """train.errors: a stump that is right on the first fifty rows, and wrong on the others."""
    X = np.repeat([[-1.0], [1.0]], 50, axis=0)
    y = np.zeros(100, dtype=int)
    model = tree_forge.trees(np.random.default_rng(0), 1, 1, 2, depth=1)
    model.node_threshold_, model.node_value_ = np.zeros(3), np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    fact = forge.claim("train.errors", 0.0, params={"set": "train", "rows": 100, "loss": "zero-one", "low": 0})
    case = forge.Case((fact,), model, X, y).seal()
    assert not case.verify().holds
    assert not verify(case.sealed, model, OneBuffer(X, y)).holds


# Rounding of the Gaussian kernel ----------------------------------------------------------------------------


@pytest.mark.parametrize("near", [0.0, 1e-3, 1.0])
def test_gaussian_kernel_values_lie_within_their_error(near):
    """Norms that were rounded up are bounds, not values: distances from them are too long by twice what was allowed."""
    d, rng = 1000, np.random.default_rng(9)
    x = rng.standard_normal(d)
    v = near * x + 1e-3 * (near > 0) * rng.standard_normal(d)
    rate = 0.3 / float(x @ x)
    machine = read_kernel_machine(
        v[None], np.ones((1, 1)), np.zeros(1), np.zeros(1), np.array([2.0, rate, 1.0, 0.0, d]), None
    )
    distance = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x.tolist(), v.tolist()))
    exponent = -Fraction(rate) * distance
    with localcontext(prec=50):
        true = (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
        value, slack, _ = machine.values(x[None])
        assert abs(Decimal(float(value[0, 0])) - true) <= Decimal(float(slack[0]))


# Integers ---------------------------------------------------------------------------------------------------


def test_numbers_of_updates_do_not_wrap_around():
    counts = np.full((2048, 1), 2**53, dtype=np.int64)
    counts[0, 0] += 3000
    assert ln_counts(counts) < ln_counts(np.full((2048, 1), 2**40, dtype=np.int64))

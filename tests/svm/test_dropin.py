"""What users of scikit-learn's machines rely on: weights below zero, texts with a kernel function, all classes in one
problem, infinite C, probabilities of few rows."""

import warnings

import numpy as np
import pytest
import sklearn.svm
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import assay
from assay.svm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM

X = np.array([[-2.0, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]])
Y = np.array([1, 1, 1, 2, 2, 2])


@pytest.mark.parametrize("kind", [SVC, NuSVC, SVR, OneClassSVM])
def test_a_row_of_negative_weight_has_no_loss(kind):
    weight = np.array([1, -0.5, 1, 1, 1, 1])
    kinds = kind, getattr(sklearn.svm, kind.__name__)
    model, theirs = (one(kernel="linear").fit(X, Y, sample_weight=weight) for one in kinds)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=2e-3)
    with pytest.raises(ValueError, match="all samples have zero or negative weights"):
        kind(kernel="linear").fit(X, Y, sample_weight=-np.ones(6))


def test_a_certificate_of_negative_weights_holds():
    weight = np.array([1, -0.5, 1, 1, 1, 1])
    model = SVC(kernel="linear").fit(X, Y, sample_weight=weight)
    certificate = model.certify(X, Y, sample_weight=weight)
    assert assay.verify(certificate, model, X, Y, sample_weight=np.maximum(weight, 0)).holds


def test_probabilities_that_were_not_fitted_are_refused():
    model = SVC().fit(X, Y)
    model.probability = True
    with pytest.raises(NotFittedError, match="not available when fitted with probability=False"):
        model.predict_proba(X)


def test_probabilities_of_few_rows_of_three_classes_point_at_their_classes():
    """Some folds miss a class; the score of the two that are left must keep its sign."""
    rows = np.array([[0.0], [0.1], [5.0], [5.1], [10.0]])
    labels = np.array([0, 0, 1, 1, 2])
    model = SVC(probability=True, random_state=0).fit(rows, labels)
    assert model.predict_proba(rows)[:4].argmax(axis=1).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("kind", [SVC, SVR])
def test_texts_go_with_a_function_of_pairs(kind):
    texts, target = ["A A", "A", "B", "B B", "A B"], np.array([1, 1, 2, 2, 1])
    counts = np.array([[text.count("A"), text.count("B")] for text in texts], dtype=float)

    def kernel(left, right):
        return np.array([[a.count("A") * b.count("A") + a.count("B") * b.count("B") for b in right] for a in left])

    model, same = kind(kernel=kernel).fit(texts, target), kind(kernel="linear").fit(counts, target)
    np.testing.assert_allclose(model.predict(texts), same.predict(counts))
    with pytest.raises(ValueError, match="rows of numbers"):
        model.certify(texts, target)


@pytest.mark.parametrize(("kind", "make"), [(SVC, make_classification), (SVR, make_regression)])
def test_infinite_cost_is_the_limit_of_large_ones(kind, make):
    rows, target = make(random_state=0)
    infinite, large = (kind(C=C).fit(rows, target) for C in (np.inf, 1e10))
    np.testing.assert_allclose(infinite.predict(rows), large.predict(rows))
    assert assay.verify(infinite.certify(rows, target), infinite, rows, target).holds


def test_a_tube_that_no_function_fits_is_refused():
    rows = np.array([[0.0], [0.0], [1.0]])
    with pytest.raises(ValueError, match="C=inf asks for a function within"):
        SVR(kernel="linear", C=np.inf).fit(rows, [0.0, 1.0, 2.0])


def joint_objective(table, rows, codes, C):
    W = table.reshape(codes.max() + 1, -1)
    scores = np.column_stack([rows, np.ones(len(rows))]) @ W.T
    costs = scores + 1.0 - scores[np.arange(len(rows)), codes][:, None]
    costs[np.arange(len(rows)), codes] = 0.0
    return 0.5 * np.sum(W**2) + C * costs.max(axis=1).sum()


@pytest.mark.parametrize("sparse", [False, True])
def test_all_classes_in_one_problem_reach_its_minimum(sparse):
    rows, codes = load_iris(return_X_y=True)
    rows = rows[::3] - rows.mean(axis=0)
    codes = codes[::3]
    given = csr_matrix(rows) if sparse else rows
    model = LinearSVC(multi_class="crammer_singer", random_state=0).fit(given, codes)
    table = np.column_stack([model.coef_, model.intercept_])
    reached = joint_objective(table.ravel(), rows, codes, 1.0)
    for seed in range(3):
        away = np.random.default_rng(seed).normal(size=table.size)
        other = minimize(joint_objective, away, (rows, codes, 1.0), method="Powell", options={"maxiter": 40})
        assert reached <= other.fun + 1e-6 * reached
    theirs = sklearn.svm.LinearSVC(multi_class="crammer_singer", random_state=0, tol=1e-6, max_iter=100_000)
    theirs.fit(rows, codes)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=2e-3)
    certificate = model.certify(given, codes)
    assert assay.verify(certificate, model, given, codes).holds
    assert model.gap_ <= 1e-6 * len(rows)


def test_a_short_fit_of_all_classes_says_so_and_two_classes_are_one_score():
    rows, codes = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="Liblinear failed to converge"):
        LinearSVC(multi_class="crammer_singer", max_iter=1, tol=1e-9).fit(rows, codes)
    two = LinearSVC(multi_class="crammer_singer", max_iter=5000, fit_intercept=False).fit(rows[:100, 2:], codes[:100])
    assert two.coef_.shape == (1, 2)
    assert two.intercept_.tolist() == [0.0]
    assert two.score(rows[:100, 2:], codes[:100]) > 0.9


def test_ties_are_broken_for_scores_of_classes_alone():
    rows, codes = load_iris(return_X_y=True)
    model = SVC(break_ties=True, decision_function_shape="ovo").fit(rows, codes)
    with pytest.raises(ValueError, match="break_ties must be False"):
        model.predict(rows)


def test_entries_that_overflow_are_refused_in_words():
    with pytest.raises(ValueError, match="dual coefficients or intercepts are not finite"):
        SVC().fit(np.finfo(float).max * np.random.default_rng(0).uniform(size=(6, 2)), Y)
    with pytest.raises(TypeError, match="Sparse precomputed"):
        SVC(kernel="precomputed").fit(csr_matrix(np.eye(2)), [0, 1])


def test_what_scikit_learn_will_drop_is_told():
    rows = np.random.default_rng(0).normal(size=(40, 3))
    labels = (rows[:, 0] > 0).astype(int)
    for kind in (SVC, NuSVC):
        with pytest.warns(FutureWarning, match="probability.+parameter.+deprecated"):
            kind(probability=False).fit(rows, labels)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = kind().fit(rows, labels)
        with pytest.warns(FutureWarning, match="Attribute `probA_` was deprecated"):
            assert model.probA_.size == 0

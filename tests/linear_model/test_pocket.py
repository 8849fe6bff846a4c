"""The pocket algorithm: replayed by hand, and against the exact minimum of errors."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import assay
from assay.linear_model import Perceptron, Pocket
from assay.preprocessing import augment
from assay.theory.spaces import HalfSpaces


@pytest.mark.mission("LIN-53")
def test_pocket_keeps_the_best_hyperplane_met():
    X, y = np.array([[-1.0, -1], [1, 1], [-1, 1], [1, -1]]), np.array([0, 0, 1, 1])
    model = Pocket(random_state=0).fit(X, y)
    assert model.errors_ == [1]
    assert (model.predict(X) != y).sum() == 1
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X @ [1, 2, -1] + rng.normal(size=300) > 0).astype(int)
    model = Pocket(random_state=1, max_updates=400).fit(X, y)
    objectives = [step.objective for step in model.history_]
    assert objectives == sorted(objectives, reverse=True)
    assert model.errors_[0] == objectives[-1] == (model.predict(X) != y).sum()
    assert model.n_updates_ == 400
    with pytest.warns(ConvergenceWarning):
        last = Perceptron(max_iter=2, random_state=1).fit(X, y)
    assert model.errors_[0] <= (last.predict(X) != y).sum()
    again = Pocket(random_state=1, max_updates=400).fit(X, y)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert assay.verify(model.certify(X, y), model, X, y).holds


def test_pocket_is_the_perceptron_with_a_memory():
    """Replay the updates in Python and compare the kept vector."""
    rng = np.random.default_rng(1)
    X = rng.integers(-3, 4, size=(40, 2)).astype(float)
    y = (X[:, 0] + rng.normal(size=40) > 0).astype(int)
    model = Pocket(random_state=7, max_updates=60).fit(X, y)
    random, signs = np.random.RandomState(7), 2 * y - 1
    w, best, kept, updates = np.zeros(3), 40, np.zeros(3), 0
    A = augment(X)
    while updates < 60:
        for i in random.permutation(40):
            if signs[i] * (A[i] @ w) <= 0 and updates < 60:
                w = w + signs[i] * A[i]
                updates += 1
                errors = int((signs * (A @ w) <= 0).sum())
                if errors < best:
                    best, kept = errors, w
    assert model.errors_ == [best]
    np.testing.assert_array_equal(np.append(model.coef_[0], model.intercept_), kept)


@pytest.mark.mission("LIN-56")
def test_exact_minimum_of_errors_is_at_most_the_pockets():
    """The exact minimiser over all dichotomies of half-spaces, against one by mixed-integer programming."""
    from scipy.optimize import LinearConstraint, milp

    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(12, 2)), rng.choice([-1, 1], size=12)
        exact = HalfSpaces(2).erm(X, y).errors
        A = np.column_stack([X, np.ones(12)]) * y[:, None]
        answer = milp(
            np.append(np.zeros(3), np.ones(12)),
            integrality=np.append(np.zeros(3), np.ones(12)),
            constraints=LinearConstraint(np.hstack([A, 1e4 * np.eye(12)]), lb=1.0),
            bounds=(np.append(np.full(3, -1e3), np.zeros(12)), np.append(np.full(3, 1e3), np.ones(12))),
        )
        assert exact == round(answer.fun)
        assert exact <= Pocket(random_state=seed).fit(X, y).errors_[0]


def test_sparse_rows_give_the_same_pocket():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 6)) * (rng.random((200, 6)) < 0.3)
    y = (X.sum(axis=1) + 0.3 * rng.normal(size=200) > 0).astype(int)
    dense, sparse = (Pocket(random_state=0, max_updates=200).fit(kind, y) for kind in (X, sp.csr_matrix(X)))
    np.testing.assert_allclose(dense.coef_, sparse.coef_, rtol=1e-12)
    np.testing.assert_array_equal(sparse.predict(sp.csr_matrix(X)), dense.predict(X))
    certificate = sparse.certify(sp.csr_matrix(X), y)
    assert assay.verify(certificate, sparse, X, y).holds
    assert assay.verify(certificate, sparse, sp.csr_matrix(X), y).holds

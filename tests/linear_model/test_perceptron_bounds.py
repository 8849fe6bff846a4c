"""Mistake bounds of the perceptron against the largest margin; its updates are scikit-learn's; augmented rows."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron as PeerPerceptron

from assay.datasets.worked import first_one_parity
from assay.linear_model import Perceptron, perceptron_trace
from assay.preprocessing import augment, augmented_weights, plain_weights


def unit_rows(rng, n, d, margin):
    """Return unit rows with labels of a random unit w_f, all at distance at least `margin` from its
    hyperplane."""
    w = rng.normal(size=d)
    w /= np.linalg.norm(w)
    rows = []
    while len(rows) < n:
        a = rng.normal(size=d)
        a /= np.linalg.norm(a)
        if abs(a @ w) >= margin:
            rows.append(a)
    A = np.array(rows)
    return A, np.sign(A @ w), w


def best_margin(A, labels):
    """Return the largest margin of a hyperplane through the origin, by the hard-margin quadratic
    programme."""
    signed = A * np.asarray(labels)[:, None]
    answer = minimize(
        lambda v: v @ v / 2,
        np.zeros(A.shape[1]),
        jac=lambda v: v,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: signed @ v - 1, "jac": lambda v: signed},
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return float((signed @ answer.x).min() / np.linalg.norm(answer.x))


@pytest.mark.mission("LIN-44", "LIN-47", "LIN-49", "LIN-55")
@pytest.mark.parametrize("rule", ["first", "random", "worst"])
@pytest.mark.parametrize(("n", "d"), [(20, 2), (200, 5), (400, 20)])
def test_mistake_bound_from_the_first_row(rule, n, d):
    """delta = 0.15 in every cell: the bound 1 / delta^2 - 1 does not depend on the number of rows or
    columns."""
    for seed in range(3):
        A, labels, w_f = unit_rows(np.random.default_rng(seed), n, d, 0.15)
        delta = (labels * (A @ w_f)).min()
        trace = perceptron_trace(A, labels, rule=rule, start="first", target=w_f, random_state=seed)
        steps = np.arange(len(trace.updates) + 1)
        signed = labels[:, None] * A
        path = np.cumsum(np.vstack([signed[:1], signed[trace.updates]]), axis=0)
        np.testing.assert_allclose(trace.products, path @ w_f)
        np.testing.assert_allclose(trace.squares, np.sum(path**2, axis=1))
        np.testing.assert_allclose(trace.w, path[-1])
        scores = path[:-1] @ signed.T
        assert np.all(scores[steps[:-1], trace.updates] <= 0)
        if rule == "first":  # from zero every row is violated, so the first one is added first
            zero = perceptron_trace(A, labels, start="zero", target=w_f)
            assert zero.updates.tolist() == [0, *trace.updates]
            np.testing.assert_allclose(zero.squares, [0, *trace.squares])
        if rule != "random":
            chosen = (scores <= 0).argmax(axis=1) if rule == "first" else scores.argmin(axis=1)
            assert np.array_equal(trace.updates, chosen)
        assert np.all(signed @ trace.w > 0)
        assert trace.separated
        assert (
            len(trace.updates) <= 1 / best_margin(A, labels) ** 2 - 1
            if n <= 200
            else len(trace.updates) <= 1 / delta**2 - 1
        )
        assert (trace.products >= (steps + 1) * delta * (1 - 1e-12)).all()
        assert (trace.squares <= (steps + 1) * (1 + 1e-12)).all()


@pytest.mark.mission("LIN-48")
def test_mistake_bound_from_zero_for_rows_of_any_length():
    rng = np.random.default_rng(3)
    A, labels, w_f = unit_rows(rng, 150, 6, 0.1)
    A *= rng.uniform(0.5, 3.0, size=(150, 1))
    bound = np.linalg.norm(A, axis=1).max() ** 2 / (labels * (A @ w_f)).min() ** 2
    counts = {
        rule: len(perceptron_trace(A, labels, rule=rule, random_state=0).updates)
        for rule in ("first", "random", "worst")
    }
    assert max(counts.values()) <= bound
    assert len(set(counts.values())) > 1  # the order of updates changes their number, not the bound


@pytest.mark.mission("LIN-54")
def test_first_one_parity_has_exponentially_small_margins():
    known = {2: 0.3827, 3: 0.2157, 4: 0.1245, 5: 0.0747, 6: 0.0453}
    margins = {}
    for d in range(2, 7):
        X, y = first_one_parity(d)
        assert len(X) == 2**d - 1
        w = (-0.5) ** np.arange(d)
        np.testing.assert_array_equal(np.sign(X @ w), y)
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        margins[d] = best_margin(unit, y)
        assert margins[d] == pytest.approx(known[d], abs=6e-5)
        trace = perceptron_trace(unit, y, start="first")
        assert trace.separated
        assert len(trace.updates) <= 1 / margins[d] ** 2 - 1
    assert margins[5] / margins[6] == pytest.approx(1.618, abs=0.05)


def test_updates_on_overlapping_classes_are_those_of_scikit_learn():
    """In the order of the data both libraries visit the same rows, so every update is the same, to the last bit."""
    rng = np.random.default_rng(9)
    X = rng.integers(-20, 21, size=(2_000, 5)).astype(float)
    y = (X @ [1, 2, -1, 0, 3] + 20 * rng.normal(size=2_000) > 0).astype(int)
    for epochs in (1, 2, 20):
        with pytest.warns(ConvergenceWarning):
            ours = Perceptron(shuffle=False, max_iter=epochs).fit(X, y)
        peer = PeerPerceptron(shuffle=False, max_iter=epochs, tol=None).fit(X, y)
        np.testing.assert_array_equal(ours.coef_, peer.coef_)
        np.testing.assert_array_equal(ours.intercept_, peer.intercept_)


@pytest.mark.mission("LIN-42")
def test_augmentation_changes_no_prediction():
    rng = np.random.default_rng(4)
    X, w, b = rng.normal(size=(50, 3)), rng.normal(size=3), 0.7
    for unit in (False, True):
        scores = augment(X, unit=unit) @ augmented_weights(w, b)
        np.testing.assert_array_equal(scores > 0, X @ w > b)
    np.testing.assert_allclose(np.linalg.norm(augment(X, unit=True), axis=1), 1)
    back, offset = plain_weights(augmented_weights(w, b))
    np.testing.assert_array_equal(back, w)
    assert offset == b


@pytest.mark.mission("LIN-51")
def test_the_weight_vector_is_a_template_of_the_positive_class():
    rng = np.random.default_rng(5)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 4)) + np.where(y[:, None] == 1, 3.0, -3.0)
    w = Perceptron(random_state=0).fit(X, y).coef_[0]
    cosines = [w @ X[y == k].mean(axis=0) / np.linalg.norm(X[y == k].mean(axis=0)) / np.linalg.norm(w) for k in (0, 1)]
    assert cosines[1] > 0 > cosines[0]

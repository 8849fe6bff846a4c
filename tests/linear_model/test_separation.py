"""Separating hyperplanes: linear programmes, the pocket algorithm, perceptron theory, nonlinear
transforms."""

import warnings
from dataclasses import replace
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Perceptron as PeerPerceptron
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

import assay
from assay.datasets.linear import checkerboard, first_one_parity, four_quadrants, noisy_labels
from assay.linear_model import (
    InseparableWarning,
    LinearSeparator,
    LogisticRegression,
    Perceptron,
    Pocket,
    perceptron_trace,
)
from assay.preprocessing import (
    PolynomialTransform,
    augment,
    augmented_weights,
    monomial_count,
    plain_weights,
)
from assay.theory.spaces import HalfSpaces

quiet = pytest.mark.filterwarnings("ignore::assay.linear_model.InseparableWarning")


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


# Linear programmes ---------------------------------------------------------------------------------


def separable_by_brute_force(X, labels, intercept):
    """Decide exactly in the plane: some line through the origin of the augmented space has all signed rows
    on one side.

    Signed integer vectors are separable iff some candidate normal (perturbed cross products of pairs) is
    positive on all;
    for vectors in R^2 the candidates are the directions half-way between neighbouring critical angles.
    """
    signed = np.asarray(X, dtype=float) * np.asarray(labels)[:, None]
    if intercept:
        signed = np.column_stack([signed, labels]).astype(float)
    if signed.shape[1] == 2:
        angles = np.arctan2(signed[:, 1], signed[:, 0])
        if (signed == 0).all(axis=1).any():
            return False
        critical = np.unique(np.concatenate([angles + np.pi / 2, angles - np.pi / 2]) % (2 * np.pi))
        middle = (critical + np.append(critical[1:], critical[0] + 2 * np.pi)) / 2
        return bool((signed @ np.array([np.cos(middle), np.sin(middle)]) > 1e-9).all(axis=0).any())
    raise NotImplementedError


@quiet
@pytest.mark.mission("LIN-39", "LIN-41")
@pytest.mark.parametrize("problems", [1_500, pytest.param(10_000, marks=pytest.mark.long)])
def test_separability_agrees_with_brute_force(problems):
    """Integer points, so that ties and degenerate positions are frequent; two kinds: on a line, and through
    the origin."""
    rng = np.random.default_rng(0)
    answers = {True: 0, False: 0}
    for case in range(problems):
        n = int(rng.integers(2, 7))
        labels = rng.permutation(np.append([1, -1], rng.choice([-1, 1], size=n - 2)))
        intercept = case % 2 == 0
        X = rng.integers(-4, 5, size=(n, 1 if intercept else 2)).astype(float)
        from assay.linear_model._separator import _search
        from assay.scan import rows

        found = _search(rows(X, (labels > 0).astype(int), n_jobs=1), 1, intercept, 50, lambda *told: False)
        expected = separable_by_brute_force(X, labels, intercept)
        assert found.separable is expected, (X.tolist(), labels.tolist(), intercept)
        if expected:
            assert ((X @ found.w + found.b) * labels > 0).all()
        answers[expected] += 1
    assert min(answers.values()) > problems / 5


def orientation(a, b, c):
    return int(np.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])))


def in_hull(p, points):
    """Tell whether p lies in the hull of at most three integer points."""
    if len(points) < 3 or orientation(*points) == 0:
        low, high = min(points), max(points)
        return orientation(low, high, p) == 0 and low <= p <= high
    signs = {orientation(points[i], points[(i + 1) % 3], p) for i in range(3)}
    return not {1, -1} <= signs


def segments_meet(a, b, c, d):
    """Tell whether the closed segments ab and cd have a point in common."""
    if orientation(a, b, c) * orientation(a, b, d) < 0 and orientation(c, d, a) * orientation(c, d, b) < 0:
        return True
    return any(in_hull(p, s) for p, s in ((a, [c, d]), (b, [c, d]), (c, [a, b]), (d, [a, b])))


def hulls_meet(A, B):
    """Decide exactly, for integer points of the plane, by Caratheodory: a point of one in a triangle of the other, or
    two segments that cross."""
    for one, other in ((A, B), (B, A)):
        for p in one:
            if any(in_hull(p, list(t)) for t in combinations_with_replacement(other, 3)):
                return True
    return any(segments_meet(*s, *t) for s in combinations(A, 2) for t in combinations(B, 2))


@quiet
@pytest.mark.mission("LIN-39", "LIN-41")
@pytest.mark.parametrize("problems", [400, pytest.param(10_000, marks=pytest.mark.long)])
def test_separability_in_the_plane_agrees_with_brute_force(problems):
    """Two or three classes of integer points: every hyperplane exists iff the hulls it must part do not meet."""
    rng = np.random.default_rng(1)
    answers = {True: 0, False: 0}
    for case in range(problems):
        n, classes = int(rng.integers(3, 9)), 2 + case % 2
        labels = rng.permutation(np.append(np.arange(classes), rng.integers(0, classes, n - classes)))
        X = rng.integers(-3, 4, size=(n, 2))
        model = LinearSeparator(n_jobs=1).fit(X.astype(float), labels)
        for k, code in enumerate([1] if classes == 2 else range(3)):
            parts = ([tuple(map(int, x)) for x in X[side]] for side in (labels == code, labels != code))
            expected = not hulls_meet(*parts)
            assert model.answers_[k] is expected, (X.tolist(), labels.tolist(), code)
            answers[expected] += 1
        assert model.separable_ is all(model.answers_)
        if model.separable_:
            np.testing.assert_array_equal(model.predict(X), labels)
        if case % 20 == 0:
            assert assay.verify(model.certify(X, labels), model, X, labels).holds
    assert min(answers.values()) > problems / 5


@pytest.mark.mission("LIN-41")
def test_three_classes_each_separated_or_proved_not():
    """Three clusters in a row: the middle one is the only one that no line parts from the others."""
    rng = np.random.default_rng(2)
    y = np.repeat(["left", "middle", "right"], 40)
    X = rng.uniform(-1, 1, size=(120, 2)) + np.repeat([[-4.0, 0], [0, 0], [4, 0]], 40, axis=0)
    with pytest.warns(InseparableWarning, match="no hyperplane separates class middle from the rest"):
        model = LinearSeparator().fit(X, y)
    assert model.answers_ == [True, False, True]
    assert model.separable_ is False
    certificate = model.certify(X, y)
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason
    proof = certificate.find("D14")
    assert proof.params["class"] == 1
    assert [c.params["class"] for c in certificate.claims if c.template == "D13/1"] == [0, 2]
    borrowed = replace(proof, params={**proof.params, "class": 0})
    claims = tuple(borrowed if c is proof else c for c in certificate.claims)
    assert not assay.verify(replace(certificate, claims=claims), model, X, y).holds


@quiet
@pytest.mark.mission("LIN-41")
def test_xor_has_a_certificate_of_infeasibility():
    X, y = np.array([[0.0, 0], [1, 1], [0, 1], [1, 0]]), np.array([0, 0, 1, 1])
    with pytest.warns(InseparableWarning, match="no hyperplane separates"):
        model = LinearSeparator().fit(X, y)
    assert model.separable_ is False
    certificate = model.certify(X, y)
    assert certificate.find("D14").witness["rows"].tolist() == [0, 1, 2, 3]
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason
    flipped = np.array([0, 1, 0, 1])  # separable: the same rows prove nothing
    assert not assay.verify(certificate, model, X, flipped).holds


@pytest.mark.mission("LIN-39", "LIN-41")
@pytest.mark.parametrize("d", [2, 10])
def test_random_separable_rows_are_separated_with_a_margin(d):
    rng = np.random.default_rng(d)
    w = rng.normal(size=d)
    X = rng.normal(size=(30_000, d))
    s = X @ w + 0.3
    X, s = X[np.abs(s) > 0.05], s[np.abs(s) > 0.05]
    y = np.where(s > 0, "yes", "no")
    model = LinearSeparator().fit(X, y)
    assert model.separable_ is True
    assert model.score(X, y) == 1.0
    certificate = model.certify(X, y)
    assert certificate.find("D13").value > 0
    assert assay.verify(certificate, model, X, y).holds


@quiet
def test_separator_from_files_and_clusters(tmp_path):
    import dask.array as da
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    X = rng.normal(size=(20_000, 3))
    for y in ((X.sum(axis=1) > 0).astype(int), (X[:, 0] * X[:, 1] > 0).astype(int)):
        memory = LinearSeparator().fit(X, y)
        pq.write_table(pa.table([*X.T.copy(), y], names=["a", "b", "c", "y"]), tmp_path / "rows.parquet")
        parquet = LinearSeparator().fit(str(tmp_path / "rows.parquet"), "y")
        dask = LinearSeparator().fit(da.from_array(X, chunks=(4_000, 3)), da.from_array(y, chunks=4_000))
        assert memory.separable_ == parquet.separable_ == dask.separable_ == (y.sum() == (X.sum(axis=1) > 0).sum())
        np.testing.assert_allclose(dask.coef_, memory.coef_, rtol=1e-9)
        for model in (memory, dask):
            assert assay.verify(model.certify(X, y), model, X, y).holds


@pytest.mark.mission("LIN-40")
def test_threshold_gates():
    corners = np.array(list(product([0.0, 1.0], repeat=3)))
    gates = {"and": corners.all(axis=1), "or": corners.any(axis=1), "majority": corners.sum(axis=1) >= 2}
    for outputs in gates.values():
        model = LinearSeparator().fit(corners, outputs)
        np.testing.assert_array_equal(model.predict(corners), outputs)
    by_hand = LinearSeparator().fit(corners, gates["majority"])
    by_hand.coef_, by_hand.intercept_ = np.ones((1, 3)), np.array([-1.5])
    np.testing.assert_array_equal(by_hand.predict(corners), gates["majority"])


# Perceptron theory ---------------------------------------------------------------------------------


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


# Pocket -------------------------------------------------------------------------------------------


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
        exact = HalfSpaces(2).erm(X, y).errors if hasattr(HalfSpaces, "erm") else HalfSpaces(2).minimiser(X, y).errors
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


# Polynomials --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "degree"), [(1, 4), (2, 3), (5, 2), (3, 1)])
def test_monomials_are_those_of_scikit_learn(d, degree):
    X = np.random.default_rng(0).normal(size=(20, d))
    for bias in (True, False):
        ours, peer = (
            PolynomialTransform(degree, include_bias=bias).fit(X),
            PolynomialFeatures(degree, include_bias=bias).fit(X),
        )
        np.testing.assert_allclose(ours.transform(X), peer.transform(X), rtol=1e-13)
        assert ours.get_feature_names_out().tolist() == peer.get_feature_names_out().tolist()
        assert ours.transform(X).shape[1] == monomial_count(d, degree) - (not bias)


@parametrize_with_checks([PolynomialTransform(), PolynomialTransform(3, include_bias=False)])
def test_the_transform_keeps_scikit_learns_contract(estimator, check):
    check(estimator)


def test_a_transform_that_does_not_fit_is_refused_with_its_size():
    X = np.zeros((1000, 300))
    with pytest.raises(ValueError, match=r"C\(308, 8\) = \d+ columns.*GiB"):
        PolynomialTransform(8).fit(X)
    assert monomial_count(300, 8) == pytest.approx(np.prod([float(300 + k) for k in range(1, 9)]) / 40320, rel=1e-12)


def smallest_degree(X, y, most):
    """Return the least degree whose monomials separate the labels, found by linear programmes."""
    for degree in range(1, most + 1):
        Z = PolynomialTransform(degree, include_bias=False).fit_transform(X)
        if LinearSeparator().fit(Z, y).separable_:
            return degree
    return most + 1


@quiet
@pytest.mark.mission("LIN-57", "LIN-58")
def test_quadrants_need_degree_two():
    X, y = four_quadrants(80, gap=0.05)
    np.testing.assert_array_equal(np.sign(X[:, 0] * X[:, 1]), y)
    line = LinearSeparator().fit(X, y)
    assert line.separable_ is False
    assert assay.verify(line.certify(X, y), line, X, y).holds
    assert smallest_degree(X, y, 3) == 2
    Z = PolynomialTransform(2, include_bias=False).fit_transform(X)
    curve = LinearSeparator().fit(Z, y)
    w = curve.coef_[0] / np.abs(curve.coef_).max()
    assert w[3] == pytest.approx(1)  # the weight of x1 x2
    assert (y * (Z @ curve.coef_[0] + curve.intercept_[0]) > 0).all()
    assert assay.verify(curve.certify(Z, y), curve, Z, y).holds


@quiet
@pytest.mark.mission("LIN-59")
def test_finer_checkerboards_need_higher_degrees():
    degrees = [smallest_degree(*checkerboard(k, per_cell=2), 8) for k in (2, 3)]
    assert degrees[0] == 2
    assert degrees[1] > 2


@pytest.mark.mission("LIN-25")
def test_noisy_labels_follow_the_sigmoid_and_give_the_weights_back():
    rng = np.random.default_rng(6)
    w = np.array([1.0, -2.0, 0.5])
    errors = []
    for n in (500, 50_000):
        X = rng.normal(size=(n, 3))
        y = noisy_labels(X, w, 0.3, seed=n)
        errors.append(np.abs(LogisticRegression(C=np.inf).fit(X, y).coef_[0] - w).max())
    assert errors[1] < 0.06
    assert errors[1] < errors[0]
    chance = 1 / (1 + np.exp(-(X @ w + 0.3)))
    for low in (0.1, 0.4, 0.7):
        inside = (chance > low) & (chance < low + 0.2)
        spread = 4 * np.sqrt(0.25 / inside.sum())
        assert abs((y[inside] == 1).mean() - chance[inside].mean()) < spread


def test_exact_null_vectors_are_those_of_the_singular_value_decomposition():
    """Producer and checker eliminate by code of their own; on small integers the decomposition leaves no doubt."""
    from assay.checker.numerics import null_signs
    from assay.optim.lp import _one_signed_null_vector

    rng = np.random.default_rng(3)
    proofs = 0
    for _ in range(300):
        A = rng.integers(-3, 4, size=(int(rng.integers(2, 5)), int(rng.integers(1, 4)))) * 0.375
        vectors = np.linalg.svd(A.T)[2][np.linalg.matrix_rank(A) :]
        signs = None
        if len(vectors) == 1:
            signs = set(np.sign(np.where(np.abs(vectors[0]) < 1e-9, 0.0, vectors[0])).astype(int).tolist())
        assert _one_signed_null_vector(A) is (signs in ({1}, {-1}))
        found = null_signs(A.tolist())
        assert (found is None) == (signs is None)
        assert found is None or set(found) in (signs, {-sign for sign in signs})
        proofs += signs in ({1}, {-1})
    assert proofs > 10


def test_highs_and_scipy_agree_on_the_margin_programme():
    """The separator's programme written out again, solved by another HiGHS method."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, 1.0, -1.0] > 0.2
    signs = np.where(y, 1.0, -1.0)
    A = np.column_stack([X, np.ones(60)]) * signs[:, None]
    answer = linprog(np.zeros(4), A_ub=-A, b_ub=-np.ones(60), bounds=(None, None), method="highs-ipm")
    with warnings.catch_warnings():
        warnings.simplefilter("error", InseparableWarning)
        assert (answer.status == 0) == LinearSeparator().fit(X, y).separable_

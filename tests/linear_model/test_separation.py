"""Separating hyperplanes by linear programmes, against brute force; proofs that there is none."""

import warnings
from dataclasses import replace
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from scipy.optimize import linprog

import assay
from assay.linear_model import InseparableWarning, LinearSeparator
from assay.linear_model._separator import _search
from assay.scan import rows

quiet = pytest.mark.filterwarnings("ignore::assay.linear_model.InseparableWarning")


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
@pytest.mark.parametrize("problems", [500, pytest.param(10_000, marks=pytest.mark.long)])
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
@pytest.mark.parametrize("problems", [150, pytest.param(10_000, marks=pytest.mark.long)])
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
    proof = certificate.find("inseparability")
    assert proof.params["class"] == 1
    assert [c.params["class"] for c in certificate.claims if c.name == "margin.bounds"] == [0, 2]
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
    assert certificate.find("inseparability").witness["rows"].tolist() == [0, 1, 2, 3]
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
    assert certificate.find("margin.bounds").value > 0
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


def test_exact_null_vectors_are_those_of_the_singular_value_decomposition():
    """Producer and checker eliminate by code of their own; on small integers the decomposition leaves no doubt."""
    from assay.checker.numerics import null_signs
    from assay.optim.constrained import _one_signed_null_vector

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

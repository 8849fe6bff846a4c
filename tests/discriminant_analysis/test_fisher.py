"""Fisher's criterion: scatter matrices, the directions that maximise it, and trace ratios."""

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as PeerLDA

from assay.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    between_two_classes,
    fisher_direction,
    fisher_ratio,
    scatter_matrices,
    trace_ratio,
)
from tests.discriminant_analysis.gaussian_classes import draw, parts


@pytest.mark.mission("LIN-28", "LIN-29", "LIN-36")
@pytest.mark.parametrize("classes", [2, 3, 12])
def test_scatter_matrices_are_their_definitions(classes):
    X, y = draw(1, n=900, classes=classes)
    counts, means, scatter = parts(X, y)
    S = scatter_matrices(X, y)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(S.within, scatter.sum(axis=0), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(
        S.within, sum(c * np.cov(X[y == k].T, bias=True) for k, c in enumerate(counts)), rtol=1e-10, atol=1e-9
    )
    np.testing.assert_allclose(S.total, centred.T @ centred, rtol=1e-10, atol=1e-8)
    apart = means - X.mean(axis=0)
    np.testing.assert_allclose(S.between, apart.T @ (apart * counts[:, None]), rtol=1e-10, atol=1e-8)
    assert np.linalg.matrix_rank(S.between, tol=1e-6 * np.trace(S.between)) == min(classes - 1, 4)
    assert np.linalg.eigvalsh(S.within)[0] > 0
    np.testing.assert_array_equal(S.within, S.within.T)


@pytest.mark.mission("LIN-29")
def test_the_scatter_between_two_classes_is_that_of_their_means():
    X, y = draw(4, n=300, classes=2)
    S = between_two_classes(X, y)
    apart = X[y == 0].mean(axis=0) - X[y == 1].mean(axis=0)
    np.testing.assert_allclose(S, apart[:, None] * apart[None, :], rtol=1e-12)
    assert np.linalg.matrix_rank(S) == 1
    share = np.mean(y == 0) * np.mean(y == 1)
    np.testing.assert_allclose(scatter_matrices(X, y).between, len(y) * share * S, rtol=1e-9)
    with pytest.raises(ValueError, match="two classes"):
        between_two_classes(X, np.zeros(len(X)))


def test_scatter_survives_means_far_apart():
    """Class means a billion spreads apart: the one-pass formula would keep no digit of the scatter within."""
    X, y = draw(2, classes=3)
    far = X + 1e9 * y[:, None]
    exact = parts(far - 1e9 * y[:, None], y)[2].sum(axis=0)
    np.testing.assert_allclose(scatter_matrices(far, y).within, exact, rtol=1e-5, atol=1e-5 * np.trace(exact))


@pytest.mark.mission("LIN-26", "LIN-30")
def test_scatter_direction_maximises_the_ratio():
    X, y = draw(3)
    _, means, scatter = parts(X, y)
    within, apart = scatter.sum(axis=0), means[1] - means[0]
    between = np.outer(apart, apart)
    w = fisher_direction(within, apart)
    best = fisher_ratio(w, between, within)
    assert best == pytest.approx(fisher_ratio(-7.5 * w, between, within), rel=1e-12)
    assert best == pytest.approx(eigh(between, within, eigvals_only=True)[-1], rel=1e-9)
    others = np.random.default_rng(0).normal(size=(10_000, 4))
    assert max(fisher_ratio(v, between, within) for v in others) <= best
    model = LinearDiscriminantAnalysis().fit(X, y)
    cosine = model.coef_[0] @ w / np.linalg.norm(w) / np.linalg.norm(model.coef_)
    peer = PeerLDA().fit(X, y).coef_[0]
    assert cosine == pytest.approx(1, abs=1e-12)
    assert peer @ w / np.linalg.norm(w) / np.linalg.norm(peer) == pytest.approx(1, abs=1e-12)


@pytest.mark.mission("LIN-27", "LIN-31")
def test_covariance_direction_maximises_the_mean_variance_form():
    X, y = draw(4)

    def ratio(w):
        s = X @ w
        return (s[y == 1].mean() - s[y == 0].mean()) ** 2 / (s[y == 1].var() + s[y == 0].var())

    w = LinearDiscriminantAnalysis(covariance="equal").fit(X, y).coef_[0]
    counts, means, scatter = parts(X, y)
    covariances = scatter / counts[:, None, None]
    exact = np.linalg.solve(covariances.sum(axis=0), means[1] - means[0])
    assert w @ exact / np.linalg.norm(w) / np.linalg.norm(exact) == pytest.approx(1, abs=1e-10)
    apart = means[1] - means[0]
    assert ratio(w) == pytest.approx(fisher_ratio(w, np.outer(apart, apart), covariances.sum(axis=0)), rel=1e-10)
    others = np.random.default_rng(1).normal(size=(10_000, 4))
    assert max(map(ratio, others)) <= ratio(w)
    pooled = LinearDiscriminantAnalysis().fit(X, y).coef_[0]
    assert ratio(pooled) < ratio(w) * (1 - 1e-6)  # the definitions differ on unbalanced classes
    few = np.concatenate([np.flatnonzero(y == k)[:100] for k in (0, 1)])
    one, two = (
        LinearDiscriminantAnalysis(covariance=kind).fit(X[few], y[few]).coef_[0] for kind in ("pooled", "equal")
    )
    np.testing.assert_allclose(one / np.linalg.norm(one), two / np.linalg.norm(two), rtol=1e-9)


@pytest.mark.mission("LIN-37")
def test_eigenvectors_maximise_the_ratio_trace():
    X, y = draw(8, n=600, classes=4)
    S = scatter_matrices(X, y)

    def ratio_trace(W):
        return np.trace(np.linalg.solve(W.T @ S.within @ W, W.T @ S.between @ W))

    model = LinearDiscriminantAnalysis().fit(X, y)
    best = ratio_trace(model.scalings_)
    assert best == pytest.approx(eigh(S.between, S.within, eigvals_only=True)[-3:].sum(), rel=1e-9)
    rng = np.random.default_rng(0)
    assert all(ratio_trace(rng.normal(size=(4, 3))) <= best for _ in range(2_000))


@pytest.mark.mission("LIN-38")
def test_trace_ratio_rises_to_a_fixed_point_above_the_eigenvectors():
    X, y = draw(9, n=600, d=6, classes=4)
    S = scatter_matrices(X, y)
    found = trace_ratio(S.between, S.within, 3)
    assert all(b >= a * (1 - 1e-12) for a, b in zip(found.history, found.history[1:]))
    np.testing.assert_allclose(found.directions.T @ found.directions, np.eye(3), atol=1e-12)
    top = eigh(S.between - found.ratio * S.within, eigvals_only=True)[::-1][:3]
    assert abs(top.sum()) < 1e-9 * np.trace(S.between)  # zero exactly at the maximum
    Q = np.linalg.qr(LinearDiscriminantAnalysis().fit(X, y).scalings_)[0]
    assert found.ratio >= np.trace(Q.T @ S.between @ Q) / np.trace(Q.T @ S.within @ Q)

"""Discriminant analysis: Fisher's criterion, scatter matrices, LDA and QDA, and their certificates."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import LinAlgError, eigh, subspace_angles
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.covariance import OAS
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as PeerLDA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis as PeerQDA

import assay
from assay.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    SingularScatterWarning,
    bayes_rule,
    between_two_classes,
    fisher_direction,
    fisher_ratio,
    gaussian_risk,
    scatter_matrices,
    trace_ratio,
)


def draw(seed, n=400, d=4, classes=2):
    """Return Gaussian classes of different sizes with different means and spreads."""
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, size=n, p=np.arange(1, classes + 1) / np.arange(1, classes + 1).sum())
    mix = rng.normal(size=(d, d))
    X = (rng.normal(size=(n, d)) @ mix) * (1 + 0.5 * y[:, None]) + 2 * rng.normal(size=(classes, d))[y] + 30
    return X, y


def parts(X, y):
    """Return class counts, means and scatter, straight from the definitions."""
    groups = [X[y == k] for k in np.unique(y)]
    means = np.array([g.mean(axis=0) for g in groups])
    scatter = np.array([(g - m).T @ (g - m) for g, m in zip(groups, means)])
    return np.array([len(g) for g in groups]), means, scatter


@pytest.mark.mission("LIN-28", "LIN-29", "LIN-36")
@pytest.mark.parametrize("classes", [2, 3, 12])
def test_scatter_matrices_are_their_definitions(classes):
    X, y = draw(1, n=900, classes=classes)
    counts, _means, scatter = parts(X, y)
    S = scatter_matrices(X, y)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(S.within, scatter.sum(axis=0), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(
        S.within, sum(c * np.cov(X[y == k].T, bias=True) for k, c in enumerate(counts)), rtol=1e-10, atol=1e-9
    )
    np.testing.assert_allclose(S.total, centred.T @ centred, rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(S.total, S.within + S.between, rtol=1e-12)
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


@pytest.mark.mission("LIN-32")
def test_singular_scatter_uses_the_pseudo_inverse_and_says_so():
    X, y = draw(5, n=60)
    X = np.column_stack([X, X[:, 0] - X[:, 1]])
    with pytest.warns(SingularScatterWarning, match="4 of 5 directions"):
        model = LinearDiscriminantAnalysis().fit(X, y)
    assert model.rank_ == 4
    plain = LinearDiscriminantAnalysis().fit(X[:, :4], y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X[:, :4]), rtol=1e-6)
    _, means, scatter = parts(X, y)
    w = fisher_direction(scatter.sum(axis=0), means[1] - means[0])
    np.testing.assert_allclose(
        w, np.linalg.pinv(scatter.sum(axis=0), hermitian=True) @ (means[1] - means[0]), rtol=1e-6, atol=1e-9
    )
    assert any("singular" in one.reason for one in model.certify(X, y).not_applicable)
    shrunk = LinearDiscriminantAnalysis("lsqr", shrinkage=0.1).fit(X, y)
    assert shrunk.rank_ == 5
    assert assay.verify(shrunk.certify(X, y), shrunk, X, y).holds


@pytest.mark.mission("LIN-33", "LIN-34")
def test_threshold_is_half_way_between_the_projected_means():
    X, y = draw(6)
    model = LinearDiscriminantAnalysis(priors=[0.5, 0.5]).fit(X, y)
    _, means, _ = parts(X, y)
    w = model.coef_[0]
    s = X @ w
    assert model.threshold_ == pytest.approx(w @ (means[0] + means[1]) / 2, rel=1e-10)
    np.testing.assert_allclose(model.project(X), s, rtol=1e-13)
    assert model.project(X).shape == (len(X),)
    np.testing.assert_array_equal(model.predict(X), (model.project(X) > model.threshold_).astype(int))
    own = np.linalg.solve(sum(np.cov(X[y == k].T, bias=True) * np.mean(y == k) for k in (0, 1)), means[1] - means[0])
    np.testing.assert_allclose(model.project(X) / np.linalg.norm(w), X @ own / np.linalg.norm(own), rtol=1e-8)
    shifted = LinearDiscriminantAnalysis(priors=[0.2, 0.8]).fit(X, y)
    assert model.threshold_ - shifted.threshold_ == pytest.approx(np.log(0.8 / 0.2), rel=1e-9)
    along = model.transform(X)[:, 0]
    assert abs(np.corrcoef(along, s)[0, 1]) == pytest.approx(1, abs=1e-12)
    with pytest.raises(AttributeError, match="two classes"):
        LinearDiscriminantAnalysis().fit(*draw(1, classes=3)).threshold_  # noqa: B018
    with pytest.raises(ValueError, match="two classes alone"):
        LinearDiscriminantAnalysis().fit(*draw(1, classes=3)).project(X)


def rows_with_moments(means, root):
    """Return rows whose class means are `means` and whose covariances are root @ root.T, exactly but for rounding: each
    mean -+ sqrt(d) times a column of the root."""
    d = len(root)
    steps = np.sqrt(d) * np.vstack([root.T, -root.T])
    return np.vstack([mean + steps for mean in means]), np.repeat(np.arange(len(means)), 2 * d)


@pytest.mark.mission("LIN-35")
@pytest.mark.parametrize("seed", range(5))
def test_lda_is_the_bayes_rule_where_the_sample_has_the_true_moments(seed):
    """No simulation: on rows with exactly the moments of the Gaussian classes, LDA is their Bayes rule, which was found
    by minimising the error integral itself."""
    rng = np.random.default_rng(seed)
    root, means, prior = rng.normal(size=(3, 3)), rng.normal(size=(2, 3)), [0.3, 0.7]
    X, y = rows_with_moments(means, root)
    model = LinearDiscriminantAnalysis(priors=prior).fit(X, y)
    rule = bayes_rule(means, root @ root.T, prior)
    np.testing.assert_allclose(model.coef_[0], rule.coef, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_[0], rule.intercept, rtol=1e-9, atol=1e-9)
    risk = lambda v: gaussian_risk(v[:3], v[3], means, root @ root.T, prior)  # noqa: E731
    least = min(minimize(risk, rng.normal(size=4), method="BFGS", tol=1e-12).fun for _ in range(5))
    assert risk([*model.coef_[0], model.intercept_[0]]) == pytest.approx(least, abs=1e-9)
    other = QuadraticDiscriminantAnalysis(priors=prior).fit(X, y)  # equal covariances: the quadratic terms vanish
    np.testing.assert_allclose(other.predict_proba(X), model.predict_proba(X), atol=1e-9)


@pytest.mark.mission("LIN-35")
def test_the_excess_over_the_bayes_error_falls_like_one_over_n():
    """The exact error of the fitted rule, by its normal integrals, against that of the Bayes rule; with unequal
    covariances, one of the conditions, a quadratic rule is better."""
    rng = np.random.default_rng(17)
    mix, means = rng.normal(size=(3, 3)), np.array([[0.0, 0, 0], [0.6, -0.4, 0.5]])
    covariance = mix.T @ mix
    bayes = gaussian_risk(*bayes_rule(means, covariance), means, covariance)
    excess = []
    for n in (200, 2_000, 20_000):
        found = []
        for _ in range(20):
            y = np.arange(n) % 2
            model = LinearDiscriminantAnalysis().fit(rng.normal(size=(n, 3)) @ mix + means[y], y)
            found.append(gaussian_risk(model.coef_, model.intercept_, means, covariance) - bayes)
        assert min(found) >= 0
        excess.append(np.mean(found))
    assert 4 < excess[0] / excess[1] < 25
    assert 4 < excess[1] / excess[2] < 25
    y = np.arange(4_000) % 2
    X = rng.normal(size=(4_000, 3)) @ mix * np.where(y, 3.0, 1.0)[:, None] + means[y]
    line, curve = LinearDiscriminantAnalysis().fit(X, y), QuadraticDiscriminantAnalysis().fit(X, y)
    assert curve.score(X, y) > line.score(X, y) + 0.1


def test_the_error_of_a_linear_rule_is_its_frequency():
    rng = np.random.default_rng(18)
    root, means = rng.normal(size=(2, 2)), np.array([[0.0, 1.0], [1.0, 0.0]])
    w, b, prior = np.array([1.0, -0.5]), 0.2, [0.25, 0.75]
    y = (rng.random(400_000) < 0.75).astype(int)
    X = rng.normal(size=(400_000, 2)) @ root.T + means[y]
    wrong = np.mean((X @ w + b > 0) != y)
    assert gaussian_risk(w, b, means, root @ root.T, prior) == pytest.approx(wrong, abs=4 * 0.5 / np.sqrt(400_000))
    for bad, words in (((means, np.eye(3)), "shapes"), ((means, np.eye(2), [0.5, 0.6]), "sum to 1")):
        with pytest.raises(ValueError, match=words):
            bayes_rule(*bad)


@pytest.mark.mission("LIN-35")
def test_lda_approaches_the_bayes_rule_of_gaussian_classes():
    """Equal priors, Gaussian classes, one covariance: decisions agree with the true Bayes rule as rows
    grow."""
    rng = np.random.default_rng(7)
    mix = rng.normal(size=(3, 3))
    means = np.array([[0.0, 0, 0], [0.4, -0.2, 0.2]])
    direction = np.linalg.solve(mix.T @ mix, means[1] - means[0])
    fresh = rng.normal(size=(20_000, 3)) @ mix + means[rng.integers(0, 2, 20_000)]
    bayes = fresh @ direction > direction @ means.mean(axis=0)
    disagreements = []
    for n in (100, 1_000, 100_000):
        y = np.arange(n) % 2
        X = rng.normal(size=(n, 3)) @ mix + means[y]
        disagreements.append(np.mean(LinearDiscriminantAnalysis().fit(X, y).predict(fresh) != bayes))
    assert disagreements[2] < 0.005
    assert disagreements[2] < disagreements[0]


@pytest.mark.mission("LIN-37")
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_agrees_with_scikit_learn(load):
    X, y = load(return_X_y=True)
    ours, peer = LinearDiscriminantAnalysis().fit(X, y), PeerLDA().fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-9, atol=1e-11 * np.abs(peer.coef_).max())
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-10)
    np.testing.assert_allclose(ours.explained_variance_ratio_, peer.explained_variance_ratio_, atol=1e-12)
    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(peer.transform(X)), atol=1e-9)
    eigen = PeerLDA(solver="eigen").fit(X, y)
    k = ours.scalings_.shape[1]
    assert subspace_angles(ours.scalings_, eigen.scalings_[:, :k]).max() < 1e-5
    auto, peer = (
        LinearDiscriminantAnalysis("lsqr", shrinkage="auto").fit(X, y),
        PeerLDA(solver="lsqr", shrinkage="auto").fit(X, y),
    )
    np.testing.assert_allclose(auto.predict_proba(X), peer.predict_proba(X), atol=1e-6)


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


@pytest.mark.parametrize("options", [{}, {"covariance": "equal"}, {"solver": "lsqr", "shrinkage": 0.3}])
@pytest.mark.parametrize("classes", [2, 3])
def test_certificate_holds_and_a_worse_direction_is_caught(classes, options):
    X, y = draw(10, n=700, classes=classes)
    model = LinearDiscriminantAnalysis(**options).fit(X, y)
    certificate = model.certify(X, y)
    claim = certificate.find("D19")
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason
    assert claim.value < 1e-5
    if classes == 2:
        turned = LinearDiscriminantAnalysis(**options).fit(X, y)
        turned.coef_ = turned.coef_ * np.array([1.05, 1, 1, 1])
        report = assay.verify(turned.certify(X, y), turned, X, y)
        assert report.holds, report.reason  # still true: the claim says how much is lost
        lost = turned.certify(X, y).find("D19").value
        apart = np.diff(turned.means_, axis=0)[0]
        J = [fisher_ratio(m.coef_[0], np.outer(apart, apart), turned.sigma_) for m in (model, turned)]
        assert lost > 0.99 * (J[0] - J[1]) > 100 * claim.value
        claims = tuple(claim if c.template == "D19/1" else c for c in turned.certify(X, y).claims)
        forged = replace(turned.certify(X, y), claims=claims)
        assert "lda.optimality" in assay.verify(forged, turned, X, y).reason
    for change in ({"mu": claim.params["mu"] * 3}, {"shrinkage": 0.9}, {"covariance": "none"}):
        wrong = replace(claim, params={**claim.params, **change})
        claims = tuple(wrong if c is claim else c for c in certificate.claims)
        assert not assay.verify(replace(certificate, claims=claims), model, X, y).holds


MODELS = [
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(covariance="equal"),
    LinearDiscriminantAnalysis("lsqr", shrinkage=0.3),
    LinearDiscriminantAnalysis("lsqr", shrinkage=0.3, priors=[0.2, 0.5, 0.3]),
    LinearDiscriminantAnalysis("eigen", priors=[0.2, 0.5, 0.3]),
    QuadraticDiscriminantAnalysis(),
    QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.3),
    QuadraticDiscriminantAnalysis(reg_param=0.2, priors=[0.2, 0.5, 0.3]),
]


@pytest.mark.parametrize("offset", [0.0, 30.0, 1e6])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_moments_and_scores_are_proved_on_whatever_offset(model, offset):
    for classes in (2, 3):
        X, y = draw(14, n=300, classes=classes)
        X, priors = X - 30 + offset, {2: [0.4, 0.6], 3: [0.2, 0.5, 0.3]}
        model = clone(model).set_params(priors=None if model.priors is None else priors[classes]).fit(X, y)
        certificate = model.certify(X, y)
        report = assay.verify(certificate, model, X, y)
        assert report.holds, report.reason
        claim = certificate.find("D19/3")
        assert claim.params["error"] < 1e-10 + 1e-13 * offset
        assert claim.value < 1e-4 + 1e-9 * offset


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
def test_forged_moments_and_scores_are_refused(kind, classes):
    """Another model under the old claim, other moments, other parameters: each change is more than the claim allows."""
    X, y = draw(15, n=300, classes=classes)
    model = kind().fit(X, y)
    certificate = model.certify(X, y)
    claim = certificate.find("D19/3")

    def holds(changed, fitted=model):
        issued = replace(fitted.certify(X, y), claims=(*certificate.claims[:2], changed))
        return assay.verify(issued, fitted, X, y)

    assert holds(claim).holds
    names = ("coef_", "intercept_") if kind is LinearDiscriminantAnalysis else ("quadratic_", "linear_", "constant_")
    for name in names:
        bent = kind().fit(X, y)
        setattr(bent, name, getattr(bent, name) * (1 + 1e-4))
        assert "gaussian.mle: fails: claimed" in holds(claim, bent).reason
    for name, words in (("means", "a mean is off"), ("covariance", "a covariance is off")):
        moved = claim.witness[name].copy()
        moved.flat[0] += 1e-5 * abs(moved.flat[0])
        assert words in holds(replace(claim, witness={**claim.witness, name: moved})).reason
    if kind is QuadraticDiscriminantAnalysis:
        moved = claim.witness["precision"] * 1.001
        assert not holds(replace(claim, witness={**claim.witness, "precision": moved})).holds
    wide = claim.witness["exponents"] - 9  # in coarser units every error would look small
    assert "unit spread" in holds(replace(claim, witness={**claim.witness, "exponents": wide})).reason
    even = [1 / classes] * classes
    for change in ({"mu": 3 * claim.params["mu"]}, {"shrinkage": 0.1}, {"priors": even}, {"priors": even[:-1]}):
        assert not holds(replace(claim, params={**claim.params, **change})).holds
    other = "quadratic" if kind is LinearDiscriminantAnalysis else "linear"
    assert "it needs a" in holds(replace(claim, params={**claim.params, "form": other})).reason


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_files_and_clusters_give_the_same_directions(tmp_path):
    import dask.array as da
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y = draw(11, n=20_000, classes=3)
    pq.write_table(pa.table([*X.T.copy(), y], names=["a", "b", "c", "d", "y"]), tmp_path / "rows.parquet")
    for kind in (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis):
        memory = kind().fit(X, y)
        parquet = kind().fit(str(tmp_path / "rows.parquet"), "y")
        dask = kind().fit(da.from_array(X, chunks=(3_000, 4)), da.from_array(y, chunks=3_000))
        for other in (parquet, dask):
            np.testing.assert_allclose(other.decision_function(X), memory.decision_function(X), rtol=1e-8, atol=1e-8)
    certificate = memory.certify(str(tmp_path / "rows.parquet"), "y")
    assert assay.verify(certificate, memory, X, y).holds


def test_threads_change_no_bit():
    X, y = draw(12, n=40_000)
    one, two = (LinearDiscriminantAnalysis(n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_quadratic_agrees_with_scikit_learn(load):
    X, y = load(return_X_y=True)
    for options in ({}, {"reg_param": 0.2}, {"priors": [0.2, 0.3, 0.5]}):
        ours, peer = QuadraticDiscriminantAnalysis(**options).fit(X, y), PeerQDA(**options).fit(X, y)
        np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-9)
        certificate = ours.certify(X, y)
        report = assay.verify(certificate, ours, X, y)
        assert report.holds, report.reason


def test_quadratic_learns_what_no_line_can():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(4_000, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = QuadraticDiscriminantAnalysis().fit(X, y)
    assert model.score(X, y) > 0.95
    certificate = model.certify(X, y)
    assert certificate.find("P10").params["class"] == {
        "class": "function-space",
        "dimension": 6,
        "classes": 2,
    }
    assert assay.verify(certificate, model, X, y).holds
    claim = certificate.find("P10")
    small = replace(claim, params={**claim.params, "class": {**claim.params["class"], "dimension": 3}})
    claims = tuple(small if c is claim else c for c in certificate.claims)
    assert "does not belong" in assay.verify(replace(certificate, claims=claims), model, X, y).reason
    model.quadratic_ = -model.quadratic_
    assert "fingerprint" in assay.verify(certificate, model, X, y).reason


def test_refusals_say_what_is_wrong():
    X, y = draw(13)
    for kind, options, words in [
        (LinearDiscriminantAnalysis, {"shrinkage": 2}, "shrinkage must be"),
        (LinearDiscriminantAnalysis, {"priors": [0.5, -0.5]}, "priors must be non-negative"),
        (LinearDiscriminantAnalysis, {"n_components": 2}, r"larger than min\(n_features, n_classes - 1\) = 1"),
        (LinearDiscriminantAnalysis, {"solver": "qr"}, "'svd', 'lsqr', 'eigen'"),
        (LinearDiscriminantAnalysis, {"covariance": "both"}, "'pooled', 'equal'"),
        (QuadraticDiscriminantAnalysis, {"reg_param": -1}, "reg_param must be"),
    ]:
        with pytest.raises(ValueError, match=words):
            kind(**options).fit(X, y)
    with pytest.raises(ValueError, match="two rows"):
        QuadraticDiscriminantAnalysis().fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    with pytest.raises(NotImplementedError, match="shrinkage not supported"):
        LinearDiscriminantAnalysis(shrinkage=0.5).fit(X, y)
    with pytest.raises(NotImplementedError, match="transform not implemented"):
        LinearDiscriminantAnalysis("lsqr").fit(X, y).transform(X)
    flat = np.column_stack([X, X[:, 0]])
    with pytest.raises(LinAlgError, match=r"covariance matrix of class .+ is not full rank"):
        QuadraticDiscriminantAnalysis().fit(flat, y)
    with pytest.warns(UserWarning, match="reg_param belongs to solver='svd'"):
        QuadraticDiscriminantAnalysis(solver="eigen", reg_param=0.1).fit(X, y)


def _options(solver, **more):
    return {"solver": solver, "store_covariance": True, **more}


@pytest.mark.parametrize("priors", [None, [0.2, 0.3, 0.5]])
@pytest.mark.parametrize(
    "options",
    [
        _options("svd"),
        _options("lsqr"),
        _options("eigen"),
        _options("lsqr", shrinkage=0.4),
        _options("eigen", shrinkage=0.4),
        _options("eigen", shrinkage="auto"),
        _options("eigen", covariance_estimator=OAS()),
        _options("lsqr", covariance_estimator=OAS()),
    ],
    ids=str,
)
def test_every_solver_has_scikit_learns_meaning(options, priors):
    X, y = load_wine(return_X_y=True)
    ours, peer = (kind(priors=priors, **options).fit(X, y) for kind in (LinearDiscriminantAnalysis, PeerLDA))
    if options["solver"] != "svd" or priors is None:  # there scikit-learn shows another matrix than it uses
        np.testing.assert_allclose(ours.covariance_, peer.covariance_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-9)
    if options["solver"] != "lsqr":
        np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(peer.transform(X)), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(ours.explained_variance_ratio_, peer.explained_variance_ratio_, atol=1e-9)
    _certified_or_said_why_not(ours, X, y)


def _certified_or_said_why_not(model, X, y):
    if model.covariance_estimator is not None:
        with pytest.raises(ValueError, match=r"covariance_estimator.* cannot be saved"):
            model.certify(X, y)
        return
    report = assay.verify(model.certify(X, y), model, X, y)
    assert report.holds, report.reason


@pytest.mark.parametrize(
    "options", [{"shrinkage": 0.4}, {"shrinkage": "auto"}, {"covariance_estimator": OAS()}], ids=str
)
def test_quadratic_shrinkage_agrees_with_scikit_learn(options):
    X, y = load_wine(return_X_y=True)
    options = {"solver": "eigen", "store_covariance": True, **options}
    ours, peer = (kind(**options).fit(X, y) for kind in (QuadraticDiscriminantAnalysis, PeerQDA))
    np.testing.assert_allclose(ours.covariance_, peer.covariance_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-8)
    for k in range(3):
        np.testing.assert_allclose(ours.scalings_[k], peer.scalings_[k], rtol=1e-8)
        np.testing.assert_allclose(np.abs(ours.rotations_[k]), np.abs(peer.rotations_[k]), atol=1e-7)
    _certified_or_said_why_not(ours, X, y)


def test_single_precision_is_kept_and_certified():
    X, y = draw(16, n=200, classes=3)
    X = X.astype(np.float32)
    model = LinearDiscriminantAnalysis().fit(X, y)
    assert model.coef_.dtype == np.float32
    assert assay.verify(model.certify(X, y), model, X, y).holds

"""Claims about mixtures and densities: they hold for honest fits, and no mutant is accepted unless it is true.

A mutant changes the model, the numbers of the claim or the rows, and is sealed again with fingerprints that fit, as a
forger who has the software could do. Truth is decided from the definitions, by formulas of this file.
"""

import warnings
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import assay
from assay.mixture import GaussianDensity, GaussianMixture, GaussianMixtureClassifier, HistogramDensity
from bench.worlds import densities
from tests.certificate import forge

KINDS = ("full", "tied", "diag", "spherical")
MUTANTS = 80


def draw(seed=0, n=120, d=2, scale=1.0):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)
    return scale * (np.array([[-2.0] * d, [2.0] * d])[z] + rng.normal(size=(n, d)) * rng.uniform(0.5, 1.5, size=d))


def quiet(model, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data, **options)


# Honest fits --------------------------------------------------------------------------------------------------


@pytest.mark.mission("LAT-02")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_iter", [1, 3, 200])
def test_certificates_hold_however_early_the_fit_stopped(kind, max_iter):
    for seed, scale in ((0, 1.0), (1, 1e-3), (2, 1e4)):
        X = draw(seed, scale=scale) * [1.0, 1e3] + [1e3 * scale, 0.0]
        weight = None if seed else np.random.default_rng(3).uniform(0.1, 2.0, len(X))
        model = GaussianMixture(2, covariance_type=kind, max_iter=max_iter, tol=1e-9, reg_covar=0.0, random_state=0)
        quiet(model, X, sample_weight=weight)
        certificate = model.certify(X, sample_weight=weight)
        report = assay.verify(certificate, model, X, sample_weight=weight)
        assert report.holds, report.reason
        assert {"density.log-likelihood", "em.stationary", "em.weights"} <= {claim.name for claim in certificate.claims}
        assert not assay.verify(certificate, model, X[::-1], sample_weight=weight).holds


def test_a_converged_fit_is_shown_to_be_one():
    X = draw()
    model = GaussianMixture(2, tol=1e-13, max_iter=5000, random_state=0).fit(X)
    certificate = model.certify(X)
    assert certificate.find("em.stationary").value < 1e-9
    assert certificate.find("em.weights").value < 1e-6
    assert certificate.find("em.monotone").params["steps"] == model.n_iter_
    early = quiet(GaussianMixture(2, max_iter=1, init_params="random", random_state=0), X).certify(X)
    assert early.find("em.stationary").value > 100 * certificate.find("em.stationary").value


@pytest.mark.parametrize("kind", KINDS)
def test_the_gain_is_that_of_the_definition(kind):
    X = draw()
    model = quiet(GaussianMixture(2, covariance_type=kind, max_iter=2, init_params="random", random_state=1), X)
    claim = model.certify(X).find("em.stationary")
    assert claim.value == pytest.approx(gain_of(model, claim, X), rel=1e-5, abs=1e-9)


def test_what_cannot_be_said_is_said():
    X = draw()
    hard = GaussianMixture(2, assignment="hard", random_state=0).fit(X).certify(X)
    assert any(gap.name == "em.stationary" and "Hard EM" in gap.reason for gap in hard.not_applicable)
    model = GaussianMixture(2, random_state=0).fit(X)
    told = model.certify(X, holdout=(draw(5), None))
    assert any("pass clip=(least, largest)" in gap.reason for gap in told.not_applicable)
    for clip in (3.0, (1.0, 1.0), (0.0, np.inf), ("a", "b")):
        with pytest.raises(ValueError, match="GaussianMixture: clip must be two finite numbers"):
            model.certify(X, holdout=(draw(5), None), clip=clip)
    grid = HistogramDensity(bounds=(-1.0, 1.0)).fit(X)
    certificate = grid.certify(X)
    outside = int(np.sum((np.abs(X) > 1).any(axis=1)))
    assert certificate.find("histogram.counts").value == outside
    assert assay.verify(certificate, grid, X).holds


# Mutants ------------------------------------------------------------------------------------------------------


def holds(model, claim, X):
    return forge.Case((claim,), model, X, None).verify().holds


def mutate(model, claim, X, random):
    """Return model, claim and rows with one thing changed a little, or a lot."""
    model = deepcopy(model)
    size, params, X = 10.0 ** random.uniform(-12, 0), dict(claim.params), X.copy()
    value, witness = claim.value, dict(claim.witness)
    which = random.integers(5)
    if which == 0:
        name = str(random.choice(list(model.arrays)))
        part = getattr(model, name)
        part[tuple(random.integers(side) for side in part.shape)] *= 1 + size * random.normal()
    elif which == 1:
        numbers = [name for name, number in params.items() if isinstance(number, float)]
        if numbers:
            name = str(random.choice(numbers))
            params[name] = float(params[name] * np.exp(size * random.normal()))
    elif which == 2:
        X[random.integers(len(X))] += size * random.normal(size=X.shape[1])
    elif which == 3 and witness:
        name = str(random.choice(list(witness)))
        witness[name] = witness[name] * (1 + size * random.normal(size=witness[name].shape))
    if random.random() < 0.8:
        value = float(value * 10.0 ** random.uniform(-4, 8))
    return model, replace(claim, params=params, value=value, witness=witness), X


def matrices(model):
    k, d = model.means_.shape
    U = model.precisions_cholesky_
    if U.ndim == 1:
        return U[:, None, None] * np.eye(d)
    if U.ndim == 2 and model.family == "mixture.diag":
        return U[:, :, None] * np.eye(d)
    return np.broadcast_to(U, (k, d, d))


def joint_of(model, X):
    weights = model.weights_ / model.weights_.sum()
    return np.stack(
        [
            np.log(w) + multivariate_normal(m, np.linalg.inv(U @ U.T)).logpdf(X)
            for w, m, U in zip(weights, model.means_, matrices(model), strict=True)
        ],
        axis=1,
    )


def is_mixture(model):
    U = matrices(model)
    right = (np.diagonal(U, axis1=1, axis2=2) > 0).all() and not np.tril(U, -1).any()
    return right and (model.weights_ >= 0).all() and abs(model.weights_.sum() - 1) <= 1e-9


def likelihood_is_true(model, claim, X):
    if model.family == "histogram":
        return abs(histogram_mean(model, X) - claim.params["center"]) <= claim.value + 1e-12
    return (
        is_mixture(model)
        and abs(logsumexp(joint_of(model, X), axis=1).mean() - claim.params["center"]) <= claim.value + 1e-12
    )


def gain_of(model, claim, X):
    """Return Q after an M step minus Q before, per row, each by its definition."""
    joint = joint_of(model, X)
    shares = np.exp(joint - logsumexp(joint, axis=1)[:, None])
    mass, kind, reg = shares.sum(axis=0), claim.params["covariance"], claim.params["reg_covar"]
    weights, means = mass / len(X), shares.T @ X / mass[:, None]
    d = X.shape[1]
    S = [((X - m).T * r) @ (X - m) / n for m, r, n in zip(means, shares.T, mass, strict=True)]
    if kind == "tied":
        S = [np.einsum("k,kij->ij", weights, np.array(S))] * len(S)
    if kind == "diag":
        S = [np.diag(np.diag(one)) for one in S]
    if kind == "spherical":
        S = [np.eye(d) * np.trace(one) / d for one in S]

    def expected(w, m, covariances):
        total = 0.0
        for k in range(len(w)):
            blur = 0.5 * reg * np.trace(np.linalg.inv(covariances[k]))
            total += shares[:, k] @ (np.log(w[k]) + multivariate_normal(m[k], covariances[k]).logpdf(X) - blur)
        return total / len(X)

    before = [np.linalg.inv(U @ U.T) for U in matrices(model)]
    after = [one + reg * np.eye(d) for one in S]
    return expected(weights, means, after) - expected(model.weights_ / model.weights_.sum(), model.means_, before)


def gain_is_true(model, claim, X):
    return is_mixture(model) and gain_of(model, claim, X) <= claim.value + 1e-10


def weights_are_true(model, claim, X):
    if not is_mixture(model):
        return False
    parts = joint_of(model, X) - np.log(model.weights_ / model.weights_.sum())
    first, second = parts.T  # two components: concave in the share of the first

    def loss(share):
        return -np.logaddexp(first + np.log(share), second + np.log1p(-share)).mean()

    best = -minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12}).fun
    return best - logsumexp(joint_of(model, X), axis=1).mean() <= claim.value + 1e-10


def way_is_true(model, claim, X):
    """EM from the listed start, by definition: ends near the model, and no step lowers the mean log-likelihood."""
    at = forge.Forged(
        family="mixture.full",
        weights_=claim.witness["weights"],
        means_=claim.witness["means"],
        precisions_cholesky_=claim.witness["factors"],
    )
    if not (is_mixture(at) and is_mixture(model)):
        return False
    history = []
    for _ in range(claim.params["steps"]):
        joint = joint_of(at, X)
        history.append(logsumexp(joint, axis=1).mean())
        shares = np.exp(joint - logsumexp(joint, axis=1)[:, None])
        mass = shares.sum(axis=0)
        means = shares.T @ X / mass[:, None]
        S = [((X - m).T * r) @ (X - m) / n for m, r, n in zip(means, shares.T, mass, strict=True)]
        factors = np.array(
            [np.linalg.inv(np.linalg.cholesky(one + claim.params["reg_covar"] * np.eye(X.shape[1]))).T for one in S]
        )
        at = forge.Forged(family=at.family, weights_=mass / len(X), means_=means, precisions_cholesky_=np.triu(factors))
    history.append(logsumexp(joint_of(at, X), axis=1).mean())
    near = all(
        np.linalg.norm(U.T @ (a - b)) <= claim.params["distance"] * 1.001
        for U, a, b in zip(matrices(model), at.means_, model.means_, strict=True)
    )
    return near and float(-np.min(np.diff(history))) <= claim.value + 1e-12


def histogram_counts(model, X):
    edges = model.edges_
    inside = ((edges[:, 0] <= X) & (edges[:, -1] >= X)).all(axis=1)
    counts, _ = np.histogramdd(X[inside], bins=list(edges))
    return counts, int(np.sum(~inside))


def histogram_mean(model, X):
    bins, d = model.edges_.shape[1] - 1, len(model.edges_)
    counts = np.zeros((bins,) * d)
    counts[tuple(model.cells_.astype(int).T)] = model.counts_
    place = [
        np.clip(np.searchsorted(e, x, side="right") - 1, 0, bins - 1) for e, x in zip(model.edges_, X.T, strict=True)
    ]
    volume = np.prod([np.diff(e)[p] for e, p in zip(model.edges_, place, strict=True)], axis=0)
    with np.errstate(divide="ignore"):
        return float(np.mean(np.log(counts[tuple(place)] / counts.sum() / volume)))


def counts_are_true(model, claim, X):
    counts, outside = histogram_counts(model, X)
    stored = np.zeros_like(counts)
    stored[tuple(model.cells_.astype(int).T)] = model.counts_
    return np.array_equal(stored, counts) and outside <= claim.value


CASES = {
    "density.log-likelihood": (lambda: GaussianMixture(2, random_state=0), likelihood_is_true),
    "em.stationary": (lambda: GaussianMixture(2, random_state=0), gain_is_true),
    "em.stationary tied": (lambda: GaussianMixture(2, covariance_type="tied", random_state=0), gain_is_true),
    "em.stationary diag": (
        lambda: GaussianMixture(2, covariance_type="diag", random_state=0, reg_covar=0.0),
        gain_is_true,
    ),
    "em.stationary spherical": (lambda: GaussianMixture(2, covariance_type="spherical", random_state=0), gain_is_true),
    "em.weights": (lambda: GaussianMixture(2, random_state=0), weights_are_true),
    "em.monotone": (lambda: GaussianMixture(2, random_state=0), way_is_true),
    "histogram.counts": (lambda: HistogramDensity(bins=4), counts_are_true),
    "density.log-likelihood histogram": (lambda: HistogramDensity(bins=4), likelihood_is_true),
}


@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_is_accepted(name):
    make, truth = CASES[name]
    random = np.random.default_rng(0)
    accepted = refused = 0
    with np.errstate(all="ignore"):
        for seed in range(2):
            X = draw(seed)
            model = quiet(make(), X)
            certificate = model.certify(X)
            honest = certificate.find(name.split()[0])
            assert holds(forge.Forged.copy_of(model), honest, X)
            assert truth(forge.Forged.copy_of(model), honest, X)
            for _ in range(MUTANTS):
                other, claim, changed = mutate(forge.Forged.copy_of(model), honest, X, random)
                if holds(other, claim, changed):
                    assert truth(other, claim, changed), claim
                    accepted += 1
                else:
                    refused += 1
    assert accepted
    assert refused


def test_named_forgeries_are_refused_and_harmless_changes_are_not():
    X = draw()
    model = GaussianMixture(2, random_state=0).fit(X)
    certificate, honest = model.certify(X), forge.Forged.copy_of(model)
    claim = certificate.find("density.log-likelihood")
    for center in (claim.params["center"] + 1e-9, claim.params["center"] - 1e-9):  # rounded up, rounded down
        assert not holds(honest, replace(claim, params={"center": center}), X)
    forgeries = {
        "weights_": lambda part: part * 1.01,
        "precisions_cholesky_": lambda part: -part,
        "means_": lambda part: part[:1],
    }
    for name, change in forgeries.items():
        forged = forge.Forged.copy_of(model)
        setattr(forged, name, change(getattr(forged, name)))
        assert not holds(forged, claim, X)
    lower = forge.Forged.copy_of(model)
    lower.precisions_cholesky_[0, 1, 0] = 1e-3
    assert not holds(lower, claim, X)
    turned = forge.Forged.copy_of(model)
    for name in ("weights_", "means_", "precisions_cholesky_"):
        setattr(turned, name, getattr(turned, name)[::-1].copy())
    for claimed in ("density.log-likelihood", "em.stationary", "em.weights"):
        assert holds(turned, certificate.find(claimed), X)
    stationary = certificate.find("em.stationary")
    for change in ({"covariance": "diag"}, {"covariance": "tied"}, {"reg_covar": 0.5}, {"moved": 0.0}):
        assert not holds(honest, replace(stationary, params={**stationary.params, **change}), X)
    way = certificate.find("em.monotone")
    for change in ({"steps": way.params["steps"] + 50}, {"distance": 1e-16}, {"steps": 10**9}):
        assert not holds(honest, replace(way, params={**way.params, **change}), X)


def test_claims_of_classes_are_about_their_rows():
    rng = np.random.default_rng(0)
    X, y = draw(n=300), rng.integers(0, 2, 300)
    X[y == 1] += [3.0, 0.0]
    model = GaussianMixtureClassifier(2, covariance_type="diag", random_state=0).fit(X, y)
    certificate = model.certify(X, y, holdout=(X + 0.01, y))
    report = assay.verify(certificate, model, X, y, holdout=(X + 0.01, y))
    assert report.holds, report.reason
    first, second = (one for one in certificate.claims if one.name == "em.stationary")
    assert (first.params["class"], second.params["class"]) == (0, 1)
    for change in ({"class": 1}, {"class": 2}, {"covariance": "spherical"}):
        forged = replace(first, params={**first.params, **change})
        claims = tuple(forged if one is first else one for one in certificate.claims)
        assert not assay.verify(replace(certificate, claims=claims), model, X, y, holdout=(X + 0.01, y)).holds


# New data -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [GaussianDensity, lambda: GaussianMixture(2, random_state=0), lambda: HistogramDensity(bins=5)]
)
def test_bounds_of_the_log_loss_are_checked(make):
    X, H = draw(n=300), draw(seed=7, n=200)
    model = make().fit(X)
    certificate = model.certify(X, holdout=(H, None), clip=(-2.0, 12.0))
    report = assay.verify(certificate, model, X, holdout=(H, None))
    assert report.holds, report.reason
    seen = np.clip(-model.score_samples(H), -2.0, 12.0).mean() + 2.0
    claim = certificate.find("holdout.betting")
    assert seen < claim.value < 14.0
    assert "-ln p(x)" in claim.statement
    for change in ({"value": claim.value * 0.98}, {"params": {**claim.params, "low": -3.0}}, {"delta": "0.0001"}):
        claims = tuple(replace(one, **change) if one is claim else one for one in certificate.claims)
        assert not assay.verify(replace(certificate, claims=claims), model, X, holdout=(H, None)).holds, change
    other = {**claim.params, "loss": "absolute"}
    claims = tuple(replace(one, params=other) if one is claim else one for one in certificate.claims)
    assert not assay.verify(replace(certificate, claims=claims), model, X, holdout=(H, None)).holds


def test_the_promise_about_new_log_losses_is_kept_and_the_control_is_caught():
    runs, kept, caught = 120, 0, 0
    for seed in range(runs):
        kept += densities.histogram_log_loss(np.random.default_rng(seed), 0.2)[0]
        if seed < 40:
            caught += densities.histogram_on_its_own_rows(np.random.default_rng(seed), 0.2)[0]
    assert kept <= 46  # P[Bin(120, 0.2) >= 47] < 1e-6
    assert caught >= 30

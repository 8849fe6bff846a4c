"""Centres and flats (pca.optimality, kmeans.fixed-point to kmeans-1d.optimal, kmeans.risk): honest claims by hand,
attacks on them, and the lemmas they rest on."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import assay
from assay.checker.families.centroids import column_cost, line_optimum
from assay.checker.rules.centroids import eigenvalues
from assay.cluster import KMeans
from assay.decomposition import PCA, TruncatedSVD
from assay.guarantees.evidence import Distances
from tests.certificate import attacks, forge
from tests.evidence import evidence

FIELDS = {"centroids": ("cluster_centers_",), "projection": ("components_", "center_")}


def case(claim, X, weight=None, **arrays):
    family = "centroids" if "cluster_centers_" in arrays else "projection"
    return forge.Case((claim,), forge.Forged(family=family, **arrays), X, np.zeros(len(X)), weight).seal()


# Oracles ----------------------------------------------------------------------------------------------------


def fractions(rows):
    return [[Fraction(float(v)) for v in row] for row in rows]


def weights(case):
    return [Fraction(1)] * len(case.X) if case.weight is None else [Fraction(float(w)) for w in case.weight]


def square(a, b):
    return sum(((u - v) ** 2 for u, v in zip(a, b)), Fraction(0))


def exact_cost(case):
    """The cost, and the largest squared distance of a centre from the mean of its rows, in rational numbers."""
    X, C, w = fractions(case.X), fractions(case.model.cluster_centers_), weights(case)
    owner = [min(range(len(C)), key=lambda j: square(x, C[j])) for x in X]
    cost = sum((s * square(x, C[j]) for x, j, s in zip(X, owner, w)), Fraction(0))
    apart = Fraction(0)
    for j, center in enumerate(C):
        mass = sum((s for s, own in zip(w, owner) if own == j), Fraction(0))
        if mass:
            mean = [
                sum((s * x[t] for x, own, s in zip(X, owner, w) if own == j), Fraction(0)) / mass
                for t in range(len(center))
            ]
            apart = max(apart, square(center, mean))
    return cost, apart


def least_cost(case):
    """The least cost of any partition into as many clusters, by trying all of them."""
    X, w, k = case.X, np.array(weights(case), dtype=float), len(case.model.cluster_centers_)
    best = math.inf
    for labels in itertools.product(range(k), repeat=len(X) - 1):
        labels, cost = np.array((0, *labels)), 0.0
        for j in set(labels):
            own, s = X[labels == j], w[labels == j]
            if s.sum() > 0:
                cost += float(s @ ((own - np.average(own, axis=0, weights=s)) ** 2).sum(axis=1))
        best = min(best, cost)
    return best


def truth_of_cost(case):
    cost, apart = exact_cost(case)
    return cost <= Fraction(case.claim.value) and apart <= Fraction(float(case.claim.params["shift"])) ** 2 * (
        1 + Fraction(1, 10**12)
    )


def truth_of_floor(case):
    return least_cost(case) >= case.claim.value * (1 - 1e-12)


def truth_of_line(case):
    return float(exact_cost(case)[0]) - least_cost(case) <= case.claim.value * (1 + 1e-12) + 1e-13


def flat_excess(case):
    X, V, c = case.X, case.model.components_, case.model.center_
    Q, _ = np.linalg.qr(V.T)
    rest = (X - c) - ((X - c) @ Q) @ Q.T
    about = X.mean(axis=0) if case.claim.params["centred"] else 0.0
    lengths = np.linalg.svd(X - about, compute_uv=False) ** 2
    return float(np.mean(np.sum(rest**2, axis=1)) - lengths[len(V) :].sum() / len(X))


def truth_of_flat(case):
    if case.weight is not None and np.any(case.weight != 1):
        return False
    return flat_excess(case) <= case.claim.value + 1e-13 * float(np.sum(case.X**2))


def centre_risk(case, two=2.0, twice=2.0, half=2.0, three=3.0, four=4.0, second=2.0):
    """kmeans.risk with its constants by name."""
    params, n = case.claim.params, len(case.X)
    k, R = len(case.model.cluster_centers_), params["radius"]
    cost = float(exact_cost(case)[0]) / n
    size = k * (twice * R * math.sqrt(np.sum(case.X**2)) / n + R * R / (half * math.sqrt(n)))
    return cost + two * size + three * four * R * R * math.sqrt(-math.log(float(case.claim.delta)) / (second * n))


def flat_risk(case, two=2.0, twice=2.0, half=2.0, three=3.0, four=4.0, second=2.0):
    """projection.risk with its constants by name."""
    params, (n, d), (k, _) = case.claim.params, case.X.shape, case.model.components_.shape
    Q, _ = np.linalg.qr(case.model.components_.T)
    moved, R, squares = case.X - case.model.center_, params["radius"], np.sum(case.X**2, axis=1)
    cost = np.mean(np.sum((moved - (moved @ Q) @ Q.T) ** 2, axis=1))
    size, most = math.sqrt(min(k, d - k) * np.sum(squares**2)) / n, R * R
    if params["centred"]:
        size, most = size + twice * R * math.sqrt(squares.sum()) / n + R * R / (half * math.sqrt(n)), four * R * R
    return cost + two * size + three * most * math.sqrt(-math.log(float(case.claim.delta)) / (second * n))


def truth_of_risk(case):
    longest = max(np.linalg.norm(case.X, axis=1).max(), 0.0)
    R = case.claim.params["radius"]
    if case.weight is not None and np.any(case.weight != 1):
        return False
    if case.model.family == "centroids":
        inside = np.linalg.norm(case.model.cluster_centers_, axis=1).max() <= R * (1 + 1e-12)
        return longest <= R * (1 + 1e-12) and inside and centre_risk(case) <= case.claim.value * (1 + 1e-12)
    centred = case.claim.params["centred"]
    inside = np.linalg.norm(case.model.center_) <= R * (1 + 1e-12) and (centred or not np.any(case.model.center_))
    return longest <= R * (1 + 1e-12) and inside and flat_risk(case) <= case.claim.value * (1 + 1e-12)


# Honest cases -----------------------------------------------------------------------------------------------


def lloyd(X, C, w, steps):
    for _ in range(steps):
        owner = ((X[:, None] - C[None]) ** 2).sum(axis=2).argmin(axis=1)
        C = np.array(
            [
                np.average(X[owner == j], axis=0, weights=w[owner == j]) if w[owner == j].sum() > 0 else c
                for j, c in enumerate(C)
            ]
        )
    return C


def centres_case(seed, name):
    rng = np.random.default_rng([seed, 20])
    d, k, n = (1 if name == "kmeans-1d.optimal" else 1 + seed % 3), 2 + seed % 2, 8
    X = np.round(rng.normal(size=(n, d)) * 4) / 4 + (100.0 if seed % 4 == 3 else 0.0)
    w = rng.integers(1, 4, n).astype(float) if seed % 3 == 1 else None
    params = {"clusters": k, "rows": n}
    C = lloyd(X, X[:k].copy(), np.ones(n) if w is None else w, 4 if seed % 5 else 1)
    made = case(forge.claim("kmeans.fixed-point", 1.0, params=params | {"shift": 1.0}), X, w, cluster_centers_=C)
    cost, apart = exact_cost(made)
    if name == "kmeans.fixed-point":
        shift = math.sqrt(apart) * (1 + 1e-9) + 1e-11
        claim = forge.claim(name, float(cost) * (1 + 1e-9) + 1e-12, params=params | {"shift": shift})
    elif name == "kmeans-1d.optimal":
        claim = forge.claim(name, (float(cost) - least_cost(made)) * (1 + 1e-9) + 1e-10, params=params)
    else:
        form = {"form": "axes", "buckets": 16} if seed % 2 else {"form": "spectral"}
        claim = forge.claim(name, 0.0, "lower", params=params | form)
        measured = case(claim, X, w, cluster_centers_=C).verify().verdicts[0].measured
        claim = replace(claim, value=measured * (1 - 1e-9))
    return case(claim, X, w, cluster_centers_=C)


def flat_case(seed, name):
    rng = np.random.default_rng([seed, 18])
    d, k, centred = 3 + seed % 3, 1 + seed % 2, seed % 2 == 0
    n = 12 if name == "pca.optimality" else 400
    X = rng.normal(size=(n, d)) * rng.uniform(0.2, 2, d) + (1.0 if centred else 0.0)
    if name == "projection.risk":
        X /= np.linalg.norm(X, axis=1).max() * 1.001
    about = X.mean(axis=0) if centred else np.zeros(d)
    V = np.linalg.svd(X - about)[2][:k]
    if seed % 5 == 4:  # not the best flat
        V = np.linalg.qr((V + 0.1 * rng.normal(size=V.shape)).T)[0].T
    params, delta = {"components": k, "centred": centred, "rows": n}, "0"
    if name == "projection.risk":
        params, delta = params | {"radius": 1.0}, "0.04"
    made = case(forge.claim(name, 1.0, delta=delta, params=params), X, components_=V, center_=about)
    value = flat_excess(made) + 1e-11 if name == "pca.optimality" else flat_risk(made) * (1 + 1e-9)
    return made.with_claim(value=max(value, 0.0))


def centre_risk_case(seed, name):
    rng = np.random.default_rng([seed, 26])
    d, k, n = 1 + seed % 3, 1 + seed % 3, 300
    X = np.round(rng.normal(size=(n, d)) * 8) / 64
    C = lloyd(X, X[:k].copy(), np.ones(n), 3)
    claim = forge.claim(name, 1.0, delta="0.04", params={"clusters": k, "rows": n, "radius": 1.0})
    made = case(claim, X, cluster_centers_=C)
    return made.with_claim(value=centre_risk(made) * (1 + 1e-9))


CASES = {
    "pca.optimality": (flat_case, truth_of_flat),
    "kmeans.fixed-point": (centres_case, truth_of_cost),
    "kmeans.lower-bound": (centres_case, truth_of_floor),
    "kmeans-1d.optimal": (centres_case, truth_of_line),
    "kmeans.risk": (centre_risk_case, truth_of_risk),
    "projection.risk": (flat_case, truth_of_risk),
}


@pytest.mark.parametrize("name", CASES)
def test_honest_claims_are_accepted_and_true(name):
    make, truth = CASES[name]
    for seed in range(12):
        one = make(seed, name)
        report = one.verify()
        assert report.holds, (seed, report.reason)
        assert truth(one)


# Attacks ----------------------------------------------------------------------------------------------------


def changed(model, rng):
    """Return another model: an entry moved, a centre or direction doubled, dropped or turned."""
    name = FIELDS[model.family][rng.integers(len(FIELDS[model.family]))]
    old = getattr(model, name)
    other, i = old.copy(), rng.integers(old.size)
    which = rng.integers(4)
    if which == 0:
        other.flat[i] += rng.choice([-1, 1]) * 10.0 ** -rng.uniform(0, 14)
    elif which == 1:
        other = other * (1 + 10.0 ** -rng.uniform(0, 14))
    elif which == 2 and len(other) > 1 and other.ndim == 2:
        other = other[:-1]
    else:
        other.flat[i] *= -1
    return model.but(**{name: other})


def rows_forged(case, rng):
    X = case.X.copy()
    X[rng.integers(len(X)), rng.integers(X.shape[1])] += rng.choice([-1, 1]) * 10.0 ** -rng.uniform(-1, 14)
    return attacks.resealed(case, X=X)


TABLES = attacks.tables(changed, rows_forged, without=("target_changed", "holdout_forged"))


@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_is_accepted(name):
    make, truth = CASES[name]
    accepted = attacks.assault(lambda seed: make(seed, name), truth, 5, tables=TABLES)
    assert sum(accepted.values()) > 0


@pytest.mark.parametrize("claimed", ["kmeans.risk", "projection.risk"])
def test_a_constant_off_by_ten_percent_is_noticed(claimed):
    import inspect

    make, formula = (centre_risk_case, centre_risk) if claimed == "kmeans.risk" else (flat_case, flat_risk)
    one = make(2, claimed)
    right = formula(one)
    for name, parameter in list(inspect.signature(formula).parameters.items())[1:]:
        for factor in (0.9, 1.1):
            wrong = formula(one, **{name: parameter.default * factor})
            assert abs(wrong - right) > 1e-4
            assert one.with_claim(value=wrong).verify().holds == (wrong > right), name


def test_rows_and_centres_outside_the_ball_are_refused():
    one = centre_risk_case(1, "kmeans.risk")
    assert "longer" in one.with_claim(params=one.claim.params | {"radius": 0.25}, value=9.0).verify().reason
    far = one.model.but(cluster_centers_=one.model.cluster_centers_ + 2.0)
    assert "outside" in attacks.resealed(one.with_claim(value=99.0), model=far).verify().reason
    flat = flat_case(2, "projection.risk")
    fixed = flat.with_claim(params=flat.claim.params | {"centred": False})
    assert "was fitted" in fixed.verify().reason


def test_eigenvalues_are_enclosed():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 40):
        known = np.sort(rng.normal(size=n) * 10.0 ** rng.integers(-6, 6, n))[::-1]
        Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        found, off = eigenvalues((Q * known) @ Q.T)
        assert np.abs(found - known).max() <= off + 1e-13 * np.abs(known).max()
        assert off <= 1e-11 * np.abs(known).max()


# One dimension ----------------------------------------------------------------------------------------------


def partition_cost(x, w, k):
    """The least cost of k intervals, by trying all borders."""
    order = np.argsort(x)
    x, w = x[order], w[order]
    best = math.inf
    for borders in itertools.combinations_with_replacement(range(len(x) + 1), k - 1):
        parts = zip((0, *borders), (*borders, len(x)))
        cost = 0.0
        for a, b in parts:
            if b > a and w[a:b].sum() > 0:
                cost += w[a:b] @ (x[a:b] - np.average(x[a:b], weights=w[a:b])) ** 2
        best = min(best, cost)
    return best


@pytest.mark.parametrize("seed", range(30))
def test_programmes_on_a_line_against_all_borders(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 12)), int(rng.integers(1, 5))
    x = rng.normal(size=n) if seed % 3 else rng.integers(-3, 4, n).astype(float)
    x += 1e6 * (seed % 4 == 3)
    w = rng.integers(0, 3, n).astype(float) if seed % 2 else np.ones(n)
    w[0] += 1.0
    best = partition_cost(x, w, k)
    spread = w @ (x - np.average(x, weights=w)) ** 2
    assert line_optimum(x, w, k) == pytest.approx(best, abs=1e-11 * spread + 1e-9 * (seed % 4 == 3))
    assert line_optimum(x, w, k) <= best + 1e-13 * spread
    for buckets in (1, 2, 5, 100):
        assert column_cost(x, w, k, buckets) <= best * (1 + 1e-12) + 1e-13 * spread
    assert column_cost(x, w, k, 100) >= best - 1e-11 * spread - 1e-9 * (seed % 4 == 3)


def test_buckets_lose_little():
    x = np.random.default_rng(3).normal(size=3000)
    best = line_optimum(x, np.ones(3000), 4)
    assert 0.9 * best < column_cost(x, np.ones(3000), 4, 200) <= best


# Lemmas -----------------------------------------------------------------------------------------------------


def all_signs(n):
    return np.array(list(itertools.product((-1.0, 1.0), repeat=n)))


def test_one_centre_has_the_stated_complexity():
    """sup over |c| <= R of s |c|^2 - 2 <v, c> = max over 0 <= t <= R of s t^2 + 2 t |v|, averaged over all signs."""
    for seed in range(6):
        X = np.random.default_rng(seed).normal(size=(9, 2))
        R = float(np.linalg.norm(X, axis=1).max())
        S = all_signs(9)
        s, v = S.sum(axis=1), np.linalg.norm(S @ X, axis=1)
        t = np.where(s < 0, np.minimum(v / np.maximum(-s, 1e-300), R), R)
        most = (s * t * t + 2 * t * v).mean()
        assert most <= 2 * R * math.sqrt(np.sum(X**2)) + R * R * math.sqrt(9) / 2 + 1e-12


def test_the_minimum_of_classes_adds_complexities():
    rng = np.random.default_rng(0)
    S = all_signs(8)
    for _ in range(10):
        F, G = rng.normal(size=(5, 8)), rng.normal(size=(6, 8)) + 0.5
        both = np.minimum(F[:, None], G[None]).reshape(-1, 8)
        rates = [(S @ values.T).max(axis=1).mean() for values in (both, F, G)]
        assert rates[0] <= rates[1] + rates[2] + 1e-12


def test_projections_have_the_stated_complexity():
    rng = np.random.default_rng(1)
    S = all_signs(8)
    for k, d in ((1, 2), (1, 4), (3, 4), (2, 5)):
        X = rng.normal(size=(8, d))
        A = np.einsum("si,ij,il->sjl", S, X, X)
        values = np.linalg.eigvalsh(A)[:, ::-1]
        frobenius = np.linalg.norm(A, axis=(1, 2))
        assert np.all(values[:, :k].sum(axis=1) <= math.sqrt(k) * frobenius + 1e-12)
        fourth = math.sqrt(np.sum(np.sum(X**2, axis=1) ** 2))
        assert frobenius.mean() <= fourth + 1e-12
        assert (-values[:, ::-1][:, :k]).sum(axis=1).mean() <= math.sqrt(min(k, d - k)) * fourth + 1e-12


def test_a_fitted_point_splits_off():
    rng = np.random.default_rng(2)
    for _ in range(20):
        P = np.linalg.qr(rng.normal(size=(5, 2)))[0]
        Q = np.eye(5) - P @ P.T
        x, m = rng.normal(size=(2, 5))
        b = Q @ m
        assert np.sum((Q @ (x - m)) ** 2) == pytest.approx(x @ Q @ x - 2 * x @ b + b @ b)


# Learners ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [KMeans(3, random_state=0), KMeans(3, init="random", max_iter=1), PCA(2), PCA(), TruncatedSVD(2)],
    ids=lambda one: repr(one).replace("\n", ""),
)
def test_statements_about_new_data_from_training_and_hold_out_rows(model):
    rng = np.random.default_rng(4)
    X = rng.uniform(-0.5, 0.5, size=(6000, 3)) * [1, 0.5, 0.1]
    certificate = model.fit(X[:5000]).certify(X, radius=1.0, holdout=np.arange(5000, 6000))
    assert {"kmeans.risk", "projection.risk"} & {claim.name for claim in certificate.claims}
    assert "holdout.betting" in {claim.name for claim in certificate.claims}
    report = assay.verify(certificate, model, X)
    assert report.holds, report.reason
    fresh = rng.uniform(-0.5, 0.5, size=(50_000, 3)) * [1, 0.5, 0.1]
    rows = assay.scan.rows(fresh)
    risk = evidence(model, rows, Distances).squares(rows).mean()
    assert all(claim.value > risk for claim in certificate.claims if not claim.is_fact)
    assert "risk" in " ".join(one.name for one in model.certify(X[:5000], radius=0.1).not_applicable)


def test_a_dimension_chosen_by_the_rows_has_no_bound():
    """The same flat, its dimension given or chosen: only the first has a bound, the other a reason under its name."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(5000, 3))
    chosen = PCA(0.8).fit(X)
    given = PCA(chosen.n_components_).fit(X)
    certificate, other = (model.certify(X, radius=1.0) for model in (chosen, given))
    assert "projection.risk" in {claim.name for claim in other.claims}
    assert "projection.risk" not in {claim.name for claim in certificate.claims}
    assert [one.reason for one in certificate.not_applicable if one.name == "projection.risk"] == [
        "The number of components was chosen by looking at the rows."
    ]


def test_radius_is_refused_by_name():
    X = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(ValueError, match="radius must be a finite number > 0; got -1"):
        PCA(1).fit(X).certify(X, radius=-1)
    from assay.linear_model import Ridge

    with pytest.raises(ValueError, match="radius is for centres"):
        Ridge().fit(X, X[:, 0]).certify(X, X[:, 0], radius=1.0)

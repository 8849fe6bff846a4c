"""Claims of nearest-neighbour learners: plain oracles, forgeries, constants, and what is not claimed."""

import math
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

import assay
from assay.checker.rules.stored_rows import StoredRows
from assay.claims.directory import definition
from assay.neighbors import KNeighborsClassifier, KNeighborsRegressor
from tests.certificate import attacks, forge

# Oracles: all distances in plain Python ---------------------------------------------------------------------


def exact_nearest(X, k, i, metric=0):
    """Return the k nearest rows other than i, the first of equals, distances added column by column in doubles."""

    def far(j):
        total = 0.0
        for a, b in zip(X[i].tolist(), X[j].tolist()):
            gap = abs(a - b)
            total = max(total, gap) if metric == 2 else total + (gap * gap if metric == 0 else gap)
        return total

    return sorted((j for j in range(len(X)) if j != i), key=lambda j: (far(j), j))[:k]


def exact_lost(X, y, k, metric=0):
    return sum(2 * sum(y[j] == y[i] for j in exact_nearest(X, k, i, metric)) <= k for i in range(len(X)))


def exact_bound(errors, n, k, delta, quarter=0.25, eight=8.0, two=2.0, last=8.0, one=1.0):
    m = k // 2 + 1
    q = m / (k + 1)
    f = m * math.comb(k + 1, m) * q**m * (1 - q) ** (k + 1 - m)
    return errors / n + math.sqrt((quarter + one * f * (1 + (eight * k + two * m + last) / n)) / (n - 1) / delta)


def rows(seed, n=40):
    """Rows with decimals whose distances nearly tie, with exact ties, or neither, by the seed."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X = [np.round(X, 1), np.round(X), X][seed % 3]
    return X, ((X[:, 0] + 0.7 * rng.normal(size=n)) > 0).astype(int)


@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
def test_neighbours_and_lost_rows_are_those_that_predict_asks(seed, metric):
    X, y = rows(seed)
    y[:2] = 0, 1
    code, k = ["euclidean", "manhattan", "chebyshev"].index(metric), 1 + seed % 4
    model = KNeighborsClassifier(k, metric=metric).fit(X, y)
    certificate = model.certify(X, y)
    listed = certificate.find("knn.neighbors").witness
    for i, found in zip(listed["queries"], listed["neighbors"]):
        assert sorted(found) == sorted(exact_nearest(X, k, i, code))
    assert len(listed["queries"]) == len(X)
    assert certificate.find("knn.loo-errors").value == exact_lost(X, y, k, code)
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason


@pytest.mark.parametrize("seed", range(3))
def test_regression_certificate_holds(seed):
    X, _ = rows(seed, n=120)
    y = np.column_stack([X[:, 0] ** 2, X.sum(axis=1)])
    for target, weights in ((y, "uniform"), (y[:, 0], "distance"), (y[:, 1], "uniform")):
        model = KNeighborsRegressor(3, weights=weights).fit(X, target)
        certificate = model.certify(
            X, target, holdout=(X[::2] + 0.1, target[::2]), clip=1.0 if target.ndim == 1 else None
        )
        report = assay.verify(certificate, model, X, target, holdout=(X[::2] + 0.1, target[::2]))
        assert report.holds, report.reason
        error = np.mean((model.predict(X) - target) ** 2)
        if seed == 2:  # no ties
            claim = certificate.find("train.errors")
            assert claim.params["low"] <= error <= claim.value <= error * (1 + 1e-9) + 1e-12


def test_what_is_not_claimed_is_said():
    X, y = rows(2)
    said = {one.name: one.reason for one in KNeighborsClassifier().fit(X, y).certify(X, y).not_applicable}
    assert "no finite VC dimension" in said["vc"]
    weighted = KNeighborsClassifier(weights="distance").fit(X, y)
    said = {one.name: one.reason for one in weighted.certify(X, y).not_applicable}
    assert said["knn.loo"] == said["knn.loo-errors"] == "It is stated for votes with equal weights."
    other = KNeighborsClassifier().fit(X, y).certify(X[::-1], y[::-1])
    assert {one.name for one in other.not_applicable} >= {"knn.loo", "knn.loo-errors", "knn.neighbors"}
    few = KNeighborsClassifier().fit(X[:6], [0, 1, 0, 1, 0, 1]).certify(X[:6], [0, 1, 0, 1, 0, 1])
    assert any(one.name == "knn.loo" and "k + 2 = 7" in one.reason for one in few.not_applicable)
    short = KNeighborsClassifier(5).fit(X[:15], np.arange(15) % 2).certify(X[:15], np.arange(15) % 2)
    assert short.unreported[0][0] == "knn.loo"
    for setting in ({"weights": lambda d: d}, {"metric": "cosine"}, {"p": 3}):
        with pytest.raises(ValueError, match="certificates are about"):
            KNeighborsClassifier(**setting).fit(X, y).certify(X, y)


def test_the_checker_searches_large_tables_in_groups():
    """More rows than fit into one block of distances, so that minima of groups find the threshold."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 3))
    model = StoredRows(X, np.zeros((2500, 1)), 4, 0, False, None)
    found = model.nearest(X[:100])
    near = np.argsort(((X[:100, None] - X[None]) ** 2).sum(axis=2), axis=1, kind="stable")[:, :4]
    assert np.array_equal(np.sort(found, axis=1), np.sort(near, axis=1))


# Attacks ----------------------------------------------------------------------------------------------------


def stored(X, y, k, metric=0):
    return forge.Forged(
        family="neighbors.classifier",
        fit_X_=X.copy(),
        fit_y_=y.copy(),
        neighbor_numbers_=np.array([k, metric, 0]),
        classes_=np.array([0, 1]),
    )


def honest(name, seed):
    X, y = rows(seed, n=30)
    k, metric = 1 + seed % 3, seed % 2
    model = stored(X, y, k, metric)
    lost, params, witness, delta = exact_lost(X, y, k, metric), {"k": k}, {}, "0"
    if name == "knn.neighbors":
        queries = np.arange(0, 30, 7)
        witness = {"queries": queries, "neighbors": np.array([exact_nearest(X, k, i, metric) for i in queries])}
        value = float(len(queries))
    elif name == "knn.loo-errors":
        value, params = float(lost), {"k": k, "rows": 30}
    else:
        delta, params = "0.04", {"k": k, "errors": lost, "rows": 30}
        value = min(1.0, exact_bound(lost, 30, k, 0.04) + 1e-9)
    claim = forge.claim(name, value, definition(name).directions[0], delta, params=params, witness=witness)
    return forge.Case((claim,), model, X, y).seal()


def truth(case):
    """Whether the claim is true, by rational arithmetic, of the rows and the model that the case has now."""
    claim, model = case.claim, case.model
    k, metric = int(model.neighbor_numbers_[0]), int(model.neighbor_numbers_[1])
    if claim.name in ("data.identity", "train.errors"):
        return False
    same = np.array_equal(case.X, model.fit_X_) and np.array_equal(np.asarray(model.classes_)[model.fit_y_], case.y)
    if not same or claim.params["k"] != k:
        return False
    if claim.name == "knn.neighbors":
        listed = zip(claim.witness["queries"].tolist(), claim.witness["neighbors"].tolist())
        return claim.value == len(claim.witness["queries"]) and all(
            sorted(found) == sorted(exact_nearest(case.X, k, i, metric)) for i, found in listed
        )
    lost = exact_lost(case.X, case.y, k, metric)
    if claim.params["rows"] != len(case.X):
        return False
    if claim.name == "knn.loo-errors":
        return claim.value >= lost
    errors = claim.params["errors"]
    return errors >= lost and claim.value >= min(1.0, exact_bound(errors, len(case.X), k, float(claim.delta)) - 1e-13)


def changed(model, rng):
    other = deepcopy(model)
    which = rng.integers(5)
    if which == 0:
        other.fit_X_[rng.integers(30), rng.integers(2)] += rng.choice([1e-9, 0.5, -2.0])
    elif which == 1:
        other.fit_y_[rng.integers(30)] = rng.integers(0, 3)
    elif which == 2:
        moved = np.eye(3)[rng.integers(3)] * rng.choice([1.0, -1.0, 0.5])
        other.neighbor_numbers_ = other.neighbor_numbers_ + (moved if 0.5 in moved else moved.astype(int))
    elif which == 3:
        other.classes_ = other.classes_[::-1].copy()
    else:
        other.fit_X_ = other.fit_X_[::-1].copy()
    return other


TABLES = attacks.tables(changed)
ATTACKED = ["knn.neighbors", "knn.loo-errors", "knn.loo"]


@pytest.mark.parametrize("name", ATTACKED)
def test_honest_cases_hold(name):
    for seed in range(9):
        case = honest(name, seed)
        report = case.verify()
        assert report.holds, report.reason
        assert truth(case)


@pytest.mark.parametrize("name", ATTACKED)
def test_no_false_mutant_is_accepted(name):
    accepted = attacks.assault(lambda seed: honest(name, seed), truth, 12, 0, TABLES)
    assert sum(accepted.values()) > 0


@pytest.mark.long
@pytest.mark.parametrize("name", ATTACKED)
def test_no_false_mutant_among_two_hundred(name):
    attacks.assault(lambda seed: honest(name, seed), truth, 200, 1, TABLES)


@pytest.mark.parametrize("constant", ["quarter", "eight", "two", "last", "one"])
def test_constants_off_by_ten_percent_are_noticed(constant):
    """The checker accepts the value of the formula, and refuses one with a smaller constant."""
    plain = {"quarter": 0.25, "eight": 8.0, "two": 2.0, "last": 8.0, "one": 1.0}[constant]
    case = honest("knn.loo", 2)
    k, lost = case.claim.params["k"], case.claim.params["errors"]
    right, less = (exact_bound(lost, 30, k, 0.9, **{constant: c}) + 1e-12 for c in (plain, 0.9 * plain))
    assert right < 1
    for value, holds in ((right, True), (less, False)):
        extra = (("delta_total", "0.95"),)
        claim = replace(case.claim, value=value, delta="0.9")
        assert forge.Case((claim,), case.model, case.X, case.y, extra=extra).verify().holds is holds


def test_prototypes_must_belong_to_the_class():
    X, y = rows(2, n=300)
    from assay.neighbors import LearningVectorQuantization

    model = LearningVectorQuantization(2, random_state=0, max_iter=3).fit(X, y)
    certificate = model.certify(X, y)
    claim = certificate.find("vc")
    place = certificate.claims.index(claim)
    for smaller in ({"k": 3}, {"d": 1}, {"classes": 1}, {"class": "halfspaces", "bias": True}):
        forged = replace(claim, params={**claim.params, "class": {**claim.params["class"], **smaller}})
        claims = (*certificate.claims[:place], forged, *certificate.claims[place + 1 :])
        assert not assay.verify(replace(certificate, claims=claims), model, X, y).holds
    assert assay.verify(certificate, model, X, y).holds

"""Claims network.local-optimum-mixed, about networks with numbers among their nodes: they hold for honest fits, and
forged ones are refused.

Truth is decided from the definitions, by least squares of NumPy on the rows of each combination.
"""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import assay
from assay.bayes_net import BayesianNetwork, BayesianNetworkClassifier
from tests.bayes_net.test_claims import changed, sealed, verdict


def mixed(n=120, seed=0):
    """Return rows a, d with states and b, c, e with numbers, c and e of which depend on b."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    b = rng.normal(size=n) + a
    c = np.where(a == 1, -1, 2) * b + 0.3 * rng.normal(size=n) + 50
    return np.column_stack([a, b, c, (a + (rng.random(n) < 0.2)) % 2, 0.5 * b + rng.normal(size=n)])


STATES = {0: 3, 3: 2}


def best_likelihood(X, child, parents):
    """Return the largest log-likelihood of a number's regressions, as the claim defines it."""
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    states, numbers = [j for j in parents if j in STATES], [j for j in parents if j not in STATES]
    total = 0.0
    for values in product(*(range(STATES[j]) for j in states)):
        rows = z[np.all(X[:, states] == values, axis=1)]
        n = len(rows)
        if not n:
            continue
        s, v = float(np.mean(rows[:, child] ** 2)), 1.0
        if n >= len(numbers) + 2:
            A = np.column_stack([np.ones(n), rows[:, numbers]])
            s = float(np.mean((rows[:, child] - A @ np.linalg.lstsq(A, rows[:, child])[0]) ** 2))
            v = max(s, 1e-6)
        total -= 0.5 * n * (np.log(2 * np.pi * v) + s / v) + n * np.log(X[:, child].std())
    return total


def cost(X, child, parents, factor):
    q = int(np.prod([STATES[j] for j in parents if j in STATES], dtype=int))
    if child not in STATES:
        numbers = sum(j not in STATES for j in parents)
        return factor * (numbers + 2) * q - best_likelihood(X, child, parents)
    if any(j not in STATES for j in parents):
        return np.inf
    total = 0.0
    for values in product(*(range(STATES[j]) for j in parents)):
        counts = np.bincount(X[np.all(X[:, parents] == values, axis=1), child].astype(int), minlength=STATES[child])
        total -= float((counts * np.log(np.maximum(counts, 1) / max(counts.sum(), 1))).sum())
    return factor * (STATES[child] - 1) * q + total


def acyclic(parents):
    left = set(range(len(parents)))
    while left:
        free = {i for i in left if not left & set(parents[i])}
        if not free:
            return False
        left -= free
    return True


def neighbours(parents, most):
    """Yield every graph that differs in one edge."""
    d = len(parents)
    for a, b in product(range(d), repeat=2):
        new = [set(one) for one in parents]
        if a in new[b]:
            new[b].discard(a)
            yield new
            new = [set(one) for one in new]
            new[a].add(b)
        elif a != b:
            new[b].add(a)
        if a != b and acyclic(new) and max(map(len, new)) <= most:
            yield new


def graph(model):
    return [set(model.edges_[model.edges_[:, 1] == i, 0].tolist()) for i in range(len(model.sizes_))]


def total(X, parents, factor):
    return sum(cost(X, i, sorted(one), factor) for i, one in enumerate(parents))


@pytest.mark.mission("BAY-31")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("criterion", ["bic", "aic"])
def test_the_structure_and_the_regressions_are_what_is_claimed(seed, criterion):
    X = mixed(seed=seed)
    model = BayesianNetwork("exact", criterion=criterion, nominal=[0, 3], max_parents=3).fit(X)
    certificate = model.certify(X)
    assert assay.verify(certificate, model, X).holds
    factor = np.log(len(X)) / 2 if criterion == "bic" else 1.0
    own = total(X, graph(model), factor)
    assert own == pytest.approx(model.score_, rel=1e-9)
    gain = max(own - total(X, new, factor) for new in neighbours(graph(model), 3))
    assert max(gain, 0.0) <= certificate.find("network.local-optimum-mixed").value < 1e-3
    assert certificate.find("network.optimum-mixed").value < 1e-2
    numbers = [i for i in range(5) if i not in STATES]
    best = sum(best_likelihood(X, i, sorted(graph(model)[i])) for i in numbers)
    mine = sum(float(model.network_.log_conditional(i, model._coded(X)).sum()) for i in numbers)
    assert best - mine <= certificate.find("network.regressions").value < 1e-3


@pytest.mark.parametrize(
    "model",
    [
        BayesianNetwork(nominal=[0, 3]),
        BayesianNetwork(nominal=[0, 3], required=[(0, 2)], forbidden=[(1, 4)], max_parents=2),
        BayesianNetwork([(1, 2)], nominal=[0, 3]),
        BayesianNetwork(nominal=[0, 3], criterion="ll", max_parents=4),
    ],
    ids=["greedy", "limits", "given", "likelihood"],
)
@pytest.mark.parametrize("kind", ["plain", "few", "collinear", "constant", "far", "tiny"])
def test_odd_rows_hold_too(model, kind):
    X = mixed(12 if kind == "few" else 90)
    if kind == "collinear":
        X[:, 4] = X[:, 2] - X[:, 1]
    elif kind == "constant":
        X[:, 1] = 7.0
    elif kind in ("far", "tiny"):
        X[:, [1, 2, 4]] = X[:, [1, 2, 4]] * (1e-9 if kind == "tiny" else 1.0) + (1e7 if kind == "far" else 0.0)
    certificate = model.fit(X).certify(X)
    report = assay.verify(certificate, model, X)
    assert report.holds, report.reason
    found = {claim.name for claim in certificate.claims}
    assert "network.regressions" in found
    assert ("network.local-optimum-mixed" in found) == isinstance(model.structure, str)
    assert "fit the" in str(certificate)


def test_a_classifier_and_a_frame():
    X = mixed(200)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["a"] = np.array(["x", "y", "z"])[X[:, 0].astype(int)]
    frame["d"] = np.array(["u", "v"])[X[:, 3].astype(int)]
    model = BayesianNetworkClassifier("augmented").fit(frame[["a", "b", "c", "e"]], frame["d"])
    certificate = model.certify(frame[["a", "b", "c", "e"]], frame["d"])
    assert {"network.local-optimum-mixed", "network.regressions"} <= {claim.name for claim in certificate.claims}
    assert assay.verify(certificate, model, model.codes(frame[["a", "b", "c", "e"]]), frame["d"]).holds


def test_gaps_are_not_claimed():
    X = mixed()
    X[3, 4] = np.nan
    model = BayesianNetwork(nominal=[0, 3]).fit(X)
    certificate = model.certify(X)
    assert assay.verify(certificate, model, X).holds
    assert {"network.local-optimum-mixed", "network.regressions"} <= {one.name for one in certificate.not_applicable}


class TestForgeries:
    X = mixed()

    def honest(self):
        model = BayesianNetwork("exact", nominal=[0, 3], max_parents=3).fit(self.X)
        return model, model.certify(self.X)

    @pytest.mark.parametrize(
        ("code", "changes"),
        [
            ("network.local-optimum-mixed", {"value": lambda v: 0.0}),
            ("network.optimum-mixed", {"value": lambda v: 0.0}),
            ("network.regressions", {"value": lambda v: 0.0}),
            ("network.local-optimum-mixed", {"params": lambda p: {**p, "factor": 100.0}}),
            ("network.local-optimum-mixed", {"params": lambda p: {**p, "rows": p["rows"] + 1}}),
            ("network.local-optimum-mixed", {"params": lambda p: {**p, "n_forbidden": 1}}),
            ("network.local-optimum-mixed", {"params": lambda p: {**p, "score": "penalised"}}),
            ("network.local-optimum-mixed", {"witness": lambda w: {**w, "required": np.array([[4, 0]])}}),
            ("network.optimum-mixed", {"params": lambda p: {**p, "factor": 0.0}}),
            ("network.optimum-mixed", {"params": lambda p: {**p, "max_parents": 0}}),
            ("network.regressions", {"params": lambda p: {**p, "rows": 1}}),
            ("network.local-optimum-mixed", {"name": lambda t: "network.local-optimum"}),
        ],
    )
    def test_changed_claims(self, code, changes):
        model, certificate = self.honest()
        claim = certificate.find(code)
        forged = changed(certificate, code, **{name: change(getattr(claim, name)) for name, change in changes.items()})
        assert not assay.verify(forged, model, self.X).holds

    def test_a_worse_structure(self):
        """An edge is deleted, the tables refitted, the old claims sealed again."""
        model, certificate = self.honest()
        edges = [tuple(edge) for edge in model.edges_.tolist()]
        for k in range(len(edges)):
            other = BayesianNetwork(edges[:k] + edges[k + 1 :], nominal=[0, 3]).fit(self.X)
            forged = sealed(certificate, other)
            for code in ("network.local-optimum-mixed", "network.optimum-mixed"):
                assert verdict(forged, other, self.X, code) == "REJECTED"

    def test_other_regressions(self):
        model, certificate = self.honest()
        for k in range(len(model.gaussians_)):
            other = BayesianNetwork("exact", nominal=[0, 3], max_parents=3).fit(self.X)
            other.gaussians_ = other.gaussians_.copy()
            other.gaussians_[k] *= 1.01
            assert verdict(sealed(certificate, other), other, self.X, "network.regressions") == "REJECTED"

    def test_networks_of_states_have_no_such_claims(self):
        model = BayesianNetwork(nominal="all").fit(self.X[:, [0, 3]])
        certificate = model.certify(self.X[:, [0, 3]])
        claim = certificate.find("network.local-optimum")
        params = {name: value for name, value in claim.params.items() if name != "score"}
        forged = changed(certificate, "network.local-optimum", name="network.local-optimum-mixed", params=params)
        assert not assay.verify(forged, model, self.X[:, [0, 3]]).holds

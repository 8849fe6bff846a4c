"""The certificate of a tree pruned by cost-complexity, against all subtrees of small trees."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

import assay
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor


def subtree_costs(model, X, impurity, alpha):
    """Return R + alpha leaves of every subtree of the grown tree, by enumeration from the definition."""
    grown, n = model.grown_, len(X)

    def below(at, rows):
        own = [(len(rows) / n * impurity(rows) + alpha,)]
        if grown["child"][at] < 0:
            return own
        left = X[rows, grown["column"][at]] <= grown["threshold"][at]
        first = int(grown["child"][at])
        a, b = below(first, rows[left]), below(first + 1, rows[~left])
        return own + [(x[0] + y[0],) for x in a for y in b]

    return [cost[0] for cost in below(0, np.arange(n))]


@pytest.mark.parametrize("alpha", [0.005, 0.02, 0.1, 0.6])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_no_subtree_is_cheaper(criterion, alpha):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = ((X[:, 0] > 0) ^ (rng.random(60) < 0.1)).astype(int)
    model = DecisionTreeClassifier(criterion=criterion, max_depth=3, ccp_alpha=alpha).fit(X, y)

    def impurity(rows):
        share = np.bincount(y[rows], minlength=2) / len(rows)
        return 1 - np.sum(share**2) if criterion == "gini" else -np.sum(share * np.log2(np.maximum(share, 1e-300)))

    costs = subtree_costs(model, X, impurity, alpha)
    nodes = model.nodes_
    own = sum(nodes.impurity[nodes.child < 0] * nodes.weight[nodes.child < 0]) / 60 + alpha * model.get_n_leaves()
    assert own == pytest.approx(min(costs), abs=1e-12)
    certificate = model.certify(X, y)
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason
    measured = next(v.measured for v in report.verdicts if v.claim == "tree.pruned")
    assert measured < 1e-10


def pruned_models():
    for options in ({"ccp_alpha": 0.01}, {"pruning": "cost_complexity"}, {"ccp_alpha": 0.01, "thresholds": "short"}):
        yield DecisionTreeClassifier(**options), load_breast_cancer
    yield DecisionTreeRegressor(ccp_alpha=50.0), load_diabetes
    yield DecisionTreeRegressor(pruning="cost_complexity"), load_diabetes


@pytest.mark.parametrize(("model", "load"), list(pruned_models()), ids=lambda one: getattr(one, "__name__", str(one)))
def test_claims_are_made_and_checked(model, load):
    X, y = load(return_X_y=True)
    model.fit(X, y)
    certificate = model.certify(X, y)
    assert certificate.find("tree.pruned").params["leaves"] > model.get_n_leaves()
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason


@pytest.mark.parametrize("attack", ["other alpha", "unpruned", "other tree", "cycle", "value"])
def test_forgeries_are_rejected(attack):
    X, y = load_breast_cancer(return_X_y=True)
    model = DecisionTreeClassifier(ccp_alpha=0.01).fit(X, y)
    forged = DecisionTreeClassifier().fit(X, y) if attack == "unpruned" else model
    certificate = model.certify(X, y)
    claim = certificate.find("tree.pruned")
    if attack == "other alpha":
        claim = replace(claim, params={**claim.params, "alpha": 1e-4})
    elif attack == "other tree":
        claim = replace(claim, witness={**claim.witness, "threshold": claim.witness["threshold"] + 1e-6})
    elif attack == "cycle":
        child = claim.witness["child"].copy()
        child[np.flatnonzero(child >= 0)[-1]] = 0
        claim = replace(claim, witness={**claim.witness, "child": child})
    elif attack == "value":
        claim = replace(claim, value=0.0)
    sealed = replace(forged.certify(X, y), claims=(claim,))
    assert not assay.verify(sealed, forged, X, y).holds


def test_why_it_is_not_made():
    X, y = load_breast_cancer(return_X_y=True)
    model = DecisionTreeClassifier(ccp_alpha=0.01, class_weight="balanced").fit(X, y)
    assert "Weights" in {o.name: o.reason for o in model.certify(X, y).not_applicable}["tree.pruned"]
    plain = DecisionTreeClassifier().fit(X, y)
    assert "tree.pruned" not in {o.name for o in plain.certify(X, y).not_applicable}


def test_nominal_splits_that_were_all_pruned_are_told():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.integers(0, 3, 200)])
    y = (X[:, 0] + 0.3 * rng.normal(size=200) > 0).astype(int)
    model = DecisionTreeClassifier(nominal=[1], ccp_alpha=0.05).fit(X, y)
    assert not np.any(model.nodes_.table >= 0)
    certificate = model.certify(X, y)
    assert [gap.reason for gap in certificate.not_applicable if gap.name == "tree.pruned"] == [
        "The tree splits nominal columns or has missing values."
    ]
    assert assay.verify(certificate, model, X, y).holds

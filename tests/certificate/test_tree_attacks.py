"""Attacks on claims about trees: the mutants of `attacks`, with operators that know models made of nodes."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from assay.checker.family import read_model
from assay.checker.record import Rejected
from assay.tree import DecisionTreeClassifier
from tests.certificate import attacks
from tests.certificate.tree_forge import CASES, TRUTHS


def changed(model, rng):
    """Return another model: one entry of a leaf, a threshold, a column, or the order of the classes."""
    other = deepcopy(model)
    inner = np.flatnonzero(other.node_child_ >= 0)
    which = rng.integers(5)
    if which == 0:
        at = np.flatnonzero(other.node_child_ < 0)
        row = other.node_value_[at[rng.integers(len(at))]]
        row[:] = rng.permutation(row) if rng.random() < 0.7 else row * 0.5
    elif which == 1 and len(inner):
        other.node_threshold_[inner[rng.integers(len(inner))]] += rng.choice([-0.25, 1e-9, 2.0])
    elif which == 2 and len(inner):
        at = inner[rng.integers(len(inner))]
        other.node_column_[at] = rng.integers(0, other.n_features_in_ + 1)
    elif which == 3:
        other.classes_ = other.classes_[::-1].copy()
    elif hasattr(other, "estimator_weights_"):
        other.estimator_weights_[rng.integers(len(other.estimator_weights_))] *= rng.choice([-1.0, 0.5, 1 + 1e-9])
    return other


TABLES = attacks.tables(changed)


def truth(case):
    return TRUTHS[case.claim.name](case)


def attack(name, mutants, seed):
    accepted = attacks.assault(CASES[name], truth, mutants, seed, TABLES)
    assert sum(accepted.values()) > 0, "every mutant was refused: the attack no longer reaches the rules"


@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_is_accepted(name):
    attack(name, 12, seed=0)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_no_false_mutant_among_two_hundred_per_operator(name):
    attack(name, 200, seed=1)


@pytest.mark.parametrize("name", CASES)
def test_honest_cases_are_true_and_accepted(name):
    for seed in range(12):
        case = CASES[name](seed)
        assert truth(case)
        report = case.verify()
        assert report.holds, report.reason


def test_nodes_that_share_children_are_no_tree():
    X, y = load_breast_cancer(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    stored = model.stored()
    assert read_model(stored).columns == X.shape[1]
    child = stored.arrays["node_child_"].copy()
    first, second = np.flatnonzero(child >= 0)[1:3]
    child[first] = child[second]
    with pytest.raises(Rejected, match="in common"):
        read_model(replace(stored, arrays={**stored.arrays, "node_child_": child}))

"""Oblique trees: diagonal boundaries, brute force over thresholds, the three learners, soft routes, gradient."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

import assay
from assay.tree import DecisionTreeClassifier, ObliqueTreeClassifier, impurity
from assay.tree._oblique import SoftTree, best_threshold, loss_and_gradient, routes
from assay.tree._oblique_directions import discriminant, logistic, perceptron

LEARNERS = ("logistic", "lda", "perceptron")


def diagonal(seed=0, n=400):
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, 2))
    X = X[np.abs(X[:, 0] + X[:, 1]) > 0.02]
    return X, np.where(X[:, 0] + X[:, 1] > 0, "above", "below")


@pytest.mark.mission("TRE-20")
@pytest.mark.parametrize("learner", LEARNERS)
def test_one_split_does_for_a_diagonal_where_columns_need_many(learner):
    X, y = diagonal()
    model = ObliqueTreeClassifier(learner=learner, random_state=0).fit(X, y)
    assert model.get_depth() == 1
    assert model.score(X, y) == 1.0
    w = model.node_weights_[0]
    assert w[0] / w[1] == pytest.approx(1.0, abs=0.1)
    assert DecisionTreeClassifier().fit(X, y).get_n_leaves() > 10


@pytest.mark.mission("TRE-20")
@pytest.mark.parametrize("learner", LEARNERS)
def test_columns_are_used_where_they_are_as_good(learner):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = ObliqueTreeClassifier(learner=learner, random_state=0).fit(X, X[:, 1] > 0.3)
    assert not model.node_is_oblique_[0]
    assert model.node_weights_[0].tolist() == [0, 1, 0]
    tree = DecisionTreeClassifier().fit(X, X[:, 1] > 0.3)
    assert model.node_threshold_[0] == tree.nodes_.threshold[0]


@pytest.mark.mission("TRE-20")
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("seed", range(4))
def test_every_split_is_at_least_as_good_as_the_best_column(criterion, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 3, 80)
    model = ObliqueTreeClassifier(criterion=criterion, max_depth=3).fit(X, y)

    def cost(rows):
        return len(rows) * impurity(np.bincount(y[rows], minlength=3).astype(float), criterion)

    for at, rows in model._inside(X).items():
        if model.node_child_[at] < 0:
            continue
        left = X[rows] @ model.node_weights_[at] <= model.node_threshold_[at]
        found = cost(rows[left]) + cost(rows[~left])
        columns = min(
            cost(rows[X[rows, f] <= t]) + cost(rows[X[rows, f] > t])
            for f in range(3)
            for t in np.unique(X[rows, f])[:-1]
        )
        assert found <= columns + 1e-9
        # ... and no other threshold of the chosen direction is better.
        z = X[rows] @ model.node_weights_[at]
        others = min(cost(rows[z <= t]) + cost(rows[z > t]) for t in np.sort(z)[:-1])
        assert found == pytest.approx(others, abs=1e-9)


@pytest.mark.mission("TRE-20")
def test_directions_are_those_of_the_learners():
    rng = np.random.default_rng(0)
    s = np.repeat([-1.0, 1.0], 100)
    X = rng.normal(size=(200, 3)) + 0.8 * s[:, None] * np.array([1.0, -0.5, 0.0])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    w = rng.uniform(0.5, 2.0, 200)
    peer = LogisticRegression(C=100.0, tol=1e-10, max_iter=1000).fit(X, s, sample_weight=w).coef_[0]
    assert logistic(X, s, w, 0) == pytest.approx(peer, abs=1e-4)
    fisher, own = LinearDiscriminantAnalysis(solver="eigen").fit(X, s).coef_[0], discriminant(X, s, np.ones(200), 0)
    assert own / np.linalg.norm(own) == pytest.approx(fisher / np.linalg.norm(fisher), abs=1e-5)
    apart = X + 5 * s[:, None] * np.array([1.0, 1.0, 1.0])
    v = perceptron(apart, s, np.ones(200), 0)
    assert (apart @ v)[s > 0].min() > (apart @ v)[s < 0].max()


@pytest.mark.mission("TRE-20")
@pytest.mark.parametrize("data", [load_breast_cancer, load_wine])
def test_linear_classes_are_learnt_better_than_by_columns(data):
    X, y = data(return_X_y=True)
    oblique = cross_val_score(ObliqueTreeClassifier(), X, y, cv=5).mean()
    assert oblique > cross_val_score(DecisionTreeClassifier(), X, y, cv=5).mean() + 0.03


def test_limits_weights_and_text():
    X, y = load_iris(return_X_y=True)
    model = ObliqueTreeClassifier(min_samples_leaf=12, max_depth=3).fit(X, y)
    assert min(len(rows) for rows in model._inside(X).values()) >= 12
    assert model.get_depth() <= 3
    assert model.to_text().count("\n") + 1 == len(model.node_child_) - 1
    times = np.random.default_rng(0).integers(1, 4, 150)
    weighted = ObliqueTreeClassifier(learner="lda", max_depth=2).fit(X, y, times)
    repeated = ObliqueTreeClassifier(learner="lda", max_depth=2).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.predict_proba(X) == pytest.approx(repeated.predict_proba(X))
    assert best_threshold(np.ones(5), np.eye(2)[[0, 1, 0, 1, 0]], "gini", 1)[0] == -np.inf


# Soft routes ----------------------------------------------------------------------------------------------------


@pytest.mark.mission("TRE-21")
def test_shares_of_the_leaves_sum_to_one_and_mix_their_classes():
    X, y = load_iris(return_X_y=True)
    model = ObliqueTreeClassifier(routing="soft", max_depth=3, max_steps=3).fit(X, y)
    shares = model.route_probabilities(X)
    assert shares.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert ((shares > 0.01) & (shares < 0.99)).any(axis=1).mean() > 0.2
    leaf = model.node_child_ < 0
    assert model.predict_proba(X) == pytest.approx(shares @ model.node_value_[leaf], abs=1e-12)


@pytest.mark.mission("TRE-21")
@pytest.mark.parametrize("data", [load_iris, load_breast_cancer])
def test_without_temperature_the_soft_tree_is_the_hard_one(data):
    X, y = data(return_X_y=True)
    hard = ObliqueTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    soft = ObliqueTreeClassifier(max_depth=4, routing="soft", temperature=1e-9, max_steps=0, random_state=0).fit(X, y)
    assert soft.route_probabilities(X) == pytest.approx(hard.route_probabilities(X), abs=1e-12)
    assert np.array_equal(soft.predict(X), hard.predict(X))
    warm = ObliqueTreeClassifier(max_depth=4, routing="soft", temperature=1.0, max_steps=0, random_state=0).fit(X, y)
    assert np.abs(warm.route_probabilities(X) - hard.route_probabilities(X)).max() > 0.1


@pytest.mark.mission("TRE-21")
def test_gradient_by_finite_differences():
    rng = np.random.default_rng(0)
    child = np.array([1, 3, -1, -1, 5, -1, -1])
    shapes = [(7, 2), (7,), (7, 3)]
    X, y, w = rng.normal(size=(30, 2)), rng.integers(0, 3, 30), rng.uniform(0.5, 2, 30)

    def tree(z):
        return SoftTree(z[:14].reshape(7, 2), z[14:21], child, z[21:].reshape(7, 3))

    def gradient(z):
        found = loss_and_gradient(tree(z), X, y, w)[1]
        return np.concatenate([found.W.ravel(), found.t, found.scores.ravel()])

    z = rng.normal(size=sum(int(np.prod(shape)) for shape in shapes))
    assert check_grad(lambda z: loss_and_gradient(tree(z), X, y, w)[0], gradient, z) < 1e-6
    leaf = child < 0
    assert routes(*tree(z)[:3], X)[:, leaf].sum(axis=1) == pytest.approx(1.0)


@pytest.mark.mission("TRE-21")
def test_training_lowers_the_loss():
    X, y = load_breast_cancer(return_X_y=True)
    losses = [
        log_loss(y, ObliqueTreeClassifier(routing="soft", max_depth=2, max_steps=k).fit(X, y).predict_proba(X))
        for k in (0, 5, 60)
    ]
    assert losses[2] < losses[1] < losses[0]


# Certificates ---------------------------------------------------------------------------------------------------


def test_certificate_and_forgeries(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = ObliqueTreeClassifier(max_depth=3).fit(X, y)
    honest = model.certify(X, y)
    assert assay.verify(honest, model, X, y).holds
    assert honest.find("train.errors").value == (model.predict(X) != y).sum()
    for name, change in (("node_weights_", 1.1), ("node_threshold_", 1.001), ("node_value_", 0.9)):
        kept = getattr(model, name)
        setattr(model, name, kept * change)
        assert not assay.verify(honest, model, X, y).holds
        setattr(model, name, kept)
    claim = honest.find("train.errors")
    others = tuple(replace(one, value=one.value - 1) if one is claim else one for one in honest.claims)
    assert not assay.verify(replace(honest, claims=others), model, X, y).holds
    assay.save(model, tmp_path / "oblique.assay", honest)
    assert np.array_equal(assay.load(tmp_path / "oblique.assay").model.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="one way"):
        ObliqueTreeClassifier(routing="soft").fit(X, y).certify(X, y)


def test_rows_on_a_border_are_left_open():
    from assay.checker.families.oblique import read_oblique

    tree = read_oblique(
        np.array([[1.0, 1.0], [0, 0], [0, 0]]),
        np.array([0.3, 0, 0]),
        np.array([1.0, -1, -1]),
        np.array([[0.5, 0.5], [1, 0], [0, 1]]),
        ("below", "above"),
    )
    rows = np.array([[0.1, 0.2], [0.125, 0.175], [2.0**-60, 0.3], [0.0, 0.3], [0.1, 0.3], [0.1, 0.1]])
    scores, errors = tree.scores(rows, np.abs(rows).max(axis=0))
    assert (errors[:4] >= 1).all()
    assert not errors[4:].any()
    assert scores[4:].argmax(axis=1).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"learner": "luck"}, "learner must be one of"),
        ({"routing": "both"}, "routing must be one of"),
        ({"temperature": 0.0}, "temperature must be a finite number > 0"),
        ({"max_depth": 0}, "max_depth must be an integer >= 1"),
        ({"max_steps": -1}, "max_steps must be an integer >= 0"),
    ],
)
def test_refusals(change, words):
    with pytest.raises(ValueError, match=words):
        ObliqueTreeClassifier(**change).fit(*diagonal())


def _with(array, at, value):
    changed = array.astype(float)
    changed[at] = value
    return changed


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("node_child_", lambda a: _with(a, 0, 0)),  # a node that is its own child
        ("node_child_", lambda a: _with(a, 0, len(a))),
        ("node_child_", lambda a: _with(a, 0, 1.5)),
        ("node_child_", lambda a: a[:-1]),
        ("node_weights_", lambda a: a[:, :0]),
        ("node_weights_", lambda a: _with(a, (0, 0), np.nan)),
        ("node_threshold_", lambda a: a[None]),
        ("node_value_", lambda a: a[:, :1]),
        ("node_value_", lambda a: a[..., None]),
        ("classes_", lambda a: a[:2]),
    ],
)
def test_damaged_trees_are_rejected(name, damage):
    X, y = load_iris(return_X_y=True)
    model = ObliqueTreeClassifier(max_depth=2).fit(X, y)
    certificate = model.certify(X, y)
    setattr(model, name, damage(getattr(model, name)))
    assert not assay.verify(certificate, model, X, y).holds


@pytest.mark.parametrize("name", ["node_child_", "node_weights_", "node_threshold_", "node_value_"])
def test_damaged_trees_are_rejected_with_a_matching_fingerprint(name):
    """Even if the fingerprint is made to match, arrays that are no tree do not get past the reader."""
    from assay.checker.families.oblique import read_oblique
    from assay.checker.record import Rejected

    X, y = load_iris(return_X_y=True)
    model = ObliqueTreeClassifier(max_depth=2).fit(X, y)
    names = ("node_weights_", "node_threshold_", "node_child_", "node_value_")
    parts = {one: np.asarray(getattr(model, one), dtype=float) for one in names}
    read_oblique(*parts.values(), ("0", "1", "2"))
    parts[name] = np.zeros_like(parts[name]) if name == "node_child_" else parts[name][1:]
    with pytest.raises(Rejected):
        read_oblique(*parts.values(), ("0", "1", "2"))

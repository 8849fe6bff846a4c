"""The perceptron of many classes against a plain loop, and labels that give the same model whatever they are."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils import get_tags

import assay
from assay.linear_model import Perceptron
from tests.contract.test_contract import example, fitted, suited


def three_classes(seed=0, n=150):
    """Return rows of three classes that weights per class separate; the middle one no single hyperplane does."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return np.column_stack([4.0 * y + rng.uniform(-1, 1, n), rng.normal(size=n)]), y


@pytest.mark.mission("MUL-07")
class TestJoint:
    def test_no_errors_on_separable_classes_where_one_against_the_rest_fails(self):
        X, y = three_classes()
        joint = Perceptron(multi_class="joint", random_state=0).fit(X, y)
        assert joint.converged_
        assert joint.score(X, y) == 1
        assert joint.margin_ > 0
        with pytest.warns(UserWarning, match="still making mistakes"):
            each = Perceptron(max_iter=50, random_state=0).fit(X, y)
        assert each.score(X, y) < 1

    def test_is_the_textbook_loop(self):
        X, y = three_classes(1, 60)
        model = Perceptron(multi_class="joint", shuffle=False).fit(X, y)
        W, b, updates = np.zeros((3, 2)), np.zeros(3), 0
        for _ in range(model.n_iter_):
            for x, k in zip(X, y):
                scores = W @ x + b
                others = np.where(np.arange(3) == k, -np.inf, scores)
                r = int(others.argmax())
                if scores[r] >= scores[k]:
                    W[k] += x
                    W[r] -= x
                    b[k] += 1
                    b[r] -= 1
                    updates += 1
        assert model.n_updates_ == updates
        assert model.coef_ == pytest.approx(W, abs=1e-9)
        assert model.intercept_ == pytest.approx(b)
        assert np.array_equal(model.predict(X), (X @ W.T + b).argmax(axis=1))

    def test_updates_are_at_most_2_r_squared_over_margin_squared(self):
        X, y = three_classes(2)
        model = Perceptron(multi_class="joint", random_state=1).fit(X, y)
        W = np.column_stack([model.coef_, model.intercept_])
        Z = np.column_stack([X, np.ones(len(X))])
        scores = Z @ W.T
        own = scores[np.arange(len(y)), y].copy()
        scores[np.arange(len(y)), y] = -np.inf
        margin = (own - scores.max(axis=1)).min() / np.linalg.norm(W)
        assert model.n_updates_ <= 2 * np.square(Z).sum(axis=1).max() / margin**2

    def test_certificate_holds_and_the_file_says_the_same(self, tmp_path):
        X, y = three_classes()
        model = Perceptron(multi_class="joint", random_state=0).fit(X[:100], y[:100])
        held = X[100:], y[100:]
        found = model.certify(X[:100], y[:100], holdout=held)
        report = assay.verify(found, model, X[:100], y[:100], holdout=held)
        assert report.holds, report.reason
        assay.save(model, tmp_path / "joint.assay")
        again = assay.load(tmp_path / "joint.assay").model
        assert np.array_equal(again.predict(X), model.predict(X))
        assert assay.verify(again.certify(X[:100], y[:100]), again, X[:100], y[:100]).holds

    def test_two_classes_are_the_usual_perceptron(self):
        X, y = three_classes()
        two = y < 2
        one, other = (Perceptron(multi_class=kind, random_state=0).fit(X[two], y[two]) for kind in ("ovr", "joint"))
        assert np.array_equal(one.coef_, other.coef_)

    def test_not_separable_is_said(self):
        X, y = load_iris(return_X_y=True)
        with pytest.warns(UserWarning, match="still making mistakes"):
            Perceptron(multi_class="joint", max_iter=5).fit(X, y)

    def test_sparse_rows_are_refused(self):
        from scipy.sparse import csr_array

        X, y = three_classes()
        with pytest.raises(ValueError, match="dense rows in memory"):
            Perceptron(multi_class="joint").fit(csr_array(X), y)


@pytest.mark.mission("MUL-13")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("learner", assay.learners("classify"), ids=lambda learner: learner.__name__)
def test_labels_of_two_classes_give_the_same_model(learner):
    """-1 and +1, 0 and 1, or words in the same order: the same decisions, and labels come back as they went in."""
    model = example(learner)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] + 0.4 * rng.normal(size=80) > 0).astype(int)
    X, said = suited(model, X), {}
    without_label = getattr(learner, "semi_supervised", False)  # there -1 marks a row without a label
    for labels in ((0, 1), (2, 5) if without_label else (-1, 1), ("no", "yes")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one = fitted(clone(model), X, np.array(labels)[y])
        assert one.classes_.tolist() == list(labels)
        codes = np.searchsorted(one.classes_, one.predict(X))
        assert np.array_equal(one.classes_[codes], one.predict(X))
        scores = one.decision_function(X) if hasattr(one, "decision_function") else codes
        said[labels] = codes, scores
    assert get_tags(model).classifier_tags is not None
    for codes, scores in said.values():
        assert np.array_equal(codes, said[0, 1][0])
        assert np.array_equal(scores, said[0, 1][1])

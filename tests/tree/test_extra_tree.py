"""Single extremely randomised trees: as good as scikit-learn's on average, and their facts are proved."""

import numpy as np
import pytest
import sklearn.tree as scikit
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import cross_val_score
from sklearn.tree import export_text

import assay
from assay.tree import ExtraTreeClassifier, ExtraTreeRegressor


@pytest.mark.parametrize(
    ("ours", "theirs", "rows"),
    [
        (ExtraTreeClassifier, scikit.ExtraTreeClassifier, load_iris),
        (ExtraTreeRegressor, scikit.ExtraTreeRegressor, load_diabetes),
    ],
)
def test_as_good_as_scikit_learns_over_many_seeds(ours, theirs, rows):
    X, y = rows(return_X_y=True)
    scores = [
        [cross_val_score(kind(random_state=seed, min_samples_leaf=3), X, y, cv=4).mean() for seed in range(15)]
        for kind in (ours, theirs)
    ]
    spread = np.hypot(*(np.std(one) for one in scores)) / np.sqrt(15)
    assert abs(np.mean(scores[0]) - np.mean(scores[1])) < 4 * spread + 0.02


def test_defaults_tools_and_certificate():
    X, y = load_iris(return_X_y=True)
    model = ExtraTreeClassifier(random_state=0, max_depth=3).fit(X, y)
    assert (model.splitter, model.max_features, ExtraTreeRegressor().max_features) == ("random", "sqrt", 1.0)
    assert isinstance(model, scikit.ExtraTreeClassifier)
    assert export_text(model).count("class:") == model.get_n_leaves()
    other = ExtraTreeClassifier(random_state=1, max_depth=3).fit(X, y)
    assert not np.array_equal(model.tree_.threshold, other.tree_.threshold)
    assert assay.verify(model.certify(X, y), model, X, y).holds

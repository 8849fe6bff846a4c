"""Choice of parameters with scikit-learn's tools on Assay's learners."""

import numpy as np
import pytest
import sklearn.linear_model as sk
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit, cross_val_score

from assay.linear_model import LogisticRegression, Ridge


def draw(seed, n=240):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return X, X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=n)


@pytest.mark.mission("CON-33")
def test_a_parameter_is_chosen_on_validation_rows_and_judged_once_on_others():
    X, y = draw(0)
    labels = np.where(y > 0, 1, -1)
    train, validation, test = np.arange(100), np.arange(100, 170), np.arange(170, 240)
    grid = [1e-3, 1e-2, 0.1, 1.0, 10.0]
    seen = np.full(170, -1)
    seen[validation] = 0
    search = GridSearchCV(LogisticRegression(), {"C": grid}, cv=PredefinedSplit(seen)).fit(
        X[:170], labels[:170]
    )
    scores = [
        LogisticRegression(C=C).fit(X[train], labels[train]).score(X[validation], labels[validation])
        for C in grid
    ]
    assert search.best_params_["C"] == grid[int(np.argmax(scores))]
    assert search.cv_results_["mean_test_score"] == pytest.approx(scores)
    spoilt = labels.copy()
    spoilt[test] *= -1  # the choice cannot change: test labels were never looked at
    again = GridSearchCV(LogisticRegression(), {"C": grid}, cv=PredefinedSplit(seen)).fit(
        X[:170], spoilt[:170]
    )
    assert again.best_params_ == search.best_params_
    assert search.score(X[test], labels[test]) > 0.6


@pytest.mark.mission("CON-35")
def test_cross_validation_gives_the_scores_of_the_same_folds():
    X, y = draw(1)
    folds = KFold(5, shuffle=True, random_state=0)
    parts = [held for _, held in folds.split(X)]
    assert sorted(np.concatenate(parts)) == list(range(240))
    for alpha in (0.1, 10.0, 1000.0):
        ours = cross_val_score(Ridge(alpha), X, y, cv=folds)
        theirs = cross_val_score(sk.Ridge(alpha), X, y, cv=folds)
        by_hand = [
            Ridge(alpha).fit(np.delete(X, held, axis=0), np.delete(y, held)).score(X[held], y[held])
            for held in parts
        ]
        assert ours == pytest.approx(theirs, rel=1e-9)
        assert ours == pytest.approx(by_hand)

"""Choice of parameters with scikit-learn's tools on Assay's learners."""

import numpy as np
import pytest
import sklearn.linear_model as sk
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit, StratifiedShuffleSplit, cross_val_score

from assay.linear_model import LogisticRegression, Ridge, SGDClassifier
from assay.model_selection import Parts, choose_on_validation, three_way_split


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
    search = GridSearchCV(LogisticRegression(), {"C": grid}, cv=PredefinedSplit(seen)).fit(X[:170], labels[:170])
    scores = [
        LogisticRegression(C=C).fit(X[train], labels[train]).score(X[validation], labels[validation]) for C in grid
    ]
    assert search.best_params_["C"] == grid[int(np.argmax(scores))]
    assert search.cv_results_["mean_test_score"] == pytest.approx(scores)
    parts = Parts(train, validation, test)
    looked: list[tuple[str, np.ndarray]] = []

    class Watched(LogisticRegression):
        def fit(self, X, y=None, sample_weight=None):
            looked.append(("fit", X[:, 6]))
            return super().fit(X, y, sample_weight)

        def score(self, X, y, sample_weight=None):
            looked.append(("score", X[:, 6]))
            return super().score(X, y, sample_weight)

    numbered = np.column_stack([X, 1e-9 * np.arange(240)])  # a column that tells which row it is, too small to matter
    found = choose_on_validation(Watched(), {"C": grid}, numbered, labels, parts)
    assert found.parameters == search.best_params_
    assert found.scores == pytest.approx(scores)
    assert [kind for kind, _ in looked] == ["fit"] * 5 + ["score"] * 6
    for kind, rows in looked[:-1]:
        assert np.array_equal(np.rint(1e9 * rows).astype(int), train if kind == "fit" else validation)
    assert np.array_equal(np.rint(1e9 * looked[-1][1]).astype(int), test)  # the test rows last, and once
    assert found.test_score == search.best_estimator_.__class__(**found.parameters).fit(X[train], labels[train]).score(
        X[test], labels[test]
    )
    with pytest.raises(ValueError, match="names no parameters"):
        choose_on_validation(Watched(), [], numbered, labels, parts)


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
            Ridge(alpha).fit(np.delete(X, held, axis=0), np.delete(y, held)).score(X[held], y[held]) for held in parts
        ]
        assert ours == pytest.approx(theirs, rel=1e-9)
        assert ours == pytest.approx(by_hand)


@pytest.mark.mission("CON-32")
@pytest.mark.parametrize("seed", range(6))
def test_three_parts_are_disjoint_whole_and_keep_the_shares_of_classes(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 300))
    y = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    shares = rng.dirichlet([5, 3, 3])
    for labels in (None, y):
        parts = three_way_split(n, shares, stratify=labels, random_state=seed)
        assert sorted(np.concatenate(parts).tolist()) == list(range(n))
        for share, part in zip(shares, parts):
            assert abs(len(part) - share * n) <= 1
            for name in np.unique(y) if labels is not None else ():
                assert abs(np.sum(y[part] == name) - share * np.sum(y == name)) <= 1 + 1e-9
        again = three_way_split(n, shares, stratify=labels, random_state=seed)
        assert all(np.array_equal(a, b) for a, b in zip(parts, again))
    other = three_way_split(n, shares, random_state=seed + 100)
    assert not np.array_equal(parts.train, other.train)


def test_three_parts_are_drawn_evenly():
    counts = sum(np.bincount(three_way_split(10, random_state=s).test, minlength=10) for s in range(2000))
    assert abs(counts - 400).max() < 5 * np.sqrt(400 * 0.8)


@pytest.mark.parametrize(
    ("rows", "options", "word"),
    [
        (10, {"shares": (0.5, 0.5)}, "three positive"),
        (10, {"shares": (0.5, 0.4, 0.2)}, "sum to 1"),
        (10, {"shares": (1.0, 0.5, -0.5)}, "three positive"),
        (2, {}, "rows must be"),
        (10, {"stratify": [0, 1]}, "one label for each"),
    ],
)
def test_three_parts_refusals(rows, options, word):
    with pytest.raises(ValueError, match=word):
        three_way_split(rows, **options)


@pytest.mark.mission("CON-34")
def test_early_stopping_restores_the_best_state_on_validation_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 60))
    y = (X[:, 0] + 2.0 * rng.normal(size=200) > 0).astype(int)  # much noise: training on makes it worse
    model = SGDClassifier(
        loss="log_loss", alpha=1e-6, early_stopping=True, validation_fraction=0.3, n_iter_no_change=8, tol=0.0,
        random_state=0, max_iter=200,
    ).fit(X, y)  # fmt: skip
    seen = np.array([step.violation for step in model.history_])
    held = next(StratifiedShuffleSplit(test_size=0.3, random_state=0).split(X, y))[1]
    z = (2 * y[held] - 1) * model.decision_function(X[held])
    assert np.mean(np.logaddexp(0, -z)) == pytest.approx(seen.min(), rel=1e-12)
    assert seen.argmin() < len(seen) - 1  # the error rose again, for as long as asked, and the fit ended
    assert len(seen) - 1 - seen.argmin() == 8

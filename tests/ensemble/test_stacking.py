"""Stacking: the listing of the notes line by line, scikit-learn with the same folds and learners, certificates."""

import numpy as np
import pytest
from sklearn import ensemble as peer
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import KFold

import assay
from assay.discriminant_analysis import LinearDiscriminantAnalysis
from assay.ensemble import RandomForestClassifier, StackingClassifier, StackingRegressor
from assay.ensemble._combined import MemberError
from assay.ensemble._stacking import OverfitWarning
from assay.linear_model import LinearRegression, LogisticRegression, Perceptron, Ridge
from assay.svm import LinearSVC
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor

TABLES = {"two": load_breast_cancer(return_X_y=True), "three": load_iris(return_X_y=True)}
MEMBERS = [
    ("linear", LogisticRegression()),
    ("tree", DecisionTreeClassifier(max_depth=3, random_state=0)),
    ("discriminant", LinearDiscriminantAnalysis()),
]
NUMBERS = [("line", LinearRegression()), ("tree", DecisionTreeRegressor(max_depth=3, random_state=0))]


@pytest.mark.mission("ENS-54")
class TestAgainstScikitLearn:
    @pytest.mark.parametrize("table", TABLES)
    @pytest.mark.parametrize("passthrough", [False, True])
    def test_same_folds_and_learners_give_the_same_predictions(self, table, passthrough):
        X, y = TABLES[table]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        given = {"final_estimator": LogisticRegression(), "cv": KFold(4, shuffle=True, random_state=0)}
        given |= {"passthrough": passthrough}
        model = StackingClassifier(MEMBERS, **given).fit(X, y)
        theirs = peer.StackingClassifier(MEMBERS, **given).fit(X, y)
        assert model.transform(X) == pytest.approx(theirs.transform(X), abs=1e-12)
        assert model.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=1e-6)
        assert np.array_equal(model.predict(X), theirs.predict(X))

    def test_words_as_labels_and_the_default_folds(self):
        X, y = TABLES["three"]
        names = np.array(["setosa", "versicolor", "virginica"])[y]
        given = {"final_estimator": LogisticRegression()}
        model, theirs = (kind(MEMBERS, **given).fit(X, names) for kind in (StackingClassifier, peer.StackingClassifier))
        assert np.array_equal(model.predict(X), theirs.predict(X))

    def test_members_without_probabilities(self):
        X, y = TABLES["three"]
        members = [("svm", LinearSVC(random_state=0)), ("perceptron", Perceptron(max_iter=5, random_state=0))]
        given = {"final_estimator": LogisticRegression(), "cv": 3}
        with pytest.warns(UserWarning, match="Perceptron"):
            model = StackingClassifier(members, **given).fit(X, y)
        assert model.stack_method_ == ["decision_function", "decision_function"]
        with pytest.warns(UserWarning, match="Perceptron"):
            theirs = peer.StackingClassifier(members, **given).fit(X, y)
        assert np.mean(model.predict(X) == theirs.predict(X)) > 0.99

    def test_regression(self):
        X, y = load_diabetes(return_X_y=True)
        given = {"final_estimator": Ridge(1.0), "cv": 5}
        model, theirs = (kind(NUMBERS, **given).fit(X, y) for kind in (StackingRegressor, peer.StackingRegressor))
        assert model.predict(X) == pytest.approx(theirs.predict(X), rel=1e-9)


@pytest.mark.mission("ENS-53")
def test_the_listing_line_by_line():
    X, y = TABLES["three"]
    first, second = [one for _, one in MEMBERS], LogisticRegression()
    h = [clone(one).fit(X, y) for one in first]  # for t = 1..T: h_t = L_t(D)
    rows = []  # D' = {}
    for x in X:  # for i = 1..m: for t = 1..T: z_it = h_t(x_i); D' += ((z_i1, ..., z_iT), y_i)
        rows.append(np.concatenate([one.predict_proba(x[None])[0] for one in h]))
    above = clone(second).fit(np.array(rows), y)  # h' = L(D')
    with pytest.warns(OverfitWarning, match="cv=None"):
        model = StackingClassifier(MEMBERS, second, cv=None).fit(X, y)
    assert model.transform(X) == pytest.approx(np.array(rows), abs=1e-12)
    assert np.array_equal(model.predict(X), above.predict(np.array(rows)))  # H(x) = h'(h_1(x), ..., h_T(x))


def test_the_listing_learns_the_overfit_of_its_members():
    """A deep tree is perfect on its own rows: without folds the final learner trusts it more than it deserves."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    members = [("deep", DecisionTreeClassifier(random_state=0)), ("linear", LogisticRegression())]
    with pytest.warns(OverfitWarning):
        naive = StackingClassifier(members, cv=None).fit(X[:200], y[:200])
    folded = StackingClassifier(members).fit(X[:200], y[:200])
    assert naive.score(X[:200], y[:200]) > 0.99
    assert folded.score(X[200:], y[200:]) > naive.score(X[200:], y[200:])


class TestCertificate:
    @pytest.mark.parametrize("table", TABLES)
    @pytest.mark.parametrize("passthrough", [False, True])
    def test_holds(self, table, passthrough):
        X, y = TABLES[table]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]
        train, held = (X[:100], y[:100]), (X[100:], y[100:])
        model = StackingClassifier(MEMBERS, passthrough=passthrough).fit(*train)
        found = model.certify(*train, holdout=held)
        report = assay.verify(found, model, *train, holdout=held)
        assert report.holds, report.reason
        wrong = int(np.sum(model.predict(held[0]) != held[1]))
        errors = next(one for one in found.claims if one.params.get("set") == "holdout" and one.name == "train.errors")
        assert (errors.params["low"], errors.value) == (wrong, wrong)

    def test_holds_for_numbers(self):
        X, y = load_diabetes(return_X_y=True)
        model = StackingRegressor(NUMBERS).fit(X[:300], y[:300])
        given = {"holdout": (X[300:], y[300:])}
        found = model.certify(X[:300], y[:300], clip=200.0, **given)
        assert assay.verify(found, model, X[:300], y[:300], **given).holds
        assert found.find("holdout.betting").value < 200

    def test_another_final_learner_is_stored_but_not_certified(self, tmp_path):
        X, y = TABLES["three"]
        model = StackingClassifier(MEMBERS, RandomForestClassifier(5, random_state=0)).fit(X, y)
        with pytest.raises(ValueError, match="needs a linear final learner"):
            model.certify(X, y)
        assay.save(model, tmp_path / "stack.assay")
        assert np.array_equal(assay.load(tmp_path / "stack.assay").model.predict(X), model.predict(X))


def test_a_member_that_fails_is_named_with_its_fold():
    X, y = TABLES["three"]
    with pytest.raises(MemberError, match="the member 'bad, fold 0'"):
        StackingClassifier([("good", LogisticRegression()), ("bad", LogisticRegression(C=-1))]).fit(X, y)


@pytest.mark.mission("ENS-05")
def test_threads_change_no_bit():
    X, y = TABLES["two"]
    one, three = (StackingClassifier(MEMBERS, n_jobs=k).fit(X, y).predict_proba(X) for k in (1, 3))
    assert np.array_equal(one, three)


@pytest.mark.parametrize("names", [("b", "a", "c"), (3, 7, 5), (0.0, 1.0, 2.0)], ids=str)
def test_members_that_were_fitted_to_labels_are_certified_and_loaded(names, tmp_path):
    """The checker knows members by the positions of their classes; "prefit" ones were fitted to labels."""
    X, codes = TABLES["three"]
    y, kept = np.array(names)[codes], np.arange(len(X)) % 3 > 0
    members = [(name, clone(member).fit(X[kept], y[kept])) for name, member in MEMBERS]
    model = StackingClassifier(members, cv="prefit").fit(X[kept], y[kept])
    certificate = model.certify(X[kept], y[kept], holdout=(X[~kept], y[~kept]))
    report = assay.verify(certificate, model, X[kept], y[kept], holdout=(X[~kept], y[~kept]))
    assert report.holds, report.reason
    assay.save(model, tmp_path / "m.assay", certificate=certificate)
    assert np.array_equal(assay.load(tmp_path / "m.assay").model.predict(X), model.predict(X))
    assert members[0][1].classes_.tolist() == sorted(names)

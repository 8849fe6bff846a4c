"""A study in a notebook: what it shows, and `study.model` as an estimator of scikit-learn."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics import RocCurveDisplay, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.validation import check_is_fitted

import assay
from assay.claims.claim import Claim
from assay.learning.metrics import Metric


def frame(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, town = rng.normal(size=(rows, 2)), rng.choice(["Ulm", "Bonn", "Köln"], rows)
    y = np.where(x[:, 0] + (town == "Ulm") + 0.3 * rng.normal(size=rows) > 0.3, "yes", "no")
    return pd.DataFrame({"a": x[:, 0], "<b>": x[:, 1], "town": town, "y": y})


def study(table: pd.DataFrame, *learners: str, **options):
    return assay.learn(table, "y", learners=learners, trials=len(learners), workers=0, **options)


@pytest.fixture(scope="module")
def found():
    return study(frame(), "LogisticRegression", "DecisionTreeClassifier")


@pytest.fixture(scope="module")
def numbers():
    table = frame()
    return study(table.assign(y=2 * table["a"] + np.sin(np.arange(len(table)))), "Ridge")


def test_a_study_shows_its_leaderboard_and_verdict(found):
    text = repr(found)
    assert "LogisticRegression" in text
    assert "DecisionTreeClassifier" in text
    assert text.endswith(found.why)
    assert len(text) < 3000
    html = found._repr_html_()
    assert html.count("<tr") == 1 + len({one.name for one in found.candidates})
    assert found.chosen.name in re.search(r"font-weight:bold.*?</tr>", html)[0]


def test_what_a_table_calls_its_columns_stays_text(found):
    assert "&lt;b&gt;" in found.model._repr_html_()
    assert "<b>" not in found.model._repr_html_()
    assert repr(found.model) == f"<TableModel of 'y': {type(found.model.learner).__name__} of 3 columns>"


def test_a_certificate_yields_its_claims(found):
    claims = list(found.certificate)
    assert claims == list(found.certificate.claims)
    assert all(isinstance(one, Claim) for one in claims)


@pytest.mark.parametrize("learner", ["LogisticRegression", "DecisionTreeClassifier", "KNeighborsClassifier"])
def test_the_model_is_fitted_again_with_the_same_choice(learner):
    table = frame()
    first = study(table, learner)
    X, y = table.drop(columns="y"), table["y"]
    again = clone(first.model)
    with pytest.raises(NotFittedError):
        check_is_fitted(again)
    assert again.fit(X, y) is again
    check_is_fitted(again)
    train = np.setdiff1d(np.arange(len(X)), first.certificate.split["holdout"])
    same = clone(first.model).fit(X.iloc[train], y.iloc[train])  # the very rows: the very model
    assert np.array_equal(same.predict(X), first.model.predict(X))
    assert np.allclose(same.predict_proba(X), first.model.predict_proba(X))
    assert same.encoding == first.model.encoding


def test_tools_of_scikit_learn_take_it(found, numbers):
    table = frame()
    X, y = table.drop(columns="y"), table["y"]
    model = found.model
    assert is_classifier(model)
    assert is_regressor(numbers.model)
    scores = cross_val_score(model, X, y, cv=4)
    assert scores.shape == (4,)
    assert scores.mean() > 0.8
    assert cross_val_score(model, X, y, cv=3, scoring="roc_auc").mean() > 0.85
    worth = permutation_importance(model, X, y, n_repeats=3, random_state=0).importances_mean
    assert worth.argmax() == 0
    assert partial_dependence(model, X, ["a"], grid_resolution=5)["average"].shape == (1, 5)
    assert RocCurveDisplay.from_estimator(model, X, y, pos_label="yes").roc_auc > 0.85
    assert cross_val_score(numbers.model, X, 2 * table["a"], cv=3).min() > 0.9
    search = GridSearchCV(numbers.model, {"learner__alpha": [0.1, 1e6]}, cv=3).fit(X, 2 * table["a"])
    assert search.best_params_ == {"learner__alpha": 0.1}


def test_models_of_folds_are_fitted_again():
    table = frame(200)
    X, y = table.drop(columns="y"), table["y"]
    folds = study(table, "DecisionTreeClassifier", certify="folds").model
    again = clone(folds)
    with pytest.raises(NotFittedError):
        check_is_fitted(again)
    assert again.fit(X, y).score(X, y) > 0.8
    assert len(again.members) == 3
    assert cross_val_score(folds, X, y, cv=3).mean() > 0.8
    rows = study(table.assign(y=table["a"]), "Ridge", certify="folds").model
    assert clone(rows).fit(X, table["a"]).score(X, table["a"]) > 0.9


def test_arrays_have_the_columns_of_the_model(numbers):
    table = frame()[["a", "<b>"]]
    y = 2 * table["a"].to_numpy()
    model = study(table.assign(y=y), "Ridge").model
    assert np.array_equal(model.predict(table.to_numpy()), model.predict(table))
    assert clone(model).fit(table.to_numpy(), y).score(table, y) > 0.99
    with pytest.raises(ValueError, match="must have the model's 2 columns"):
        model.predict(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="rows and"):
        clone(model).fit(table, y[:-1])


@pytest.mark.parametrize(
    ("given", "meant"), [("accuracy", "error"), ("balanced_accuracy", "balanced"), ("roc_auc", "auc"), ("f1", "f1")]
)
def test_names_of_scorers_are_understood(given, meant):
    assert study(frame(120), "LogisticRegression", metric=given, task="classification").metric.name == meant


def test_r2_is_a_metric_and_is_what_scikit_learn_says(numbers):
    rng = np.random.default_rng(1)
    y, said = rng.normal(size=50), rng.normal(size=50)
    metric = Metric("r2")
    assert metric.shown(metric.of(y, said, None, 0)) == pytest.approx(r2_score(y, said))
    table = frame()
    found = study(table.assign(y=2 * table["a"] + 0.1 * table["<b>"]), "Ridge", metric="r2", task="regression")
    assert found.chosen.cv > 0.99
    assert "R^2 in cross-validation" in found.why


def test_what_is_no_metric_or_task_is_refused_with_the_parameter():
    with pytest.raises(ValueError, match=r"^metric for classification must be one of error, balanced"):
        study(frame(60), "LogisticRegression", metric="rmse")
    with pytest.raises(ValueError, match=r"^task must be classify or regress; got 'cluster'"):
        study(frame(60), "LogisticRegression", task="cluster")


def test_a_vote_is_fitted_again_on_numbers_as_studies_fit_votes():
    from assay.data import Encoding
    from assay.ensemble import VotingClassifier
    from assay.learning.model import TableModel
    from assay.naive_bayes import MixedNB
    from assay.tree import DecisionTreeClassifier

    table = frame()
    model = study(table, "DecisionTreeClassifier").model
    vote = VotingClassifier([("t", DecisionTreeClassifier(nominal=[7])), ("b", MixedNB(nominal=[7]))], voting="soft")
    again = TableModel(model.target, Encoding([]), vote).fit(table.drop(columns="y"), table["y"])
    assert again.score(table) > 0.85
    assert again.learner.get_params()["t__nominal"] is None  # places of nominal columns are those of the new encoding
    tree = TableModel(model.target, Encoding([]), DecisionTreeClassifier(nominal=[7]))
    assert tree.fit(table.drop(columns="y"), table["y"]).learner.nominal == tree.encoding.nominal() == [2]

"""Ordinary scripts for scikit-learn, run once with its classes and once with ours: only the imports change, and the
numbers are the same to tolerance."""

import importlib
import pickle
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import StackingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

ROOMS = ("linear_model", "svm", "decomposition", "neighbors", "tree", "discriminant_analysis", "naive_bayes")


def imports(library):
    """Return what `from <library>.<room> import ...` gives, room by room."""
    return SimpleNamespace(**{room: importlib.import_module(f"{library}.{room}") for room in ROOMS})


def pipeline(ml):
    X, y = load_breast_cancer(return_X_y=True)
    train, test, wanted, truth = train_test_split(X, y, random_state=0)
    model = make_pipeline(StandardScaler(), ml.decomposition.PCA(5), ml.linear_model.LogisticRegression(tol=1e-8))
    model.fit(train, wanted)
    return np.append(model.predict_proba(test)[:, 1], model.score(test, truth))


def grid_search(ml):
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(ml.svm.SVC(), {"C": [0.1, 1, 10], "kernel": ["linear", "rbf"]}, cv=5).fit(X, y)
    return [*search.cv_results_["mean_test_score"], search.best_score_, search.best_params_["C"]]


def randomized_search(ml):
    X, y = load_diabetes(return_X_y=True)
    choices = {"alpha": np.geomspace(1e-3, 10, 20)}
    search = RandomizedSearchCV(ml.linear_model.Ridge(), choices, n_iter=8, cv=4, random_state=0).fit(X, y)
    return [*search.cv_results_["mean_test_score"], search.best_params_["alpha"]]


def halving_search(ml):
    X, y = load_diabetes(return_X_y=True)
    grid = {"alpha": np.geomspace(1e-3, 10, 9)}
    search = HalvingGridSearchCV(ml.linear_model.Ridge(), grid, random_state=0, cv=3).fit(X, y)
    return [search.best_params_["alpha"], *search.cv_results_["mean_test_score"]]


def calibration(ml):
    X, y = load_breast_cancer(return_X_y=True)
    model = CalibratedClassifierCV(make_pipeline(StandardScaler(), ml.svm.LinearSVC(tol=1e-8, max_iter=100_000)), cv=3)
    return model.fit(X, y).predict_proba(X)[:, 1]


def stacking(ml):
    X, y = load_iris(return_X_y=True)
    members = [("nb", ml.naive_bayes.GaussianNB()), ("lda", ml.discriminant_analysis.LinearDiscriminantAnalysis())]
    model = StackingClassifier(members, ml.linear_model.LogisticRegression(tol=1e-8, max_iter=1000), cv=3).fit(X, y)
    return model.predict_proba(X).ravel()


def selection(ml):
    X, y = load_diabetes(return_X_y=True)
    chosen = SelectFromModel(ml.linear_model.Lasso(alpha=0.1)).fit(X, y)
    return [*chosen.get_support(), *ml.linear_model.LinearRegression().fit(chosen.transform(X), y).coef_]


def importance(ml):
    X, y = load_diabetes(return_X_y=True)
    model = ml.linear_model.Ridge(alpha=0.1).fit(X, y)
    return permutation_importance(model, X, y, n_repeats=3, random_state=0).importances_mean


def dependence(ml):
    X, y = load_iris(return_X_y=True)
    model = ml.svm.SVC(gamma="auto").fit(X, y == 2)
    found = partial_dependence(model, X, [2, 3], grid_resolution=8, response_method="decision_function")
    return found["average"].ravel()


TEXTS = """the cat sat on the mat|dogs and cats are pets|a dog barks at the cat|my pet sleeps on the mat
stocks fell sharply today|the market closed higher|investors sold their shares|the bank raised its rates""".replace(
    "\n", "|"
).split("|")


def text(ml):
    labels = ["pets"] * 4 + ["money"] * 4
    model = make_pipeline(TfidfVectorizer(), ml.linear_model.LogisticRegression(C=10.0, tol=1e-8)).fit(TEXTS, labels)
    other = make_pipeline(TfidfVectorizer(), ml.svm.LinearSVC(tol=1e-8)).fit(TEXTS, labels)
    new = ["the dog sleeps", "shares of the bank"]
    counted = [label == "money" for label in [*model.predict(new), *other.predict(new)]]
    return [*counted, *model.predict_proba(new)[:, 0], *other.decision_function(new)]


def files(ml, folder):
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), ml.neighbors.KNeighborsClassifier(7)).fit(X, y)
    joblib.dump(model, folder / "model.joblib")
    loaded, copied = joblib.load(folder / "model.joblib"), pickle.loads(pickle.dumps(model))
    assert np.array_equal(loaded.predict_proba(X), copied.predict_proba(X))
    return loaded.predict_proba(X).ravel()


def frames(ml):
    data = load_iris(as_frame=True)
    model = make_pipeline(StandardScaler(), ml.decomposition.PCA(2)).set_output(transform="pandas")
    found = model.fit_transform(data.data)
    assert list(found.columns) == ["pca0", "pca1"]
    assert list(model[-1].feature_names_in_) == list(data.data.columns)
    return np.abs(found.to_numpy()).ravel()


def routing(ml):
    X, y = load_breast_cancer(return_X_y=True)
    weight = np.linspace(0.5, 2.0, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        inner = ml.linear_model.LogisticRegression(tol=1e-8, max_iter=1000).set_fit_request(sample_weight=True)
        model = make_pipeline(StandardScaler(), inner)
        model[0].set_fit_request(sample_weight=True)
        model[-1].set_score_request(sample_weight=True)
        scores = cross_validate(model, X, y, params={"sample_weight": weight}, cv=3)["test_score"]
        model.fit(X, y, sample_weight=weight)
    return [*scores, *model[-1].coef_[0]]


def validation(ml):
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), ml.svm.SVC())
    scores = cross_val_predict(model, X, y, cv=3, method="decision_function")
    tree = cross_val_score(ml.tree.DecisionTreeClassifier(max_depth=2, random_state=0), X, y, cv=3)
    return [roc_auc_score(y, scores), *tree]


@pytest.mark.parametrize(
    "script",
    [pipeline, grid_search, randomized_search, halving_search, calibration, stacking, selection, importance, dependence,
     text, files, frames, routing, validation],
)  # fmt: skip
def test_a_script_gives_the_same_numbers_with_either_import(script, tmp_path):
    more = (tmp_path,) if script is files else ()
    theirs, ours = (np.asarray(script(imports(name), *more), dtype=float) for name in ("sklearn", "assay"))
    np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-3)

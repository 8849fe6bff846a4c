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
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_multilabel_classification
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import RFE, SelectFromModel, SequentialFeatureSelector
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import RANSACRegressor
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    train_test_split,
    validation_curve,
)
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import export_text

ROOMS = (
    "linear_model", "svm", "decomposition", "neighbors", "tree", "discriminant_analysis", "naive_bayes", "ensemble",
    "multiclass", "semi_supervised", "cluster", "mixture", "kernel_ridge",
)  # fmt: skip


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
    final = ml.linear_model.LogisticRegression(tol=1e-8, max_iter=1000)
    return ml.ensemble.StackingClassifier(members, final, cv=3).fit(X, y).predict_proba(X).ravel()


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


def committee(ml):
    X, y = load_breast_cancer(return_X_y=True)
    members = [
        ("linear", make_pipeline(StandardScaler(), ml.linear_model.LogisticRegression(tol=1e-8))),
        ("bayes", ml.naive_bayes.GaussianNB()),
        ("near", ml.neighbors.KNeighborsClassifier(7)),
    ]
    model = ml.ensemble.VotingClassifier(members, voting="soft", weights=[2, 1, 1])
    search = GridSearchCV(model, {"near__n_neighbors": [3, 9]}, cv=3).fit(X, y)
    numbers = ml.ensemble.VotingRegressor([("ridge", ml.linear_model.Ridge()), ("tree", tree(ml))])
    D, target = load_diabetes(return_X_y=True)
    scores = search.cv_results_["mean_test_score"]
    return [*scores, *search.predict_proba(X)[:, 1], *numbers.fit(D, target).predict(D)]


def tree(ml):
    return ml.tree.DecisionTreeRegressor(max_depth=2, random_state=0)


def routed_committee(ml):
    X, y = load_breast_cancer(return_X_y=True)
    X, weight = StandardScaler().fit_transform(X), np.linspace(0.5, 2.0, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        asking = ml.linear_model.LogisticRegression(tol=1e-8, max_iter=1000).set_fit_request(sample_weight=True)
        plain = ml.naive_bayes.GaussianNB().set_fit_request(sample_weight=False)
        voting = ml.ensemble.VotingClassifier([("asking", asking), ("plain", plain)], voting="soft")
        final = ml.linear_model.LogisticRegression(tol=1e-8).set_fit_request(sample_weight=True)
        stacking = ml.ensemble.StackingClassifier([("asking", asking), ("plain", plain)], final, cv=3)
        rest = ml.multiclass.OneVsRestClassifier(asking)
        models = [model.fit(X, y, sample_weight=weight) for model in (voting, stacking, rest)]
        return np.concatenate([model.predict_proba(X)[:, 1] for model in models])


def trees(ml):
    X, y = load_iris(return_X_y=True)
    model = ml.tree.DecisionTreeClassifier(max_depth=2).fit(X[:, 2:], y)
    lines = export_text(model, feature_names=["length", "width"]).splitlines()
    boosted = ml.ensemble.GradientBoostingRegressor(n_estimators=20, max_depth=2, random_state=0)
    D, target = load_diabetes(return_X_y=True)
    found = partial_dependence(boosted.fit(D, target), D, [2], grid_resolution=6)["average"]
    ada = ml.ensemble.AdaBoostClassifier(n_estimators=5, random_state=0).fit(X, y)
    return [len(lines), *model.tree_.n_node_samples[:1], *found.ravel(), *ada.predict_proba(X).ravel()]


def several_labels(ml):
    X, labels = make_multilabel_classification(150, 8, n_classes=4, random_state=0)
    X = X + np.random.default_rng(0).normal(scale=0.01, size=X.shape)  # no two rows at the same distance
    model = ml.multiclass.OneVsRestClassifier(ml.linear_model.LogisticRegression(tol=1e-8)).fit(X, labels)
    near = ml.neighbors.KNeighborsClassifier(5).fit(X, labels)
    quality = f1_score(labels, model.predict(X), average="micro")
    return [*model.predict_proba(X).ravel(), *near.predict(X).ravel(), quality]


def few_labels(ml):
    X, y = load_iris(return_X_y=True)
    X, marked = StandardScaler().fit_transform(X), np.where(np.arange(150) % 5, -1, y)
    base = ml.linear_model.LogisticRegression(tol=1e-8)
    taught = ml.semi_supervised.SelfTrainingClassifier(base, threshold=0.8).fit(X, marked)
    spread = ml.semi_supervised.LabelSpreading(gamma=0.5, alpha=0.3, max_iter=500, tol=1e-9).fit(X, marked)
    return [*taught.predict_proba(X).ravel(), *spread.label_distributions_.ravel(), taught.n_iter_]


def clusters(ml):
    X, _ = load_iris(return_X_y=True)
    found = ml.cluster.KMeans(3, n_init=10, random_state=0).fit(X)
    mixed = ml.mixture.GaussianMixture(2, random_state=0, tol=1e-8, max_iter=500).fit(X)
    return [found.inertia_, *np.sort(found.cluster_centers_[:, 2]), *np.sort(mixed.weights_), mixed.bic(X)]


def several_targets(ml):
    X, y = load_diabetes(return_X_y=True)
    Y = np.column_stack([y, y**2 / 100])
    models = (ml.kernel_ridge.KernelRidge(alpha=0.1, kernel="rbf"), ml.neighbors.KNeighborsRegressor(7), tree(ml))
    return np.concatenate([model.fit(X, Y).predict(X[:50]).ravel() / 100 for model in models])


def validation(ml):
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), ml.svm.SVC())
    scores = cross_val_predict(model, X, y, cv=3, method="decision_function")
    tree = cross_val_score(ml.tree.DecisionTreeClassifier(max_depth=2, random_state=0), X, y, cv=3)
    return [roc_auc_score(y, scores), *tree]


def robust(ml):
    X, y = load_diabetes(return_X_y=True)
    found = RANSACRegressor(ml.linear_model.LinearRegression(), random_state=0).fit(X, y)
    return [*found.estimator_.coef_ / 1000, *found.inlier_mask_]


def recursion(ml):
    X, y = load_diabetes(return_X_y=True)
    boosted = ml.ensemble.GradientBoostingRegressor(n_estimators=20, max_depth=2, random_state=0)
    models = [boosted.fit(X, y), ml.tree.DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)]
    found = [partial_dependence(one, X, [2, 8], method="recursion", grid_resolution=5) for one in models]
    return np.concatenate([one["average"].ravel() for one in found])


def elimination(ml):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ranked = RFE(ml.linear_model.LogisticRegression(tol=1e-8, max_iter=1000), n_features_to_select=5, step=5).fit(X, y)
    discriminant = ml.discriminant_analysis.LinearDiscriminantAnalysis()
    forward = SequentialFeatureSelector(discriminant, n_features_to_select=2, cv=3).fit(X[:, :8], y)
    return [*ranked.ranking_, *forward.get_support()]


def columns(ml):
    data = load_diabetes(as_frame=True)
    scaled = ColumnTransformer([("scaled", StandardScaler(), ["bmi", "bp"])], remainder="passthrough")
    logs = TransformedTargetRegressor(ml.linear_model.Ridge(0.1), func=np.log, inverse_func=np.exp)
    both = MultiOutputRegressor(ml.kernel_ridge.KernelRidge(alpha=0.5)).fit(data.data, np.c_[data.target, -data.target])
    return np.append(
        make_pipeline(scaled, logs).fit(data.data, data.target).predict(data.data), both.predict(data.data)[:, 1]
    )


def curves(ml):
    X, y = load_iris(return_X_y=True)
    _, _, learnt = learning_curve(ml.naive_bayes.GaussianNB(), X, y, cv=5, shuffle=True, random_state=0)
    _, checked = validation_curve(ml.svm.SVC(), X, y, param_name="C", param_range=[0.1, 1.0, 10.0], cv=3)
    return np.append(learnt.ravel(), checked.ravel())


@pytest.mark.parametrize(
    "script",
    [pipeline, grid_search, randomized_search, halving_search, calibration, stacking, selection, importance, dependence,
     text, files, frames, routing, validation, committee, routed_committee, trees, several_labels, few_labels, clusters,
     several_targets, robust, recursion, elimination, columns, curves],
)  # fmt: skip
def test_a_script_gives_the_same_numbers_with_either_import(script, tmp_path):
    more = (tmp_path,) if script is files else ()
    theirs, ours = (np.asarray(script(imports(name), *more), dtype=float) for name in ("sklearn", "assay"))
    np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("kind", ["RandomForestRegressor", "ExtraTreesRegressor", "GradientBoostingRegressor"])
def test_shap_explains_our_trees(kind):
    shap = pytest.importorskip("shap")
    X, y = load_diabetes(return_X_y=True)
    model = getattr(imports("assay").ensemble, kind)(n_estimators=5, max_depth=3, random_state=0).fit(X, y)
    found = shap.TreeExplainer(model)
    total = found.shap_values(X[:20]).sum(axis=1) + found.expected_value
    assert total == pytest.approx(model.predict(X[:20]))

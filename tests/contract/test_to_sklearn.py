"""`to_sklearn`: scikit-learn's estimator of the same name, which says the same of every row, or a refusal."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.ensemble
import sklearn.svm
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.inspection import partial_dependence
from sklearn.tree import export_text

import assay
from assay.ensemble import RandomForestClassifier
from assay.svm import SVC
from assay.tree import DecisionTreeClassifier, ObliqueTreeClassifier
from tests.contract.test_surface import fitted, shared

REFUSED = {  # whose predictions scikit-learn makes of private parts, or by another rule
    "LabelPropagation", "LabelSpreading", "OutputCodeClassifier", "RadiusNeighborsClassifier", "VotingClassifier",
}  # fmt: skip
ANSWERS = ("predict", "predict_proba", "decision_function", "transform", "score_samples", "apply")
X, Y = load_iris(return_X_y=True)


def rows_of(model):
    name = type(model).__name__
    if name in ("CategoricalNB", "MultinomialNB", "ComplementNB", "BernoulliRBM", "LatentDirichletAllocation"):
        return np.random.default_rng(1).integers(0, 2, (200, 6))
    return np.concatenate([make_classification(90, 6, random_state=1)[0], make_regression(90, 6, random_state=2)[0]])


@pytest.mark.parametrize(("theirs", "ours"), list(shared()))
def test_the_estimator_says_the_same(theirs, ours):
    few = {"n_estimators": 5, "max_iter": 20, "loss": None}
    model = fitted(ours, few if ours.__name__ == "SGDRegressor" else {"n_estimators": 5})
    if ours.__name__ in REFUSED:
        with pytest.raises(ValueError, match=r"has no form in scikit-learn|would predict something else"):
            model.to_sklearn()
        return
    estimator, rows = model.to_sklearn(), rows_of(model)
    assert type(estimator) is theirs
    for name in ANSWERS:
        if hasattr(theirs, name) and hasattr(model, name):
            np.testing.assert_allclose(
                np.asarray(getattr(estimator, name)(rows), dtype=float),
                np.asarray(getattr(model, name)(rows), dtype=float), rtol=1e-6, atol=1e-8, err_msg=name,
            )  # fmt: skip


def test_members_are_scikit_learns_too():
    estimator = RandomForestClassifier(5, random_state=0).fit(X, Y).to_sklearn()
    assert {type(one).__module__ for one in estimator.estimators_} == {"sklearn.tree._classes"}
    assert "class" in export_text(estimator.estimators_[0])
    assert not hasattr(estimator, "certify")


@pytest.mark.parametrize("classes", [2, 3])
def test_machines_of_two_and_more_classes(classes):
    some = np.flatnonzero(classes > Y)
    model = SVC(C=2.0).fit(X[some], Y[some])
    estimator = model.to_sklearn()
    np.testing.assert_allclose(estimator.decision_function(X), model.decision_function(X), atol=1e-8)
    assert (estimator.C, estimator.cache_size) == (2.0, 200)


@pytest.mark.parametrize("kind", ["GradientBoosting", "HistGradientBoosting"])
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_boosting_reads_rows_and_averages_like_scikit_learns_form(kind, classes):
    train, y = make_regression(150, 4, noise=5.0, random_state=0)
    y = y if not classes else np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    model = getattr(assay.ensemble, kind + ("Classifier" if classes else "Regressor"))(random_state=0).fit(train, y)
    estimator = model.to_sklearn()
    rows = np.random.default_rng(1).normal(size=(200, 4)).astype(np.float32)  # all that its gradient boosting reads
    how = "decision_function" if classes else "predict"
    np.testing.assert_allclose(getattr(estimator, how)(rows), getattr(model, how)(rows), rtol=1e-9, atol=1e-9)
    own, theirs = (
        partial_dependence(one, train, [2, 3], method="recursion", grid_resolution=7)["average"]
        for one in (model, estimator)
    )
    np.testing.assert_allclose(own, theirs, rtol=1e-9, atol=1e-9)


def test_histogram_boosting_with_gaps_has_a_form_and_with_levels_none():
    model_type = assay.ensemble.HistGradientBoostingRegressor
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    model = model_type(max_iter=5).fit(holes, X[:, 0])
    np.testing.assert_allclose(model.to_sklearn().predict(holes), model.predict(holes), rtol=1e-12)
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y", "z"] * 50), "b": X[:, 0]})
    with pytest.raises(ValueError, match="split on levels"):
        model_type(max_iter=5, min_samples_leaf=5).fit(frame, np.arange(150.0) % 3).to_sklearn()


def test_what_scikit_learn_has_not_is_refused():
    with pytest.raises(ValueError, match="no class of this name"):
        ObliqueTreeClassifier().fit(X, Y).to_sklearn()
    with pytest.raises(ValueError, match="no form in scikit-learn"):  # it tells sparse rows from dense ones
        SVC().fit(sp.csr_matrix(X), Y).to_sklearn()
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y", "z"] * 50), "b": X[:, 0]})
    with pytest.raises(ValueError, match=r"no form|something else"):
        DecisionTreeClassifier().fit(frame, np.arange(150) % 3 == 1).to_sklearn()


def test_a_patched_scikit_learn_keeps_its_own_class():
    own = {"SVC": sklearn.svm.SVC}
    with assay.patch_sklearn():
        assert type(sklearn.svm.SVC().fit(X, Y).to_sklearn()) is own["SVC"]

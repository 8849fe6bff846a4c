"""Every class that both libraries have: scikit-learn's parameters, defaults, methods, attributes and tags are there,
but for what is listed here, each with its row in docs/from_scikit_learn.md."""

import dataclasses
import importlib
import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import make_classification, make_regression
from sklearn.utils import get_tags

ROOMS = (
    "linear_model", "discriminant_analysis", "svm", "kernel_ridge", "tree", "ensemble", "neighbors", "neural_network",
    "cluster", "decomposition", "mixture", "naive_bayes", "semi_supervised", "multiclass",
)  # fmt: skip
DEFAULTS = {  # "defaults" of that page, and the rows about the learner
    **{name: {"max_iter", "tol"} for name in ("ElasticNet", "ElasticNetCV", "Lasso", "LassoCV")},
    **{name: {"solver", "max_iter"} for name in ("LogisticRegression", "LogisticRegressionCV")},
    "Perceptron": {"tol"},
    "SGDClassifier": {"eta0"},
    "SGDRegressor": {"eta0", "learning_rate"},
    **{name: {"cache_size"} for name in ("SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM")},
    **{name: {"cv"} for name in ("StackingClassifier", "StackingRegressor")},
    "KMeans": {"algorithm"},
    "TruncatedSVD": {"algorithm"},
    "LabelPropagation": {"tol"},
    "LabelSpreading": {"tol", "max_iter"},
    "OutputCodeClassifier": {"code_size"},
}
TAGS = {
    "Perceptron": {"poor_score"},
    "CategoricalNB": {"poor_score"},
    "BaggingRegressor": {"multi_output"},
    "NearestNeighbors": {"multi_output"},
    "OneVsRestClassifier": {"multi_label", "multi_output"},
    **{name: {"preserves_dtype"} for name in ("KMeans", "MiniBatchKMeans", "KernelPCA", "PCA", "TruncatedSVD")},
    "LatentDirichletAllocation": {"preserves_dtype"},
}
MEMBERS = {
    "classes": [("a", "linear_model", "LogisticRegression"), ("b", "naive_bayes", "GaussianNB")],
    "numbers": [("a", "linear_model", "Ridge"), ("b", "tree", "DecisionTreeRegressor")],
}
SETTINGS = {  # under which scikit-learn sets attributes that it does not by default
    "Forest": {"oob_score": True, "bootstrap": True, "n_estimators": 30},
    "ExtraTrees": {"oob_score": True, "bootstrap": True, "n_estimators": 30},
    "Bagging": {"oob_score": True, "n_estimators": 30},
    "GradientBoosting": {"n_estimators": 20, "subsample": 0.5, "n_iter_no_change": 5, "max_iter": 10},
    "MLP": {"early_stopping": True, "max_iter": 20},
    "NuSVC": {"kernel": "linear", "nu": 0.3},
    "SV": {"kernel": "linear"},
    "SGD": {"average": True, "loss": "log_loss"},
    "KernelPCA": {"fit_inverse_transform": True, "kernel": "rbf"},
    "Discriminant": {"store_covariance": True},
    "RBM": {"n_iter": 2},
    "Latent": {"max_iter": 2},
}


def shared():
    for room in ROOMS:
        theirs, ours = (importlib.import_module(f"{library}.{room}") for library in ("sklearn", "assay"))
        for name in dir(theirs):
            if name[0].isupper() and name in vars(ours) and hasattr(getattr(theirs, name), "fit"):
                yield pytest.param(getattr(theirs, name), getattr(ours, name), id=name)


def built(kind, settings):
    """Return an instance with these settings, as far as it has them, and members if it asks for some."""
    library, names = kind.__module__.partition(".")[0], inspect.signature(kind.__init__).parameters
    settings = {name: value for name, value in {"random_state": 0, **settings}.items() if name in names}
    members = [
        (key, getattr(importlib.import_module(f"{library}.{room}"), name)())
        for key, room, name in MEMBERS["numbers" if kind.__name__.endswith("Regressor") else "classes"]
    ]
    needed = {"estimators": members} if "estimators" in names else {}
    if {"multiclass", "semi_supervised"} & set(kind.__module__.split(".")) and "estimator" in names:
        needed = {"estimator": members[0][1]}
    if kind.__name__.startswith("SGDRegressor"):
        settings.pop("loss")
    return kind(**settings, **needed)


def fitted(kind, settings):
    model, name = built(kind, settings), kind.__name__
    X, y = make_classification(90, 6, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    if is_regressor(model):
        X, y = make_regression(90, 6, random_state=0, noise=1.0)
        y = np.exp(y / 300) if get_tags(model).target_tags.positive_only else y
    elif not is_classifier(model) and name != "LinearDiscriminantAnalysis":
        y = None
    elif "Label" in name or "Training" in name:
        y[::3] = -1
    if name in ("CategoricalNB", "MultinomialNB", "ComplementNB", "BernoulliRBM", "LatentDirichletAllocation"):
        X = (np.abs(X) > 1).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X) if y is None else model.fit(X, y)


def public(model):
    """Return the methods and fitted attributes that are there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = [name for name in dir(model) if name[0] != "_" and hasattr(model, name)]
        return {name for name in names if name.endswith("_") or callable(getattr(model, name))}


def parameters(function):
    return {name: one for name, one in inspect.signature(function).parameters.items() if one.kind not in (2, 4)}


@pytest.mark.parametrize(("theirs", "ours"), list(shared()))
def test_parameters_are_scikit_learns(theirs, ours):
    a, b = parameters(theirs.__init__), parameters(ours.__init__)
    assert set(a) <= set(b)
    by_position = [name for name in a if a[name].kind == a[name].POSITIONAL_OR_KEYWORD]
    assert by_position == list(b)[: len(by_position)]
    other = {name for name in a if a[name].default not in (inspect.Parameter.empty, b[name].default)}
    assert other == DEFAULTS.get(theirs.__name__, set())


@pytest.mark.parametrize(("theirs", "ours"), list(shared()))
def test_methods_attributes_and_tags_are_scikit_learns(theirs, ours):
    more = next((options for part, options in SETTINGS.items() if part in theirs.__name__), {})
    peer, model = fitted(theirs, more), fitted(ours, more)
    assert public(peer) - public(model) == set()
    for name in sorted(public(peer)):
        f, g = getattr(theirs, name, None), getattr(ours, name, None)
        if inspect.isfunction(f) and inspect.isfunction(g) and name != "path":  # which passes on what it is given
            assert set(parameters(f)) <= set(parameters(g)), name
    assert different_tags(get_tags(peer), get_tags(model)) == TAGS.get(theirs.__name__, set())


def different_tags(theirs, ours):
    """Return the names of the tags that differ."""
    found = set()
    for part in ("input_tags", "target_tags", "transformer_tags", "classifier_tags", "regressor_tags"):
        a, b = getattr(theirs, part), getattr(ours, part)
        assert (a is None) == (b is None), part
        names = [] if a is None else [one.name for one in dataclasses.fields(a)]
        found |= {name for name in names if getattr(a, name) != getattr(b, name)}
    return found

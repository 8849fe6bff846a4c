"""Paths that users of scikit-learn had: sparse rows, single precision, several outputs, warm starts.

    python -m bench dropin --only lasso_path        one path; without --only all of them

Each path runs with the same call of both libraries; the quality printed beside the time is the objective or the score
of the model. Peers are scikit-learn's own classes at the same settings.
"""

import argparse
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.calibration
import sklearn.decomposition
import sklearn.ensemble
import sklearn.linear_model
import sklearn.model_selection
import sklearn.neighbors
import sklearn.svm
import sklearn.tree
from rich.console import Console
from sklearn.datasets import make_classification, make_regression
from sklearn.metrics import brier_score_loss

import assay.calibration
import assay.decomposition
import assay.ensemble
import assay.linear_model
import assay.model_selection
import assay.neighbors
import assay.svm
import assay.tree
from bench.harness import Contestant, compare, save, touch_memory

console = Console(width=110)


def sparse_rows(n: int, d: int, density: float, seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return rows with few entries, and a target that some of the columns make."""
    random = np.random.default_rng(seed)
    X = sp.random(n, d, density, format="csr", random_state=random)
    w = random.normal(size=d) * (random.uniform(size=d) < 0.1)
    return X, np.asarray(X @ w) + 0.1 * random.normal(size=n)


def pair(room: str, name: str, use: Any) -> list[Contestant]:
    """Return both libraries' class, each given to `use`, which fits it and returns the model."""
    kinds = [getattr(getattr(library, room), name) for library in (assay, sklearn)]
    return [
        Contestant("Assay", lambda: use(kinds[0]), peer=False),
        Contestant("scikit-learn", lambda: use(kinds[1])),
    ]


def case_ridge_sparse(repeats: int) -> list[dict]:
    X, y = sparse_rows(50_000, 500, 0.02)

    def loss(model: Any) -> float:
        return float(np.sum((X @ model.coef_ + model.intercept_ - y) ** 2) + model.coef_ @ model.coef_)

    both = pair("linear_model", "Ridge", lambda kind: kind(solver="sparse_cg", tol=1e-8).fit(X, y))
    return compare("ridge, sparse rows 50,000 x 500", both, loss, better="lower", repeats=repeats)


def case_lasso_path(repeats: int) -> list[dict]:
    X, y = make_regression(2_000, 300, n_informative=30, noise=5.0, random_state=0)

    def path(kind: Any) -> Any:
        model = kind(alpha=1.0, warm_start=True, tol=1e-8, max_iter=10_000)
        for alpha in np.geomspace(50, 0.05, 30):
            model.set_params(alpha=alpha).fit(X, y)
        return model

    def loss(model: Any) -> float:
        rest = X @ model.coef_ + model.intercept_ - y
        return float(rest @ rest / (2 * len(y)) + model.alpha * np.abs(model.coef_).sum())

    both = pair("linear_model", "Lasso", path)
    return compare("lasso, 30 warm starts, 2,000 x 300", both, loss, better="lower", repeats=repeats)


def _log_loss(X: Any, y: np.ndarray) -> Any:
    def loss(model: Any) -> float:
        z = np.where(y == model.classes_[1], 1, -1) * (X @ model.coef_[0] + model.intercept_[0])
        return float(0.5 * np.sum(model.coef_**2) + model.C * np.logaddexp(0, -z).sum())

    return loss


def case_logistic_warm(repeats: int) -> list[dict]:
    X, y = make_classification(20_000, 50, random_state=0)

    def path(kind: Any) -> Any:
        model = kind(warm_start=True, tol=1e-6, max_iter=1_000)
        for C in np.geomspace(1e-3, 10, 10):
            model.set_params(C=C).fit(X, y)
        return model

    both = pair("linear_model", "LogisticRegression", path)
    return compare("logistic, 10 warm starts, 20,000 x 50", both, _log_loss(X, y), better="lower", repeats=repeats)


def case_logistic_sparse(repeats: int) -> list[dict]:
    X, target = sparse_rows(20_000, 2_000, 0.01)
    y = (target > 0).astype(int)
    both = pair("linear_model", "LogisticRegression", lambda kind: kind(tol=1e-6, max_iter=1_000).fit(X, y))
    return compare("logistic, sparse rows 20,000 x 2,000", both, _log_loss(X, y), better="lower", repeats=repeats)


def case_sgd_sparse(repeats: int) -> list[dict]:
    X, target = sparse_rows(100_000, 2_000, 0.01)
    y = (target > 0).astype(int)

    def fit(kind: Any) -> Any:
        return kind(loss="log_loss", max_iter=10, tol=None, random_state=0).fit(X, y)

    both = pair("linear_model", "SGDClassifier", fit)
    title = "SGD, 10 epochs of sparse rows 100,000 x 2,000"
    return compare(title, both, lambda model: model.score(X, y), better="higher", repeats=repeats)


def case_pca_sparse(repeats: int) -> list[dict]:
    X, _ = sparse_rows(10_000, 2_000, 0.01)
    both = pair("decomposition", "PCA", lambda kind: kind(10, svd_solver="arpack", random_state=0).fit(X))
    title = "PCA, 10 directions of sparse rows 10,000 x 2,000"
    return compare(title, both, lambda model: model.explained_variance_.sum(), better="higher", repeats=repeats)


def case_svc_sparse(repeats: int) -> list[dict]:
    X, target = sparse_rows(4_000, 300, 0.05)
    y = (target > 0).astype(int)
    both = pair("svm", "SVC", lambda kind: kind(C=10.0).fit(X, y))
    title = "SVC, sparse rows 4,000 x 300"
    return compare(title, both, lambda model: model.score(X, y), better="higher", repeats=repeats)


def case_forest_outputs(repeats: int) -> list[dict]:
    X, y = make_regression(5_000, 20, n_targets=3, noise=1.0, random_state=0)
    both = pair("ensemble", "RandomForestRegressor", lambda kind: kind(50, random_state=0, n_jobs=-1).fit(X, y))
    title = "random forest, three targets, 5,000 x 20"
    return compare(title, both, lambda model: model.score(X, y), better="higher", repeats=repeats)


def case_extra_outputs(repeats: int) -> list[dict]:
    X, y = make_regression(5_000, 20, n_targets=3, noise=1.0, random_state=0)
    both = pair("ensemble", "ExtraTreesRegressor", lambda kind: kind(50, random_state=0, n_jobs=-1).fit(X, y))
    title = "extremely randomised trees, three targets, 5,000 x 20"
    return compare(title, both, lambda model: model.score(X, y), better="higher", repeats=repeats)


def case_extra_sparse(repeats: int) -> list[dict]:
    X, target = sparse_rows(4_000, 1_000, 0.02)
    y = (target > 0).astype(int)
    both = pair("ensemble", "ExtraTreesClassifier", lambda kind: kind(50, random_state=0, n_jobs=-1).fit(X, y))
    title = "extremely randomised trees, sparse rows 4,000 x 1,000"
    return compare(title, both, lambda model: model.score(X, y), better="higher", repeats=repeats)


def case_tree_sparse(repeats: int) -> list[dict]:
    X, target = sparse_rows(20_000, 200, 0.05)
    y = (target > 0).astype(int)
    both = pair("tree", "DecisionTreeClassifier", lambda kind: kind(max_depth=8, random_state=0).fit(X, y))
    title = "tree, sparse rows 20,000 x 200"
    return compare(title, both, lambda model: model.score(X, y), better="higher", repeats=repeats)


def case_forest_sparse(repeats: int) -> list[dict]:
    X, target = sparse_rows(4_000, 1_000, 0.02)
    y = (target > 0).astype(int)
    both = pair("ensemble", "RandomForestClassifier", lambda kind: kind(50, random_state=0, n_jobs=-1).fit(X, y))
    title = "random forest, sparse rows 4,000 x 1,000"
    return compare(title, both, lambda model: model.score(X, y), better="higher", repeats=repeats)


def case_forest_warm(repeats: int) -> list[dict]:
    X, y = make_regression(4_000, 20, noise=1.0, random_state=0)
    X = X.astype(np.float32)

    def longer(kind: Any) -> Any:
        model = kind(10, warm_start=True, random_state=0, n_jobs=-1)
        for trees in (10, 20, 30, 40):
            model.set_params(n_estimators=trees).fit(X, y)
        return model

    both = pair("ensemble", "RandomForestRegressor", longer)
    title = "random forest, single precision, 4 warm starts, 4,000 x 20"
    return compare(title, both, lambda model: model.score(X, y), better="higher", repeats=repeats)


def case_tree_outputs(repeats: int) -> list[dict]:
    X, target = make_regression(20_000, 20, n_targets=3, noise=1.0, random_state=0)
    y = (target > 0).astype(int)
    both = pair("tree", "DecisionTreeClassifier", lambda kind: kind(max_depth=10, random_state=0).fit(X, y))
    title = "tree, three labels, 20,000 x 20"
    return compare(title, both, lambda model: model.score(X, y), better="higher", repeats=repeats)


def case_pca_covariance(repeats: int) -> list[dict]:
    X, _ = sparse_rows(10_000, 1_000, 0.01)
    both = pair("decomposition", "PCA", lambda kind: kind(10, svd_solver="covariance_eigh").fit(X))
    title = "PCA by the covariance, sparse rows 10,000 x 1,000"
    return compare(title, both, lambda model: model.explained_variance_.sum(), better="higher", repeats=repeats)


def case_neighbours_outputs(repeats: int) -> list[dict]:
    X, y = make_regression(20_000, 8, n_targets=3, noise=1.0, random_state=0)
    X = X.astype(np.float32)

    def use(kind: Any) -> Any:
        model = kind(10, n_jobs=-1).fit(X, y)
        model.predicted = model.predict(X[:5_000])
        return model

    def error(model: Any) -> float:
        return float(np.mean((model.predicted - y[:5_000]) ** 2))

    both = pair("neighbors", "KNeighborsRegressor", use)
    title = "neighbours, single precision, three targets, 20,000 x 8"
    return compare(title, both, error, better="lower", repeats=repeats)


def case_logistic_cv(repeats: int) -> list[dict]:
    X, y = make_classification(10_000, 30, n_informative=10, random_state=0)
    settings = {"l1_ratios": (0.0,), "scoring": "neg_log_loss", "use_legacy_attributes": False}
    both = pair("linear_model", "LogisticRegressionCV", lambda kind: kind(**settings, n_jobs=-1).fit(X, y))
    title = "logistic regression, 10 penalties on 5 folds, 10,000 x 30"
    return compare(title, both, lambda model: model.score(X, y), better="higher", repeats=repeats)


def case_logistic_cv_classes(repeats: int) -> list[dict]:
    X, y = make_classification(5_000, 30, n_classes=4, n_informative=8, random_state=0)
    settings = {"l1_ratios": (0.0,), "scoring": "neg_log_loss", "use_legacy_attributes": False, "max_iter": 1_000}
    both = pair("linear_model", "LogisticRegressionCV", lambda kind: kind(**settings, n_jobs=-1).fit(X, y))
    title = "logistic regression, four classes, 10 penalties on 5 folds, 5,000 x 30"
    return compare(title, both, lambda model: model.score(X, y), better="higher", repeats=repeats)


def case_tuned_threshold(repeats: int) -> list[dict]:
    X, y = make_classification(10_000, 30, weights=[0.9], flip_y=0.1, random_state=0)
    kinds = [
        (assay.model_selection.TunedThresholdClassifierCV, assay.linear_model.LogisticRegression),
        (sklearn.model_selection.TunedThresholdClassifierCV, sklearn.linear_model.LogisticRegression),
    ]
    both = [
        Contestant("Assay", lambda: kinds[0][0](kinds[0][1](), scoring="f1").fit(X, y), peer=False),
        Contestant("scikit-learn", lambda: kinds[1][0](kinds[1][1](), scoring="f1", n_jobs=-1).fit(X, y)),
    ]
    title = "threshold for F1 on 5 folds, 10,000 x 30"
    return compare(title, both, lambda model: model.best_score_, better="higher", repeats=repeats)


def case_calibrated(repeats: int) -> list[dict]:
    X, y = make_classification(20_000, 30, n_informative=10, flip_y=0.05, random_state=0)
    kinds = [
        (assay.calibration.CalibratedClassifierCV, assay.svm.LinearSVC),
        (sklearn.calibration.CalibratedClassifierCV, sklearn.svm.LinearSVC),
    ]
    both = [
        Contestant("Assay", lambda: kinds[0][0](kinds[0][1]()).fit(X, y), peer=False),
        Contestant("scikit-learn", lambda: kinds[1][0](kinds[1][1](), n_jobs=-1).fit(X, y)),
    ]
    title = "linear machine, sigmoids on 5 folds, 20,000 x 30"

    def brier(model: Any) -> float:
        return brier_score_loss(y, model.predict_proba(X)[:, 1])

    return compare(title, both, brier, better="lower", repeats=repeats)


CASES = {name.removeprefix("case_"): run for name, run in list(globals().items()) if name.startswith("case_")}


def main(arguments: list[str]) -> None:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench dropin", description=__doc__, formatter_class=about)
    parser.add_argument("--only", choices=sorted(CASES), nargs="+", help="some paths; all of them without it")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each contestant (default 3)")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    touch_memory(2.0)
    rows: list[dict] = []
    for name, run in CASES.items():
        if options.only is None or name in options.only:
            rows += run(options.repeats)
    console.print(f"written to {save('-'.join(['dropin', *(options.only or [])]), rows)}")

"""Inputs of `tests.differential`: learners of every kind, small tables, stored models changed, rows at borders."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

import assay
from assay.checker.numerics import LARGEST, SMALLEST
from assay.claims.model import StoredModel
from assay.cluster import KMedoids
from assay.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from assay.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    StackingClassifier,
    VotingClassifier,
)
from assay.hmm import GMMHMM, GaussianHMM
from assay.imbalance import CostClassifier, ThresholdClassifier
from assay.linear_model import GeneralizedLinearRegressor, LogisticRegression, Perceptron
from assay.mixture import GaussianMixture
from assay.model_selection import CrossValidated
from assay.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from assay.naive_bayes import GaussianNB
from assay.neighbors import KNeighborsClassifier, KNeighborsRegressor, RadiusNeighborsClassifier
from assay.neural_network import MLPClassifier
from assay.params import Choice, Maybe, constraints
from assay.semi_supervised import LabelPropagation, LabelSpreading
from assay.svm import SVC
from assay.tree import DecisionTreeClassifier, ObliqueTreeClassifier

_FEW = {"n_estimators": 5, "max_iter": 20, "n_iter": 20}
_TREE, _LINE = DecisionTreeClassifier(max_depth=3, random_state=0), LogisticRegression()
_NEAR = [{"n_neighbors": k, "metric": m, "weights": w, "algorithm": a} for k, m, w, a in (
    (2, "euclidean", "uniform", "brute"), (3, "manhattan", "distance", "auto"), (4, "chebyshev", "uniform", "kd_tree"),
    (3, "euclidean", "distance", "brute"), (1, "euclidean", "uniform", "auto"), (6, "manhattan", "uniform", "brute"),
)]  # fmt: skip
_SEVERAL = [("line", _LINE), ("tree", _TREE), ("near", KNeighborsClassifier(2)), ("bayes", GaussianNB())]
_KINDS = ("full", "tied", "diag", "spherical")
VARIANTS: list[Any] = [
    *(KNeighborsClassifier(**one) for one in _NEAR),
    *(KNeighborsRegressor(**one) for one in _NEAR),
    *(RadiusNeighborsClassifier(1.0, metric=m, weights=w, outlier_label="most_frequent")
      for m in ("euclidean", "manhattan", "chebyshev") for w in ("uniform", "distance")),
    *(SVC(kernel=k, C=c, max_iter=200) for k, c in (("linear", 1.0), ("poly", 0.1), ("sigmoid", 1.0), ("rbf", 100.0))),
    *(VotingClassifier(_SEVERAL, voting=v, weights=w) for v in ("hard", "soft") for w in (None, [1, 2, 1, 2])),
    VotingClassifier(_SEVERAL, rule="majority"),
    *(OutputCodeClassifier(_LINE, decoding=d, random_state=0) for d in ("hamming", "euclidean", "loss")),
    *(one(base) for one in (OneVsOneClassifier, OneVsRestClassifier) for base in (_TREE, Perceptron(random_state=0))),
    *(BaggingClassifier(base, n_estimators=4, random_state=0) for base in (_LINE, KNeighborsClassifier(2), _TREE)),
    *(StackingClassifier(_SEVERAL[:3], passthrough=p) for p in (False, True)),
    *(MLPClassifier((6, 3), activation=a, max_iter=20, random_state=0) for a in ("identity", "logistic", "relu")),
    *(one(kernel="knn", n_neighbors=3) for one in (LabelPropagation, LabelSpreading)),
    *(AdaBoostClassifier(base, n_estimators=4, random_state=0) for base in (_TREE, _LINE)),
    *(CrossValidated(base, folds=3, random_state=0) for base in (_LINE, _TREE, KNeighborsClassifier(2))),
    *(GaussianMixture(2, covariance_type=kind, random_state=0) for kind in _KINDS),
    *(GaussianHMM(2, covariance_type=kind, n_iter=5, random_state=0) for kind in _KINDS),
    *(GMMHMM(2, n_mix=2, covariance_type=kind, n_iter=5, random_state=0) for kind in _KINDS),
    *(GeneralizedLinearRegressor(f, link=k, alpha=0.1)
      for f, k in (("poisson", "log"), ("gamma", "inverse"), ("binomial", "logit"), ("binomial", "probit"))),
    ThresholdClassifier(KNeighborsClassifier(4), threshold=0.5),
    ThresholdClassifier(_TREE, threshold=0.25),
    CostClassifier(GaussianNB(), cost=[[0, 1], [4, 0]]),
    LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.5),
    QuadraticDiscriminantAnalysis(reg_param=0.3),
    HistGradientBoostingClassifier(max_iter=5, loss="exponential"),
    HistGradientBoostingRegressor(max_iter=5, loss="poisson"),
    ObliqueTreeClassifier(routing="soft", max_depth=2, max_steps=5),
    KMedoids(3, metric="precomputed", random_state=0),
]  # fmt: skip


def subjects() -> list[Any]:
    """Return an unfitted learner for every kind of scores: all of the registry's, and variants of some."""
    found = []
    for learner in assay.learners():
        near = {"radius": 1.0, "outlier_label": "most_frequent"}
        given = {**_FEW, "random_state": 0, **(near if learner.__name__.startswith("Radius") else {})}
        found.append(learner(**{k: v for k, v in given.items() if k in learner._get_param_names()}))
    return found + VARIANTS


def name_of(model: Any) -> str:
    return "".join(repr(model).split())


def task_of(model: Any) -> str:
    """Return what a learner does; models of folds, which have no card, classify."""
    return model.card.task if hasattr(model, "card") else "classify"


def varied(model: Any, rng: np.random.Generator) -> Any:
    """Return the learner with other choices among those that its parameters have, in half of all rounds."""
    model = clone(model)
    if rng.random() < 0.5:
        return model
    for name, constraint in constraints(type(model)).items() if hasattr(model, "card") else ():
        constraint = constraint.constraint if isinstance(constraint, Maybe) else constraint
        if isinstance(constraint, Choice) and rng.random() < 0.5:
            model.set_params(**{name: constraint.allowed[int(rng.integers(len(constraint.allowed)))]})
    return model


# Tables -------------------------------------------------------------------------------------------------------


def table(model: Any, rng: np.random.Generator) -> tuple[np.ndarray, Any]:
    """Return a small table that the learner reads: decimals, whole numbers, duplicates, or columns of unlike sizes."""
    n, d, kind = int(rng.integers(30, 60)), int(rng.integers(1, 5)), int(rng.integers(5))
    X = rng.normal(size=(n, d)) * 2
    if kind in (1, 2):
        X = np.round(X, int(kind == 1))
    if kind == 3:
        X *= 10.0 ** rng.integers(-6, 7, d)
    if kind == 4:
        X[: n // 2] = X[n // 2 : n // 2 + n // 2]
        X = np.column_stack([X, X.sum(axis=1)])
    X = readable(model, X)
    if get_tags(model).input_tags.pairwise:
        X = np.abs(X[:, :1] - X[:, 0])
    if task_of(model) == "regress":
        return X, _numbers(model, X, rng)
    tags = get_tags(model)
    several = tags.classifier_tags is None or tags.classifier_tags.multi_class
    classes = 2 if not several or isinstance(model, (CostClassifier, ThresholdClassifier)) else int(rng.integers(2, 4))
    if getattr(model, "loss", "") == "exponential":
        classes = 2
    score = X[:, 0] / (np.abs(X[:, 0]).max() or 1.0) + 0.3 * rng.normal(size=n)
    y = np.clip(np.digitize(score, [-0.2, 0.4][: classes - 1]), 0, classes - 1)
    y[:classes], y[classes : 2 * classes] = np.arange(classes), np.arange(classes)
    return X, y


def _numbers(model: Any, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    y = np.round(X @ rng.normal(size=X.shape[1]) + rng.normal(size=len(X)), 1) + (5.0 if rng.random() < 0.5 else 0)
    kinds = {getattr(model, "distribution", ""), getattr(model, "loss", "")}
    if kinds & {"poisson", "gamma", "lognormal"}:
        return np.abs(y) + 1
    return (y > np.median(y)).astype(float) if "binomial" in kinds else y


def readable(model: Any, rows: np.ndarray) -> np.ndarray:
    """Return the rows moved to where the learner reads them: levels 0, 1, 2, or numbers that are not negative."""
    tags = get_tags(model).input_tags
    if tags.categorical:
        return np.clip(np.round(rows), -1.0, 1.0) + 1.0
    return np.abs(rows) if tags.positive_only or tags.pairwise else rows


def changed(stored: StoredModel, rng: np.random.Generator) -> StoredModel:
    """Return the stored model with arrays that make ties and cancellation common."""
    arrays = dict(stored.arrays)
    for name in [name for name, array in arrays.items() if array.dtype.kind == "f" and array.size and array.ndim]:
        array, way = arrays[name].copy(), int(rng.integers(8))
        if way == 0:
            array = np.round(array)
        elif way == 1:
            array = np.round(array * 4) / 4
        elif way == 2:  # large numbers that cancel
            flat = array.reshape(-1)
            at = rng.permutation(flat.size)[: 2 * (flat.size // 2)]
            flat[at[::2]] += 1.1e16 * (1 + np.abs(flat[at[::2]]))
            flat[at[1::2]] = -flat[at[::2]]
        elif way == 3:
            array *= 10.0 ** float(rng.integers(-40, 41))
        elif way == 4 and len(array) > 1:
            array[int(rng.integers(len(array)))] = array[int(rng.integers(len(array)))]
        arrays[name] = array
    members = tuple(changed(one, rng) for one in stored.members)
    return replace(stored, arrays=arrays, members=members)


# Rows ---------------------------------------------------------------------------------------------------------


def borderline(model: Any, say: Any, X: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows near which the answers of `say`, if there is one, change: found by bisection, at stored
    numbers, midway, copied, scaled; only such as the learner and the checker read."""
    few, d = X[rng.integers(len(X), size=size // 4)], X.shape[1]
    other = X[rng.integers(len(X), size=len(few))]
    found = [X, few, (few + other) / 2, 2 * few - other, few + other]
    found += [few * 10.0 ** rng.integers(-12, 13, (len(few), 1))]
    arrays = _arrays(model.stored())
    found += [_at_numbers(few.copy(), arrays, rng), np.round(few * 2) / 2, few * 1e-140, np.zeros((1, d))]
    ends = np.concatenate([few, other * 3]), np.concatenate([other, -few])
    if say is not None and not get_tags(model).input_tags.categorical:
        found += list(bisected(say, *(readable(model, end) for end in ends), rng))
    rows = np.concatenate(found)
    near = np.nextafter(rows, rows + rng.choice([-1.0, 1.0], rows.shape))
    rows = readable(model, np.concatenate([rows, near]))
    rows = rows[rng.permutation(len(rows))[:size]]
    if get_tags(model).input_tags.categorical:
        rows = rows[np.all([np.isin(rows[:, j], X[:, j]) for j in range(d)], axis=0)]
    rows = rows[in_range(rows)]
    if say is not None and task_of(model) == "regress":  # nothing is said of a row that nobody is near
        rows = rows[~np.isnan(quiet(say, rows).reshape(len(rows), -1)).any(axis=1)]
    return rows


def in_range(X: np.ndarray) -> np.ndarray:
    """Tell which rows the checker reads."""
    size = np.abs(X)
    return np.all((size == 0) | ((size >= SMALLEST) & (size <= LARGEST)), axis=1)


def _arrays(stored: StoredModel) -> list[np.ndarray]:
    own = [array for array in stored.arrays.values() if array.dtype.kind == "f" and array.size]
    return own + [array for member in stored.members for array in _arrays(member)]


def _at_numbers(rows: np.ndarray, arrays: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Put numbers that the model stores into the rows: thresholds, say, or entries of stored rows."""
    numbers = np.concatenate([np.zeros(1), *(array.ravel()[:2000] for array in arrays)])
    numbers = numbers[np.abs(numbers) < LARGEST]
    where = rng.random(rows.shape) < 0.7
    rows[where] = rng.choice(numbers, int(where.sum()))
    return rows


def bisected(say: Any, a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield rows on both sides of a border between a and b, and on it, down to adjacent doubles."""
    said = quiet(say, np.concatenate([a, b]))
    differ = np.flatnonzero(_unlike(said[: len(a)], said[len(a) :]))
    a, b, left = a[differ], b[differ], said[: len(said) // 2][differ]
    if not len(a):
        return
    low, high = np.zeros(len(a)), np.ones(len(a))
    for _ in range(70):
        middle = (low + high) / 2
        same = ~_unlike(quiet(say, a + middle[:, None] * (b - a)), left)
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    for t in (low, high):
        rows = a + t[:, None] * (b - a)
        yield rows
        for _ in range(2):
            moved = rows.copy()
            column = rng.integers(rows.shape[1], size=len(rows))
            at = np.arange(len(rows)), column
            moved[at] = np.nextafter(moved[at], moved[at] + rng.choice([-1.0, 1.0], len(rows)))
            yield moved


def _unlike(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Tell which rows are answered otherwise."""
    return np.any((one != other).reshape(len(one), -1), axis=1)


def quiet(say: Any, *given: Any, **more: Any) -> Any:
    """Return an answer, without warnings."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return say(*given, **more)

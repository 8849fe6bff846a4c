"""Choosing a network: lambda by cross-validation, the number of hidden units by trial."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import cross_val_score, train_test_split

LAMBDAS = (0.5, 0.9, 0.99, 0.999, 0.9999)


class Trial(NamedTuple):
    """The best value, all values tried, and the error of each."""

    best: Any
    values: tuple
    errors: np.ndarray


def lambda_by_cross_validation(model: Any, X: Any, y: Any, grid: Sequence[float] = LAMBDAS, *, folds: Any = 5) -> Trial:
    """Return the lambda of E = lambda mean loss + (1 - lambda) sum w^2 with the least error in cross-validation.

    Errors are the misclassified share, or 1 - R^2 of a regression, means over the folds.

    >>> from sklearn.datasets import load_iris
    >>> from assay.neural_network import MLPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> net = MLPClassifier(5, solver="lbfgs", max_iter=300, random_state=0)
    >>> lambda_by_cross_validation(net, X, y, (0.01, 0.999)).best
    0.999
    """
    values = _values("grid", grid)
    nets = (clone(model).set_params(lam=value) for value in values)
    errors = [1 - cross_val_score(net, X, y, cv=folds, error_score="raise").mean() for net in nets]
    return Trial(values[int(np.argmin(errors))], values, np.array(errors))


def hidden_units_by_trial(
    model: Any, X: Any, y: Any, sizes: Sequence[Any], *, validation: float = 0.25, random_state: Any = 0
) -> Trial:
    """Return the hidden layer sizes with the least error on rows kept out; the smallest of equals.

    A share `validation` of the rows is kept out once, the same for all sizes. Choosing by these rows uses them up: a
    statement about new data needs others.
    """
    values = _values("sizes", sizes)
    y = np.asarray(y)
    labels = y if is_classifier(model) and y.ndim == 1 else None
    kept, held = train_test_split(np.arange(len(y)), test_size=validation, random_state=random_state, stratify=labels)
    X = X if hasattr(X, "tocsr") else np.asarray(X)
    fits = (clone(model).set_params(hidden_layer_sizes=size).fit(X[kept], y[kept]) for size in values)
    errors = np.array([1 - fitted.score(X[held], y[held]) for fitted in fits])
    return Trial(values[int(np.argmin(errors))], values, errors)


def _values(name: str, given: Sequence[Any]) -> tuple:
    values = tuple(given)
    if not values:
        raise ValueError(f"{name} must hold at least one value to try; got none.")
    return values

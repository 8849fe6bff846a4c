"""Parameters chosen on validation rows and judged once on others; and the sweep of a penalty on a learner."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid
from sklearn.utils import _safe_indexing

from assay.model_selection._split import Parts


class ValidatedChoice(NamedTuple):
    """The parameters tried and their validation scores, the best of them, its model, and its score on the test rows."""

    tried: list[dict[str, Any]]
    scores: np.ndarray
    parameters: dict[str, Any]
    model: Any
    test_score: float


def choose_on_validation(learner: Any, grid: Any, X: Any, y: Any, parts: Parts) -> ValidatedChoice:
    """Fit the learner to the training rows with each parameter of the grid, choose by the score on the validation rows
    (the first of equal ones), and score the chosen model on the test rows, once.

    >>> from sklearn.datasets import load_iris
    >>> from assay.model_selection import three_way_split
    >>> from assay.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> parts = three_way_split(150, (0.5, 0.25, 0.25), stratify=y, random_state=0)
    >>> found = choose_on_validation(LogisticRegression(), {"C": [1e-3, 1.0]}, X, y, parts)
    >>> found.parameters, found.test_score > 0.9
    ({'C': 1.0}, True)
    """
    tried = list(ParameterGrid(grid))
    if not tried:
        raise ValueError("choose_on_validation: the grid names no parameters.")
    (fit, fit_y), (held, held_y) = (
        (_safe_indexing(X, part), _safe_indexing(y, part)) for part in (parts.train, parts.validation)
    )
    models = [clone(learner).set_params(**parameters).fit(fit, fit_y) for parameters in tried]
    scores = np.array([model.score(held, held_y) for model in models])
    best = int(np.argmax(scores))
    test = float(models[best].score(_safe_indexing(X, parts.test), _safe_indexing(y, parts.test)))
    return ValidatedChoice(tried, scores, tried[best], models[best], test)


class PenaltyPath(NamedTuple):
    """For each strength of a penalty the training loss, the penalty r(f) and the model."""

    strengths: np.ndarray
    losses: np.ndarray
    penalties: np.ndarray
    models: list[Any]


PENALTIES: Mapping[str, Callable[[Any], float]] = {
    "squared length": lambda model: float(np.sum(np.square(model.coef_))),
    "absolute sum": lambda model: float(np.sum(np.abs(model.coef_))),
    "leaves": lambda model: float(model.get_n_leaves()),
}
"""What is penalised in min (1/n) sum loss + lambda r(f): |w|^2, |w|_1, the number of leaves of a tree."""


def penalty_path(
    learner: Any,
    parameter: str,
    strengths: Iterable[float],
    X: Any,
    y: Any,
    *,
    penalty: str | Callable[[Any], float] = "squared length",
    loss: Callable[[Any, Any], float] | None = None,
) -> PenaltyPath:
    """Fit the learner with each strength of its penalty and return training losses and penalties.

    At strength 0 it is empirical risk minimisation. As the strength rises, the training loss cannot fall and the
    penalty cannot rise, if each fit is a minimum. `loss(y, predictions)` is the mean squared error of a regression and
    the error rate of a classifier by default.

    >>> from assay.linear_model import Ridge
    >>> path = penalty_path(Ridge(), "alpha", [0.0, 1.0, 10.0], [[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> path.penalties.round(3).tolist()
    [1.0, 0.444, 0.028]
    """
    measure = PENALTIES[penalty] if isinstance(penalty, str) else penalty
    if loss is None:
        loss = _error_rate if is_classifier(learner) else _squared_error
    values: Sequence[float] = [float(strength) for strength in strengths]
    models = [clone(learner).set_params(**{parameter: value}).fit(X, y) for value in values]
    losses = [float(loss(y, model.predict(X))) for model in models]
    return PenaltyPath(np.array(values), np.array(losses), np.array([measure(model) for model in models]), models)


def _squared_error(y: Any, predicted: Any) -> float:
    return float(np.mean((np.asarray(y) - predicted) ** 2))


def _error_rate(y: Any, predicted: Any) -> float:
    return float(np.mean(np.asarray(y) != predicted))

"""Parameters chosen on validation rows and judged once on others; the sweep of a penalty on a learner; learning curves:
training error, held-out error and certified bounds against the number of rows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid
from sklearn.utils import _safe_indexing, check_random_state

from assay.base import Learner
from assay.params import refuse

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ValidatedChoice(NamedTuple):
    """The parameters tried and their validation scores, the best of them, its model, and its score on the test rows."""

    tried: list[dict[str, Any]]
    scores: np.ndarray
    parameters: dict[str, Any]
    model: Any
    test_score: float


class Parts(NamedTuple):
    """Row numbers of three disjoint parts, each in increasing order."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


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


def three_way_split(
    rows: int,
    shares: Sequence[float] = (0.6, 0.2, 0.2),
    *,
    stratify: Any = None,
    random_state: Any = None,
) -> Parts:
    """Return the row numbers of a training, a validation and a test part.

    Parameters
    ----------
    rows : number of rows
    shares : three positive numbers that sum to 1
    stratify : labels of the rows, optional
        Each part then has its share of every class, to within one row. (Bounds of `certify` ask for a plain draw:
        rows that are held out by class are not independent draws.)
    random_state : seed

    >>> parts = three_way_split(10, random_state=0)
    >>> [len(part) for part in parts]
    [6, 2, 2]
    """
    given = np.asarray(shares, dtype=np.float64)
    if given.shape != (3,) or not (given > 0).all() or abs(given.sum() - 1) > 1e-9:
        raise ValueError(f"three_way_split: shares must be three positive numbers that sum to 1; got {shares!r}.")
    if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 3:
        raise ValueError(f"three_way_split: rows must be an integer >= 3, a row for each part; got {rows!r}.")
    labels = np.zeros(rows) if stratify is None else np.asarray(stratify)
    if labels.shape != (rows,):
        raise ValueError(f"three_way_split: stratify must hold one label for each of the {rows} rows.")
    order = check_random_state(random_state).permutation(rows)
    order = order[np.argsort(labels[order], kind="stable")]  # classes one after the other, each in random order
    ends = _ends(labels[order], given)
    part = np.concatenate([np.repeat([0, 1, 2], sizes) for sizes in ends])
    return Parts(*(np.sort(order[part == k]) for k in range(3)))


def _ends(sorted_labels: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return how many rows of each class go to each part: running shares of all rows so far, rounded, so that
    both the parts and the classes in them are off by less than one row."""
    _, counts = np.unique(sorted_labels, return_counts=True)
    until = np.cumsum(counts)
    cuts = np.floor(until[:, None] * np.cumsum(shares)[:2] + 0.5 - 1e-12).astype(np.int64)
    running = np.column_stack([cuts[:, 0], cuts[:, 1] - cuts[:, 0], until - cuts[:, 1]])
    return np.diff(running, axis=0, prepend=np.zeros((1, 3), dtype=np.int64))


class LearningCurve:
    """How the error of a classifier, and what can be proved about it, changes with the number of rows.

    The rows are put in random order; a share of them is held out, and the learner is fitted to the first 100,
    200, ... of the others.

    Parameters
    ----------
    estimator : a classifier of Assay
    sizes : numbers of training rows, rising; by default eight of them, from 50 to all, each a fixed factor larger
    test : float in (0, 1)
        Share of the rows that are held out; their error is drawn, and no bound uses them.
    delta : float in (0, 1)
        Each certificate holds with probability 1 - delta; the bounds in it share delta.
    random_state : seed of the order of the rows

    Attributes
    ----------
    frame_ : dict
        `rows`, `training error`, `held-out error`, and for each kind of bound its value (NaN where it says nothing)

    Examples
    --------
    >>> import numpy as np
    >>> from assay.linear_model import LogisticRegression
    >>> from assay.model_selection import LearningCurve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 2))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=4000) > 0
    >>> curve = LearningCurve(LogisticRegression(), [300, 3000], random_state=0).fit(X, y)
    >>> [round(float(value), 2) for value in curve.frame_["vc"]]
    [0.22, 0.13]
    """

    frame_: dict[str, np.ndarray]

    def __init__(
        self,
        estimator: Learner,
        sizes: Sequence[int] | None = None,
        *,
        test: float = 0.25,
        delta: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.estimator, self.sizes, self.test, self.delta, self.random_state = (
            estimator,
            sizes,
            test,
            delta,
            random_state,
        )

    def fit(self, X: Any, y: Any) -> "LearningCurve":
        """Fit the learner to each number of rows and certify it."""
        if not (isinstance(self.estimator, Learner) and is_classifier(self.estimator)):
            raise refuse(self, f"estimator must be a classifier of Assay; got {self.estimator!r}.")
        y = np.asarray(y)
        order = check_random_state(self.random_state).permutation(len(y))
        held = round(len(y) * float(self.test))
        sizes = self._sizes(len(y) - held) if 0 < held < len(y) else []
        if not sizes:
            raise refuse(self, f"test must leave rows on both sides; got {self.test!r} for {len(y)} rows.")
        test, rest = order[:held], order[held:]
        points = [self._point(X, y, rest[:size], test) for size in sizes]
        names = dict.fromkeys(name for point in points for name in point)
        self.frame_ = {name: np.array([point.get(name, np.nan) for point in points]) for name in names}
        return self

    def plot(self) -> "Figure":
        """Draw the curve."""
        from assay.plot import learning_curve

        return learning_curve(self.frame_)

    def _sizes(self, most: int) -> list[int]:
        if self.sizes is None:
            return [int(size) for size in np.unique(np.geomspace(min(50, most), most, 8).astype(np.int64))]
        sizes = [int(size) for size in self.sizes]
        if sizes != sorted(set(sizes)) or not sizes or sizes[0] < 2 or sizes[-1] > most:
            raise refuse(self, f"sizes must rise from at least 2 to at most {most} rows; got {self.sizes!r}.")
        return sizes

    def _point(self, X: Any, y: np.ndarray, rows: np.ndarray, test: np.ndarray) -> dict[str, float]:
        model: Any = clone(self.estimator).fit(_safe_indexing(X, rows), y[rows])
        certificate = model.certify(_safe_indexing(X, rows), y[rows], delta=self.delta)
        point: dict[str, float] = {"rows": len(rows)}
        for name, part in (("training error", rows), ("held-out error", test)):
            point[name] = float(np.mean(model.predict(_safe_indexing(X, part)) != y[part]))
        rates = [claim for claim in certificate.claims if claim.quantity and claim.direction == "upper"]
        return point | {claim.kind: claim.value for claim in rates}

"""Learning curves: training error, held-out error and certified bounds against the number of rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing, check_random_state

from assay.base import Learner
from assay.params import refuse

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

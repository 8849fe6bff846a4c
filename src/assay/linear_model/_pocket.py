"""The pocket algorithm: perceptron updates, keeping the hyperplane with the fewest errors met so far.

    minimise over w, b    number of rows with y_i (<w, x_i> + b) <= 0          (hard in general; this is a
    heuristic)

Claims: the errors it makes; the margin if there are none; or a few rows whose hulls intersect, which prove
that every
        hyperplane makes an error.
Method: rows are visited in a new random order each epoch; after each update all rows are counted, and
counting stops as
        soon as the kept hyperplane cannot be beaten. Gallant 1990.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state

from assay.base import fit_log, label_classes, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.fitlog import FitLog
from assay.guarantees.evidence import Decided, Gathered
from assay.linear_model._base import LinearClassifier, packed
from assay.linear_model._separator import inseparability_claim, separation_claim
from assay.params import Count, Flag, check, refuse
from assay.scan import Rows
from assay.theory.spaces import Linear


@dataclass(eq=False, repr=False)
class Pocket(ClassifierMixin, LinearClassifier):
    """A perceptron for classes that no hyperplane separates: the best hyperplane met is kept.

    Needs all rows in memory, since each update is judged on all of them; sparse rows are read as they are.
    More than two
    classes are learnt one against the rest.

    Parameters
    ----------
    fit_intercept : bool
        Whether to learn b.
    max_updates : int
        Updates allowed for each hyperplane.
    random_state : int, RandomState or None
        Seed of the orders in which rows are visited.
    n_jobs : int or None
        Threads for certifying; the updates themselves are sequential.

    Attributes
    ----------
    classes_, coef_, intercept_
    n_updates_ : int
        Updates made, over all hyperplanes.
    errors_ : list of int
        Training errors of each kept hyperplane, a score of zero counted as an error.

    Examples
    --------
    >>> from assay.linear_model import Pocket
    >>> model = Pocket(random_state=0).fit([[-1, -1], [1, 1], [-1, 1], [1, -1]], [0, 0, 1, 1])
    >>> model.errors_
    [1]
    """

    card = Card(
        name="Pocket",
        task="classify",
        model=Linear(),
        strategy="number of misclassified rows",
        algorithm="perceptron updates, keeping the best hyperplane",
        guarantee=("margin.bounds", "inseparability", "vc", "margin.kernel", "margin.multiclass", "pac-bayes.linear"),
    )

    constraints: ClassVar = {"fit_intercept": Flag, "max_updates": Count()}

    _: KW_ONLY
    fit_intercept: bool = True
    max_updates: int = 1000
    random_state: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "Pocket":
        """Fit to rows X (an array, a frame or a SciPy sparse matrix) and labels y."""
        check(self)
        limit = self.max_updates
        rows = read_rows(self, X, y)
        self.classes_ = label_classes(self, rows)
        rows = rows.encoded(self.classes_)
        require_finite(rows, self)
        if not hasattr(rows, "X"):
            raise refuse(
                self,
                "each update is judged on all rows, so they must be in memory; use Perceptron or SGDClassifier.",
            )
        random = check_random_state(self.random_state)
        targets = [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))
        with fit_log(self, limit * len(targets), X, y) as log:
            runs = [self._run(rows, code, limit, random, log) for code in targets]
        self.coef_ = np.vstack([w for w, *_ in runs])
        self.intercept_ = np.array([b for _, b, *_ in runs])
        self.errors_ = [errors for *_, errors, _ in runs]
        self.n_updates_ = sum(updates for *_, updates in runs)
        return self

    def _run(self, rows: Any, code: int, limit: int, random: Any, log: FitLog) -> tuple[np.ndarray, float, int, int]:
        """Learn to tell class `code` from the others; return w, b, errors and updates."""
        from assay.linear_model._perceptron_loops import pocket_pass

        table = packed(rows.X)
        signs = np.where(rows.y == code, 1.0, -1.0)
        w, b, best_w = np.zeros(rows.n_features), np.zeros(1), np.zeros(rows.n_features)
        best = np.array([float(len(signs)), 0.0])  # a zero vector has every row on the hyperplane: all errors
        updates, going = 0, True
        while going and updates < limit and best[0] > 0 and not log.stopped:
            order = random.permutation(len(signs))
            made, going = pocket_pass(
                *table, signs, order, bool(self.fit_intercept), w, b, best_w, best, limit - updates
            )
            updates += made
            log.step(best[0], best[0], coef_=best_w[None, :].copy(), intercept_=best[1:].copy())
            if made == 0:
                break
        return best_w, float(best[1]), int(best[0]), updates

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the margin of a hyperplane without errors, or a proof that every hyperplane makes one."""
        binary = len(self.classes_) == 2
        for k in range(len(self.coef_)):
            code, params = (1, {}) if binary else (k, {"class": k})
            yield from separation_claim(
                rows, self.coef_[k], float(self.intercept_[k]), bool(self.fit_intercept), code, params
            )
        if binary and Gathered(self.evidence(rows)).the(Decided).count_errors(rows)[0]:
            yield inseparability_claim(rows, bool(self.fit_intercept))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

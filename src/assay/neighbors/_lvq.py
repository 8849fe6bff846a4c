"""Learning vector quantisation: labelled prototypes that are pulled to rows of their label and pushed from others.

    p the nearest prototype of row x:   p <- p + eta (x - p) if their labels agree,   p <- p - eta (x - p) otherwise

so that its distance to x becomes (1 - eta) or (1 + eta) times what it was. A prototype that is pushed out of the
smallest box that holds the rows goes to the nearest point of the box, which is no farther from any row: without that,
where most rows have another label than their nearest prototype, all prototypes are pushed away without end. A new row
has the label of its nearest prototype; the cells of the prototypes are a Voronoi partition of the space.

Claims: training errors with near-ties decided in exact arithmetic; the number of prototypes is fixed in advance, so
        that the growth function of their class bounds the error rate (vc).
Method: passes over the rows in random order, each prototype starting at a row of its label (Kohonen 1988).
"""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import Learner, fit_log, label_classes, read_rows, require_finite
from assay.card import Card
from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.guarantees.evidence import OPEN, Evidence, Votes
from assay.neighbors._base import in_memory
from assay.neighbors._search import Boxes, nearest
from assay.params import Choice, Count, Number, Positive, check, refuse
from assay.prototypes import PrototypeMixin
from assay.scan import Rows
from assay.theory.spaces import Prototypes, Space

_TIED = 16  # nearest prototypes that are looked at for ties


class FewPrototypes:
    """The family of labels of the nearest of k prototypes, at one for each class."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Space:
        return Prototypes(n_features, n_classes, n_classes)

    def __str__(self) -> str:
        return "label of the nearest of k prototypes"


@dataclass(eq=False, repr=False)
class LearningVectorQuantization(PrototypeMixin, ClassifierMixin, Learner):
    """Classification by the label of the nearest of a few prototypes (LVQ1).

    Parameters
    ----------
    n_prototypes : int or dict
        Prototypes of each class: one number for all, or {label: number}.
    learning_rate : float in (0, 1)
        eta, the share of the gap that a prototype moves.
    schedule : "constant" or "inverse"
        eta in every pass, or eta / t in pass t, with which prototypes come to rest.
    max_iter : int
        Passes over the rows allowed.
    tol : float >= 0
        Stop once no prototype has moved by more than tol times the spread of the rows (the root of their mean squared
        distance from the mean) in a pass.
    random_state : int, RandomState or None
        Draws the rows that prototypes start at, and the order of each pass.
    n_jobs : int or None
        Threads of prediction; None uses all cores.

    Attributes
    ----------
    classes_
    prototypes_ : (k, n_features), prototype_codes_ : (k,)
        The prototypes and the positions of their labels in `classes_`.
    n_iter_ : int
        Passes made.
    movement_ : float
        The longest way of a prototype in the last pass, relative to the spread.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from assay.neighbors import LearningVectorQuantization
    >>> X, y = make_blobs(300, centers=[[0, 0], [5, 0]], random_state=0)
    >>> model = LearningVectorQuantization(schedule="inverse", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.98, model.cells([[0.0, 0.0], [5.0, 0.0]])
    (True, array([0, 1]))
    """

    card = Card(
        name="Learning vector quantisation",
        task="classify",
        model=FewPrototypes(),
        strategy="none: the nearest prototype is pulled by rows of its label and pushed by others",
        algorithm="passes over the rows in random order (LVQ1)",
        guarantee=("vc",),
    )
    family = "neighbors.prototypes"
    figure = "prototypes"

    constraints: ClassVar = {
        "learning_rate": Positive(why="the share of its gap that a prototype moves"),
        "schedule": Choice("constant", "inverse"),
        "max_iter": Count(),
        "tol": Number(low=0.0),
    }

    # One neighbour among the prototypes, as the exact search and the checker see it.
    n_neighbors, effective_metric_, weights = 1, "euclidean", "uniform"

    n_prototypes: Any = 1
    _: KW_ONLY
    learning_rate: float = 0.1
    schedule: str = "constant"
    max_iter: int = 100
    tol: float = 1e-2
    random_state: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "LearningVectorQuantization":
        """Fit prototypes to rows X and labels y."""
        check(self)
        if self.learning_rate >= 1:
            raise refuse(
                self,
                f"learning_rate must be below 1 (a prototype would jump onto the row); got {self.learning_rate:g}.",
            )
        rows = read_rows(self, X, y)
        require_finite(rows, self)
        self.classes_ = label_classes(self, rows)
        data, codes = in_memory(rows.encoded(self.classes_))
        data, codes = np.ascontiguousarray(data, dtype=np.float64), np.asarray(codes, dtype=np.int64)
        rng = check_random_state(self.random_state)
        self.prototypes_, self.prototype_codes_ = self._start(data, codes, rng)
        with np.errstate(over="ignore"):
            spread = float(np.sqrt(((data - data.mean(axis=0)) ** 2).sum(axis=1).mean()))
        with fit_log(self, self.max_iter, X, y) as log:
            self._pass_over(data, codes, rng, spread, log)
        return self

    def _start(self, X: np.ndarray, codes: np.ndarray, rng: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return prototypes at rows of their own label, drawn without repetition while there are enough."""
        picked, labels = [], []
        for code, many in enumerate(self._counts()):
            own = np.flatnonzero(codes == code)
            picked.append(rng.choice(own, many, replace=many > len(own)))
            labels.append(np.full(many, code))
        return X[np.concatenate(picked)].copy(), np.concatenate(labels)

    def _counts(self) -> list[int]:
        """Return the number of prototypes of each class; every class needs one."""
        given = self.n_prototypes
        named = given if isinstance(given, Mapping) else dict.fromkeys(self.classes_.tolist(), given)
        each = [named.get(label, 0) for label in self.classes_.tolist()]
        if any(isinstance(k, bool) or not isinstance(k, Integral) or k < 1 for k in each):
            raise refuse(self, f"n_prototypes must be an integer >= 1, or one for each label in a dict; got {given!r}.")
        return [int(k) for k in each]

    def _pass_over(self, X: np.ndarray, codes: np.ndarray, rng: Any, spread: float, log: FitLog) -> None:
        """Pass over the rows until prototypes rest or the passes are used up."""
        from assay.neighbors._loops import lvq_pass

        box = X.min(axis=0), X.max(axis=0)
        self.movement_, self.n_iter_, rests = np.inf, 0, False
        while self.n_iter_ < self.max_iter and not rests:
            before = self.prototypes_.copy()
            step = self.learning_rate / (self.n_iter_ + 1 if self.schedule == "inverse" else 1)
            order = rng.permutation(len(X))
            wrong = lvq_pass(X, codes, order, step, *box, self.prototypes_, self.prototype_codes_)
            with np.errstate(over="ignore"):
                way = float(np.sqrt(((self.prototypes_ - before) ** 2).sum(axis=1).max()))
            self.movement_ = way / spread if 0 < spread < np.inf else 0.0
            self.n_iter_ += 1
            rests = self.movement_ <= self.tol
            fitted = {"prototypes_": self.prototypes_.copy(), "prototype_codes_": self.prototype_codes_}
            if log.step(wrong / len(X), self.movement_, **fitted):
                break
        if not rests and self.schedule == "inverse" and not log.stopped:
            warnings.warn(
                f"LearningVectorQuantization: prototypes still moved by {self.movement_:.3g} of the spread in pass "
                f"{self.n_iter_} (tol={self.tol:g}). Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )

    # Prediction

    @property
    def fit_X_(self) -> np.ndarray:
        """The prototypes, as the search for neighbours calls them."""
        return self.prototypes_

    @property
    def fit_y_(self) -> np.ndarray:
        """The codes of the prototypes."""
        return self.prototype_codes_

    @property
    def n_samples_fit_(self) -> int:
        """Number of prototypes."""
        return len(self.prototypes_)

    @property
    def neighbor_numbers_(self) -> np.ndarray:
        """One neighbour, Euclidean distance, equal weights: what the checker reads."""
        return np.array([1, 0, 0])

    def _engine(self, Q: np.ndarray, k: int) -> Boxes:
        return Boxes(np.ascontiguousarray(self.prototypes_))

    def cells(self, X: Any) -> np.ndarray:
        """Return the number of the nearest prototype of each row, the first of equals: its Voronoi cell."""
        check_is_fitted(self)
        Q = validate_data(self, X, dtype=np.float64, reset=False)
        return nearest(self._engine(Q, 1), Q, 1, self.n_jobs)[1][:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of the nearest prototype of each row."""
        cells = self.cells(X)
        return self.classes_[self.prototype_codes_[cells]]

    def space(self, rows: Rows) -> Space:
        """Return the class of as many prototypes."""
        return Prototypes(rows.n_features, len(self.prototypes_), len(self.classes_))

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predicted classes."""
        yield Votes(_sure_codes, (self,))


def _sure_codes(block: Block, learner: LearningVectorQuantization) -> np.ndarray:
    """Return the position of the label of the nearest prototype; OPEN where, within rounding, it may be another's."""
    Q, few = np.ascontiguousarray(block.X), min(len(learner.prototypes_), _TIED)
    powers, index = nearest(learner._engine(Q, few), Q, few, learner.n_jobs)
    tied = powers <= powers[:, :1] * (1 + 32 * (Q.shape[1] + 8) * 2.0**-53)
    codes = learner.prototype_codes_[index]
    unsure = (tied & (codes != codes[:, :1])).any(axis=1) | (tied.all(axis=1) & (few < len(learner.prototypes_)))
    return np.where(unsure, OPEN, codes[:, 0])

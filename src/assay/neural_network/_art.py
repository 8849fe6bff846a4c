"""Adaptive resonance: categories that learn only from rows that resemble them, so that new rows do not wash out old
ones.

    T_j = |I and w_j| / (choice + |w_j|)       categories are tried by falling T, "and" is the smaller of two entries
    |I and w_j| >= vigilance |I|               resonance: w_j <- I and w_j; if no category resonates, I becomes one

I is the row itself, of 0 and 1 (`ART1`), or the row scaled to [0, 1] and its complement (x, 1 - x) (`FuzzyART`).
Entries of w only fall, so that categories come to rest after finitely many passes. A high vigilance makes many narrow
categories, 1 one for each distinct row; 0 makes a single one.

Claim: at most a stated number of the training rows would still change a category (art.rest).
Method: passes over the rows (Carpenter and Grossberg 1987; Carpenter, Grossberg and Rosen 1991).
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import Diagram, Learner, fit_log, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.params import Count, Flag, Maybe, Number, Positive, check, refuse
from assay.scan import Rows

_ROOM = 64  # categories for which there is room at first
_UNIT = 2.0**-53


class Categories:
    """The maps that send a row to the category that resonates with it."""

    def __str__(self) -> str:
        return "categories, boxes or patterns, that rows resonate with"


class Resonance(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, Learner):
    """What both networks share: passes, prediction, the claim."""

    figure = "network"
    vigilance: float
    choice: float
    max_iter: int
    shuffle: bool
    random_state: Any
    n_jobs: int | None
    _rate = 1.0

    weights_: np.ndarray

    def diagram(self) -> Diagram:
        """Return the layers that a diagram shows."""
        return Diagram([self.weights_.T], ["inputs", "categories"])

    # What a network adds

    def _learn_range(self, X: np.ndarray) -> None:
        """Look at the first rows, to know how they are coded."""

    def _coded(self, X: np.ndarray) -> np.ndarray:
        """Return the rows as the network sees them, (n, m), in [0, 1]."""
        raise NotImplementedError

    # Training

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Any:
        """Find categories of the rows X; y is not used."""
        return self._learn(X, self.max_iter, afresh=True)

    def partial_fit(self, X: Any, y: Any = None) -> Any:
        """Visit these rows once: categories are added where none resonates, and old ones stay."""
        return self._learn(X, 1, afresh=not hasattr(self, "weights_"))

    def _learn(self, X: Any, passes: int, afresh: bool) -> Any:
        check(self)
        rows = read_rows(self, X, None, reset=afresh)
        require_finite(rows, self)
        data = np.concatenate([block.X for block in rows.blocks()])
        if afresh:
            self._learn_range(data)
        coded = self._coded(data)
        weights = np.zeros((0, coded.shape[1])) if afresh else self.weights_
        labels = np.full(len(data), -1)
        random, rests = check_random_state(self.random_state), False
        with fit_log(self, passes, X, None) as log, log.keeping():
            for _ in range(passes):
                order = random.permutation(len(data)) if self.shuffle else np.arange(len(data))
                weights, change = self._pass(coded, order, weights, labels)
                self.weights_, self.labels_ = weights, labels.copy()
                rests = change == 0.0 or change <= self._small
                if log.step(float(len(weights)), change, weights_=weights) or rests:
                    break
        if not log.history:
            raise KeyboardInterrupt
        self.n_iter_ = len(log.history)
        if not rests and not log.stopped and passes > 1:
            warnings.warn(
                f"{type(self).__name__}: categories still changed by {change:.3g} in pass {self.n_iter_}. Raise "
                f"max_iter.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return self

    _small = 0.0

    def _pass(
        self, coded: np.ndarray, order: np.ndarray, weights: np.ndarray, labels: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Visit the rows once; return all categories and the largest change of an entry."""
        from assay.neural_network._competitive_loops import resonate

        known, at, change = len(weights), 0, 0.0
        room = np.zeros((max(_ROOM, 2 * known), coded.shape[1]))
        room[:known] = weights
        while True:
            sizes = room.sum(axis=1)
            at, known, moved = resonate(
                coded, order, at, room, sizes, known, self.vigilance, self.choice, self._rate, labels
            )
            change = max(change, moved)
            if at == len(order):
                return room[:known].copy(), change
            room = np.vstack([room, np.zeros_like(room)])

    # Prediction

    @property
    def _n_features_out(self) -> int:
        return len(self.weights_)

    def _known(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._coded(validate_data(self, X, reset=False, dtype=np.float64))

    def transform(self, X: Any) -> np.ndarray:
        """Return how much each category is chosen by each row, T, (n, categories)."""
        return self._choices(self._known(X))[0]

    def _choices(self, coded: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return T and |I and w|, (n, categories) each."""
        shared = np.stack([np.minimum(coded, w).sum(axis=1) for w in self.weights_], axis=1)
        return shared / (self.choice + self.weights_.sum(axis=1)), shared

    def _passes_test(self, coded: np.ndarray, shared: np.ndarray) -> np.ndarray:
        size = coded.sum(axis=1, keepdims=True)
        empty = (self.weights_.sum(axis=1) == 0) | (self.vigilance == 0)
        return np.where(size == 0, empty[None, :], shared >= self.vigilance * size)

    def predict(self, X: Any) -> np.ndarray:
        """Return the category that each row resonates with; -1 for a row that would become a new one."""
        coded = self._known(X)
        scores, shared = self._choices(coded)
        scores = np.where(self._passes_test(coded, shared), scores, -1.0)
        best = scores.argmax(axis=1)
        return np.where(scores[np.arange(len(best)), best] < 0, -1, best)

    # Certificate

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield how many rows would still change a category."""
        restless = int(rows.sum(_restless, self))
        yield Claim("art.rest", float(restless), params={"rows": rows.n_rows})


def _restless(block: Block, model: Any) -> int:
    """Return how many rows are not certain to leave all categories as they are."""
    coded, W = model._coded(block.X), model.weights_
    scores, shared = model._choices(coded)
    inside = np.stack([(w <= coded).all(axis=1) for w in W], axis=1)
    if isinstance(model, ART1):  # sums are integers
        passed = model._passes_test(coded, shared)
        winner = np.where(passed, scores, -1.0).argmax(axis=1)
        return int(np.sum(~(inside & passed)[np.arange(len(winner)), winner]))
    slip = (16 * coded.shape[1] + 256) * _UNIT
    asked = model.vigilance * coded.sum(axis=1, keepdims=True)
    covers = np.stack([(coded <= w).all(axis=1) for w in W], axis=1)
    best = np.where(inside & (covers | (shared * (1 - slip) >= asked)), scores * (1 - slip), -1.0).max(axis=1)
    rival = np.where(~inside & (covers | (shared * (1 + slip) >= asked)), scores * (1 + slip), -0.5).max(axis=1)
    return int(np.sum(~(best > rival)))


@dataclass(eq=False, repr=False)
class ART1(Resonance):
    """Categories of binary rows by adaptive resonance.

    Parameters
    ----------
    vigilance : float in [0, 1]
        Share of a row's ones that a category must have to learn from it.
    choice : float > 0
        Added to |w| in the denominator of the choice; small values prefer categories that lie within the row.
    binarize : float or None
        Entries above it count as 1, others as 0; None refuses rows with other numbers than 0 and 1.
    max_iter : int
        Passes over the rows at most; they end once nothing changes.
    shuffle : bool
        Whether each pass visits the rows in a new random order.
    random_state : int, RandomState or None
    n_jobs : int or None
        Has no effect on the passes, which are sequential.

    Attributes
    ----------
    weights_ : (categories, d), of 0 and 1
        What the rows of each category have in common.
    labels_ : (n,)
    n_iter_ : int

    Examples
    --------
    >>> from assay.neural_network import ART1
    >>> ART1(vigilance=0.5).fit_predict([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1]]).tolist()
    [0, 0, 1, 1]
    """

    family = "resonance.binary"
    card = Card(
        name="Adaptive resonance, binary",
        task="cluster",
        model=Categories(),
        strategy="none: a row joins the first category that it resembles enough, or founds one",
        algorithm="choice, vigilance test, fast learning (ART1)",
        guarantee=("art.rest",),
    )
    constraints: ClassVar = {
        "vigilance": Number(low=0.0, high=1.0),
        "choice": Positive(),
        "binarize": Maybe(Number()),
        "max_iter": Count(),
        "shuffle": Flag,
    }

    vigilance: float = 0.7
    _: KW_ONLY
    choice: float = 0.5
    binarize: float | None = 0.0
    max_iter: int = 100
    shuffle: bool = False
    random_state: Any = None
    n_jobs: int | None = None

    def _coded(self, X: np.ndarray) -> np.ndarray:
        if self.binarize is not None:
            return (self.binarize < X).astype(np.float64)
        if not np.isin(X, (0.0, 1.0)).all():
            raise refuse(self, "rows must hold 0 and 1; set binarize to the number above which entries count as 1.")
        return X


@dataclass(eq=False, repr=False)
class FuzzyART(Resonance):
    """Categories of rows of numbers by adaptive resonance: boxes that grow no wider than the vigilance allows.

    Parameters
    ----------
    vigilance : float in [0, 1]
        A category of d columns is a box whose sides sum to at most d (1 - vigilance), columns scaled to [0, 1].
    choice : float > 0
        Added to |w| in the denominator of the choice.
    learning_rate : float in (0, 1]
        beta; 1 lets a box grow at once to hold the row (fast learning), less lets it grow a part of the way.
    bounds : None or (2, d) array
        Least and largest value of each column, scaled to 0 and 1; others are cut off there. None: those of the first
        rows. Give them if `partial_fit` will see other values.
    max_iter : int
        Passes over the rows at most; they end once nothing changes.
    shuffle : bool
        Whether each pass visits the rows in a new random order.
    random_state : int, RandomState or None
    n_jobs : int or None
        Has no effect on the passes, which are sequential.

    Attributes
    ----------
    weights_ : (categories, 2 d)
        The lower corner of each box, and 1 minus the upper one.
    low_, high_ : (d,)
    labels_ : (n,)
    n_iter_ : int

    Examples
    --------
    >>> from assay.neural_network import FuzzyART
    >>> FuzzyART(vigilance=0.8).fit_predict([[0.0, 0.0], [0.1, 0.0], [1.0, 0.9], [0.9, 1.0]]).tolist()
    [0, 0, 1, 1]
    """

    family = "resonance.fuzzy"
    card = Card(
        name="Adaptive resonance, fuzzy",
        task="cluster",
        model=Categories(),
        strategy="none: a row joins the first category that it resembles enough, or founds one",
        algorithm="complement coding, choice, vigilance test, learning (fuzzy ART)",
        guarantee=("art.rest",),
    )
    constraints: ClassVar = {
        "vigilance": Number(low=0.0, high=1.0),
        "choice": Positive(),
        "learning_rate": Number(low=0.0, high=1.0, open_low=True),
        "max_iter": Count(),
        "shuffle": Flag,
    }

    vigilance: float = 0.75
    _: KW_ONLY
    choice: float = 1e-3
    learning_rate: float = 1.0
    bounds: Any = None
    max_iter: int = 100
    shuffle: bool = False
    random_state: Any = None
    n_jobs: int | None = None

    @property
    def _rate(self) -> float:  # type: ignore[override]
        return float(self.learning_rate)

    @property
    def _small(self) -> float:  # type: ignore[override]
        return 0.0 if self.learning_rate == 1 else 1e-6

    def _learn_range(self, X: np.ndarray) -> None:
        if self.bounds is None:
            self.low_, self.high_ = X.min(axis=0), X.max(axis=0)
            return
        given = np.array(self.bounds, dtype=np.float64)
        if given.shape != (2, X.shape[1]) or not np.isfinite(given).all() or np.any(given[0] > given[1]):
            raise refuse(
                self,
                f"bounds must be the least and largest value of {X.shape[1]} columns; got {self.bounds!r}.",
            )
        self.low_, self.high_ = given

    def _coded(self, X: np.ndarray) -> np.ndarray:
        span = np.where(self.high_ > self.low_, self.high_ - self.low_, 1.0)
        scaled = np.clip((X - self.low_) / span, 0.0, 1.0)
        scaled = np.where(scaled < 1e-100, 0.0, scaled)
        return np.hstack([scaled, 1.0 - scaled])

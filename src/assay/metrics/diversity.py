"""How much the members of an ensemble differ: pairs of classifiers, and the ambiguity of regressors.

Counts of two classifiers h_i, h_j on m rows with two labels, in the layout of the notes:

                 h_i = +1   h_i = -1
    h_j = +1        a          c
    h_j = -1        b          d

    disagreement  (b + c) / m
    correlation   (a d - b c) / sqrt((a + b) (a + c) (c + d) (b + d))
    Q             (a d - b c) / (a d + b c), of the same sign and never smaller in magnitude
    kappa         (p1 - p2) / (1 - p2), p1 = (a + d) / m, p2 = ((a + b)(a + c) + (c + d)(b + d)) / m^2

A measure whose denominator is zero is NaN, and `why_nan` says why. Ambiguity of regressors, H = sum_i w_i h_i:

    (h_i - H)^2 of a member;  A = sum_i w_i (h_i - H)^2;  (H - y)^2 = sum_i w_i (h_i - y)^2 - A

Krogh and Vedelsby 1995; Kuncheva and Whitaker 2003.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

MEASURES = ("disagreement", "correlation", "q", "kappa")


@dataclass(frozen=True)
class Pair:
    """Counts of two classifiers of two classes: both say +1 (a), only the first (b), only the second (c), none (d).

    >>> pair = Pair(3, 1, 2, 4)
    >>> pair.disagreement, round(pair.correlation, 4), round(pair.q, 4), round(pair.kappa, 4)
    (0.3, 0.4082, 0.7143, 0.4)
    """

    a: int
    b: int
    c: int
    d: int

    @property
    def rows(self) -> int:
        return self.a + self.b + self.c + self.d

    @property
    def disagreement(self) -> float:
        return (self.b + self.c) / self.rows

    @property
    def correlation(self) -> float:
        sizes = (self.a + self.b) * (self.a + self.c) * (self.c + self.d) * (self.b + self.d)
        return math.nan if sizes == 0 else (self.a * self.d - self.b * self.c) / math.sqrt(sizes)

    @property
    def q(self) -> float:
        total = self.a * self.d + self.b * self.c
        return math.nan if total == 0 else (self.a * self.d - self.b * self.c) / total

    @property
    def kappa(self) -> float:
        m, agree = self.rows, self.a + self.d
        chance = (self.a + self.b) * (self.a + self.c) + (self.c + self.d) * (self.b + self.d)
        return math.nan if chance == m * m else (agree * m - chance) / (m * m - chance)

    @property
    def why_nan(self) -> dict[str, str]:
        """The measures that have no value, and why."""
        reasons = {
            "correlation": "one of the two always says the same, so that nothing varies with it",
            "q": "a d + b c is zero: the counts hold no pair of rows to compare",
            "kappa": "both always say the same one label, so that agreement by chance is certain",
        }
        return {name: reason for name, reason in reasons.items() if math.isnan(getattr(self, name))}


def counts(first: Any, second: Any, positive: Any = None) -> Pair:
    """Return the counts of two classifiers' predictions of two labels; `positive` is the larger one unless given.

    >>> counts([1, 1, -1, -1], [1, -1, 1, -1])
    Pair(a=1, b=1, c=1, d=1)
    """
    first, second = np.asarray(first).ravel(), np.asarray(second).ravel()
    if len(first) != len(second) or not len(first):
        raise ValueError(f"counts: the two need one prediction for each row; got {len(first)} and {len(second)}.")
    labels = np.unique(np.concatenate([first, second]))
    if len(labels) > 2:
        raise ValueError(f"counts: two labels are compared; got {len(labels)}. For more use pairwise.")
    label = labels[-1] if positive is None else positive
    i, j = first == label, second == label
    return Pair(int((i & j).sum()), int((i & ~j).sum()), int((~i & j).sum()), int((~i & ~j).sum()))


class Diversity(NamedTuple):
    """One symmetric matrix (members, members) for each measure, and the mean over pairs of different members."""

    disagreement: np.ndarray
    correlation: np.ndarray
    q: np.ndarray
    kappa: np.ndarray
    means: dict[str, float]


def votes(members: Any, X: Any = None) -> np.ndarray:
    """Return what each member says of each row, (rows, members), as positions among the classes.

    `members` is a fitted ensemble of Assay or scikit-learn with X (bagging, forests, boosting, committees), a list of
    fitted classifiers with X, or the predictions themselves. The classes are those of the ensemble or, in a list, all
    that some classifier knows; of predictions, those that occur.
    """
    return _votes_and_classes(members, X)[0]


def _votes_and_classes(members: Any, X: Any, y: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the votes as positions, and the classes; those of predictions alone and lists include the labels y."""
    if hasattr(members, "member_votes"):
        return np.asarray(members.member_votes(X)), np.asarray(members.classes_)
    if X is None:
        outputs, known = np.asarray(members), None
        if outputs.ndim != 2:
            raise ValueError(f"votes: predictions must be (rows, members); got shape {outputs.shape}.")
        seen = [outputs]
    else:
        listed = members if isinstance(members, Sequence) else getattr(members, "estimators_", None)
        if listed is None or not len(listed):
            raise ValueError(f"votes: {type(members).__name__} has no members that vote.")
        ones = list(np.ravel(np.asarray(listed, dtype=object)))
        outputs, known = (
            np.stack([np.asarray(item.predict(X)) for item in ones], axis=1),
            getattr(members, "classes_", None),
        )
        seen = [outputs, *(item.classes_ for item in ones if hasattr(item, "classes_"))]
    if known is None:
        known = _union([*seen, *([] if y is None else [y])])
    elif not np.isin(_union(seen), known).all():  # members that were fitted to positions
        return outputs.astype(np.int64), np.asarray(known)
    return np.searchsorted(known, outputs), np.asarray(known)


def _union(parts: Sequence[Any]) -> np.ndarray:
    return np.unique(np.concatenate([np.ravel(np.asarray(part)) for part in parts]))


def _positions(y: Any, known: np.ndarray, name: str, rows: int) -> np.ndarray:
    """Return the labels as positions among the classes; refuse others."""
    labels = np.asarray(y)
    if len(labels) != rows or not np.isin(labels, known).all():
        raise ValueError(f"{name}: y must hold a label of the classes for each row.")
    return np.searchsorted(known, labels)


def pairwise(members: Any, X: Any = None, y: Any = None) -> Diversity:
    """Return every measure for every pair of members.

    With labels y a vote is right or wrong, which serves any number of classes; without, the votes themselves are
    compared: counts for two classes, and for more disagreement and kappa alone.

    >>> found = pairwise(np.array([[0, 0], [1, 1], [1, 1]]))
    >>> found.disagreement.tolist(), found.means["kappa"]
    ([[0.0, 0.0], [0.0, 0.0]], 1.0)
    """
    outputs, known = _votes_and_classes(members, X, y)
    classes = len(known)
    if y is not None:
        outputs = (outputs == _positions(y, known, "pairwise", len(outputs))[:, None]).astype(np.int64)
        classes = 2
    T = outputs.shape[1]
    results = {name: np.full((T, T), np.nan) for name in MEASURES}
    for i in range(T):
        for j in range(i, T):
            for name, value in _measured(outputs[:, i], outputs[:, j], classes).items():
                results[name][i, j] = results[name][j, i] = value
    upper = np.triu_indices(T, 1)
    means = {name: _mean(matrix[upper]) for name, matrix in results.items()}
    return Diversity(**results, means=means)


def _measured(first: np.ndarray, second: np.ndarray, classes: int) -> dict[str, float]:
    if classes <= 2:
        pair = counts(first, second, 1)
        return {name: getattr(pair, name) for name in MEASURES}
    return {"disagreement": float(np.mean(first != second)), "kappa": cohen(first, second, classes)}


def cohen(first: np.ndarray, second: np.ndarray, classes: int) -> float:
    """Return kappa of two columns of class positions: agreement beyond chance, of any number of classes."""
    table = np.zeros((classes, classes))
    np.add.at(table, (first, second), 1.0)
    m = table.sum()
    chance = float(table.sum(axis=0) @ table.sum(axis=1))
    return math.nan if chance == m * m else (float(np.trace(table)) * m - chance) / (m * m - chance)


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


class KappaError(NamedTuple):
    """The kappa-error diagram: a point for each pair, its kappa and the mean error of the two."""

    pairs: np.ndarray  # (pairs, 2) members
    kappa: np.ndarray
    error: np.ndarray


def kappa_error(members: Any, X: Any, y: Any) -> KappaError:
    """Return kappa and mean error of every pair of members (Margineantu and Dietterich 1997): a cloud far to the left
    is diverse, a low one accurate."""
    outputs, known = _votes_and_classes(members, X, y)
    wrong = (outputs != _positions(y, known, "kappa_error", len(outputs))[:, None]).mean(axis=0)
    pairs = np.stack(np.triu_indices(outputs.shape[1], 1), axis=1)
    kappas = np.array([cohen(outputs[:, i], outputs[:, j], len(known)) for i, j in pairs])
    return KappaError(pairs, kappas, np.array([(wrong[i] + wrong[j]) / 2 for i, j in pairs]))


class Ambiguity(NamedTuple):
    """Terms of (H - y)^2 = sum_i w_i (h_i - y)^2 - A: of each member and row, and per row; `means` over the rows."""

    of_members: np.ndarray  # (rows, members), (h_i - H)^2
    ambiguity: np.ndarray  # (rows,), A
    member_error: np.ndarray  # (rows,), sum_i w_i (h_i - y)^2
    ensemble_error: np.ndarray  # (rows,), (H - y)^2
    means: dict[str, float]


def ambiguity(outputs: Any, weights: Any, y: Any) -> Ambiguity:
    """Return the decomposition of the squared error of a weighted mean; `outputs` is (rows, members).

    >>> found = ambiguity([[1.0, 3.0]], None, [1.0])
    >>> found.means
    {'ambiguity': 1.0, 'member_error': 2.0, 'ensemble_error': 1.0}
    """
    outputs, y = np.asarray(outputs, dtype=np.float64), np.asarray(y, dtype=np.float64).ravel()
    if outputs.ndim != 2 or len(outputs) != len(y):
        raise ValueError(f"ambiguity: outputs must be (rows, members) with {len(y)} rows; got {outputs.shape}.")
    T = outputs.shape[1]
    w = np.full(T, 1 / T) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != (T,) or not np.isfinite(w).all() or w.min() < 0 or abs(w.sum() - 1) > 1e-9:
        raise ValueError(f"ambiguity: weights must be {T} numbers >= 0 with the sum 1; their sum is {w.sum():.10g}.")
    w = w / w.sum()
    H = outputs @ w
    away = (outputs - H[:, None]) ** 2
    apart, alone, together = away @ w, ((outputs - y[:, None]) ** 2) @ w, (H - y) ** 2
    terms = {"ambiguity": apart, "member_error": alone, "ensemble_error": together}
    return Ambiguity(away, apart, alone, together, {name: float(term.mean()) for name, term in terms.items()})

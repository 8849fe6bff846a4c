"""Linear separability as a linear programme.

    find w, b    with y_i (<w, x_i> + b) >= 1 for all i           (strict inequalities, scaled)

More than two classes: each against the rest, y_i = 1 for its own rows and -1 for all others.

Claims: the margin that each hyperplane found leaves (margin.bounds); or at most d + 2 rows whose hulls intersect, an
        exact proof
        that no hyperplane exists (inseparability: Gordan's alternative, checked in rational arithmetic). Other linear
        classifiers make the same two claims.
Method: constraint generation. A linear programme over a few rows (HiGHS) gives the hyperplane of largest least
        score; one pass over all rows finds those on the wrong side, which join the few. It ends with no row on
        the wrong side, or with a few rows that cannot be separated. So rows may lie in files or on a cluster.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import linprog
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks

from assay.base import fit_log, label_classes, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.ledger import FIT_NOT_KEPT
from assay.linear_model import _logistic_problem
from assay.linear_model._base import LinearClassifier
from assay.linear_model._logistic_problem import errors
from assay.messages import Message, named
from assay.optim.constrained import intersecting_hulls
from assay.optim.duality import gamma
from assay.params import Count, Flag, check
from assay.scan import Rows
from assay.theory.spaces import Linear

_FIRST = 200  # rows of the first programme
_JOINING = 100  # rows that may join the programme at once
_SOFT_ROWS = 2_000  # rows on which the hyperplane of least total violation is sought when there is no separator
_LP_ROWS = 50_000
_EXACT_COLUMNS = 50


class InseparableWarning(UserWarning):
    """No hyperplane separates the classes, or none was proved to."""


@dataclass(eq=False, repr=False)
class LinearSeparator(ClassifierMixin, LinearClassifier):
    """Hyperplanes that tell the classes apart without error, or the proof that there are none.

    Two classes share one hyperplane. Of more, each has a hyperplane against all others, and may have one or not.

    Parameters
    ----------
    fit_intercept : bool
        Whether a hyperplane may have an offset b.
    max_iter : int
        Linear programmes allowed for each hyperplane.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    classes_, coef_, intercept_
        Without a separator: the hyperplane of least total violation of y f >= 1, on all rows or, of more
        than 2000, on the rows of the last programme.
    answers_ : list of bool or None, one per hyperplane
        Whether it separates; None if neither was proved: the answer hangs on less than rounding, or max_iter was
        reached.
    separable_ : bool or None
        True if every hyperplane separates, False if one is proved not to exist, else None.
    proofs_ : list of int arrays, one per hyperplane
        Without a separator: numbers of the rows whose hulls intersect; empty otherwise.
    n_iter_ : int
        Linear programmes solved (the most over the hyperplanes).

    Examples
    --------
    >>> from assay.linear_model import LinearSeparator
    >>> LinearSeparator().fit([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 0, 1]).separable_
    True
    """

    card = Card(
        name="Linear separator",
        task="classify",
        model=Linear(),
        strategy="no training error",
        algorithm="linear programming with constraint generation",
        guarantee=("margin.bounds", "inseparability", "vc", "margin.kernel", "margin.multiclass", "pac-bayes.linear"),
        most_rows=50_000,
    )

    constraints: ClassVar = {"fit_intercept": Flag, "max_iter": Count()}

    _: KW_ONLY
    fit_intercept: bool = True
    max_iter: int = 200
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "LinearSeparator":
        """Fit to rows X and labels y; X may be arrays, a frame, Parquet files or a Dask collection."""
        check(self)
        rows = read_rows(self, X, y)
        self.classes_ = label_classes(self, rows)
        rows = rows.encoded(self.classes_)
        require_finite(rows, self)
        codes = self._codes
        coef, intercepts = np.zeros((len(codes), rows.n_features)), np.zeros(len(codes))
        founds: list[_Found] = []
        with fit_log(self, self.max_iter * len(codes), X, y) as log:
            for k, code in enumerate(codes):

                def callback(w: np.ndarray, b: float, wrong: float, k: int = k) -> bool:
                    coef[k], intercepts[k] = w, b
                    return log.step(wrong, wrong, coef_=coef.copy(), intercept_=intercepts.copy())

                one = _search(rows, code, self.fit_intercept, self.max_iter, callback)
                coef[k], intercepts[k] = one.w, one.b
                founds.append(one)
            if not log.history:  # decided by the first linear programmes
                callback(one.w, one.b, float(rows.sum(errors, coef, intercepts)))
        self.coef_, self.intercept_ = coef, intercepts
        self.answers_, self.proofs_ = [result.separable for result in founds], [result.proof for result in founds]
        self.separable_ = False if False in self.answers_ else None if None in self.answers_ else True
        self.n_iter_ = max(result.rounds for result in founds)
        if not self.separable_:
            warnings.warn(self._shortfall(), InseparableWarning, stacklevel=2)
        return self

    @property
    def _codes(self) -> list[int]:
        """The class that each hyperplane has on its positive side."""
        return [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))

    def _shortfall(self) -> Message:
        """Say which hyperplanes there are not."""
        which = Message("separated.all")
        if len(self.classes_) > 2:
            names = [str(self.classes_[k]) for k, answer in enumerate(self.answers_) if answer is self.separable_]
            which = Message("separated.one" if len(names) == 1 else "separated.some", names=names)
        if self.separable_ is False:
            return named(self, "warn.inseparable", which=which)
        return named(self, "warn.undecided", which=which, programmes=int(self.n_iter_))

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the margin of each hyperplane, or the rows that prove that there is none."""
        intercept = bool(self.fit_intercept)
        for k, code in enumerate(self._codes):
            which = {} if len(self.classes_) == 2 else {"class": code}
            if self._from_file:
                yield NotApplicable("inseparability", FIT_NOT_KEPT)
            elif self.answers_[k]:
                yield from separation_claim(rows, self.coef_[k], float(self.intercept_[k]), intercept, code, which)
            elif len(self.proofs_[k]):
                witness = {"rows": self.proofs_[k], "set": np.zeros(len(self.proofs_[k]), dtype=np.int64)}
                stated = {"form": "ii", "intercept": intercept, **which}
                yield Claim("inseparability", 1.0, "lower", stated, witness=witness)
            else:
                yield NotApplicable("inseparability", Message("why.no-exact-proof"))


class _Found(NamedTuple):
    w: np.ndarray
    b: float
    separable: bool | None
    proof: np.ndarray
    rounds: int


class _Few(NamedTuple):
    """The rows of the programme: their numbers, entries, and 1 for the class in question, else 0."""

    number: np.ndarray
    X: np.ndarray
    y: np.ndarray


_NO_ROWS = np.empty(0, dtype=np.int64)


def _search(rows: Rows, code: int, intercept: bool, max_iter: int, callback: Any) -> _Found:
    """Generate constraints until all rows of class `code` are separated from the others or a few cannot be."""
    few = _joined(rows.map(_every, code, max(1, rows.n_rows // _FIRST)))
    for rounds in range(1, max_iter + 1):
        w, b, least = _widest(few, intercept)
        if not least > 0:
            proof = intersecting_hulls(few.X, few.y, intercept)
            answer = None if proof is None else False
            w, b = _least_violation(rows, code, few, intercept)
            return _Found(w, b, answer, _NO_ROWS if proof is None else np.sort(few.number[proof]), rounds)
        wrong = _worst(rows.map(_wrong, code, w, b, few.number))
        if callback(w, b, float(len(wrong.number))):
            break
        if not len(wrong.number):
            missed = int(rows.sum(_unresolved, code, w, b))
            return _Found(w, b, True if missed == 0 else None, _NO_ROWS, rounds)
        few = _joined([few, wrong])
    return _Found(*_least_violation(rows, code, few, intercept), None, _NO_ROWS, max_iter)


def _widest(few: _Few, intercept: bool) -> tuple[np.ndarray, float, float]:
    """Return w, b with entries at most 1 on scaled columns that maximise the least y f over the few, and
    that least value."""
    scale = _column_scale(few.X)
    signs = 2.0 * few.y - 1.0
    A = np.column_stack([few.X / scale, np.ones(len(signs))]) * signs[:, None]
    size = A.shape[1]
    limit = np.ones(size)
    limit[-1] = float(size) if intercept else 0.0
    bounds = [*zip(-limit, limit), (None, None)]
    answer = linprog(
        np.append(np.zeros(size), -1.0),
        A_ub=np.column_stack([-A, np.ones(len(A))]),
        b_ub=np.zeros(len(A)),
        bounds=bounds,
        method="highs-ds",
    )
    if answer.status != 0:
        return np.zeros(size - 1), 0.0, 0.0
    v = answer.x[:size]
    least = float((A @ v).min())
    return v[:-1] / scale, float(v[-1]), least if least > 1e-12 else 0.0


def _least_violation(rows: Rows, code: int, few: _Few, intercept: bool) -> tuple[np.ndarray, float]:
    """Return w, b that minimise sum (1 - y f)_+ over all rows if they are not many, else over the few.

    The dual programme has a constraint per column instead of one per row: maximise sum alpha with sum alpha y (x, 1)
    = 0 and 0 <= alpha <= 1; its multipliers are (w, b).
    """
    if rows.n_rows <= _SOFT_ROWS:
        few = _joined(rows.map(_every, code, 1))
    few = _Few(*(part[:_SOFT_ROWS] for part in few))
    scale = _column_scale(few.X)
    A = np.column_stack([few.X / scale, np.ones(len(few.y))]) * (2.0 * few.y - 1.0)[:, None]
    A = A if intercept else A[:, :-1]
    answer = linprog(-np.ones(len(A)), A_eq=A.T, b_eq=np.zeros(A.shape[1]), bounds=(0.0, 1.0), method="highs-ds")
    v = answer.eqlin.marginals if answer.status == 0 else np.zeros(A.shape[1])
    v = -v if intercept else np.append(-v, 0.0)
    return v[:-1] / scale, float(v[-1])


def _column_scale(X: np.ndarray) -> np.ndarray:
    """Return the power of two next to each column's largest entry; scaling by it is exact."""
    largest = np.abs(X).max(axis=0)
    return np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1]), 1.0)


def _joined(parts: list[_Few]) -> _Few:
    return _Few(*(np.concatenate(members) for members in zip(*parts)))


def _signs(block: Block, code: int) -> np.ndarray:
    return np.where(block.y == code, 1.0, -1.0)


def _every(block: Block, code: int, step: int) -> _Few:
    """Return the rows whose number is a multiple of step: the same ones however the rows are cut into
    blocks."""
    at = np.arange(-block.start % step, len(block.X), step)
    return _Few(at + block.start, block.X[at], (block.y[at] == code).astype(np.int64))


def _worst(parts: list[tuple[_Few, np.ndarray]]) -> _Few:
    """Return, of the rows that the blocks propose, those farthest on the wrong side, in order of their
    numbers."""
    few, scores = _joined([part for part, _ in parts]), np.concatenate([score for _, score in parts])
    kept = np.sort(np.lexsort((few.number, scores))[:_JOINING])
    return _Few(*(member[kept] for member in few))


def _wrong(block: Block, code: int, w: np.ndarray, b: float, known: np.ndarray) -> tuple[_Few, np.ndarray]:
    """Return the rows farthest on the wrong side that are not in the programme yet, and their y f."""
    f = (block.X @ w + b) * _signs(block, code)
    at = np.flatnonzero(f <= 0)
    at = at[~np.isin(at + block.start, known)]
    at = np.sort(at[np.lexsort((at, f[at]))[:_JOINING]])
    return _Few(at + block.start, block.X[at], (block.y[at] == code).astype(np.int64)), f[at]


def _unresolved(block: Block, code: int, w: np.ndarray, b: float) -> int:
    """Return how many rows are not surely on the right side, rounding considered."""
    k = 2 * len(w) + 8
    f = (block.X @ w + b) * _signs(block, code)
    return int(np.count_nonzero(f <= 2.0**-52 * k * (np.abs(block.X) @ np.abs(w) + abs(b))))


def separation_claim(
    rows: Rows, w: np.ndarray, b: float, intercept: bool, code: int = 1, params: dict[str, Any] | None = None
) -> Iterator[Claim]:
    """Yield claim margin.bounds (lower) if <w, x> separates class `code` from the others: the margin that w leaves.

    With an intercept the margin is that of the best offset: half the gap between the classes' scores over
    |w|.
    """
    norm = float(np.linalg.norm(w))
    if norm == 0:
        return
    extremes = rows.map(_extremes, w, code)
    inside, outside = min(low for low, _ in extremes), max(high for _, high in extremes)
    gap = (inside - outside) / 2 if intercept else min(inside, -outside)
    rounding = 8 * gamma(rows) / rows.n_rows * (rows.n_features + 4) * float(np.abs(w) @ rows.largest_entries)
    margin = (gap - rounding) / norm * (1 - 1e-9)
    if margin > 0:
        radius = float(np.sqrt(max(rows.map(_logistic_problem.largest_norm)))) * (1 + 1e-9)
        yield Claim(
            "margin.bounds",
            margin,
            "lower",
            {"intercept": intercept, "radius": radius, **(params or {})},
            witness={"w": w},
        )


def _extremes(block: Block, w: np.ndarray, code: int) -> tuple[float, float]:
    """Return the least <w, x> over class `code` and the largest over the others."""
    s = block.X @ w
    own = block.y == code
    return float(s[own].min(initial=np.inf)), float(s[~own].max(initial=-np.inf))


def inseparability_claim(rows: Rows, intercept: bool) -> Claim | NotApplicable:
    """Return claim inseparability: a few rows whose class hulls intersect, found by a linear programme and verified
    exactly."""
    if rows.n_rows > _LP_ROWS or rows.n_features > _EXACT_COLUMNS:
        return NotApplicable(
            "inseparability",
            Message("why.separability-size", rows=_LP_ROWS, columns=_EXACT_COLUMNS),
        )
    parts = list(rows.blocks())
    X, y = np.vstack([part.X for part in parts]), np.concatenate([part.y for part in parts])
    result = intersecting_hulls(X, y, intercept)
    if result is None:
        return NotApplicable("inseparability", Message("why.no-exact-proof"))
    witness = {"rows": result, "set": np.zeros(len(result), dtype=np.int64)}
    return Claim("inseparability", 1.0, "lower", {"form": "ii", "intercept": intercept}, witness=witness)

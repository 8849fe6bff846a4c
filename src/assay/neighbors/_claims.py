"""What nearest-neighbour learners prove: neighbours that are right in exact arithmetic, and rows left out in turn."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.evidence import NOBODY, OPEN
from assay.guarantees.ledger import Vacuous, error_rate
from assay.neighbors._base import without
from assay.neighbors._search import nearest
from assay.scan import Rows
from assay.theory.neighbors import loo_bound, majority

_LISTED = 64  # rows whose neighbours a certificate lists
_TIED = 64  # rows beyond the k-th that are looked at first where it is one of several
_SPARE = 3  # neighbours looked at beyond the k-th, to see where a band of near-ties ends
_MOST_EXACT = 2048  # rows that are decided in rational arithmetic
_WHOLE = 2.0**20  # sums of squares of whole numbers up to here are exact
_CHECKED = ("euclidean", "manhattan", "chebyshev")


def why_not(learner: Any) -> str:
    """Return why the checker cannot follow this learner, or nothing."""
    metric, k, n = learner.effective_metric_, learner.n_neighbors, learner.n_samples_fit_
    if is_classifier(learner) and learner.outputs_2d_:
        return "certificates are about one target; fit a model for each column of y."
    if is_classifier(learner) and len(learner.classes_) < 2:
        return "a certificate needs two classes; all training rows have one label."
    if hasattr(learner.fit_X_, "tocsr"):
        return "certificates need dense rows: fit it to X.toarray()."
    if k > n:
        return f"n_neighbors = {k} is more than the {n} training rows; lower it."
    if not isinstance(metric, str) or metric not in _CHECKED:
        return f"certificates are about the distances {', '.join(_CHECKED)}; this model has {metric!r}."
    if learner.weights not in ("uniform", "distance", None):
        return "certificates are about weights 'uniform' or 'distance', not about a function."
    return ""


def exact_neighbors(
    learner: Any, Q: np.ndarray, own: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return distances and row numbers of the k nearest rows in exact arithmetic, and where that is certain.

    own[i] is the training row that query i is and that is not its neighbour. Rows whose k-th and next neighbours are
    nearly as far are decided in rational arithmetic, unless there are too many.
    """
    Q, k, n = np.ascontiguousarray(Q), int(learner.n_neighbors), learner.n_samples_fit_
    left_out = own is not None
    reach = min(n, k + left_out + _SPARE)
    engine = learner._engine(Q, k)
    powers, index = nearest(engine, Q, reach, learner.n_jobs)
    if own is not None:
        powers, index = without(powers, index, own)
    sure = np.ones(len(Q), dtype=bool)
    if powers.shape[1] > k and not _is_exact(learner, Q):
        close = 8 * (Q.shape[1] + 4) * 2.0**-53
        open_rows = np.flatnonzero(powers[:, k] <= powers[:, k - 1] * (1 + close))
        asked = open_rows[:_MOST_EXACT]
        limits = powers[asked, k - 1] * (1 + 4 * close)
        for at, rows in zip(asked, _near(learner, engine, Q[asked], limits), strict=True):
            index[at, :k] = _ranked_exactly(learner, Q[at], rows, None if own is None else int(own[at]), k, close)
            powers[at, :k] = _powers(learner, Q[at], index[at, :k])
        sure[open_rows[_MOST_EXACT:]] = False
    return engine.distance(powers[:, :k]), index[:, :k], sure


def _is_exact(learner: Any, Q: np.ndarray) -> bool:
    """Tell whether the entries are whole numbers so small that distances have no rounding error."""
    X = learner.fit_X_
    if X.shape[1] > 2048 or max(np.abs(X).max(), np.abs(Q).max()) > _WHOLE:
        return False
    return bool((np.rint(X) == X).all() and (np.rint(Q) == Q).all())


def _powers(learner: Any, q: np.ndarray, rows: Any) -> np.ndarray:
    gap = np.abs(learner.fit_X_[rows] - q)
    if learner.effective_metric_ == "euclidean":
        return (gap * gap).sum(axis=1)
    return gap.sum(axis=1) if learner.effective_metric_ == "manhattan" else gap.max(axis=1)


def _near(learner: Any, engine: Any, Q: np.ndarray, limits: np.ndarray) -> Iterator[np.ndarray]:
    """Yield for each row the training rows, in order, that have all whose power of the distance is at most its limit:
    all of them, if more than a few lie there."""
    if not len(Q):
        return
    n, k = learner.n_samples_fit_, int(learner.n_neighbors)
    few = min(n, k + _TIED)
    powers, index = nearest(engine, Q, few, learner.n_jobs)
    for at in range(len(Q)):
        yield np.arange(n) if few < n and powers[at, -1] <= limits[at] else np.sort(index[at])


def _ranked_exactly(
    learner: Any, q: np.ndarray, rows: np.ndarray, own: int | None, k: int, close: float
) -> np.ndarray:
    """Return the k nearest of some rows to q, those near the k-th distance compared in exact arithmetic."""
    rows = rows if own is None else rows[rows != own]
    powers = _powers(learner, q, rows)
    edge = np.partition(powers, k - 1)[k - 1]
    inside = np.flatnonzero(powers < edge * (1 - close))
    band = np.flatnonzero((powers >= edge * (1 - close)) & (powers <= edge * (1 + close)))
    ranked = band[np.lexsort((band, _exact_ranks(learner, q, learner.fit_X_[rows[band]])))]
    chosen = np.array([*inside, *ranked[: k - len(inside)]], dtype=np.int64)
    return rows[chosen[np.lexsort((chosen, powers[chosen]))]]


def _exact_ranks(learner: Any, q: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return a number for each row that rises with its exact distance from q; equal rows are compared once.

    Doubles are whole numbers times powers of two: times the smallest of these, all are whole.
    """
    if (rows == rows[0]).all():
        return np.zeros(len(rows), dtype=np.int64)
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    ratios = [[value.as_integer_ratio() for value in row] for row in (q.tolist(), *distinct.tolist())]
    most = max(below for row in ratios for _, below in row)
    whole, *others = [[above * (most // below) for above, below in row] for row in ratios]
    combine = max if learner.effective_metric_ == "chebyshev" else sum
    power = 2 if learner.effective_metric_ == "euclidean" else 1
    exact = [combine(abs(a - b) ** power for a, b in zip(whole, row, strict=True)) for row in others]
    rank = {value: place for place, value in enumerate(sorted(set(exact)))}
    return np.array([rank[value] for value in exact])[which.ravel()]


def predicted_codes(learner: Any, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the class of each row (-1 for a tie) and whether the exact neighbours, and so the votes, are certain."""
    from assay.neighbors._classifier import count_votes, neighbor_weights

    distance, index, sure = exact_neighbors(learner, Q)
    weights = neighbor_weights(learner, learner.weights, distance)
    votes = count_votes(learner.fit_y_[index], weights, len(learner.classes_))
    best = np.sort(votes, axis=1)
    lead, whole = best[:, -1] - best[:, -2], weights is None
    tied = lead == 0 if whole else np.zeros(len(Q), dtype=bool)
    sure = sure & (whole | (lead > 1e-9 * votes.sum(axis=1)))
    return np.where(tied, -1, votes.argmax(axis=1)), sure


def sure_codes(block: Block, learner: Any) -> np.ndarray:
    """Return the class of each row; NOBODY for a tie, OPEN where rounding leaves the neighbours or votes so."""
    codes, sure = predicted_codes(learner, block.X)
    return np.where(sure, np.where(codes < 0, NOBODY, codes), OPEN)


# Claims -----------------------------------------------------------------------------------------------------

_OTHER_ROWS = "These are not the rows of `fit`, in order."


def _same_rows(learner: Any, rows: Rows) -> bool:
    """Tell whether `rows` are the stored ones, in order."""
    at = 0
    for block in rows.blocks():
        part = slice(at, at + len(block.X))
        if not np.array_equal(block.X, learner.fit_X_[part]) or not np.array_equal(block.y, learner.fit_y_[part]):
            return False
        at += len(block.X)
    return at == learner.n_samples_fit_


def neighbor_facts(learner: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield the k nearest other rows of a few rows, evenly spaced among the training rows."""
    k, n = int(learner.n_neighbors), learner.n_samples_fit_
    if n <= k or not _same_rows(learner, rows):
        yield NotApplicable("D30/1", _OTHER_ROWS if n > k else f"It needs more than {k} training rows.")
        return
    asked = np.unique(np.linspace(0, n - 1, min(n, _LISTED)).astype(np.int64))
    _, index, sure = exact_neighbors(learner, learner.fit_X_[asked], asked)
    asked, index = asked[sure], index[sure]
    if len(asked):
        witness = {"queries": asked, "neighbors": index}
        yield Claim("D30/1", float(len(asked)), "lower", {"k": k}, witness=witness)
    else:
        yield NotApplicable("D30/1", "Too many rows are nearly as far as each other to tell their order.")


def why_no_majorities(learner: Any, rows: Rows) -> str:
    """Return why no row can be left out and put to the vote, or nothing."""
    if learner.weights not in ("uniform", None):
        return "It is told of votes with equal weights."
    if learner.n_samples_fit_ < int(learner.n_neighbors) + 2:
        return f"It needs at least k + 2 = {learner.n_neighbors + 2} training rows."
    return "" if _same_rows(learner, rows) else _OTHER_ROWS


def vote_facts(learner: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield the number of rows whose label has no majority among their k nearest other rows."""
    reason = why_no_majorities(learner, rows)
    if reason:
        yield NotApplicable("D16/3", reason)
    else:
        k = int(learner.n_neighbors)
        yield Claim("D16/3", float(lost_rows(learner)), params={"k": k, "rows": learner.n_samples_fit_})


def lost_rows(learner: Any) -> int:
    """Return how many training rows have no majority of their own label among their k nearest other rows; a row that
    rounding leaves open counts."""
    n, k = learner.n_samples_fit_, int(learner.n_neighbors)
    known = ("lost", k)
    if known in learner._made:
        return learner._made[known]
    _, index, sure = exact_neighbors(learner, learner.fit_X_, np.arange(n))
    agree = (learner.fit_y_[index] == learner.fit_y_[:, None]).sum(axis=1)
    learner._made[known] = int(np.sum(~sure | (agree < majority(k))))
    return learner._made[known]


def loo_statement(learner: Any, rows: Rows) -> Any:
    """Return how to state P23: the error rate of this model from the rows left out in turn, or why it is not."""
    reason = why_no_majorities(learner, rows)
    return NotApplicable("P23/1", reason) if reason else partial(_loo, learner)


def _loo(learner: Any, delta: str) -> Claim | NotApplicable:
    n, k = learner.n_samples_fit_, int(learner.n_neighbors)
    errors = lost_rows(learner)
    bound = loo_bound(errors, n, k, float(delta))
    if bound >= 1:
        return Vacuous("P23/1", f"{n} rows are too few for k = {k} at this confidence: the bound is 1.", delta)
    return error_rate("P23/1", bound, {"k": k, "errors": errors, "rows": n}, "train", delta)

"""What linear models share: scores with bounds of their rounding errors, `objective`, and rows packed for loops.

`objective` is the function that a learner minimises, at any coefficients on any rows:

    objective(X, y, coef, intercept) = sum_i loss(y_i, f(x_i)) + penalty,    f = <coef, x> + intercept

Kernel machines have the same in `assay.svm._expansions`, with dual coefficients instead of coefficients.
"""

from collections.abc import Iterator
from copy import copy
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils import get_tags
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import Learner
from assay.claims.claim import Certificate, NotApplicable
from assay.claims.model import StoredModel
from assay.data.blocks import Block
from assay.guarantees.evidence import Evidence, Norm, Predictions, Scores
from assay.guarantees.ledger import Statement
from assay.guarantees.margins import linear_statements
from assay.losses import Loss, log_loss, multinomial, squared_error
from assay.messages import Message
from assay.optim.duality import score_error, score_rounding
from assay.params import refuse
from assay.scan import Rows


class LinearModel(Learner):
    """f(x) = <w, x> + b, with `coef_` and `intercept_`."""

    figure = "coefficients"
    coef_: np.ndarray
    intercept_: Any
    fit_intercept: bool

    def _keep_type(self, X: Any) -> None:
        """Round the coefficients to single precision if the rows of the fit are single."""
        if getattr(X, "dtype", None) == np.float32:
            self.coef_, self.intercept_ = self.coef_.astype(np.float32), np.float32(self.intercept_)

    def _plain(self) -> Any:
        """Return this model with coefficients in an array of doubles, which hold sparse and single ones exactly."""
        coef: Any = getattr(self, "coef_", None)
        if not sp.issparse(coef) and getattr(coef, "dtype", np.float64) != np.float32:
            return self
        wide = copy(self)
        if sp.issparse(coef):
            wide.densify()
        wide.coef_ = np.asarray(wide.coef_, dtype=np.float64)
        wide.intercept_ = (
            np.asarray(self.intercept_, dtype=np.float64) if np.ndim(self.intercept_) else float(self.intercept_)
        )
        return wide

    @wraps(Learner.certify)
    def certify(self, *args: Any, **options: Any) -> Certificate:  # type: ignore[override]
        return Learner.certify(self._plain(), *args, **options)

    def stored(self) -> StoredModel:
        """Return this fitted model as plain data, coefficients as an array of doubles."""
        return Learner.stored(self._plain())

    def _scores(self, X: Any) -> np.ndarray:
        """Return X w + b, one column per row of `coef_`, or one number per row of X if `coef_` has one
        dimension."""
        check_is_fitted(self)
        sparse = "csr" if get_tags(self).input_tags.sparse else False
        X = validate_data(self, X, reset=False, dtype=np.float64, accept_sparse=sparse)
        products = X @ self.coef_.T
        return (products.toarray() if sp.issparse(products) else products) + self.intercept_

    def _rounding(self, rows: Rows) -> np.ndarray:
        """Return, for each score column, how far rounding can move any score, doubled: whoever recomputes the
        scores in another order resolves every row that is resolved here."""
        return score_rounding(rows, self.coef_, self.intercept_)


class SparseCoefficients:
    """Mixin: coefficients that can be kept as a sparse matrix."""

    coef_: Any

    def sparsify(self) -> Any:
        """Turn `coef_` into a sparse matrix, which needs less memory where most coefficients are zero."""
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Any:
        """Turn `coef_` back into an array."""
        check_is_fitted(self)
        if sp.issparse(self.coef_):
            self.coef_ = self.coef_.toarray() if is_classifier(self) else self.coef_.toarray().ravel()
        return self


class LinearClassifier(SparseCoefficients, LinearModel):
    """Predicts the class by the sign of one score, or by the largest of one score per class."""

    family = "linear.classifier"
    classes_: np.ndarray

    def decision_function(self, X: Any) -> np.ndarray:
        """Return <w, x> + b: (n,) for two classes, (n, n_classes) for more."""
        scores = self._scores(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted label of each row."""
        winners = _winners(self._scores(X))
        return self.classes_[winners]

    @property
    def logistic_scores(self) -> bool:
        """Whether the class probabilities are the logistic function of the scores."""
        return False

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores."""
        yield Scores(bounded_scores, (self.coef_, self.intercept_, self._rounding(rows)), self.logistic_scores)

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield what margins say about new data."""
        yield from linear_statements(self, rows, self._margin_rounding(rows))

    def _margin_rounding(self, rows: Rows) -> float:
        """Return how far rounding can move the margin of any row, doubled."""
        return float(self._rounding(rows).max()) * (1 if len(self.coef_) == 1 else 4)


class LinearRegressor(LinearModel):
    """Predicts f(x) itself."""

    family = "linear.regressor"

    def predict(self, X: Any) -> np.ndarray:
        """Return <w, x> + b for each row."""
        scores = self._scores(X)
        return scores.ravel() if sp.issparse(self.coef_) else scores  # sparse coefficients are a row

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predictions and the length of the weights."""
        yield Predictions(_predicted, (self.coef_, self.intercept_, self._rounding(rows)))
        yield self._norm(rows)

    def _norm(self, rows: Rows) -> Norm:
        """Return |(w, b)|, the sum of the squared lengths of the rows, and whether there is an intercept."""
        if np.ndim(self.coef_) > 1:
            return Norm(why_not=Message("why.one-score"))
        length = float(np.hypot(np.linalg.norm(self.coef_), np.max(np.abs(self.intercept_))))
        return Norm(length, float(rows.sum(_squared_length)), bool(self.fit_intercept))


def _winners(scores: np.ndarray) -> np.ndarray:
    """Return the position of the class that scores (n, 1) or (n, n_classes) decide for."""
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)


def bounded_scores(
    block: Block, coef: np.ndarray, intercept: np.ndarray, rounding: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of a block and how far rounding can move those of each row: one bound for all rows and, where
    that leaves a row open, its own."""
    scores = block.X @ coef.T + intercept
    radius = np.full(len(scores), float(rounding.max()))
    ranked = np.abs(scores) if len(coef) == 1 else np.partition(scores, -2, axis=1)
    lead = ranked[:, 0] if len(coef) == 1 else (ranked[:, -1] - ranked[:, -2]) / 2
    left = np.flatnonzero(~(lead > radius))
    radius[left] = score_error(block.X[left], coef, intercept).max(axis=1)
    return scores, radius


def _predicted(block: Block, coef: np.ndarray, intercept: Any, rounding: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scores = (block.X @ coef.T + intercept).reshape(len(block.X), -1)
    return scores, np.broadcast_to(rounding, scores.shape)


def _squared_length(block: Block) -> float:
    return float(np.einsum("ij,ij->", block.X, block.X))


class Packed(NamedTuple):
    """Row i is values[starts[i]:starts[i + 1]] in `columns`; no columns are listed when every entry is
    stored."""

    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray


def packed(X: Any) -> Packed:
    """Return the rows of an array or a SciPy CSR matrix; copies only what has the wrong type."""
    if hasattr(X, "indptr"):
        columns = X.indices.astype(np.int32, copy=False)
        return Packed(X.indptr.astype(np.int64), columns, X.data.astype(np.float64, copy=False))
    n, d = X.shape
    values = np.ascontiguousarray(X, dtype=np.float64).reshape(-1)
    return Packed(np.arange(n + 1) * d, np.empty(0, dtype=np.int32), values)


class Objective:
    """Adds `objective`; a learner says what its losses and its penalty are."""

    coef_: np.ndarray
    intercept_: Any

    def objective(self, X: Any, y: Any = None, coef: Any = None, intercept: Any = None) -> float:
        """Return what the fit minimises on rows X, y of equal weight, at the fitted coefficients or at others.

        `coef` and `intercept` have the shapes of `coef_` and `intercept_`; of a kernel machine `coef` is (outputs,
        support vectors), the coefficients of its functions.
        """
        check_is_fitted(self)
        if y is None and get_tags(self).target_tags.required:
            raise refuse(self, "objective needs y, the targets of the rows.")
        W = self._fitted_coef() if coef is None else np.asarray(coef, dtype=np.float64)
        b = np.asarray(self.intercept_ if intercept is None else intercept, dtype=np.float64)
        W, b = np.atleast_2d(W), np.atleast_1d(b)
        scores = self._scores_of(X, W) + b
        return float(self._row_losses(np.asarray(y), scores).sum() + self._penalty(W, b, len(scores)))

    def _fitted_coef(self) -> np.ndarray:
        return self.coef_.toarray() if hasattr(self.coef_, "toarray") else self.coef_

    def _scores_of(self, X: Any, W: np.ndarray) -> np.ndarray:
        """Return the scores of each row without intercept, (n, outputs)."""
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64, accept_sparse="csr") @ W.T)

    def _row_losses(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the loss of each row for scores (n, outputs)."""
        raise NotImplementedError

    def _penalty(self, W: np.ndarray, b: np.ndarray, n: int) -> float:
        """Return the penalty of coefficients (outputs, columns) and intercepts after n rows."""
        return 0.0


def elastic(W: np.ndarray, l1: float, l2: float) -> float:
    """Return l1 |W|_1 + l2/2 |W|^2."""
    return l1 * float(np.abs(W).sum()) + 0.5 * l2 * float((W * W).sum())


def one_against_rest(classes: np.ndarray, loss: Loss, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the loss of each row in each hyperplane, (n, outputs): one of two classes, else one against the rest each.

    Losses of numbers are of the labels -1 and +1.
    """
    codes = np.searchsorted(classes, y)
    told = [1] if len(classes) == 2 else range(len(classes))
    return loss.value(np.where(codes[:, None] == told, 1.0, -1.0), scores)


def told_weights(learner: Any, y: np.ndarray) -> np.ndarray:
    """Return the weight of each row in each hyperplane: that of its class if it is the one told from the rest, else 1;
    of two classes both have theirs."""
    codes, K = np.searchsorted(learner.classes_, y), len(learner.classes_)
    weight = class_weights(learner, y)[codes][:, None]
    return weight if K == 2 else np.where(codes[:, None] == range(K), weight, 1.0)


def class_weights(learner: Any, y: np.ndarray) -> np.ndarray:
    """Return the weight of each class, (classes,)."""
    if learner.class_weight is None:
        return np.ones(len(learner.classes_))
    return compute_class_weight(learner.class_weight, classes=learner.classes_, y=y)


class SquaredObjective(Objective):
    """1/2 sum |y - f|^2 plus a penalty."""

    def _row_losses(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        return squared_error.value(y.reshape(len(y), -1), scores).sum(axis=1)


class LogisticObjective(Objective):
    """C sum ln(1 + exp(-y f)), or of the softmax for one score per class, plus r |W|_1 + (1 - r)/2 |W|^2 (nothing if C
    is infinite); with solver="liblinear" intercepts are penalised as coefficients of a column."""

    def _row_losses(self: Any, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        codes = np.searchsorted(self.classes_, y)
        if scores.shape[1] == 1:
            losses = log_loss.value(np.where(codes == 1, 1.0, -1.0), scores[:, 0])
        else:
            losses = multinomial.value(codes, scores)
        losses = class_weights(self, y)[codes] * losses
        return losses if np.isinf(self._cost) else self._cost * losses

    def _penalty(self: Any, W: np.ndarray, b: np.ndarray, n: int) -> float:
        if np.isinf(self._cost):
            return 0.0
        penalised = np.append(W, b / self._column) if self._column else W
        return elastic(penalised, self._share, 1.0 - self._share)

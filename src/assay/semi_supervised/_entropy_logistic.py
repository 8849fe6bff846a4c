"""Logistic regression with an entropy term for rows without labels (Grandvalet and Bengio 2005).

    minimise over w, b   sum over labelled rows of -ln p(y | x) + alpha sum over the others of H(p(. | x)) + beta |w|^2
    H(p) = - sum_k p_k ln p_k,   p the logistic function of <w, x> + b, or the softmax of one score per class

A row without a label asks for a sure decision, whichever it is, so that the boundary is drawn to where rows are few.

Claims: without such rows (or alpha = 0) the problem is convex, and its duality gap is told, as for logistic regression
        with C = 1 / (2 beta). With them it is not, and no gap exists; the class of linear classifiers is the same
        whatever chose one of it, so that what its size says about new data holds for the labelled rows.
Method: the optimum on the labelled rows, then L-BFGS on the whole.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning

from assay import scan
from assay.base import fit_log
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.fitlog import FitLog, part_of_a_fit
from assay.guarantees.ledger import FIT_NOT_KEPT
from assay.linear_model import LogisticRegression
from assay.linear_model._base import LinearClassifier
from assay.messages import Message
from assay.optim.duality import GAP, PenalisedProblem, gap_claims
from assay.params import Count, Flag, Number, Positive, check
from assay.scan import Rows
from assay.semi_supervised._labels import Given, SemiSupervised
from assay.theory.spaces import Linear


class Terms(NamedTuple):
    """The three terms of the objective, weighted as they enter it.

    Parameters
    ----------
    labelled : float
        Loss of the rows with labels.
    unlabelled : float
        Entropy of the others.
    penalty : float
        Penalty of the weights.
    """

    labelled: float
    unlabelled: float
    penalty: float

    @property
    def objective(self) -> float:
        """The sum of the terms."""
        return self.labelled + self.unlabelled + self.penalty


@dataclass(eq=False, repr=False)
class EntropyLogisticRegression(ClassifierMixin, SemiSupervised, LinearClassifier):
    """Logistic regression that also wants to be sure on rows without labels.

    Minimises the log loss of the labelled rows + alpha times the entropy of the predicted probabilities on the others
    + beta |w|^2. Rows without a label are marked -1. That helps where classes are clusters with a gap that a line can
    pass through, and hurts where they overlap or where no line does, as between two moons. There the learner does well
    in the space of a graph of neighbours, `Kernelized(EntropyLogisticRegression(), kernel="precomputed")` of
    `graph_kernel(X)`, and so do labels spread over that graph (`LabelPropagation`).

    Parameters
    ----------
    alpha : float >= 0
        Weight of a row without a label; 0 is `LogisticRegression(C=1 / (2 * beta))`. Labelled rows divided by
        unlabelled ones gives both kinds the same say.
    beta : float >= 0
        Weight of the penalty; the intercept is not penalised.
    fit_intercept : bool
    tol : float > 0
        The steps end when no entry of the gradient is above tol times the number of rows.
    max_iter : int
        L-BFGS steps allowed.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    classes_, coef_ (1 or n_classes, n_features), intercept_, n_iter_
    terms_ : Terms
        The three terms at the end: labelled, unlabelled, penalty.

    Examples
    --------
    >>> from assay.semi_supervised import EntropyLogisticRegression
    >>> X = [[0.0], [1.0], [1.2], [3.0], [3.2], [4.0]]
    >>> model = EntropyLogisticRegression(alpha=0.2, beta=0.01).fit(X, [0, -1, -1, -1, -1, 1])
    >>> model.predict([[1.1], [3.1]]).tolist()
    [0, 1]
    >>> sorted(model.terms_._asdict())
    ['labelled', 'penalty', 'unlabelled']
    """

    card = Card(
        name="Entropy-regularised logistic regression",
        task="classify",
        model=Linear(),
        strategy="log loss of labelled rows + alpha entropy of the others + beta L2",
        algorithm="the labelled optimum, then L-BFGS",
        guarantee=(
            "logistic.gap",
            "multinomial.gap",
            "solution.enclosure",
            "vc",
            "margin.kernel",
            "margin.multiclass",
            "pac-bayes.linear",
        ),
    )
    constraints: ClassVar = {
        "alpha": Number(low=0.0),
        "beta": Number(low=0.0),
        "fit_intercept": Flag,
        "tol": Positive(),
        "max_iter": Count(),
    }

    alpha: float = 0.1
    _: KW_ONLY
    beta: float = 0.5
    fit_intercept: bool = True
    tol: float = 1e-6
    max_iter: int = 500
    n_jobs: int | None = None

    predict_proba = LogisticRegression.predict_proba
    predict_log_proba = LogisticRegression.predict_log_proba

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "EntropyLogisticRegression":
        """Fit to rows X and labels y, of which -1 stands for none."""
        check(self)
        given = self._read(X, y, sample_weight)
        with fit_log(self, self.max_iter, X, y, sample_weight) as log, scan.one_blas_thread():
            start = self._supervised(given)
            self._keep(start)
            rows = given.rows(self.n_jobs)
            self.terms_, gradient = self._value(rows, start)
            stop = log.step(self.terms_.objective, float(np.abs(gradient).max()), **self._fitted(start))
            if self.alpha > 0 and not given.known.all() and not stop:
                self._descend(rows, start, log)
        self.n_unlabelled_ = int(np.sum(~given.known))
        return self

    def _supervised(self, given: Given) -> np.ndarray:
        """Return the optimum of the labelled rows."""
        C = np.inf if self.beta == 0 else 1.0 / (2.0 * self.beta)
        model = LogisticRegression(C=C, fit_intercept=self.fit_intercept, n_jobs=self.n_jobs)
        weight = None if given.weight is None else given.weight[given.known]
        with part_of_a_fit():
            model.fit(given.X[given.known], given.codes[given.known], weight)
        self.n_iter_ = model.n_iter_
        return np.column_stack([model.coef_, model.intercept_]).ravel()

    def _value(self, rows: Rows, x: np.ndarray) -> tuple[Terms, np.ndarray]:
        """Return the terms at x, coefficients and intercept row by row, and the gradient of their sum."""
        table = x.reshape(-1, self.n_features_in_ + 1)
        coef, intercept = table[:, :-1], table[:, -1]
        loss, entropy, slope, pull = rows.sum(_sums, coef, intercept, float(self.alpha))
        terms = Terms(float(loss), self.alpha * float(entropy), self.beta * float(np.sum(coef * coef)))
        pull = pull if self.fit_intercept else np.zeros_like(pull)
        return terms, np.column_stack([slope + 2 * self.beta * coef, pull]).ravel()

    def _descend(self, rows: Rows, start: np.ndarray, log: FitLog) -> None:
        """Minimise the whole objective from `start`; an interrupt keeps the best so far."""
        target = self.tol * rows.n_rows
        reached: dict[bytes, tuple[Terms, np.ndarray]] = {}

        def value_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
            terms, gradient = self._value(rows, x)
            reached[x.tobytes()] = terms, gradient
            return terms.objective, gradient

        def callback(intermediate_result: Any) -> None:
            x = intermediate_result.x
            self.terms_, gradient = reached.get(x.tobytes()) or self._value(rows, x)
            reached.clear()
            self._keep(x)
            self.n_iter_ += 1
            if log.step(self.terms_.objective, float(np.abs(gradient).max()), **self._fitted(x)):
                raise StopIteration

        options = {"maxiter": self.max_iter, "maxfun": 20 * self.max_iter, "ftol": 0.0, "gtol": target, "maxcor": 20}
        try:
            solution = minimize(value_gradient, start, jac=True, method="L-BFGS-B", callback=callback, options=options)
        except KeyboardInterrupt:
            log.stopped = True
            return
        if not log.stopped and solution.status == 1:
            name = type(self).__name__
            warnings.warn(
                f"{name}: not converged after {solution.nit} steps; raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _fitted(self, x: np.ndarray) -> dict[str, np.ndarray]:
        table = x.reshape(-1, self.n_features_in_ + 1)
        return {"coef_": table[:, :-1].copy(), "intercept_": table[:, -1].copy()}

    def _keep(self, x: np.ndarray) -> None:
        for name, value in self._fitted(x).items():
            setattr(self, name, value)

    @property
    def logistic_scores(self) -> bool:
        return True

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap where the problem is convex."""
        if not hasattr(self, "terms_"):
            yield NotApplicable(GAP, FIT_NOT_KEPT)
        elif self.alpha > 0 and self.n_unlabelled_:
            yield NotApplicable(GAP, Message("why.entropy-dual"))
        elif self.beta == 0:
            yield NotApplicable(GAP, Message("why.unpenalised-equality"))
        else:
            loss = "log_loss" if len(self.classes_) == 2 else "multinomial"
            stated = PenalisedProblem(loss, 1.0, 1.0 / (2.0 * self.beta), bool(self.fit_intercept))
            yield from gap_claims(rows, self.coef_, self.intercept_, stated)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _sums(
    block: Block, coef: np.ndarray, intercept: np.ndarray, alpha: float
) -> tuple[float, float, np.ndarray, np.ndarray]:
    """Return log loss and entropy of a block, and the gradient of loss + alpha entropy: its slope and intercepts."""
    Z = block.X @ coef.T + intercept
    codes, weight = block.y, np.ones(len(Z)) if block.weight is None else block.weight
    known = codes >= 0
    if Z.shape[1] == 1:
        z = Z[:, 0]
        p = expit(z)
        loss = np.where(known, -log_expit(np.where(codes == 1, z, -z)), 0.0)
        entropy = np.where(known, 0.0, -log_expit(-z) - z * p)
        pull = np.where(known, p - (codes == 1), -alpha * z * p * expit(-z))[:, None]
    else:
        logs = log_softmax(Z, axis=1)
        P = np.exp(logs)
        H = -(P * logs).sum(axis=1)
        loss = np.where(known, -logs[np.arange(len(Z)), np.maximum(codes, 0)], 0.0)
        entropy = np.where(known, 0.0, H)
        own = np.eye(Z.shape[1])[np.maximum(codes, 0)]
        pull = np.where(known[:, None], P - own, -alpha * P * (logs + H[:, None]))
    pull = pull * weight[:, None]
    return float(weight @ loss), float(weight @ entropy), pull.T @ block.X, pull.sum(axis=0)

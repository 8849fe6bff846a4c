"""The kernel perceptron, and any linear learner of the representer form in the space of a kernel.

    minimise over h, b   L(h(x_1) + b, ..., h(x_n) + b) + g(|h|),   g increasing,   h in the kernel's space

Some minimiser is h = sum_i alpha_i kappa(x_i, .): only the span of the training rows matters. Rows B with B B' = K are
coordinates of the images of the training rows in that span, so that the learner fitted to B is the learner of the
kernel's space, and alpha = B (B'B)^-1 w. Learners that change w by multiples of rows alone, as the perceptron does,
stay in the span too. A penalty of single coefficients, |w|_1, depends on the coordinates and has no such form.

Schoelkopf, Herbrich and Smola 2001.

The kernel perceptron.

    repeat over the rows: if y_i f(x_i) <= 0 then beta_i <- beta_i + y_i,    f(x) = sum_j beta_j (kappa(x_j, x) + 1)

This is the perceptron in the kernel's space (with a constant feature 1 for the offset; without it b = 0): |beta_i|
counts the mistakes on row i.

Claims: if the loop ends, the number of updates is at most (R / gamma)^2, R^2 = max kappa(x, x) + 1 and gamma the margin
        of the function found, in that space. Novikoff 1962.
Method: the values f(x_i) of all rows are kept up to date, so that a row costs nothing until a mistake is made.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from assay.base import fit_log, label_classes, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.ledger import Statement
from assay.kernels import Kernel, Precomputed, embedding, median_gamma, named_kernel
from assay.messages import Message, named
from assay.params import Constraint, Count, Flag, check, refuse
from assay.scan import Rows
from assay.svm._base import KernelFunctions, dense
from assay.svm._claims import scores, update_statements
from assay.svm._expansions import ExpansionClassifier, require_finite_values


def _offers(name: str) -> Any:
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), name))


@dataclass(eq=False, repr=False)
class Kernelized(MetaEstimatorMixin, BaseEstimator):
    """A linear learner, fitted through alpha in the space of a kernel.

    It has no certificate of its own: `SVC`, `KernelRidge`, `KernelLogisticRegression` and `KernelPerceptron` have, and
    solve their problems without the eigenvectors of the Gram matrix, which this needs: n^3 steps for n rows.

    Parameters
    ----------
    estimator : a linear learner with `coef_` after `fit`, whose penalty is a function of |w| if it has one
    kernel : name, kernel object, function of two arrays of rows, or "precomputed"
    gamma : float or "median"
        Of the named kernels; "median" is 1 / the median squared distance of two rows.
    degree, coef0 : as in `assay.svm.SVC`

    Attributes
    ----------
    estimator_ : the learner, fitted to coordinates of the rows' images
    dual_coef_ : (outputs, n)
        alpha: f_k(x) = sum_i alpha_ki kappa(x_i, x) + intercept_k.
    intercept_, X_fit_

    Examples
    --------
    >>> from assay.kernel_model import Kernelized
    >>> from assay.linear_model import LogisticRegression
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0]
    >>> model = Kernelized(LogisticRegression(C=100), kernel="rbf", gamma=1.0).fit(X, y)
    >>> model.predict(X).tolist(), model.dual_coef_.shape
    ([0, 1, 1, 0], (1, 4))
    """

    estimator: Any
    _: KW_ONLY
    kernel: Any = "rbf"
    gamma: Any = "median"
    degree: int = 3
    coef0: float = 0.0

    def fit(self, X: Any, y: Any) -> "Kernelized":
        """Fit to rows X, or a square Gram matrix, and targets y."""
        X = check_array(X, dtype=np.float64)
        self._refuse_single_coefficients()
        self.n_features_in_, self.X_fit_ = X.shape[1], X
        gamma = median_gamma(X) if self.gamma == "median" else float(self.gamma)
        self.kernel_ = named_kernel(self.kernel, gamma, self.degree, self.coef0)
        B = embedding(self._values(X))
        self.coordinates_ = np.linalg.pinv(B, rcond=1e-10).T  # B (B'B)^-1: from kernel values to coordinates
        self.estimator_ = clone(self.estimator).fit(B, y)
        if not hasattr(self.estimator_, "coef_"):
            raise refuse(self, f"{type(self.estimator).__name__} is not linear: it has no coef_.")
        if is_classifier(self):
            self.classes_ = self.estimator_.classes_
        return self

    def _refuse_single_coefficients(self) -> None:
        params = self.estimator.get_params()
        penalty = params.get("penalty", "elasticnet")
        share = getattr(self.estimator, "l1_ratio", 0.0) if penalty not in (None, "l2") else 0.0
        if penalty == "l1" or share:
            raise refuse(self, "a penalty |w|_1 depends on the coordinates of the kernel's space; use one of |w|.")

    def _values(self, X: np.ndarray) -> np.ndarray:
        if isinstance(self.kernel_, Precomputed):
            return X
        return self.kernel_(X, self.X_fit_)

    def transform(self, X: Any) -> np.ndarray:
        """Return coordinates of the images of rows in the span of the training rows' images."""
        check_is_fitted(self, "estimator_")
        X = check_array(X, dtype=np.float64)
        if X.shape[1] != self.n_features_in_:
            raise refuse(self, f"X must have {self.n_features_in_} columns; got {X.shape[1]}.")
        return self._values(X) @ self.coordinates_

    @property
    def dual_coef_(self) -> np.ndarray:
        """alpha of each function, (outputs, n)."""
        check_is_fitted(self, "estimator_")
        return np.atleast_2d(self.estimator_.coef_) @ self.coordinates_.T

    @property
    def intercept_(self) -> Any:
        """The intercept of each function."""
        return self.estimator_.intercept_

    def predict(self, X: Any) -> np.ndarray:
        """Return what the learner says of each row."""
        return self.estimator_.predict(self.transform(X))

    @_offers("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of each row."""
        return self.estimator_.decision_function(self.transform(X))

    @_offers("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes."""
        return self.estimator_.predict_proba(self.transform(X))

    def score(self, X: Any, y: Any) -> float:
        """Return the learner's own score, accuracy or R^2."""
        return float(self.estimator_.score(self.transform(X), y))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type, tags.target_tags = inner.estimator_type, inner.target_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


_KEPT = 50_000_000  # kernel values kept for rows that were corrected before


@dataclass(eq=False, repr=False)
class KernelPerceptron(ExpansionClassifier):
    """Rosenblatt's perceptron in the space of a kernel, started at zero.

    Stops at the first epoch without a mistake; a Gaussian kernel separates any distinct rows, so that it always comes,
    though perhaps late. More than two classes are learnt one against the rest.

    Parameters
    ----------
    kernel, gamma, degree, coef0
        As in `assay.svm.SVC`.
    fit_intercept : bool
        Whether the kernel's space gets a constant feature.
    max_iter : int
        Epochs allowed.
    shuffle : bool
        Visit the rows in a new random order each epoch; otherwise in the order of the data.
    random_state : int, RandomState or None
        Seed of the orders.
    n_jobs : int or None
        Threads of prediction; the passes themselves are sequential.

    Attributes
    ----------
    classes_, support_, support_vectors_
    dual_coef_ : (1 or n_classes, n_support)
        y_i times the number of updates on row i.
    intercept_ : (1 or n_classes,)
    updates_ : list of int arrays
        Row number of each update in order, one array per function.
    n_updates_, n_iter_ : int
        Updates over all classes; epochs run (the most over the classes).
    converged_ : bool
        Whether the last epoch was free of mistakes.

    Examples
    --------
    >>> from assay.kernel_model import KernelPerceptron
    >>> model = KernelPerceptron(kernel="linear", shuffle=False).fit([[3, 3], [4, 3], [1, 1]], [1, 1, -1])
    >>> model.dual_coef_.tolist(), model.intercept_.tolist(), model.n_updates_
    ([[2.0, -5.0]], [-3.0], 7)
    """

    constraints: ClassVar[dict[str, Constraint]] = {"max_iter": Count(), "fit_intercept": Flag, "shuffle": Flag}
    card = Card(
        name="Kernel perceptron",
        task="classify",
        model=KernelFunctions(),
        strategy="number of misclassified rows, by correcting mistakes",
        algorithm="perceptron updates of the coefficients, in order or shuffled",
        guarantee=(
            "kernel-perceptron.mistakes",
            "compression.kernel-perceptron",
            "margin.kernel",
            "margin.multiclass",
            "pac-bayes.linear",
        ),
        most_rows=10_000,
    )

    _: KW_ONLY
    kernel: Any = "rbf"
    gamma: Any = "scale"
    degree: int = 3
    coef0: float = 0.0
    fit_intercept: bool = True
    max_iter: int = 1000
    shuffle: bool = True
    random_state: Any = None
    n_jobs: int | None = None

    @property
    def _has_intercept(self) -> bool:
        return bool(self.fit_intercept)

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "KernelPerceptron":
        """Fit to rows X (or a square Gram matrix, kernel="precomputed") and labels y."""
        check(self)
        random = check_random_state(self.random_state) if self.shuffle else None
        rows = read_rows(self, X, y)
        require_finite(rows, self)
        self.classes_ = label_classes(self, rows)
        features, codes, _ = dense(rows.encoded(self.classes_))
        columns = _Columns(self, self._set_kernel(features), features)
        targets = [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))
        beta = np.zeros((len(targets), len(features)))
        runs: list[_Run] = []
        with fit_log(self, self.max_iter * len(targets), X, y) as log:
            for k, code in enumerate(targets):

                def callback(mistakes: int) -> bool:
                    if not log.watched:
                        return log.step(mistakes, mistakes)
                    self._keep(features, beta)
                    names = ("pair_coef_", "intercept_", "support_", "support_vectors_")
                    return log.step(mistakes, mistakes, **{name: getattr(self, name) for name in names})

                allowed = 0 if any(run.stopped for run in runs) else self.max_iter
                signs = np.where(codes == code, 1.0, -1.0)
                runs.append(_run(columns, signs, beta[k], allowed, random, callback))
        self._keep(features, beta)
        self.updates_ = [run.sequence for run in runs]
        self.n_updates_ = sum(len(run.sequence) for run in runs)
        self.n_iter_ = max(run.epochs for run in runs)
        self.converged_ = all(run.converged for run in runs)
        self.violation_ = float(sum(run.mistakes for run in runs))
        self._report(any(run.stopped for run in runs))
        return self

    def _keep(self, X: np.ndarray, beta: np.ndarray) -> None:
        self._store_support(X, np.flatnonzero(beta.any(axis=0)))
        self.pair_coef_ = np.ascontiguousarray(beta[:, self.support_])
        self.intercept_ = beta.sum(axis=1) if self.fit_intercept else np.zeros(len(beta))

    def _report(self, stopped: bool) -> None:
        if self.converged_:
            return
        code = "warn.kernel-perceptron-stopped" if stopped else "warn.kernel-perceptron"
        warnings.warn(
            named(self, code, epochs=int(self.n_iter_), updates=int(self.n_updates_)),
            ConvergenceWarning,
            stacklevel=4,
        )

    @property
    def dual_coef_(self) -> np.ndarray:
        """y_i times the number of updates on row i, (1 or n_classes, n_support)."""
        return self.pair_coef_

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the mistake bound of each function."""
        reason = None
        if self.chosen_kernel_ in ("given", "precomputed") or not self._kernel().psd:
            reason = Message("why.kernel-product")
        elif rows.n_rows <= int(self.support_.max(initial=-1)):
            reason = Message("why.other-order")
        if reason is not None:
            yield NotApplicable("kernel-perceptron.mistakes", reason)
            return
        for k in range(len(self.dual_coef_)):
            yield self._mistake_bound(rows, k)

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield what margins say about new data, and what the few rows of the updates do."""
        yield from super().statements(rows)
        yield from update_statements(self, rows)

    def _mistake_bound(self, rows: Rows, k: int) -> Claim | NotApplicable:
        code = 1 if len(self.classes_) == 2 else k
        beta = np.zeros(rows.n_rows)
        beta[self.support_] = self.dual_coef_[k]
        kernel, augment = self._kernel(), bool(self.fit_intercept)

        def part(block: Block) -> tuple[float, float, float]:
            values, error = scores(self, block)
            f, slack = values[:, k], 1.01 * error[:, k]
            here = beta[block.start : block.start + len(f)]
            square = float(here @ f + np.abs(here) @ (slack + 1e-14 * np.abs(f)))
            return (
                float((np.where(block.y == code, f, -f) - slack).min()),
                square,
                float(kernel.diagonal(block.X).max()),
            )

        least, square, largest = np.array(rows.map(part)).T
        norm = float(np.sqrt(max(square.sum(), 0.0))) * (1 + 1e-9)
        margin = float(least.min()) / norm * (1 - 1e-9) if norm > 0 else 0.0
        if margin <= 0:
            return NotApplicable("kernel-perceptron.mistakes", Message("why.function-inseparable"))
        params = {"updates": int(np.abs(self.dual_coef_[k]).sum()), "margin": margin, "intercept": augment}
        params |= {} if len(self.classes_) == 2 else {"class": k}
        return Claim(
            "kernel-perceptron.mistakes", (float(largest.max()) + augment) / margin**2 * (1 + 1e-9), params=params
        )


class _Run(NamedTuple):
    sequence: np.ndarray
    epochs: int
    mistakes: int
    converged: bool
    stopped: bool


class _Columns:
    """Columns kappa(., x_i) + 1 of the Gram matrix (without intercept: + 0), computed when first asked for."""

    def __init__(self, owner: KernelPerceptron, kernel: Kernel, X: np.ndarray) -> None:
        self.owner, self.kernel, self.X, self.shift = owner, kernel, X, float(owner.fit_intercept)
        self.kept: dict[int, np.ndarray] = {}

    def __getitem__(self, i: int) -> np.ndarray:
        if i in self.kept:
            return self.kept[i]
        given = isinstance(self.kernel, Precomputed)
        with np.errstate(over="ignore", invalid="ignore"):
            column = (self.X[:, i] if given else self.kernel.block(self.X, self.X[i : i + 1])[:, 0]) + self.shift
        require_finite_values(self.owner, column)
        if (len(self.kept) + 1) * len(self.X) <= _KEPT:
            self.kept[i] = column
        return column


def _run(
    columns: _Columns, signs: np.ndarray, beta: np.ndarray, max_iter: int, random: Any, callback: Callable[[int], bool]
) -> _Run:
    """Learn one function; writes beta (n,)."""
    n, sequence, epoch, mistakes, stopped = len(signs), [], 0, -1, False
    margins = np.zeros(n)  # y_i f(x_i)
    try:
        while mistakes and epoch < max_iter and not stopped:
            order = np.arange(n) if random is None else random.permutation(n)
            mistakes, at = 0, 0
            while (at := _next_mistake(margins, order, at)) < n:
                i = int(order[at])
                margins += signs[i] * signs * columns[i]
                beta[i] += signs[i]
                sequence.append(i)
                mistakes, at = mistakes + 1, at + 1
            epoch += 1
            stopped = callback(mistakes)
    except KeyboardInterrupt:
        stopped = True
    stopped = (stopped and mistakes != 0) or max_iter == 0
    return _Run(np.array(sequence, dtype=np.int64), epoch, max(mistakes, 0), mistakes == 0, stopped)


def _next_mistake(margins: np.ndarray, order: np.ndarray, at: int) -> int:
    """Return the first place in `order` from `at` on whose margin is not positive, or the number of rows."""
    wrong = margins[order[at:]] <= 0
    return at + int(wrong.argmax()) if wrong.any() else len(order)

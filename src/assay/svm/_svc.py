"""Support vector classification.

    minimise over w, b   1/2 |w|^2 + sum_i C_i max(0, 1 - y_i (<w, phi(x_i)> + b)),    C_i = C s_i c(y_i)
    dual                 maximise sum alpha_i - 1/2 sum_ij alpha_i alpha_j y_i y_j kappa(x_i, x_j),  0 <=
    alpha_i <= C_i, sum alpha_i y_i = 0

C = infinity is the hard margin. NuSVC: rho is a variable, and nu bounds the share of margin errors. K > 2 classes:
one machine per pair of classes, decided by votes; the machines share the Gram blocks of the classes.

Claims: the duality gap of each machine (kernel positive semidefinite), the margin from both sides (hard margin).
Method: working-set decomposition with second-order pair steps (`_decomposition`), or those of `_reference_solvers`.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from assay.base import label_classes
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Scores, Votes
from assay.guarantees.ledger import Statement
from assay.kernels._tiles import MatrixTiles, Tiles
from assay.params import Choice, Constraint, Flag, Positive, check, refuse
from assay.scan import Rows, thread_map
from assay.scan.memory import thread_count
from assay.svm import _calibration
from assay.svm._base import SOLVER_CONSTRAINTS, KernelFunctions, KernelMachine, dense, offset, one_group, support_rows
from assay.svm._decomposition import GiveUp, Problem, Solution, solve
from assay.svm._kernel_rows import cache_floats

_LEAST_MARGIN = 1e-4  # of the largest |phi(x)|: a hard margin below this is taken for none
_SHARED_ROWS = 6_000  # rows of a pair of classes up to which the pair's whole Gram matrix is formed


_FITTED = (
    "classes_",
    "support_",
    "support_vectors_",
    "pair_coef_",
    "intercept_",
    "kernel_numbers_",
    "n_features_in_",
)


class _PairMachine:
    """One machine: rows (positions in the training set), signed coefficients beta, offset b, and its
    record."""

    def __init__(
        self, rows: np.ndarray, beta: np.ndarray | None = None, b: float = 0.0, found: Solution | None = None
    ) -> None:
        self.rows, self.b = rows, b
        self.beta = np.zeros(len(rows)) if beta is None else beta
        self.steps = 0 if found is None else found.steps
        self.objective = 0.0 if found is None else found.objective
        self.violation = np.inf if found is None else found.violation
        self.status = "interrupted" if found is None else found.status
        self.rho = 1.0  # margin value of the scaled problem, for nu machines


Watch = Callable[[_PairMachine], bool]


class SupportVectorClassifier(ClassifierMixin, KernelMachine):
    """What SVC and NuSVC share."""

    family = "kernel.classifier"
    more_arrays = ("calibration_", "class_weight_")
    constraints: ClassVar[dict[str, Constraint]] = {
        **SOLVER_CONSTRAINTS,
        "decision_function_shape": Choice("ovr", "ovo"),
        "break_ties": Flag,
        "probability": Flag,
    }

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        check(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise refuse(self, "break_ties must be False when decision_function_shape is 'ovo'.")
        rows = self._read_rows(X, y, sample_weight)
        self.classes_ = label_classes(self, rows)
        features, codes, weight = dense(rows.encoded(self.classes_))
        kernel = self._set_kernel(features)
        self.class_weight_ = self._class_weights(codes)
        cost = self.class_weight_[codes] * (1.0 if weight is None else weight)
        for k, label in enumerate(self.classes_):
            if not np.any(cost[codes == k] > 0):
                raise refuse(self, f"every row of class {label!r} has weight 0; a machine needs rows of both classes.")
        machines = self._machines(kernel, features, codes, cost)
        self._keep(features, codes, machines)
        self._tell_end()
        self._report({machine.status for machine in machines})
        self._fit_probability(features, codes, weight)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    def _class_weights(self, codes: np.ndarray) -> np.ndarray:
        if self.class_weight is None:
            return np.ones(len(self.classes_))
        return compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[codes])

    # Training

    def _machines(self, kernel: Any, X: np.ndarray, codes: np.ndarray, cost: np.ndarray) -> list[_PairMachine]:
        """Train one machine per pair of classes; the positive class is the second of two, the first of a
        pair of more."""
        source, labels = self._tiles(kernel, X), self.classes_[codes]
        if len(self.classes_) == 2:
            with FitLog(self, 1_000_000, X, labels) as log:
                rows = np.arange(len(X))
                watch = partial(self._watch, log, X, codes, None)
                return [self._machine(source, rows, codes == 1, cost, watch)]
        members = [np.flatnonzero(codes == k) for k in range(len(self.classes_))]
        shared = _SharedGram(source, members, cache_floats(self.cache_size, source.dtype.itemsize), self.n_jobs)
        pairs = list(combinations(range(len(self.classes_)), 2))
        machines = [_PairMachine(np.concatenate([members[i], members[j]])) for i, j in pairs]

        def train(p: int) -> _PairMachine:
            rows, (i, j) = machines[p].rows, pairs[p]
            return self._machine(shared.pair(i, j), rows, codes[rows] == i, cost[rows], None)

        crew = thread_count(self.n_jobs)
        with FitLog(self, len(pairs), X, labels) as log:
            try:
                for first in range(0, len(pairs), crew):
                    batch = range(first, min(first + crew, len(pairs)))
                    for p, machine in zip(batch, thread_map(train, batch, n_jobs=self.n_jobs), strict=True):
                        machines[p] = machine
                        if self._watch(log, X, codes, machines, machine):
                            break
                    if log.stopped:
                        break
            except KeyboardInterrupt:
                log.stopped = True
            if log.stopped:
                machines[-1].status = "interrupted"
        return machines

    def _watch(
        self, log: FitLog, X: np.ndarray, codes: np.ndarray, machines: list | None, machine: "_PairMachine"
    ) -> bool:
        """Log one iteration; where a callback wants the model as it stands, make it usable first."""
        self._tell(len(log.history) + 1, machine.objective, machine.violation)
        if not log.watched:
            return log.step(machine.objective, machine.violation)
        self._keep(X, codes, [machine] if machines is None else machines)
        fitted = {name: getattr(self, name) for name in _FITTED}
        return log.step(machine.objective, machine.violation, **fitted)

    def _machine(
        self,
        source: Tiles,
        rows: np.ndarray,
        positive_rows: np.ndarray,
        cost: np.ndarray,
        watch: Watch | None,
    ) -> _PairMachine:
        raise NotImplementedError

    def _solve(self, source: Tiles, problem: Problem, tell: Any = None, give_up: GiveUp | None = None) -> Solution:
        return solve(
            source,
            problem,
            tol=float(self.tol),
            max_steps=self.max_iter,
            cache=self.cache_size,
            shrinking=self.shrinking,
            n_jobs=self.n_jobs,
            tell=tell,
            give_up=give_up,
        )

    # What is kept

    def _keep(self, X: np.ndarray, codes: np.ndarray, machines: list[_PairMachine]) -> None:
        """Store support vectors by class, coefficients in scikit-learn's layout, offsets."""
        used = np.zeros(len(X), bool)
        for machine in machines:
            used[machine.rows[machine.beta != 0]] = True
        support = np.flatnonzero(used)
        support = support[np.argsort(codes[support], kind="stable")]
        self._store_support(X, support)
        place = np.full(len(X), -1)
        place[support] = np.arange(len(support))
        self.pair_coef_ = np.zeros((len(machines), len(support)))
        for row, machine in zip(self.pair_coef_, machines, strict=True):
            kept = machine.beta != 0
            row[place[machine.rows[kept]]] = machine.beta[kept]
        self.intercept_ = np.array([machine.b for machine in machines])
        self.n_iter_ = np.array([machine.steps for machine in machines], dtype=np.int32)
        self.violation_ = float(max(machine.violation for machine in machines))
        self.fit_status_ = int(any(machine.status != "converged" for machine in machines))
        self.shape_fit_ = X.shape

    def _support_codes(self) -> np.ndarray:
        """Return the class of each support vector, which the signs of its coefficients tell."""
        if len(self.classes_) == 2:
            return (self.pair_coef_[0] > 0).astype(np.int64)
        codes = np.zeros(self.pair_coef_.shape[1], dtype=np.int64)
        for coef, (i, j) in zip(self.pair_coef_, combinations(range(len(self.classes_)), 2), strict=True):
            codes[coef > 0], codes[coef < 0] = i, j
        return codes

    @property
    def n_support_(self) -> np.ndarray:
        """Support vectors of each class, (n_classes,)."""
        return np.bincount(self._support_codes(), minlength=len(self.classes_)).astype(np.int32)

    @property
    def dual_coef_(self) -> np.ndarray:
        """(n_classes - 1, n_SV): a vector of class k has its coefficients against the other classes in order."""
        K = len(self.classes_)
        if K == 2:
            return self.pair_coef_
        codes = self._support_codes()
        layout = np.zeros((K - 1, len(codes)))
        for coef, (i, j) in zip(self.pair_coef_, combinations(range(K), 2), strict=True):
            first, second = codes == i, codes == j
            layout[j - 1, first], layout[i, second] = coef[first], coef[second]
        return layout

    def _report(self, statuses: set[str]) -> None:
        if statuses == {"converged"}:
            return
        how = "interrupted" if "interrupted" in statuses else f"stopped after {int(self.n_iter_.sum())} steps"
        warnings.warn(
            f"{type(self).__name__}: {how}; the KKT violation is {self.violation_:.3g} "
            f"(tol={self.tol:g}). Scale the columns, or raise max_iter. The model is the best so far.",
            ConvergenceWarning,
            stacklevel=4,
        )

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the columns, (n_pairs, n_features), for a linear kernel."""
        check_is_fitted(self)
        if self.chosen_kernel_ != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        return self.pair_coef_ @ support_rows(self)

    # Prediction

    def _pair_scores(self, X: Any) -> np.ndarray:
        return self._expansion(X, self.pair_coef_) + self.intercept_

    def decision_function(self, X: Any) -> np.ndarray:
        """Return sum_i beta_i kappa(x_i, x) + b: (n,) for two classes; for more, (n, n_classes) with
        decision_function_shape="ovr" (votes, ties ordered by confidence) or (n, n_pairs) with "ovo"."""
        check_is_fitted(self)
        return self._shaped(self._pair_scores(X))

    def _shaped(self, scores: np.ndarray) -> np.ndarray:
        if len(self.classes_) == 2:
            return scores.ravel()
        if self.decision_function_shape == "ovo":
            return scores
        return _ovr_decision_function(scores < 0, -scores, len(self.classes_))

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of each row: sign of the score, or most votes among the pairs."""
        check_is_fitted(self)
        return self.classes_[self._winners(self._pair_scores(X))]

    def _winners(self, scores: np.ndarray) -> np.ndarray:
        if len(self.classes_) == 2:
            return (scores[:, 0] > 0).astype(int)
        if self.break_ties:
            return _ovr_decision_function(scores < 0, -scores, len(self.classes_)).argmax(axis=1)
        return votes(scores, len(self.classes_)).argmax(axis=1)

    # Probabilities

    def _fit_probability(self, X: np.ndarray, codes: np.ndarray, weight: np.ndarray | None) -> None:
        self.calibration_ = np.empty((0, 2))
        if self.probability:
            self.calibration_ = _calibration.cross_validated_sigmoids(self, X, codes, weight)

    @property
    def probA_(self) -> np.ndarray:
        """A of each pair's sigmoid 1 / (1 + exp(A f + B)); empty without probability=True."""
        return self.calibration_[:, 0]

    @property
    def probB_(self) -> np.ndarray:
        """B of each pair's sigmoid."""
        return self.calibration_[:, 1]

    @available_if(_calibration.wants_probability)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities: a sigmoid of each pair's score (Platt), pairs coupled (Wu, Lin and
        Weng)."""
        check_is_fitted(self)
        return _calibration.probabilities(self._pair_scores(X), self.probA_, self.probB_, len(self.classes_))

    @available_if(_calibration.wants_probability)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    # Certificate

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores of two classes; more classes vote in pairs."""
        from assay.svm._facts import bounded_scores, decided

        yield Scores(bounded_scores, (self,)) if len(self.classes_) == 2 else Votes(decided, (self,))

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap, the enclosure and, for a hard margin, the margin from both sides."""
        from assay.svm._facts import classifier_facts

        yield from classifier_facts(self, rows)

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield what margins in the kernel's space, and few support vectors, say about new data."""
        from assay.svm._statements import compression_statements, margin_statements

        yield from margin_statements(self, rows)
        yield from compression_statements(self, rows)
        yield NotApplicable("P17/1", "The penalty does not hold a free intercept, which one row can move far.")


def votes(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Return how many pairs each class wins, (n, n_classes); a positive score is a vote for the first of
    the pair."""
    counted = np.zeros((len(scores), n_classes))
    for p, (i, j) in enumerate(combinations(range(n_classes), 2)):
        first = scores[:, p] > 0
        counted[first, i] += 1
        counted[~first, j] += 1
    return counted


class _SharedGram:
    """Gram blocks of classes, computed once for all pairs they are part of, if they fit; else the pair's
    own rows."""

    def __init__(self, source: Tiles, members: list[np.ndarray], room: int, n_jobs: int | None) -> None:
        self.source, self.members = source, members
        sizes = sorted((len(m) for m in members), reverse=True)
        pair = sizes[0] + sizes[1]
        self.whole = pair <= _SHARED_ROWS and sum(size**2 for size in sizes) + 4 * pair**2 <= max(room, 60_000_000)
        if isinstance(source, MatrixTiles):
            self.whole = False
        if self.whole:
            self.own = thread_map(lambda rows: self._block(rows, rows), members, n_jobs=n_jobs)

    def pair(self, i: int, j: int) -> Tiles:
        first, second = self.members[i], self.members[j]
        if not self.whole:
            return self.source.take(np.concatenate([first, second]))
        a, n = len(first), len(first) + len(second)
        gram = np.empty((n, n), self.source.dtype)
        gram[:a, :a], gram[a:, a:] = self.own[i], self.own[j]
        gram[:a, a:] = self._block(first, second)
        gram[a:, :a] = gram[:a, a:].T
        return MatrixTiles(gram)

    def _block(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        together = self.source.take(np.concatenate([rows, columns]))
        out = np.empty((len(rows), len(columns)), self.source.dtype)
        for at in range(0, len(rows), 512):
            some = np.arange(at, min(at + 512, len(rows)))
            together.fill(some, len(rows), together.n, out[some[0] : some[-1] + 1])
        return out


class SVC(SupportVectorClassifier):
    """Support vector classifier: the hinge loss with a kernel.

    Rows may be a SciPy matrix. Kernel values are computed from a dense copy of it, which may take half of the free
    memory and is refused beyond; `support_vectors_` is sparse then. New rows are made dense block by block.

    Parameters
    ----------
    C : float > 0, or infinity
        Weight of the losses against 1/2 |w|^2; infinity is the hard margin, refused if the classes overlap.
    kernel : "rbf", "linear", "poly", "sigmoid", "laplacian", "precomputed", "auto", a kernel of
    `assay.kernels`, or a function
        "auto": linear for sparse text-like data, else Gaussian with the median distance as width.
    degree, gamma, coef0
        Parameters of the kernel; gamma="scale" is 1 / (n_features * X.var()), "auto" 1 / n_features.
    shrinking : bool
        Whether variables that stay at a bound are set aside while the others are optimised.
    probability : bool
        Whether to calibrate probabilities (five-fold cross-validation inside `fit`).
    tol : float > 0
        Largest violation of the optimality conditions that is accepted.
    cache_size : float or "auto"
        Megabytes of kernel values that are kept at most; "auto" is 1500, whatever is free. Values
        that cost less to compute than to keep (few features) are not kept, whatever the size.
    class_weight : None, "balanced" or dict
        Factor of C for each class.
    verbose : int or bool
        Whether to print progress: iterations 1, 2, 4, 8 and so on (for more than two classes: pairs), and the end.
    max_iter : int
        Pair steps allowed; -1 sets no limit.
    decision_function_shape : "ovr" or "ovo"
    break_ties : bool
        More than two classes: decide ties of votes by confidence.
    random_state : int or None
        Seed of the folds of `probability`.
    solver : "smo", "qp-dual", "qp-primal" or "subgradient"
        "smo" is the fast one; the others solve the same problem by an interior-point method (Clarabel) on
        the dual or the
        primal (linear or polynomial kernel, whose features are finite), or by descent on the hinge loss,
        for small data.
    n_jobs : int or None
        Threads; None uses all cores.

    Attributes
    ----------
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_ (linear kernel), n_iter_
    violation_ : float
        Largest violation of the optimality conditions at the end.
    pair_coef_ : (n_pairs, n_SV)
        Signed coefficients beta_i = y_i alpha_i of each machine.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from assay.svm import SVC
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = SVC(gamma=2.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.99)
    True
    >>> model.certify(X, y).find("D10").value < 0.1
    True
    """

    constraints: ClassVar[dict[str, Constraint]] = {
        "C": Positive(allow_inf=True, why="it weighs the losses; infinity is the hard margin"),
        "solver": Choice("smo", "qp-dual", "qp-primal", "subgradient"),
    }
    card = Card(
        name="Support vector classifier",
        zh="支持向量机",
        mission=tuple(f"KER-{k:02d}" for k in (8, 11, 13, 14, 15, 16, 22, 24, 28, 29, 30, 32, 51, 62, 73, 76)),
        task="classify",
        model=KernelFunctions(),
        strategy="hinge loss + L2",
        algorithm="working-set decomposition with second-order pair steps (SMO)",
        guarantee=(
            "svm.gap",
            "kkt.residual",
            "solution.enclosure",
            "margin.bounds",
            "compression.support-vectors",
            "margin.kernel",
            "margin.multiclass",
            "pac-bayes.linear",
        ),
        most_rows=30_000,
    )

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        class_weight: Any = None,
        verbose: int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        solver: str = "smo",
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.solver = solver
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "SVC":
        """Fit to rows X (or a square Gram matrix, kernel="precomputed") and labels y."""
        return self._fit(X, y, sample_weight)

    def _machine(
        self,
        source: Tiles,
        rows: np.ndarray,
        positive_rows: np.ndarray,
        cost: np.ndarray,
        watch: Watch | None,
    ) -> _PairMachine:
        v = np.where(positive_rows, 1.0, -1.0)
        bound = np.where(cost > 0, float(self.C), 0.0) * np.where(cost > 0, cost, 1.0)
        problem = one_group(v, np.where(v > 0, 0.0, -bound), np.where(v > 0, bound, 0.0))
        touch = _hulls_touch(source) if np.isinf(self.C) else None
        if self.solver == "smo":
            tell = None if watch is None else lambda found: watch(self._finished(rows, problem, found))
            found = self._solve(source, problem, tell, touch)
        else:
            from assay.svm import _reference_solvers

            found = _reference_solvers.REFERENCE_SOLVERS[self.solver](source, problem, float(self.tol))
        if touch is not None and touch(found.beta, found.F):
            raise refuse(
                self,
                "C=inf asks for a hard margin, but the convex hulls of the classes touch in this kernel's "
                f"space: no margin exceeds {_LEAST_MARGIN:g} of the largest |phi(x)|. "
                "Use a finite C, or a kernel that separates the classes.",
            )
        return self._finished(rows, problem, found)

    def _finished(self, rows: np.ndarray, problem: Problem, found: Solution) -> _PairMachine:
        return _PairMachine(rows, found.beta, offset(problem, found), found)

    def margins(self, X: Any, y: Any, sample_weight: Any = None) -> "Margins":
        """Return margins, slack and the optimality case of each training row; two classes only."""
        check_is_fitted(self)
        if len(self.classes_) != 2:
            raise refuse(self, f"margins are told for two classes; this model has {len(self.classes_)}.")
        codes = np.searchsorted(self.classes_, y)
        signs = np.where(codes == 1, 1.0, -1.0)
        functional = signs * self.decision_function(X)
        kernel = self._kernel()
        gram = np.asarray(X)[np.ix_(self.support_, self.support_)] if self.kernel == "precomputed" else None
        gram = kernel(support_rows(self)) if gram is None else gram
        norm = float(np.sqrt(max(float(self.dual_coef_[0] @ gram @ self.dual_coef_[0]), 0.0)))
        alpha = np.zeros(len(functional))
        alpha[self.support_] = np.abs(self.dual_coef_[0])
        bound = float(self.C) * self.class_weight_[codes] * (1.0 if sample_weight is None else sample_weight)
        case = np.where(alpha == 0, "outside", np.where(alpha < bound, "on the margin", "inside"))
        case = np.where((alpha > 0) & (functional < 0), "wrong side", case)
        return Margins(functional, functional / norm, np.maximum(0.0, 1.0 - functional), alpha, case)


class Margins(NamedTuple):
    """Per row: y f(x), y f(x) / |w|, slack max(0, 1 - y f(x)), alpha, and the case of the optimality
    conditions.

    Cases: "outside" (alpha = 0, y f >= 1), "on the margin" (0 < alpha < C, y f = 1), "inside" (alpha = C,
    0 <= y f <= 1),
    "wrong side" (alpha = C, y f < 0).
    """

    functional: np.ndarray
    geometric: np.ndarray
    slack: np.ndarray
    alpha: np.ndarray
    case: np.ndarray


def _hulls_touch(source: Tiles) -> GiveUp:
    """Return a test of whether the hulls of the two classes, at the weights |beta|, are as good as touching.

    p and q, the means of phi with weights |beta| over each class, are |p - q| = 2 |w| / sum |beta| apart;
    no margin
    exceeds half of that.
    """
    least = _LEAST_MARGIN * np.sqrt(float(np.abs(source.diagonal).max()))

    def touch(beta: np.ndarray, F: np.ndarray) -> bool:
        total = float(np.abs(beta).sum())
        return total > 0 and np.sqrt(max(float(beta @ F), 0.0)) <= least * total

    return touch

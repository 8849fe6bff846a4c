"""Classification by one support vector machine per pair of classes, decided by votes: what SVC and NuSVC share.

The machines of more than two classes share the Gram blocks of the classes, which are computed once for all pairs.

Probabilities from scores: a sigmoid fitted to held-out scores (Platt 1999; Lin, Lin and Weng 2007), pairs of
classes coupled into one distribution (Wu, Lin and Weng 2004, second method).
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from assay.base import label_classes
from assay.claims.claim import Claim, NotApplicable
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Scores, Votes
from assay.guarantees.ledger import Statement
from assay.kernels._tiles import MatrixTiles, Tiles
from assay.messages import Message
from assay.params import Choice, Constraint, Flag, check, refuse
from assay.scan import Rows, thread_map
from assay.scan.memory import thread_count
from assay.svm._base import PairStepMachine, dense, support_rows
from assay.svm._decomposition import GiveUp, Problem, Solution, cache_floats, solve

_FITTED = (
    "classes_",
    "support_",
    "support_vectors_",
    "pair_coef_",
    "intercept_",
    "kernel_numbers_",
    "n_features_in_",
)
_FOLDS = 5
_SHARED_ROWS = 6_000  # rows of a pair of classes up to which the pair's whole Gram matrix is formed


class PairMachine:
    """One machine: rows (positions in the training set), signed coefficients beta, offset b, and its
    record."""

    def __init__(
        self, rows: np.ndarray, beta: np.ndarray | None = None, b: float = 0.0, solution: Solution | None = None
    ) -> None:
        self.rows, self.b = rows, b
        self.beta = np.zeros(len(rows)) if beta is None else beta
        self.steps = 0 if solution is None else solution.steps
        self.objective = 0.0 if solution is None else solution.objective
        self.violation = np.inf if solution is None else solution.violation
        self.status = "interrupted" if solution is None else solution.status
        self.rho = 1.0  # margin value of the scaled problem, for nu machines


Watch = Callable[[PairMachine], bool]


def wants_probability(machine: Any) -> bool:
    if machine.probability is not True:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


@dataclass(eq=False, repr=False)
class SupportVectorClassifier(ClassifierMixin, PairStepMachine):
    """What SVC and NuSVC share."""

    @property
    def _cost(self) -> float | None:
        """C of the problem that is solved; None where nu takes its place."""
        return None

    family = "kernel.classifier"
    more_arrays = ("calibration_", "class_weight_")
    _: KW_ONLY
    probability: Any = "deprecated"
    class_weight: Any = None
    decision_function_shape: str = "ovr"
    break_ties: bool = False
    random_state: Any = None
    constraints: ClassVar[dict[str, Constraint]] = {
        "decision_function_shape": Choice("ovr", "ovo"),
        "break_ties": Flag,
        "probability": Choice(True, False, "deprecated"),
    }

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        check(self)
        if self.probability != "deprecated":
            tell_of_removal("the `probability` parameter was deprecated", self)
        rows = self._read_rows(X, y, sample_weight)
        self.classes_ = label_classes(self, rows)
        features, codes, weight = dense(rows.encoded(self.classes_))
        kernel = self._set_kernel(features)
        self.class_weight_ = self._class_weights(codes)
        cost = self.class_weight_[codes] * (1.0 if weight is None else weight)
        self._require_rows_of_each_class(codes, cost)
        machines = self._machines(kernel, features, codes, cost)
        self._keep(features, codes, machines)
        self._tell_end()
        self._report({machine.status for machine in machines})
        self._fit_probability(features, codes, weight)
        return self

    def _require_rows_of_each_class(self, codes: np.ndarray, cost: np.ndarray) -> None:
        for k, label in enumerate(self.classes_):
            if not np.any(cost[codes == k] > 0):
                raise refuse(
                    self,
                    "Invalid input - all samples with positive weights belong to the same class, or to some of them: "
                    f"class {label!r} has none, and a machine needs rows of both classes.",
                )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    def _class_weights(self, codes: np.ndarray) -> np.ndarray:
        if self.class_weight is None:
            return np.ones(len(self.classes_))
        return compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[codes])

    # Training

    def _machines(self, kernel: Any, X: np.ndarray, codes: np.ndarray, cost: np.ndarray) -> list[PairMachine]:
        """Train one machine per pair of classes; the positive class is the second of two, the first of a
        pair of more."""
        source, labels = self._tiles(kernel, X), self.classes_[codes]
        if len(self.classes_) == 2:
            with FitLog(self, 1_000_000, X, labels) as log:
                rows = np.arange(len(X))
                watch = partial(self._watch, log, X, codes, None)
                return [self._machine(source, rows, codes == 1, cost, watch)]
        members = [np.flatnonzero(codes == k) for k in range(len(self.classes_))]
        shared = SharedGram(source, members, cache_floats(self.cache_size, source.dtype.itemsize), self.n_jobs)
        pairs = list(combinations(range(len(self.classes_)), 2))
        machines = [PairMachine(np.concatenate([members[i], members[j]])) for i, j in pairs]

        def train(p: int) -> PairMachine:
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
        self, log: FitLog, X: np.ndarray, codes: np.ndarray, machines: list | None, machine: "PairMachine"
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
    ) -> PairMachine:
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

    def _keep(self, X: np.ndarray, codes: np.ndarray, machines: list[PairMachine]) -> None:
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
        self._require_finite_function(self.pair_coef_, self.intercept_)
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
            return self._shown(self.pair_coef_)
        codes = self._support_codes()
        layout = np.zeros((K - 1, len(codes)))
        for coef, (i, j) in zip(self.pair_coef_, combinations(range(K), 2), strict=True):
            first, second = codes == i, codes == j
            layout[j - 1, first], layout[i, second] = coef[first], coef[second]
        return self._shown(layout)

    def _report(self, statuses: set[str]) -> None:
        if statuses == {"converged"}:
            return
        how = "interrupted" if "interrupted" in statuses else f"stopped after {int(self.n_iter_.sum())} steps"
        warnings.warn(self._shortfall(how, self.violation_), ConvergenceWarning, stacklevel=4)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the columns, (n_pairs, n_features), for a linear kernel."""
        check_is_fitted(self)
        if self.chosen_kernel_ != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        return self._shown(self.pair_coef_ @ support_rows(self))

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
        if self.break_ties and self.decision_function_shape == "ovo":
            raise refuse(self, "break_ties must be False when decision_function_shape is 'ovo'.")
        offsets = None if self.break_ties else self.intercept_
        scores = self._expansion(X, self.pair_coef_, offsets) + self.intercept_
        return self.classes_[self._winners(scores)]

    def _winners(self, scores: np.ndarray) -> np.ndarray:
        if len(self.classes_) == 2:
            return (scores[:, 0] > 0).astype(int)
        if self.break_ties:
            return _ovr_decision_function(scores < 0, -scores, len(self.classes_)).argmax(axis=1)
        return votes(scores, len(self.classes_)).argmax(axis=1)

    # Probabilities

    def _fit_probability(self, X: np.ndarray, codes: np.ndarray, weight: np.ndarray | None) -> None:
        self.calibration_ = np.empty((0, 2))
        if self.probability is True:
            self.calibration_ = cross_validated_sigmoids(self, X, codes, weight)

    def _derive(self) -> None:
        super()._derive()
        if (self.probability is True) != bool(len(self.calibration_)):
            raise refuse(self, "calibration_ holds a sigmoid for each pair of classes iff probability is True.")

    @property
    def probA_(self) -> np.ndarray:
        """A of each pair's sigmoid 1 / (1 + exp(A f + B)); empty without probability=True."""
        tell_of_removal("Attribute `probA_` was deprecated", self)
        return self.calibration_[:, 0]

    @property
    def probB_(self) -> np.ndarray:
        """B of each pair's sigmoid."""
        tell_of_removal("Attribute `probB_` was deprecated", self)
        return self.calibration_[:, 1]

    @available_if(wants_probability)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities: a sigmoid of each pair's score (Platt), pairs coupled (Wu, Lin and
        Weng)."""
        check_is_fitted(self)
        if not len(self.calibration_):
            raise NotFittedError(
                f"{type(self).__name__}: predict_proba is not available when fitted with probability=False; fit again."
            )
        A, B = self.calibration_.T
        return probabilities(self._pair_scores(X), A, B, len(self.classes_))

    @available_if(wants_probability)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    # Certificate

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores of two classes; more classes vote in pairs."""
        from assay.svm._claims import bounded_scores, decided

        yield Scores(bounded_scores, (self,)) if len(self.classes_) == 2 else Votes(decided, (self,))

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the duality gap, the enclosure and, for a hard margin, the margin from both sides."""
        from assay.svm._claims import classifier_facts

        yield from classifier_facts(self, rows)

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield what margins in the kernel's space, and few support vectors, say about new data."""
        from assay.svm._claims import compression_statements, margin_statements

        yield from margin_statements(self, rows)
        yield from compression_statements(self, rows)
        yield NotApplicable("stability.uniform", Message("why.free-intercept"))


def votes(scores: np.ndarray, n_classes: int) -> np.ndarray:
    """Return how many pairs each class wins, (n, n_classes); a positive score is a vote for the first of
    the pair."""
    counted = np.zeros((len(scores), n_classes))
    for p, (i, j) in enumerate(combinations(range(n_classes), 2)):
        first = scores[:, p] > 0
        counted[first, i] += 1
        counted[~first, j] += 1
    return counted


def tell_of_removal(what: str, machine: Any) -> None:
    """Warn that code which relies on this will not run with scikit-learn for ever."""
    warnings.warn(
        f"{type(machine).__name__}: {what} in scikit-learn 1.9 and goes there in 1.11; here it stays. Code for both "
        "uses CalibratedClassifierCV(SVC(), ensemble=False).",
        FutureWarning,
        stacklevel=4,
    )


def cross_validated_sigmoids(machine: Any, X: np.ndarray, codes: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return A and B of P(first class of the pair | score) = 1 / (1 + exp(A score + B)) for each pair, (pairs, 2)."""
    K = len(machine.classes_)
    pairs = list(combinations(range(K), 2))
    scores = np.zeros((len(X), len(pairs)))
    plain = clone(machine).set_params(probability="deprecated")
    for fit_rows, held in _folds(codes, machine.random_state):
        columns = fit_rows if machine.kernel == "precomputed" else slice(None)
        known = np.unique(codes[fit_rows])
        if len(known) > 1:
            costs = None if weight is None else weight[fit_rows]
            part = clone(plain).fit(X[fit_rows][:, columns], codes[fit_rows], costs)
            at = [pairs.index(pair) for pair in combinations(known.tolist(), 2)]
            turned = -1.0 if len(known) == 2 < K else 1.0  # of two classes the second is positive, of more the first
            scores[np.ix_(held, at)] = turned * part._pair_scores(X[held][:, columns])
        for p, pair in enumerate(pairs):
            here = [code in known for code in pair]
            if here[0] != here[1]:  # where one class of the pair is missing, the other is sure to be said
                scores[held, p] = 1.0 if here[K == 2] else -1.0
    fitted = []
    for p, (i, j) in enumerate(pairs):
        rows = (codes == i) | (codes == j)
        wanted = 1 if K == 2 else i
        fitted.append(sigmoid_fit(scores[rows, p], codes[rows] == wanted))
    return np.array(fitted)


def _folds(codes: np.ndarray, random_state: Any) -> Any:
    """Return folds with all classes in each, or, where a class has a single row, folds as they come."""
    folds = min(_FOLDS, int(np.bincount(codes).min()))
    if folds >= 2:
        return StratifiedKFold(folds, shuffle=True, random_state=random_state).split(codes, codes)
    return KFold(min(_FOLDS, len(codes)), shuffle=True, random_state=random_state).split(codes)


def sigmoid_fit(scores: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    """Return A, B that minimise the cross-entropy of 1 / (1 + exp(A f + B)) to Platt's smoothed targets."""
    n_pos, n_neg = int(positive.sum()), int((~positive).sum())
    target = np.where(positive, (n_pos + 1.0) / (n_pos + 2.0), 1.0 / (n_neg + 2.0))

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        z = parameters[0] * scores + parameters[1]
        p = expit(-z)
        return float(np.sum(np.logaddexp(0.0, z) - (1 - target) * z)), np.array(
            [(target - p) @ scores, (target - p).sum()]
        )

    start = np.array([0.0, np.log((n_neg + 1.0) / (n_pos + 1.0))])
    solution = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-8})
    return float(solution.x[0]), float(solution.x[1])


def probabilities(scores: np.ndarray, A: np.ndarray, B: np.ndarray, n_classes: int) -> np.ndarray:
    """Return (n, n_classes)."""
    pairwise = np.clip(expit(-(A * scores + B)), 1e-7, 1 - 1e-7)
    if n_classes == 2:
        return np.column_stack([1 - pairwise[:, 0], pairwise[:, 0]])
    r = np.zeros((len(scores), n_classes, n_classes))
    for p, (i, j) in enumerate(combinations(range(n_classes), 2)):
        r[:, i, j], r[:, j, i] = pairwise[:, p], 1 - pairwise[:, p]
    return coupled(r)


def coupled(r: np.ndarray) -> np.ndarray:
    """Return p on the simplex that minimises sum_ij (r_ji p_i - r_ij p_j)^2: a linear system for each row."""
    n, K, _ = r.shape
    Q = -np.transpose(r, (0, 2, 1)) * r
    diagonal = np.einsum("nji,nji->ni", r, r)
    Q[:, np.arange(K), np.arange(K)] = diagonal
    system = np.zeros((n, K + 1, K + 1))
    system[:, :K, :K], system[:, :K, K], system[:, K, :K] = Q, 1.0, 1.0
    right = np.zeros((n, K + 1, 1))
    right[:, K] = 1.0
    p = np.clip(np.linalg.solve(system, right)[:, :K, 0], 0.0, None)
    return p / p.sum(axis=1, keepdims=True)


class SharedGram:
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

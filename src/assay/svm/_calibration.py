"""Probabilities from scores: a sigmoid fitted to held-out scores (Platt 1999; Lin, Lin and Weng 2007), pairs of
classes coupled into one distribution (Wu, Lin and Weng 2004, second method)."""

import warnings
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

_FOLDS = 5


def wants_probability(machine: Any) -> bool:
    if machine.probability is not True:
        raise AttributeError("predict_proba is not available when probability=False")
    return True


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
    found = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-8})
    return float(found.x[0]), float(found.x[1])


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

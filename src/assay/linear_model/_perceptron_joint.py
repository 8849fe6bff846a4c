"""The perceptron of many classes: one weight vector per class, all learnt together.

    a row x of class y on which another class r scores at least as much:  w_y <- w_y + eta x,  w_r <- w_r - eta x

r is the class with the largest score among the others. If some weights give every row's class the largest score with a
margin gamma (|W| = 1), there are at most 2 R^2 / gamma^2 updates, R the largest length of a row (Duda and Hart 1973;
Crammer and Singer 2003).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from assay.params import refuse


class JointRun(NamedTuple):
    """Weights and intercepts of the classes, updates, epochs, whether the last epoch had none, whether it was
    stopped."""

    coef: np.ndarray
    intercept: np.ndarray
    updates: int
    epochs: int
    converged: bool
    stopped: bool


def joint_run(learner: Any, rows: Any, random: Any, told: Callable[..., bool]) -> JointRun:
    """Learn all classes together; `random` shuffles the rows of each epoch, None keeps their order."""
    from assay.linear_model._perceptron_loop import joint_block
    from assay.linear_model._row_loops import shuffle

    X = getattr(rows, "X", None)
    if X is None or hasattr(X, "indptr"):
        raise refuse(learner, 'multi_class="joint" reads dense rows in memory; use multi_class="ovr" for others.')
    X, y = np.ascontiguousarray(X, dtype=np.float64), np.asarray(rows.y, dtype=np.int64)
    K = len(learner.classes_)
    W, b = np.zeros((K, rows.n_features)), np.zeros(K)
    total, epoch, mistakes, stopped = 0, 0, -1, False
    try:
        while mistakes and epoch < learner.max_iter and not stopped:
            order = np.arange(rows.n_rows)
            if random is not None:
                shuffle(order, int(random.randint(1, 2**62)))
            mistakes = joint_block(X, y, order, float(learner.eta0), bool(learner.fit_intercept), W, b)
            total, epoch = total + mistakes, epoch + 1
            stopped = told(mistakes, mistakes, coef_=W.copy(), intercept_=b.copy())
    except KeyboardInterrupt:
        stopped = True
    return JointRun(W, b, total, epoch, mistakes == 0, stopped and mistakes != 0)


def joint_margin(rows: Any, coef: np.ndarray, intercept: np.ndarray) -> float:
    """Return by how much the class of a row leads the others, at least, in units of the length of all weights."""
    norm = float(np.linalg.norm(coef))
    least = np.inf
    for block in rows.blocks():
        scores, at = block.X @ coef.T + intercept, np.arange(len(block.X))
        own = scores[at, block.y]
        scores[at, block.y] = -np.inf
        least = min(least, float((own - scores.max(axis=1)).min()))
    return least / norm if norm > 0 else 0.0

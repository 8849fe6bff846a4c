"""LPBoost: the vote of stumps with the largest soft margin, by column generation.

    maximise over a in the simplex   P(a) = max_rho  rho - sum_i c_i max(0, rho - m_i),   m_i = y_i sum_j a_j h_j(x_i)
    minimise over u                  E(u) = max_h  sum_i u_i y_i h(x_i),   sum u = 1, 0 <= u_i <= c_i

over all stumps h, with c_i = 1 / (nu n) (nu = 0: c_i = 1, and P is the minimum margin). Linear programming duality:
P(a) <= E(u) for every a and u, with equality at the optimum. Each round adds the stump with the largest edge under u
(the exact search that AdaBoost uses, so that E(u) is known) and solves the programme of the stumps found so far, whose
solution, mixed with the best u so far so that it swings less, gives the next u. Demiriz, Bennett and Shawe-Taylor,
Machine Learning 46, 2002.
"""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner, label_classes
from assay.card import Card
from assay.certificate.claim import Claim, NotApplicable
from assay.certificate.risk import Statement
from assay.ensemble._adaboost import best_stump, sort_columns
from assay.ensemble._boost_claims import margin_facts, margin_statement, vote_space
from assay.fitlog import FitLog
from assay.params import count, number, positive
from assay.scan import Rows, rows
from assay.tree._decision_tree import known_rows
from assay.tree._nodes import Nodes, TreeModel, joined
from assay.tree._predict import leaves
from assay.tree._reading import read_columns
from assay.tree._spaces import OfAnySize

_FRESH = 0.3  # share of the last solution in the weights that the next stump is found for


class Programme(NamedTuple):
    """Solution for some stumps: weights of the stumps, weights of the rows, and the largest edge of those stumps."""

    a: np.ndarray
    u: np.ndarray
    value: float


def solve(signed: np.ndarray, caps: np.ndarray) -> Programme:
    """Minimise beta over u in the capped simplex with  <u, signed_j> <= beta  for every column j of `signed` (n, T).

    The multipliers of the constraints are the weights of the stumps.
    """
    n, T = signed.shape
    found = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.column_stack([signed.T, -np.ones(T)]),
        b_ub=np.zeros(T),
        A_eq=np.append(np.ones(n), 0.0)[None],
        b_eq=[1.0],
        bounds=np.column_stack([np.append(np.zeros(n), -np.inf), np.append(caps, np.inf)]),
        method="highs",
    )
    if found.status != 0:
        raise RuntimeError(f"LPBoost: HiGHS did not solve the linear programme: {found.message}")
    a, u = np.maximum(-found.ineqlin.marginals, 0.0), np.clip(found.x[:n], 0.0, caps)
    return Programme(a / a.sum(), u / u.sum(), float(found.fun))


def soft_margin(margins: np.ndarray, caps: np.ndarray) -> float:
    """Return max over rho of  rho - sum_i c_i max(0, rho - m_i); one of the margins attains it.

    >>> soft_margin(np.array([0.1, 0.5, 0.7]), np.ones(3)), soft_margin(np.array([-1.0, 0.5]), np.full(2, 0.25))
    (0.1, 0.125)
    """
    order = np.argsort(margins, kind="stable")
    m, c = margins[order], caps[order]
    weight, mass = np.append(0.0, np.cumsum(c)[:-1]), np.append(0.0, np.cumsum(c * m)[:-1])
    return float((m - (weight * m - mass)).max())


class LPBoost(TreeModel, ClassifierMixin, Learner):
    """The weighted vote of stumps with the largest (soft) margin, and the proof that no vote has a larger one.

    Two classes only.

    Parameters
    ----------
    nu : float in [0, 1]
        Share of the rows that may fall short of the margin; 0 maximises the smallest margin of all rows, which is
        positive only if votes of stumps can tell the classes apart.
    n_estimators : int
        Rounds at most.
    tol : float > 0
        Stop once the largest possible soft margin is proved to exceed that of the vote by at most `tol`; margins lie in
        [-1, 1].
    n_jobs : int or None
        Threads of the stump search; changes the time, never a bit.

    Attributes
    ----------
    classes_, trees_ (stumps), estimator_weights_ (non-negative, sum 1; stumps of weight 0 are left out)
    margins_ : (rows,) y_i f(x_i);  min_margin_ : the smallest
    margin_ : P(a), the soft margin reached;  margin_bound_ : E(u), which no vote of stumps exceeds
    gap_ : margin_bound_ - margin_
    sample_weights_ : u, which proves the bound;  sample_caps_ : c

    Examples
    --------
    >>> import numpy as np
    >>> from assay.ensemble import LPBoost
    >>> X, y = np.arange(10.0)[:, None], [1, 1, 1, -1, -1, -1, 1, 1, 1, -1]
    >>> model = LPBoost(nu=0.0).fit(X, y)
    >>> round(model.min_margin_, 4), model.gap_ < 1e-6, model.score(X, y)
    (0.3333, True, 1.0)
    """

    family = "stump-vote-classifier"
    classes_: np.ndarray
    card = Card(
        name="LPBoost",
        zh="线性规划提升",
        mission=("ENS-06",),
        task="classify",
        model=OfAnySize("weighted votes of stumps, as many as the rows ask for"),
        strategy="soft margin, sum of weights 1",
        algorithm="column generation: exact stump of largest edge, linear programme by HiGHS",
        guarantee=("boosting.margin-duality", "margin.boosting", "vc"),
        most_rows=10_000,
    )

    def __init__(
        self, *, nu: float = 0.1, n_estimators: int = 50, tol: float = 1e-6, n_jobs: int | None = None
    ) -> None:
        self.nu = nu
        self.n_estimators = n_estimators
        self.tol = tol
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LPBoost":
        """Fit to rows X and labels y of two classes; weights multiply the caps c_i."""
        rounds, tol = count(self, "n_estimators"), positive(self, "tol")
        nu = number(self, "nu", low=0.0, high=1.0)
        data = read_columns(self, X, y, sample_weight, reset=True)
        known: Any = rows(data.X, data.y)
        self.classes_ = label_classes(self, known)
        if len(self.classes_) > 2:
            raise ValueError(
                f"{type(self).__name__}: Only binary classification is supported. The data have {len(self.classes_)} "
                "classes; fit one model per class."
            )
        sign = 2.0 * np.asarray(known.encoded(self.classes_).y) - 1.0
        weight = np.ones(len(sign)) if data.weight is None else data.weight
        caps = np.minimum(weight / max(nu * weight.sum(), 1e-300), 1.0)
        with FitLog(self, rounds, X, y) as log:
            self._generate(data.X, sign, caps, rounds, tol, log)
        if self.gap_ > tol:
            warnings.warn(
                f"{type(self).__name__}: the margin is proved to {self.gap_:.1e} of the largest, not to the {tol:.1e} "
                "asked for; raise n_estimators or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _generate(
        self, X: np.ndarray, sign: np.ndarray, caps: np.ndarray, rounds: int, tol: float, log: FitLog
    ) -> None:
        columns, codes = sort_columns(X, self.n_jobs), (sign > 0).astype(np.int64)
        u = caps / caps.sum()
        stumps: list[Nodes] = []
        signed = np.empty((len(sign), 0))
        bound, proof, now = np.inf, u, Programme(np.empty(0), u, -np.inf)

        def priced(weights: np.ndarray) -> tuple[Nodes, np.ndarray]:
            nonlocal bound, proof
            stump = best_stump(X, columns, codes, weights, 2, "error", self.n_jobs).nodes
            vote = sign * _votes(stump, X, self.n_jobs)
            if weights @ vote < bound:
                bound, proof = float(weights @ vote), weights
            return stump, vote

        for _ in range(rounds):
            stump, vote = priced(_FRESH * now.u + (1 - _FRESH) * proof)
            if now.u @ vote <= now.value + 0.1 * tol:  # nothing new for the programme: ask for its own weights
                stump, vote = priced(now.u)
            if len(stumps) and bound - soft_margin(signed @ now.a, caps) <= tol:
                break
            stumps.append(stump)
            signed = np.column_stack([signed, vote])
            now = solve(signed, caps)
            reached = soft_margin(signed @ now.a, caps)
            if log.step(-reached, max(0.0, bound - reached)) or bound - reached <= tol:
                break
        self._keep(stumps, signed, now.a, caps, bound, proof)

    def _keep(self, stumps: list[Nodes], signed: np.ndarray, a: np.ndarray, caps, bound: float, proof) -> None:
        used = np.flatnonzero(a > 1e-12)
        a = a[used] / a[used].sum()
        self.trees_ = joined([stumps[j] for j in used]).as_dict()
        self.estimator_weights_, self.margins_ = a, signed[:, used] @ a
        self.min_margin_, self.margin_ = float(self.margins_.min()), soft_margin(self.margins_, caps)
        self.margin_bound_, self.gap_ = bound, max(0.0, bound - self.margin_)
        self.sample_weights_, self.sample_caps_ = proof, caps

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) = sum_j a_j h_j(x), in [-1, 1]."""
        check_is_fitted(self)
        return self._scores(read_columns(self, X).X)

    def _scores(self, X: np.ndarray) -> np.ndarray:
        nodes = self.nodes_.check(self.n_features_in_)
        sides = 2.0 * nodes.value.argmax(axis=1) - 1.0
        return sides[leaves(nodes, X, self.n_jobs)] @ self.estimator_weights_

    def predict(self, X: Any) -> np.ndarray:
        """Return the class on whose side f is."""
        above = self.decision_function(X) > 0
        return self.classes_[above.astype(np.int64)]

    def score_bounds(self, rows: Rows) -> tuple[np.ndarray, float]:
        """Return the difference of the votes for the two classes, and how far rounding can move it."""
        slack = 2.0**-50 * (len(self.estimator_weights_) + 2)
        return np.concatenate([self._scores(block.X) for block in rows.blocks()])[:, None], slack

    def count_errors(self, rows: Rows) -> tuple[int, int]:
        """Return the least and the largest number of errors on `rows` that rounding leaves open."""
        low = high = 0
        slack = 2.0**-50 * (len(self.estimator_weights_) + 2)
        for block in rows.blocks():
            margin = self._scores(block.X) * (2.0 * np.asarray(block.y) - 1.0)
            low += int(np.count_nonzero(margin < -slack))
            high += int(np.count_nonzero(margin <= slack))
        return low, high

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the margin reached, and the proof that no vote of stumps has a larger one."""
        cap = float(self.sample_caps_.max())
        yield from margin_facts(self, rows, cap, self.margin_bound_, self.sample_weights_)

    def space(self, rows: Rows) -> Any:
        """Return the class of votes of as many stumps; sizes share delta, since the data choose their number."""
        return vote_space(self)

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield the bound of the error from the margins."""
        yield from margin_statement(self, rows)

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        return known_rows(self, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _votes(stump: Nodes, X: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Return the side, -1 or 1, that a stump votes for."""
    return 2.0 * stump.value[leaves(stump, X, n_jobs)[:, 0]].argmax(axis=1) - 1.0

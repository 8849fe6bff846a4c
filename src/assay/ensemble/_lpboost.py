"""LPBoost: the vote of stumps with the largest soft margin, by column generation.

    maximise over a in the simplex   P(a) = max_rho  rho - sum_i c_i max(0, rho - m_i),   m_i = y_i sum_j a_j h_j(x_i)
    minimise over u                  E(u) = max_h  sum_i u_i y_i h(x_i),   sum u = 1, 0 <= u_i <= c_i

over all stumps h, with c_i = 1 / (nu n) (nu = 0: c_i = 1, and P is the minimum margin). Linear programming duality:
P(a) <= E(u) for every a and u, with equality at the optimum. The programme starts with AdaBoost's stumps; each round
solves it for the stumps found so far and adds those with the largest edges under its u, of which the largest is E(u).
Demiriz, Bennett and Shawe-Taylor, Machine Learning 46, 2002.

A vote that errs on a share e of the rows by margins like those of the other rows has P > 0 only if nu > 2 e; below, no
vote of that kind beats stumps that cancel each other. nu = "auto" is chosen with that in mind.
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.ensemble._adaboost import AdaBoostClassifier, margin_facts, margin_statement, vote_space
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Scores
from assay.guarantees.ledger import FIT_NOT_KEPT, Statement
from assay.messages import named
from assay.params import Count, Maybe, Number, Positive, check, refuse
from assay.scan import Rows, one_blas_thread, thread_map
from assay.tree._claims import OfAnySize
from assay.tree._decision_tree import known_rows
from assay.tree._nodes import Nodes, TreeModel, joined
from assay.tree._predict import leaves
from assay.tree._reading import read_columns, read_labelled
from assay.tree.growth._stumps import Sorted, sort_columns, stump_nodes

# The linear programme by an interior-point method -----------------------------------------------------------------


_STEPS = 60
_SHORT = 0.995  # share of the way to the border


class Programme(NamedTuple):
    """Weights a of the stumps (sum 1), weights u of the rows (sum 1), slack of each stump's edge."""

    a: np.ndarray
    u: np.ndarray
    slack: np.ndarray


class _Point(NamedTuple):
    """A point, or a direction. Pairs (u, z), (t, w), (s, a) are positive and their products go to 0; t = c - u."""

    u: np.ndarray
    t: np.ndarray
    s: np.ndarray
    beta: float
    z: np.ndarray
    w: np.ndarray
    a: np.ndarray
    rho: float

    def products(self) -> float:
        return float(self.u @ self.z + self.t @ self.w + self.s @ self.a)

    def moved(self, d: "_Point", primal: float, dual: float) -> "_Point":
        steps: Any = zip(self, d, (primal,) * 4 + (dual,) * 4, strict=True)
        return _Point(*(x + k * dx for x, dx, k in steps))

    def room(self, d: "_Point") -> tuple[float, float]:
        """Return how far u, t, s and z, w, a may go along d before one of them is 0, at most 1."""
        return tuple(  # type: ignore[return-value]
            min(_distance(getattr(self, k), getattr(d, k)) for k in names) for names in ("uts", "zwa")
        )


def solve_soft_margin(signed: np.ndarray, caps: np.ndarray, tol: float) -> Programme:
    """Solve the programme of columns `signed` (n, T) to a sum of products of `tol`; every cap must be positive."""
    n, T = signed.shape
    at = _start(signed, caps)
    for _ in range(_STEPS):
        left = _left_over(signed, caps, at)
        if at.products() < tol and max(np.abs(r).max() for r in left) < tol:
            break
        try:
            newton = _Newton(signed, at, left)
        except LinAlgError:  # rounding has the last word; the point is as good as it gets
            break
        d = newton.direction(0.0, 0.0, 0.0)
        mu = at.products() / (2 * n + T)
        aim = (at.moved(d, *at.room(d)).products() / at.products()) ** 3 * mu
        d = newton.direction(aim - d.u * d.z, aim - d.t * d.w, aim - d.s * d.a)
        primal, dual = at.room(d)
        at = at.moved(d, _SHORT * primal, _SHORT * dual)
    u = np.clip(at.u, 0.0, caps)
    return Programme(at.a / at.a.sum(), u / u.sum(), at.s)


def _start(signed: np.ndarray, caps: np.ndarray) -> _Point:
    T = signed.shape[1]
    u = caps / caps.sum()
    edge, a = signed.T @ u, np.full(T, 1.0 / T)
    margin = signed @ a
    beta, rho = float(edge.max()) + 0.1, float(np.quantile(margin, 0.3))
    z, w = np.maximum(margin - rho, 0.0) + 0.1, np.maximum(rho - margin, 0.0) + 0.1
    return _Point(u, np.maximum(caps - u, 1e-3 * caps), beta - edge, beta, z, w, a, rho)


def _left_over(signed: np.ndarray, caps: np.ndarray, p: _Point) -> tuple[Any, ...]:
    """Return by how much each of the five equations is missed: of the rows, of a, of the stumps, of u, of t."""
    return (
        p.rho + p.z - p.w - signed @ p.a,
        1.0 - p.a.sum(),
        p.beta - p.s - signed.T @ p.u,
        1.0 - p.u.sum(),
        caps - p.u - p.t,
    )


class _Newton:
    """Newton's equations at a point, reduced to the weights of the stumps and factored once."""

    def __init__(self, signed: np.ndarray, at: _Point, left: tuple[Any, ...]):
        self.signed, self.at, self.left = signed, at, left
        self.soft = 1.0 / (at.z / at.u + at.w / at.t)
        scaled = signed * np.sqrt(self.soft)[:, None]
        matrix = scaled.T @ scaled
        matrix[np.diag_indices(len(matrix))] += at.s / at.a
        self.factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        self.weighted_sums = signed.T @ self.soft
        self.by_rho = cho_solve(self.factor, self.weighted_sums)
        self.by_beta = cho_solve(self.factor, np.ones(len(matrix)))

    def direction(self, uz: Any, tw: Any, sa: Any) -> _Point:
        """Return the direction along which the products become `uz`, `tw` and `sa`, and the equations hold."""
        p, (rows, of_a, stumps, of_u, of_t) = self.at, self.left
        q = rows + (uz / p.u - p.z) - (tw / p.t - p.w) + p.w / p.t * of_t
        alone = cho_solve(self.factor, self.signed.T @ (self.soft * q) - stumps + (sa / p.a - p.s))
        equations = np.array(
            [
                [self.by_rho.sum(), -self.by_beta.sum()],
                [self.soft.sum() - self.weighted_sums @ self.by_rho, self.weighted_sums @ self.by_beta],
            ]
        )
        rho, beta = np.linalg.solve(equations, [of_a - alone.sum(), of_u - self.soft @ q + self.weighted_sums @ alone])
        a = alone + rho * self.by_rho - beta * self.by_beta
        u = self.soft * (q - self.signed @ a + rho)
        t = of_t - u
        return _Point(
            u, t, sa / p.a - p.s - p.s / p.a * a, beta,
            uz / p.u - p.z - p.z / p.u * u, tw / p.t - p.w - p.w / p.t * t, a, rho,
        )  # fmt: skip


def _distance(x: np.ndarray, dx: np.ndarray) -> float:
    falling = dx < 0
    return min(1.0, float((x[falling] / -dx[falling]).min())) if falling.any() else 1.0


def soft_margin(margins: np.ndarray, caps: np.ndarray) -> float:
    """Return max over rho of  rho - sum_i c_i max(0, rho - m_i); one of the margins attains it.

    >>> soft_margin(np.array([0.1, 0.5, 0.7]), np.ones(3)), soft_margin(np.array([-1.0, 0.5]), np.full(2, 0.25))
    (0.1, 0.125)
    """
    order = np.argsort(margins, kind="stable")
    m, c = margins[order], caps[order]
    weight, mass = np.append(0.0, np.cumsum(c)[:-1]), np.append(0.0, np.cumsum(c * m)[:-1])
    return float((m - (weight * m - mass)).max())


# LPBoost ----------------------------------------------------------------------------------------------------------


_ROUNDS = 100
_LEAST_NU, _MOST_NU = 0.1, 0.95  # of nu = "auto"


class Side(NamedTuple):
    """A stump: votes `right` (1 or -1) above the threshold of a column, `left` up to it; column -1: always `right`."""

    column: int
    threshold: float
    left: int
    right: int

    def votes(self, X: np.ndarray) -> np.ndarray:
        if self.column < 0:
            return np.full(len(X), float(self.right))
        return np.where(X[:, self.column] <= self.threshold, float(self.left), float(self.right))

    def nodes(self) -> Nodes:
        sides = np.array([self.right] if self.column < 0 else [0, self.left, self.right])
        return stump_nodes(self.column, self.threshold, np.column_stack([sides <= 0, sides >= 0]).astype(float))


class Search:
    """All stumps on some rows: columns sorted once, and the stumps with large edges under any weights."""

    def __init__(self, X: np.ndarray, sign: np.ndarray, most: int, n_jobs: int | None):
        self.X, self.sign, self.most, self.n_jobs = X, sign, most, n_jobs
        self.columns: Sorted = sort_columns(X, n_jobs)
        self.parts = -(-2 * most // X.shape[1])

    def best(self, u: np.ndarray) -> tuple[float, list[Side]]:
        """Return the largest edge of all stumps, and the stumps with the largest edges of stretches of columns."""
        from assay.tree.growth import _stump_loops as loops

        signed, d = u * self.sign, self.X.shape[1]
        edges, places = np.zeros((d, self.parts)), np.full((d, self.parts), -1)
        whole = float(signed.sum())

        def work(f: int) -> None:
            loops.peaks(self.columns.order[f], self.columns.last[f], signed, whole, edges[f], places[f])

        thread_map(work, range(d), n_jobs=self.n_jobs)
        height = np.where(places < 0, -1.0, np.abs(edges)).ravel()
        result = [Side(-1, 0.0, 0, 1 if whole >= 0 else -1)] if abs(whole) >= height.max() else []
        for at in np.argsort(-height, kind="stable")[: self.most]:
            if height[at] >= 0:
                result.append(self._side(at // self.parts, places.flat[at], 1 if edges.flat[at] >= 0 else -1))
        return max(abs(whole), float(height.max())), result

    def _side(self, f: int, place: int, right: int) -> Side:
        a, b = (float(self.X[self.columns.order[f, at], f]) for at in (place, place + 1))
        middle = a / 2 + b / 2
        return Side(int(f), middle if a <= middle < b else a, -right, right)


@dataclass(eq=False, repr=False)
class LPBoost(TreeModel, ClassifierMixin, Learner):
    """The weighted vote of stumps with the largest (soft) margin, and the proof that no vote has a larger one.

    Two classes only.

    Parameters
    ----------
    nu : float in [0, 1] or "auto"
        Share of the rows that may fall short of the margin. "auto" is 2 e + 0.05, between 0.1 and 0.95, e the share of
        rows that AdaBoost of as many stumps gets wrong: votes that err on more than about nu / 2 of the rows have no
        positive soft margin. 0 maximises the smallest margin of all rows, which is positive only if votes of stumps
        can tell the classes apart.
    n_estimators : int
        Stumps at most, chosen among 200 + 4 n_estimators. Where no vote of so many stumps has a soft
        margin above `tol`, the vote is AdaBoost's.
    tol : float > 0
        Stop once the largest possible soft margin is proved to exceed that of the vote by at most `tol`; margins lie in
        [-1, 1].
    n_jobs : int or None
        Threads of the stump search; changes the time, never a bit.

    Attributes
    ----------
    classes_, trees_ (stumps), estimator_weights_ (non-negative, sum 1; stumps of weight 0 are left out)
    nu_ : the share of the rows that may fall short
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

    family = "trees.weighted-vote"
    figure = "tree"
    constraints: ClassVar = {
        "nu": Maybe(Number(low=0.0, high=1.0), "auto"),
        "n_estimators": Count(),
        "tol": Positive(),
    }
    card = Card(
        name="LPBoost",
        task="classify",
        ensemble="serial",
        model=OfAnySize("weighted votes of stumps, as many as the rows ask for"),
        strategy="soft margin, sum of weights 1",
        algorithm="column generation: exact stumps of largest edges, linear programmes by interior points",
        guarantee=("boosting.margin-duality", "margin.boosting", "vc"),
        most_rows=10_000,
    )

    _: KW_ONLY
    nu: float | str = "auto"
    n_estimators: int = 50
    tol: float = 1e-6
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LPBoost":
        """Fit to rows X and labels y of two classes; weights multiply the caps c_i."""
        check(self)
        data = read_labelled(self, X, y, sample_weight)
        if len(self.classes_) > 2:
            raise ValueError(
                f"{type(self).__name__}: Only binary classification is supported. The data have {len(self.classes_)} "
                "classes; fit one model per class."
            )
        sign = 2.0 * data.y - 1.0
        weight = np.ones(len(sign)) if data.weight is None else data.weight
        boosted, share, wrong = _boosted(data.X, sign, weight, self.n_estimators, self.n_jobs)
        self.nu_ = min(max(2 * wrong + 0.05, _LEAST_NU), _MOST_NU) if self.nu == "auto" else float(self.nu)
        caps = np.minimum(weight / max(self.nu_ * weight.sum(), 1e-300), 1.0)
        with FitLog(self, _ROUNDS, *data.shown) as log, one_blas_thread():
            self._generate(data.X, sign, caps, boosted, share, log)
        if self.gap_ > self.tol:
            warnings.warn(
                named(self, "warn.margin", gap=float(self.gap_), tol=float(self.tol)),
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _generate(self, X, sign, caps, boosted: list[Side], share: np.ndarray, log: FitLog) -> None:
        """Add stumps until the gap is small or there are enough, and keep the best vote of `n_estimators`."""
        tol, most = self.tol, 200 + 4 * self.n_estimators
        search = Search(X, sign, max(20, self.n_estimators), self.n_jobs)
        stumps, signed = list(boosted), _signed(boosted, X, sign)
        u, bound, reached, aim = caps / caps.sum(), np.inf, -np.inf, 1e-2
        proof = u
        for _ in range(_ROUNDS):
            edge, result = search.best(u)
            if edge < bound:
                bound, proof = edge, u
            new = [stump for stump in result if stump not in stumps][: most - len(stumps)]
            if bound - reached <= tol or (not new and aim == 0.1 * tol):
                break
            stumps, signed = stumps + new, np.column_stack([signed, _signed(new, X, sign)])
            now = solve_soft_margin(signed, caps, aim if new else 0.1 * tol)
            u, reached = now.u, max(reached, soft_margin(signed @ now.a, caps))
            aim = max(0.1 * tol, min(1e-2, 0.05 * (bound - reached))) if new else 0.1 * tol
            if log.step(-reached, max(0.0, bound - reached)):
                break
        chosen, a = boosted, share
        if reached > tol:
            kept, weights = _fewer(signed, caps, now, self.n_estimators, tol)
            if soft_margin(signed[:, kept] @ weights, caps) > tol:
                chosen, a = [stumps[j] for j in kept], weights
        self._keep(X, sign, caps, chosen, a)
        self.margin_bound_, self.gap_ = bound, max(0.0, bound - self.margin_)
        self.sample_weights_ = proof

    def _keep(self, X: np.ndarray, sign: np.ndarray, caps: np.ndarray, stumps: list[Side], a: np.ndarray) -> None:
        self.keep_nodes(joined([stump.nodes() for stump in stumps]))
        self.estimator_weights_, self.margins_ = a, _signed(stumps, X, sign) @ a
        self.min_margin_, self.margin_ = float(self.margins_.min()), soft_margin(self.margins_, caps)
        self.sample_caps_ = caps

    @property
    def largest_decision(self) -> float:
        """What `decision_function` is where all members agree."""
        return float(np.abs(self.estimator_weights_).sum())

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) = sum_j a_j h_j(x), in [-1, 1]."""
        check_is_fitted(self)
        return self._scores(read_columns(self, X).X)

    def _scores(self, X: np.ndarray) -> np.ndarray:
        nodes = self.nodes_.check(self.n_features_in_)
        sides = 2.0 * nodes.value.argmax(axis=1) - 1.0
        return sides[leaves(nodes, X, self.n_jobs)] @ self.estimator_weights_

    def _derive(self) -> None:
        super()._derive()
        if len(self.classes_) != 2:
            raise refuse(self, f"it tells two classes apart; classes_ has {len(self.classes_)}.")

    def predict(self, X: Any) -> np.ndarray:
        """Return the class on whose side f is."""
        above = self.decision_function(X) > 0
        return self.classes_[above.astype(np.int64)]

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the difference of the votes for the two classes."""
        yield Scores(self._bounded)

    def _bounded(self, block: Block) -> tuple[np.ndarray, float]:
        return self._scores(block.X)[:, None], 2.0**-50 * (len(self.estimator_weights_) + 2)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the margin reached, and the proof that no vote of stumps has a larger one."""
        if self._from_file:
            yield NotApplicable("boosting.margin-duality", FIT_NOT_KEPT)
            return
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


def _signed(stumps: list[Side], X: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """Return (rows, stumps): 1 where a stump is right, -1 where it is wrong."""
    return np.column_stack([np.empty((len(X), 0)), *(sign * stump.votes(X) for stump in stumps)])


def _boosted(X, sign, weight, rounds: int, n_jobs: int | None) -> tuple[list[Side], np.ndarray, float]:
    """Return AdaBoost's stumps without repetition, their shares of the vote, and the share of rows it gets wrong."""
    model = AdaBoostClassifier(n_estimators=rounds, n_jobs=n_jobs).fit(X, sign, weight)
    nodes, shares = model.nodes_, dict[Side, float]()
    votes = 2 * nodes.value.argmax(axis=1) - 1
    for root, alpha in zip(nodes.root, model.estimator_weights_, strict=True):
        first = nodes.child[root]
        left, right = (int(votes[root]),) * 2 if first < 0 else (int(votes[first]), int(votes[first + 1]))
        column = -1 if left == right else int(nodes.column[root])
        stump = Side(column, float(nodes.threshold[root]), left, right) if column >= 0 else Side(-1, 0.0, 0, right)
        shares[stump] = shares.get(stump, 0.0) + float(alpha)
    share = np.array(list(shares.values())) + 1e-300  # a stump that is right as often as wrong has no share
    wrong = float(np.average(model.margins_ <= 0, weights=weight))
    return list(shares), share / share.sum(), wrong


def _fewer(signed: np.ndarray, c: np.ndarray, now: Programme, limit: int, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """Return at most `limit` columns and their weights: the lightest are left out, a few at a time, and the programme
    of the others is solved again."""
    kept, a = _in_use(np.arange(signed.shape[1]), now)
    while True:
        heavy = np.sort(kept[np.argsort(-a, kind="stable")[: max(limit, int(0.8 * len(kept)))]])
        kept, a = _in_use(heavy, solve_soft_margin(signed[:, heavy], c, 0.01 * tol))
        if len(kept) <= limit:
            return kept, a


def _in_use(columns: np.ndarray, programme: Programme) -> tuple[np.ndarray, np.ndarray]:
    """Leave out stumps of weight 0: at the optimum the weight or the slack is 0, near it one is much smaller."""
    used = programme.a > np.minimum(programme.slack, programme.a.max() / 2)
    return columns[used], programme.a[used] / programme.a[used].sum()

"""AdaBoost for numbers: Drucker's AdaBoost.R2 (ICML 1997).

    sample n rows by the weights D_t and fit a tree h_t to them
    loss_i  = |h_t(x_i) - y_i| / (largest such error), or its square, or 1 - exp(-it);   err_t = sum_i D_t(i) loss_i
    beta_t  = err_t / (1 - err_t);   D_{t+1}(i) ∝ D_t(i) beta_t^(rate (1 - loss_i));   alpha_t = rate ln(1 / beta_t)
    predict the weighted median of the h_t(x): the smallest value with at least half of the weight at or below it;
            weights are counted in units of the largest alpha / 2^30, so that no rounding decides

A round with err_t >= 1/2 ends the fit; one without error ends it with that tree.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.card import Card
from assay.data.blocks import Block
from assay.ensemble._adaboost import AdaBoost
from assay.ensemble._members import any_given, grows_nodes
from assay.ensemble._votes import member_values
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Predictions
from assay.params import Choice, Count, Positive, check, refuse
from assay.scan import Rows
from assay.tree import DecisionTreeRegressor
from assay.tree._claims import OfAnySize
from assay.tree._decision_tree import DecisionTree, known_rows
from assay.tree._nodes import joined, tree_at
from assay.tree._reading import read_columns

_UNITS = 2.0**30
_LARGEST = int(np.iinfo(np.int32).max)


def weighted_median(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return, for each row of `values` (rows, members), the smallest value that has half of the weight at or below it.

    >>> weighted_median(np.array([[3.0, 1.0, 2.0]]), np.array([0.2, 0.2, 0.6]))
    array([2.])
    """
    order = np.argsort(values, axis=1, kind="stable")
    below = np.cumsum(np.rint(weights / weights.max() * _UNITS).astype(np.int64)[order], axis=1)
    at = (2 * below >= below[:, -1:]).argmax(axis=1)
    rows = np.arange(len(values))
    return values[rows, order[rows, at]]


@dataclass(eq=False, repr=False)
class AdaBoostRegressor(RegressorMixin, AdaBoost):
    """AdaBoost.R2 of trees, or of any regressor.

    Parameters
    ----------
    estimator : regressor or None
        Base learner; None is `DecisionTreeRegressor(max_depth=3)`.
    n_estimators : int
        Rounds at most.
    learning_rate : float > 0
        Factor of every alpha, and exponent of the change of weights.
    loss : "linear", "square" or "exponential"
    n_jobs : int or None
        Threads of the trees; changes the time, never a bit.

    Attributes
    ----------
    estimators_, estimator_, trees_ (if they are trees of assay.tree), members_ (if not), feature_importances_
    estimator_weights_ : alpha_t;  estimator_errors_ : err_t
    sample_weights_ : D after the last round

    Examples
    --------
    >>> import numpy as np
    >>> from assay.ensemble import AdaBoostRegressor
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> AdaBoostRegressor(n_estimators=20, random_state=0).fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.95
    True
    """

    of_trees, of_others = "trees.median", "committee.boosting-regressor"
    constraints: ClassVar = {
        "n_estimators": Count(),
        "learning_rate": Positive(),
        "loss": Choice("linear", "square", "exponential"),
    }
    card = Card(
        name="AdaBoost regressor",
        task="regress",
        ensemble="serial",
        model=OfAnySize("weighted medians of trees of any number"),
        strategy="relative absolute errors, re-weighted",
        algorithm="AdaBoost.R2: a tree on a weighted sample in each round",
        guarantee=(),
    )

    estimator: Any = None
    _: KW_ONLY
    n_estimators: int = 50
    learning_rate: float = 1.0
    loss: str = "linear"
    random_state: Any = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "AdaBoostRegressor":
        """Fit to rows X (for members other than trees also sparse ones, which stay so) and numbers y; weights are those
        of the first round."""
        check(self)
        self._check_member()
        base = self._base()
        trees = grows_nodes(base)
        data: Any
        if trees:
            data = read_columns(self, X, y, sample_weight, reset=True)
        else:
            data = any_given(self, X, y, sample_weight, nd=True, finite=not self._reads_gaps())
        if self.columns_ is not None:
            raise refuse(self, "nominal columns are not known to AdaBoost.R2; encode them.")
        weight = np.full(len(data.y), 1.0 / len(data.y)) if data.weight is None else data.weight / data.weight.sum()
        with FitLog(self, self.n_estimators, *data.shown) as log:
            members = self._rounds(base, data.X, data.y, weight, log)
        self.drop_nodes()
        self.members_ = [] if trees else members
        if trees:
            self.keep_nodes(joined([member.nodes_ for member in members]))
        return self

    def _rounds(self, base: Any, X: Any, y: np.ndarray, weight: np.ndarray, log: FitLog) -> list[Any]:
        """Return the members; set their weights."""
        rng, rate = check_random_state(self.random_state), self.learning_rate
        members: list[Any] = []
        alphas: list[float] = []
        errors: list[float] = []
        seeds: list[Any] = []
        for _ in range(self.n_estimators):
            member = self._seeded(base, rng)
            drawn = rng.choice(np.arange(len(y)), size=len(y), replace=True, p=weight)
            try:
                member.fit(X[drawn], y[drawn])
                gap = np.abs(np.asarray(member.predict(X), dtype=np.float64) - y)
            except KeyboardInterrupt:
                if not members:
                    raise
                log.stopped = True
                break
            loss = self._losses(gap, weight > 0)
            error = float((weight * loss).sum())
            if error >= 0.5 and members:
                break
            members.append(member)
            errors.append(error)
            seeds.append(getattr(member, "random_state", None))
            if error <= 0 or error >= 0.5:
                alphas.append(1.0)
                log.step(error, 0.0)
                break
            beta = error / (1 - error)
            alphas.append(rate * np.log(1 / beta))
            weight = weight * beta ** (rate * (1 - loss))
            weight = weight / weight.sum()
            if log.step(error, 0.0):
                break
        self.estimator_weights_, self.estimator_errors_ = np.array(alphas), np.array(errors)
        self.sample_weights_, self.seeds_ = weight, seeds
        return members

    @property
    def estimators_(self) -> list[Any]:
        """The members; trees are made from the arrays of the model."""
        check_is_fitted(self)
        if not self.has_nodes:
            return self.members_
        nodes, seeds = self.nodes_, getattr(self, "seeds_", [None] * len(self.tree_root_))
        trees = [clone(self._base()).set_params(random_state=seed, n_jobs=self.n_jobs) for seed in seeds]
        return [tree.restored(tree_at(nodes, t), self, self.n_features_in_) for t, tree in enumerate(trees)]

    def _base(self) -> Any:
        return DecisionTreeRegressor(max_depth=3) if self.estimator is None else self.estimator

    def _seeded(self, base: Any, rng: Any) -> Any:
        """Return a copy of the base learner with a seed of its own; the draws are those of scikit-learn."""
        member = clone(base)
        if "random_state" in member.get_params():
            member.set_params(random_state=rng.randint(_LARGEST))
        if isinstance(member, DecisionTree):
            member.set_params(n_jobs=self.n_jobs)
        return member

    def _losses(self, gap: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the losses in [0, 1]; rows of weight 0 do not set the scale."""
        largest = float(gap[counts].max())
        relative = gap / largest if largest > 0 else np.zeros_like(gap)
        if self.loss == "square":
            return relative**2
        return 1.0 - np.exp(-relative) if self.loss == "exponential" else relative

    def _member_predictions(self, X: Any) -> Iterator[np.ndarray]:
        if self.has_nodes:
            nodes = self.nodes_.check(self.n_features_in_)
            yield from (member_values(nodes, t, X, self.n_jobs)[:, 0] for t in range(len(nodes.root)))
        else:
            yield from (self._numbers(member.predict(X)) for member in self.members_)

    def _numbers(self, predicted: Any) -> np.ndarray:
        numbers = np.asarray(predicted, dtype=np.float64)
        if numbers.ndim != 1:
            raise refuse(self, "its members must predict one number for each row.")
        return numbers

    def _medians(self, X: Any) -> np.ndarray:
        return weighted_median(np.stack(list(self._member_predictions(X)), axis=1), self.estimator_weights_)

    def predict(self, X: Any) -> np.ndarray:
        """Return the weighted median of the members' predictions."""
        return self._medians(self._rows(X))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predictions of the first 1, 2, ... members."""
        outputs = np.stack(list(self._member_predictions(self._rows(X))), axis=1)
        for t in range(1, outputs.shape[1] + 1):
            yield weighted_median(outputs[:, :t], self.estimator_weights_[:t])

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the medians."""
        yield Predictions(self._bounded)

    def _bounded(self, block: Block) -> tuple[np.ndarray, float]:
        return self._medians(block.X)[:, None], 0.0

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        if not self.has_nodes:
            raise refuse(
                self,
                f"certificates are about trees of assay.tree; {type(self.estimator).__name__} is not re-run by the "
                "checker. Use estimator=None or a tree.",
            )
        return known_rows(self, X, y, sample_weight)

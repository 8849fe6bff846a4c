"""AdaBoost: discrete, by re-weighting or re-sampling, with SAMME's weights for more than two classes.

    D_1 = 1/n;   err_t = sum_i D_t(i) [h_t(x_i) != y_i];   alpha_t = 1/2 (ln((1 - err_t) / err_t) + ln(K - 1))
    D_{t+1}(i) = D_t(i) exp(-alpha_t s_ti) / Z_t,   s_ti = 1 if h_t(x_i) = y_i else -1
    F(x) = sum_t alpha_t [h_t(x) = k]  for each class k; with two classes  f = sum_t alpha_t h_t,  h_t in {-1,
    1}

Training error <= mean exp(-y f) = prod Z_t, and Z_t = 2 sqrt(err_t (1 - err_t)) for two classes (Freund & Schapire
1997). A round with err_t >= 1 - 1/K ends the fit (or is drawn again, when re-sampling); err_t = 0 ends it with that
learner. Decisions and probabilities have scikit-learn's scale, W = sum |alpha_t|:

    d(x)      = 2 f(x) / W for two classes, else d_k(x) = (K F_k(x) / W - 1) / (K - 1)
    P(k | x)  ∝ exp(K F_k(x) / (W (K - 1)^2))
"""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.ensemble._members import HomogeneousEnsemble, any_given, any_rows, one_hot, seed_parts
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Scores
from assay.guarantees.ledger import FIT_NOT_KEPT, Statement, Vacuous, error_rate
from assay.messages import Message
from assay.params import Choice, Count, Positive, check, refuse
from assay.scan import Rows
from assay.theory import margin
from assay.theory.spaces import Space, Stumps
from assay.tree import DecisionTreeClassifier
from assay.tree._claims import OfAnySize, VotesOfOneSize, _Everything
from assay.tree._decision_tree import known_rows
from assay.tree._nodes import Nodes, TreeModel, joined, one_leaf, tree_at
from assay.tree._predict import leaves
from assay.tree._reading import read_columns, read_labelled
from assay.tree.growth._stumps import Stump, best_stump, sort_columns

# Members fitted one after the other -------------------------------------------------------------------------------


class AdaBoost(TreeModel, HomogeneousEnsemble):
    """Members fitted one after the other, each with a weight."""

    figure = "importance"
    estimator: Any
    random_state: Any
    n_jobs: int | None
    estimator_weights_: np.ndarray
    estimator_errors_: np.ndarray

    @property
    def _n_members(self) -> int:
        return len(self.estimator_weights_)

    def _rows(self, X: Any) -> Any:
        """Return checked rows as the members take them."""
        check_is_fitted(self)
        return read_columns(self, X).X if self.has_nodes else any_rows(self, X, nd=True, finite=not self._reads_gaps())

    def _reads_gaps(self) -> bool:
        return bool(get_tags(self._base()).input_tags.allow_nan)

    def _check_member(self) -> None:
        base, kind = self._base(), "classifier" if is_classifier(self) else "regressor"
        other = is_regressor(base) if is_classifier(self) else is_classifier(base)
        if other or not all(hasattr(base, name) for name in ("fit", "predict")):
            raise refuse(self, f"estimator must be a {kind} with fit and predict; got {base!r}.")

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predictions of the first 1, 2, ... members."""
        raise NotImplementedError

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Yield the score of the first 1, 2, ... members: the share of right rows, or R^2."""
        score = accuracy_score if is_classifier(self) else r2_score
        for predicted in self.staged_predict(X):
            yield float(score(y, predicted, sample_weight=sample_weight))

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean of the members' importances by their weights; of members that have them."""
        check_is_fitted(self)
        weights = np.abs(self.estimator_weights_)
        total = max(float(weights.sum()), np.finfo(float).tiny)
        if is_classifier(self) and self.has_nodes:  # a stump has one column
            split = self.node_child_[self.tree_root_] >= 0
            columns = self.node_column_[self.tree_root_[split]]
            return np.bincount(columns, weights=weights[split], minlength=self.n_features_in_) / total
        try:
            return (
                np.asarray(sum(w * estimator.feature_importances_ for w, estimator in zip(weights, self.estimators_)))
                / total
            )
        except AttributeError as error:
            raise AttributeError(
                f"feature_importances_: {type(self._base()).__name__} does not have a feature_importances_ attribute."
            ) from error

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


# Bounds by margins ------------------------------------------------------------------------------------------------


_ROUND = 1e-9  # of published margins, more than what another order of summation changes
_LEAST = 1e-100  # weights of rows below do not matter, and a checker does not read them


def vote_space(model: Any) -> Space:
    """Return the class of votes of as many stumps, for two classes."""
    if len(model.classes_) > 2:
        return _Everything("votes of stumps for more than two classes, whose patterns are not counted here")
    return VotesOfOneSize(Stumps(model.n_features_in_), len(model.estimator_weights_))


def margin_statement(model: Any, rows: Rows) -> Iterator[Statement | NotApplicable]:
    """Yield the bound of the error from the margins of the training rows, or why there is none."""
    reason = _reason(model, rows)
    if reason is not None:
        yield NotApplicable("margin.boosting", reason)
    else:
        yield partial(_margin_bound, np.clip(model.margins_, -1.0, 1.0), Stumps(model.n_features_in_))


def _margin_bound(margins: np.ndarray, base: Space, delta: str) -> Claim | NotApplicable:
    result = margin.boosting_margin_bound(margins - 1e-12, float(delta), base.log_growth)
    if result.bound >= 1:
        why = Message("why.small-vote-margins", rows=len(margins))
        return Vacuous("margin.boosting", why, delta)
    params = {"class": base.descriptor(), "exponent": result.exponent, "rows": len(margins)}
    return error_rate("margin.boosting", result.bound, params, "train", delta)


def margin_facts(model: Any, rows: Rows, cap: float, bound: float, weights: np.ndarray) -> Iterator[Any]:
    """Yield the soft margin that the vote reaches, and that no vote of stumps exceeds `bound`, by `weights`."""
    reason = _reason(model, rows)
    if reason is not None:
        yield NotApplicable("boosting.margin-duality", reason)
        return
    ordered = np.sort(model.margins_)
    short = cap * (np.arange(len(ordered)) * ordered - np.append(0.0, np.cumsum(ordered)[:-1]))
    best = int(np.argmax(ordered - short))
    rho, reached = float(ordered[best]), float((ordered - short)[best])
    params = {"rows": rows.n_rows, "cap": cap}
    if reached > 2 * _ROUND:
        yield Claim("boosting.margin-duality", reached - _ROUND, "lower", {**params, "rho": rho})
    kept = np.where(weights < _LEAST * weights.max(), 0.0, weights)
    over = max(0.0, kept.max() / kept.sum() / cap - 1.0) if cap < 1 else 0.0
    value = max(bound, 0.0) + _ROUND * (1 + bound) + 2 * over
    yield Claim("boosting.margin-duality", value, "upper", params, witness={"weights": kept})


def _reason(model: Any, rows: Rows) -> str | None:
    if len(model.classes_) > 2:
        return Message("why.vote-classes")
    if rows.has_weight:
        return Message("why.weights.margins")
    if not hasattr(model, "margins_"):
        return FIT_NOT_KEPT
    if len(model.margins_) != rows.n_rows:
        return Message("why.other-count")
    return None


# AdaBoost ---------------------------------------------------------------------------------------------------------


_PERFECT = 1e-10  # the error that counts as none when alpha is computed
_DRAWS = 20  # samples drawn for one round before the fit gives up


@dataclass(eq=False, repr=False)
class AdaBoostClassifier(ClassifierMixin, AdaBoost):
    """AdaBoost of stumps, or of any classifier.

    Parameters
    ----------
    estimator : classifier or None
        Base learner; None is the exact stump.
    n_estimators : int
        Rounds at most.
    learning_rate : float > 0
        Factor of every alpha.
    stump : "gini" or "error"
        What the stump minimises: the Gini impurity, as scikit-learn's stumps do, or the weighted error
        itself.
    how : "reweight" or "resample"
        Whether the base learner gets the weights, or a sample drawn by them (for learners without weights); a
        sample whose learner
        is no better than chance is drawn again.
    n_jobs : int or None
        Threads; changes the time, never a bit.

    Attributes
    ----------
    classes_, n_classes_, estimators_, estimator_, members_ (other base learners), trees_ (stumps)
    feature_importances_ : of members that have them
    estimator_weights_ : alpha_t, half of scikit-learn's;  estimator_errors_ : err_t;  edges_ : 1/2 - err_t
    normalisers_ : Z_t
    margins_ : (rows,) y f(x) / sum |alpha| of the training rows (two classes)
    sample_weights_ : D after the last round

    Examples
    --------
    >>> import numpy as np
    >>> from assay.ensemble import AdaBoostClassifier
    >>> X, y = np.arange(10.0)[:, None], [1, 1, 1, -1, -1, -1, 1, 1, 1, -1]
    >>> model = AdaBoostClassifier(n_estimators=3, stump="error").fit(X, y)
    >>> model.estimator_weights_.round(4), float(model.score(X, y))
    (array([0.4236, 0.6496, 0.752 ]), 1.0)
    """

    of_trees, of_others = "trees.weighted-vote", "committee.boosting-classifier"
    constraints: ClassVar = {
        "n_estimators": Count(),
        "learning_rate": Positive(),
        "stump": Choice("gini", "error"),
        "how": Choice("reweight", "resample"),
    }
    card = Card(
        name="AdaBoost classifier",
        task="classify",
        ensemble="serial",
        model=OfAnySize("weighted votes of stumps, as many as the rows ask for"),
        strategy="exponential loss",
        algorithm="stagewise re-weighting with exact stumps on columns sorted once",
        guarantee=("adaboost.product", "boosting.margin-duality", "margin.boosting", "vc"),
    )

    estimator: Any = None
    _: KW_ONLY
    n_estimators: int = 50
    learning_rate: float = 1.0
    stump: str = "gini"
    how: str = "reweight"
    random_state: Any = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "AdaBoostClassifier":
        """Fit to rows X (for another base learner also sparse ones, which stay so) and labels y."""
        check(self)
        self._check_member()
        if self.how == "reweight" and not has_fit_parameter(self._base(), "sample_weight"):
            raise refuse(
                self,
                f"{type(self.estimator).__name__} doesn't support sample_weight, by which every round tells the member "
                'which rows matter; use how="resample".',
            )
        data = self._read(X, y, sample_weight)
        n = data.X.shape[0]
        weight = np.full(n, 1.0 / n) if data.weight is None else data.weight / data.weight.sum()
        with FitLog(self, self.n_estimators, *data.shown) as log:
            if len(self.classes_) == 1:
                self._keep([one_leaf(np.ones(1))], [(1.0, 0.0, 1.0)], weight, weight, np.ones(n), [None])
                log.step(0.0, 0.0)
            else:
                self._rounds(data.X, data.y, weight, log)
        return self

    def _base(self) -> Any:
        return DecisionTreeClassifier(max_depth=1) if self.estimator is None else self.estimator

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Any:
        if self.estimator is not None:
            return any_given(self, X, y, sample_weight, nd=True, finite=not self._reads_gaps())
        return read_labelled(self, X, y, sample_weight, one_class=True)

    def _rounds(self, X: Any, y: np.ndarray, weight: np.ndarray, log: FitLog) -> None:
        from assay.tree.growth._stump_loops import stretch

        K, rng, first = len(self.classes_), check_random_state(self.random_state), weight
        columns = sort_columns(X, self.n_jobs) if self.estimator is None else None
        members: list[Any] = []
        rounds: list[tuple[float, float, float]] = []  # alpha, error, normaliser
        seeds: list[Any] = []
        score, stretched = np.zeros(len(y)), np.empty(len(y))  # sum of alpha s, the margin before scaling
        for _ in range(self.n_estimators):
            try:
                seeds.append(int(rng.randint(2**31 - 1)))
                member, right, error = self._member(X, y, weight, columns, K, rng, seeds[-1])
            except KeyboardInterrupt:
                if not members:
                    raise
                log.stopped = True
                break
            if member is None or (error >= 1 - 1 / K and (members or K > 2)):
                break
            usable = min(max(error, _PERFECT), 1 - _PERFECT)
            alpha = float(self.learning_rate * 0.5 * (np.log((1 - usable) / usable) + np.log(K - 1)))
            members.append(member)
            with np.errstate(over="ignore"):
                rounds.append((alpha, error, float(stretch(right, alpha, weight, score, stretched))))
            grown = bool(np.isfinite(rounds[-1][2])) and (error > _PERFECT or bool(right[first > 0].all()))
            if not grown:
                self._warn_of_overflow(len(members))
                break
            weight = stretched / rounds[-1][2]
            product = float(np.prod([round_[2] for round_ in rounds]))
            if log.step(product, error) or error <= _PERFECT or error >= 1 - 1 / K:
                break
        if not members:
            raise refuse(
                self,
                "the base learner is worse than random on these rows (its error is that of a guess or above); there is "
                "nothing to boost.",
            )
        self._keep(members, rounds, weight, first, score, seeds)

    def _warn_of_overflow(self, rounds: int) -> None:
        warnings.warn(
            f"{type(self).__name__}: Sample weights have reached infinite values relative to each other in round "
            f"{rounds}: rounding has removed rows from the sum, and the fit ends. Lower learning_rate.",
            stacklevel=4,
        )

    def _keep(self, members: list[Any], rounds: list, weight, first, score: np.ndarray, seeds: list[Any]) -> None:
        """Keep the members, and what their rounds were like."""
        self.drop_nodes()
        stumps = isinstance(members[0], Nodes)
        self.members_ = [] if stumps else members
        if stumps:
            self.keep_nodes(joined(members))
        self.seeds_ = seeds[: len(members)]
        self.estimator_weights_, self.estimator_errors_, self.normalisers_ = (np.array(item) for item in zip(*rounds))
        self.edges_ = 0.5 - self.estimator_errors_
        self.sample_weights_, self.first_weights_ = weight, first
        total = np.abs(self.estimator_weights_).sum()
        self.margins_ = score / total if total > 0 else score

    def _member(self, X, y, weight, columns, K, rng, seed: int) -> tuple[Any, np.ndarray, float]:
        """Return the learner of the next round, which rows it gets right, and its weighted error."""
        if columns is not None and self.how == "reweight":
            stump = best_stump(X, columns, y, weight, K, self.stump, self.n_jobs)
            return stump.nodes, *_judged(stump, y, weight)
        for _ in range(_DRAWS):
            if self.how == "reweight":
                member = seed_parts(clone(self.estimator), seed).fit(X, self.classes_[y], sample_weight=weight)
            else:
                drawn = rng.choice(len(y), len(y), p=weight)
                if len(np.unique(y[drawn])) < 2:
                    continue
                member = self._resampled(X, y, drawn, K, seed)
            right = self._votes(member, X) == y
            error = float(weight[~right].sum())
            if self.how == "reweight" or error < 1 - 1 / K:
                return member, right, error
            seed = int(rng.randint(2**31 - 1))
        return None, np.empty(0, dtype=bool), 1.0

    def _resampled(self, X: Any, y: np.ndarray, drawn: np.ndarray, K: int, seed: int) -> Any:
        if self.estimator is not None:
            return seed_parts(clone(self.estimator), seed).fit(X[drawn], self.classes_[y[drawn]])
        part = X[drawn]
        columns, ones = sort_columns(part, self.n_jobs), np.ones(len(drawn))
        return best_stump(part, columns, y[drawn], ones, K, self.stump, self.n_jobs).nodes

    def _votes(self, member: Any, X: Any) -> np.ndarray:
        """Return the class position that a member predicts for each row."""
        if isinstance(member, Nodes):
            return member.value[leaves(member, X, self.n_jobs)[:, 0]].argmax(axis=1)
        return np.searchsorted(self.classes_, member.predict(X))

    def _all_votes(self, X: Any) -> Iterator[np.ndarray]:
        X = self._rows(X)
        if not self.has_nodes:
            for member in self.members_:
                yield self._votes(member, X)
            return
        nodes = self.nodes_.check(self.n_features_in_)
        choice_of = nodes.value.argmax(axis=1)
        reached = leaves(nodes, X, self.n_jobs)
        for t in range(reached.shape[1]):
            yield choice_of[reached[:, t]]

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        check_is_fitted(self)
        return len(self.classes_)

    @property
    def estimators_(self) -> list[Any]:
        """The members: those of another base learner, or the stumps as trees."""
        check_is_fitted(self)
        if not self.has_nodes:
            return self.members_
        nodes, seeds = self.nodes_, getattr(self, "seeds_", [None] * len(self.tree_root_))
        stumps = [DecisionTreeClassifier(max_depth=1, random_state=seed, n_jobs=self.n_jobs) for seed in seeds]
        return [stump.restored(tree_at(nodes, t), self, self.n_features_in_) for t, stump in enumerate(stumps)]

    # What it says
    # ----------------------------------------------------------------------------------------

    def _staged_shares(self, X: Any) -> Iterator[tuple[np.ndarray, float]]:
        """Yield the summed alphas of the first 1, 2, ... members that vote for each class (rows, classes), and the sum
        of their sizes; the array is the same each time."""
        check_is_fitted(self)
        total, size = None, 0.0
        for alpha, votes in zip(self.estimator_weights_.tolist(), self._all_votes(X)):
            own = alpha * one_hot(votes, len(self.classes_))
            total = own if total is None else np.add(total, own, out=total)
            size += abs(alpha)
            yield total, size

    def _shares(self, X: Any) -> np.ndarray:
        """Return the summed alphas of the members that vote for each class, (rows, classes)."""
        *_, (total, _) = self._staged_shares(X)
        return total

    def _decision(self, shares: np.ndarray, size: float) -> np.ndarray:
        K = shares.shape[1]
        size = size if size > 0 else 1.0
        if K == 2:
            return 2 * (shares[:, 1] - shares[:, 0]) / size
        return (K * (shares / size) - 1) / (K - 1) if K > 1 else np.zeros(shares.shape)

    def _probabilities(self, shares: np.ndarray, size: float) -> np.ndarray:
        K = shares.shape[1]
        return softmax(K * shares / ((size if size > 0 else 1.0) * max(1, K - 1) ** 2), axis=1)

    def _labels(self, shares: np.ndarray) -> np.ndarray:
        if shares.shape[1] == 2:
            return self.classes_[(shares[:, 1] > shares[:, 0]).astype(int)]
        return self.classes_[shares.argmax(axis=1)]

    @property
    def _size(self) -> float:
        return sum(abs(alpha) for alpha in self.estimator_weights_.tolist())

    @property
    def largest_decision(self) -> float:
        """What `decision_function` of two classes is where all members agree."""
        return 2.0

    def decision_function(self, X: Any) -> np.ndarray:
        """Return d(x), 2 f(x) / W in [-2, 2] for two classes, or a number in [-1 / (K - 1), 1] for each of K."""
        return self._decision(self._shares(X), self._size)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the softmax of the decisions on scikit-learn's scale, by which they depend on shares of the vote, not
        on the number of rounds; they order rows, and are not calibrated."""
        return self._probabilities(self._shares(X), self._size)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest weight of votes."""
        return self._labels(self._shares(X))

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the decisions of the first 1, 2, ... members."""
        yield from (self._decision(*stage) for stage in self._staged_shares(X))

    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the probabilities of the first 1, 2, ... members."""
        yield from (self._probabilities(*stage) for stage in self._staged_shares(X))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predictions of the first 1, 2, ... members."""
        yield from (self._labels(shares) for shares, _ in self._staged_shares(X))

    # Certificate
    # ----------------------------------------------------------------------------------------

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the votes for each class."""
        yield Scores(self._bounded)

    def _bounded(self, block: Block) -> tuple[np.ndarray, float]:
        slack = 2.0**-51 * (len(self.estimator_weights_) + 2) * float(np.abs(self.estimator_weights_).sum())
        return self._shares(block.X), slack

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the bound prod Z_t of the training error."""
        if self._from_file:
            yield NotApplicable("adaboost.product", FIT_NOT_KEPT)
            yield NotApplicable("boosting.margin-duality", FIT_NOT_KEPT)
            return
        if len(self.classes_) > 2:
            yield NotApplicable(
                "adaboost.product",
                Message("why.samme"),
            )
        elif rows.has_weight:
            yield NotApplicable("adaboost.product", Message("why.weights.alike"))
        else:
            yield Claim(
                "adaboost.product",
                float(np.prod(self.normalisers_)) * (1 + 1e-9),
                params={"rounds": len(self.estimator_weights_)},
            )
        yield from margin_facts(self, rows, 1.0, self._largest_edge(rows), self.sample_weights_)

    def _largest_edge(self, rows: Rows) -> float:
        """Return the largest weighted share of rows right minus wrong of any stump, under the last weights."""
        if len(self.classes_) > 2 or rows.n_rows != len(self.sample_weights_):
            return 1.0
        X = np.concatenate([block.X for block in rows.blocks()])
        y = np.concatenate([np.asarray(block.y) for block in rows.blocks()])
        weight = self.sample_weights_ / self.sample_weights_.sum()
        stump = best_stump(X, sort_columns(X, self.n_jobs), y, weight, 2, "error", self.n_jobs)
        return 1.0 - 2.0 * _judged(stump, y, weight)[1]

    def space(self, rows: Rows) -> Any:
        """Return the class of votes of as many stumps; sizes share delta, since the data may end the rounds."""
        return vote_space(self)

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield the bound of the error from the margins."""
        yield from margin_statement(self, rows)

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        if len(self.classes_) == 1:
            raise refuse(self, "the rows are of one class, so that there is nothing to certify.")
        if not self.has_nodes:
            raise refuse(
                self,
                f"certificates are about votes of stumps; {type(self.estimator).__name__} is not re-run "
                "by the checker. Use estimator=None.",
            )
        return known_rows(self, X, y, sample_weight)


def _judged(stump: Stump, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Return which rows a stump gets right, and the weight of the others."""
    from assay.tree.growth._stump_loops import mark_right

    classes, right = stump.nodes.value.argmax(axis=1), np.empty(len(y), dtype=bool)
    return right, mark_right(stump.left, y, classes[min(1, len(classes) - 1)], classes[-1], weight, right)

"""AdaBoost: discrete, by re-weighting or re-sampling, with SAMME's weights for more than two classes.

    D_1 = 1/n;   err_t = sum_i D_t(i) [h_t(x_i) != y_i];   alpha_t = 1/2 (ln((1 - err_t) / err_t) + ln(K - 1))
    D_{t+1}(i) = D_t(i) exp(-alpha_t s_ti) / Z_t,   s_ti = 1 if h_t(x_i) = y_i else -1
    F(x) = sum_t alpha_t [h_t(x) = k]  for each class k; with two classes  f = sum_t alpha_t h_t,  h_t in {-1,
    1}

Training error <= mean exp(-y f) = prod Z_t, and Z_t = 2 sqrt(err_t (1 - err_t)) for two classes (Freund & Schapire
1997). A round with err_t >= 1 - 1/K ends the fit (or is drawn again, when re-sampling); err_t = 0 ends it with that
learner.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.ensemble._boost_claims import margin_facts, margin_statement, vote_space
from assay.ensemble._members import OfMembers
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Scores
from assay.guarantees.ledger import FIT_NOT_KEPT, Statement
from assay.params import Choice, Count, Positive, check, refuse
from assay.scan import Rows
from assay.tree import DecisionTreeClassifier
from assay.tree._decision_tree import known_rows
from assay.tree._nodes import Nodes, TreeModel, joined, tree_at
from assay.tree._predict import leaves
from assay.tree._reading import read_columns, read_labelled
from assay.tree._spaces import OfAnySize
from assay.tree.growth._stumps import Stump, best_stump, sort_columns

_PERFECT = 1e-10  # the error that counts as none when alpha is computed
_DRAWS = 20  # samples drawn for one round before the fit gives up


@dataclass(eq=False, repr=False)
class AdaBoostClassifier(TreeModel, ClassifierMixin, OfMembers):
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
    classes_, estimators_, members_ (other base learners), trees_ (stumps)
    estimator_weights_ : alpha_t;  estimator_errors_ : err_t;  edges_ : 1/2 - err_t;  normalisers_ : Z_t
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
        zh="自适应提升",
        mission=tuple(f"ENS-{i:02d}" for i in range(6, 26)),
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
        """Fit to rows X and labels y."""
        check(self)
        if (
            self.estimator is not None
            and self.how == "reweight"
            and not has_fit_parameter(self.estimator, "sample_weight")
        ):
            raise refuse(self, f'{type(self.estimator).__name__} takes no sample weights; use how="resample".')
        data = read_labelled(self, X, y, sample_weight)
        n = len(data.y)
        weight = np.full(n, 1.0 / n) if data.weight is None else data.weight / data.weight.sum()
        with FitLog(self, self.n_estimators, *data.shown) as log:
            self._rounds(data.X, data.y, weight, log)
        return self

    def _rounds(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray, log: FitLog) -> None:
        from assay.tree.growth._stump_loops import stretch

        K, rng = len(self.classes_), check_random_state(self.random_state)
        columns = sort_columns(X, self.n_jobs) if self.estimator is None else None
        members: list[Any] = []
        alphas: list[float] = []
        errors: list[float] = []
        normalisers: list[float] = []
        first = weight
        score, stretched = np.zeros(len(y)), np.empty(len(y))  # sum of alpha s, the margin before scaling
        for _ in range(self.n_estimators):
            member, right, error = self._member(X, y, weight, columns, K, rng)
            if member is None or (error >= 1 - 1 / K and members):
                break
            usable = min(max(error, _PERFECT), 1 - _PERFECT)
            alpha = self.learning_rate * 0.5 * (np.log((1 - usable) / usable) + np.log(K - 1))
            members.append(member)
            alphas.append(alpha)
            errors.append(error)
            normalisers.append(stretch(right, alpha, weight, score, stretched))
            weight = stretched / normalisers[-1]
            if log.step(float(np.prod(normalisers)), error) or error <= _PERFECT or error >= 1 - 1 / K:
                break
        if not members:
            raise refuse(self, "no base learner does better than chance on these rows; there is nothing to boost.")
        self.drop_nodes()
        self.members_ = [] if self.estimator is None else members
        if self.estimator is None:
            self.keep_nodes(joined(members))
        self.estimator_weights_, self.estimator_errors_ = np.array(alphas), np.array(errors)
        self.edges_, self.normalisers_ = 0.5 - self.estimator_errors_, np.array(normalisers)
        self.sample_weights_, self.first_weights_ = weight, first
        total = np.abs(self.estimator_weights_).sum()
        self.margins_ = score / total if total > 0 else score

    def _member(self, X, y, weight, columns, K, rng) -> tuple[Any, np.ndarray, float]:
        """Return the learner of the next round, which rows it gets right, and its weighted error."""
        if columns is not None and self.how == "reweight":
            stump = best_stump(X, columns, y, weight, K, self.stump, self.n_jobs)
            return stump.nodes, *_judged(stump, y, weight)
        for _ in range(_DRAWS):
            if self.how == "reweight":
                member = _seeded(self.estimator, rng).fit(X, self.classes_[y], sample_weight=weight)
            else:
                drawn = rng.choice(len(y), len(y), p=weight)
                if len(np.unique(y[drawn])) < 2:
                    continue
                member = self._resampled(X, y, drawn, K, rng)
            right = self._votes(member, X) == y
            error = float(weight[~right].sum())
            if self.how == "reweight" or error < 1 - 1 / K:
                return member, right, error
        return None, np.empty(0, dtype=bool), 1.0

    def _resampled(self, X: np.ndarray, y: np.ndarray, drawn: np.ndarray, K: int, rng: Any) -> Any:
        if self.estimator is not None:
            return _seeded(self.estimator, rng).fit(X[drawn], self.classes_[y[drawn]])
        part = X[drawn]
        columns, one = sort_columns(part, self.n_jobs), np.ones(len(drawn))
        return best_stump(part, columns, y[drawn], one, K, self.stump, self.n_jobs).nodes

    def _votes(self, member: Any, X: np.ndarray) -> np.ndarray:
        """Return the class position that a member predicts for each row."""
        if isinstance(member, Nodes):
            return member.value[leaves(member, X, self.n_jobs)[:, 0]].argmax(axis=1)
        return np.searchsorted(self.classes_, member.predict(X))

    def _all_votes(self, X: Any) -> Iterator[np.ndarray]:
        check_is_fitted(self)
        X = read_columns(self, X).X
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
    def estimators_(self) -> list[Any]:
        """The members: those of another base learner, or the stumps as trees."""
        check_is_fitted(self)
        if not self.has_nodes:
            return self.members_
        stumps = [tree_at(self.nodes_, t) for t in range(len(self.tree_root_))]
        return [DecisionTreeClassifier(max_depth=1).restored(stump, self, self.n_features_in_) for stump in stumps]

    def _shares(self, X: Any) -> np.ndarray:
        """Return the summed alphas of the members that vote for each class, (rows, classes)."""
        check_is_fitted(self)
        total: Any = 0.0
        for alpha, votes in zip(self.estimator_weights_, self._all_votes(X)):
            total = total + alpha * np.eye(len(self.classes_))[votes]
        return total

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) = sum alpha_t h_t(x) with h_t = +-1 (two classes), or the votes of each class."""
        shares = self._shares(X)
        return shares[:, 1] - shares[:, 0] if shares.shape[1] == 2 else shares

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return sigma(2 f), the probability for which f minimises the expected exponential loss; softmax for
        more classes."""
        from scipy.special import softmax

        shares = self._shares(X)
        return softmax(2 * shares / max(1, shares.shape[1] - 1), axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest weight of votes."""
        shares = self._shares(X)
        if shares.shape[1] == 2:
            return self.classes_[(shares[:, 1] > shares[:, 0]).astype(int)]
        return self.classes_[shares.argmax(axis=1)]

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the predictions of the first 1, 2, ... members."""
        check_is_fitted(self)
        total: Any = 0.0
        for alpha, votes in zip(self.estimator_weights_, self._all_votes(X)):
            total = total + alpha * np.eye(len(self.classes_))[votes]
            yield self.classes_[
                (total[:, 1] > total[:, 0]).astype(int) if total.shape[1] == 2 else total.argmax(axis=1)
            ]

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the votes for each class."""
        yield Scores(self._bounded)

    def _bounded(self, block: Block) -> tuple[np.ndarray, float]:
        slack = 2.0**-51 * (len(self.estimator_weights_) + 2) * float(np.abs(self.estimator_weights_).sum())
        return self._shares(block.X), slack

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the bound prod Z_t of the training error."""
        if not hasattr(self, "normalisers_"):
            yield NotApplicable("D24/1", FIT_NOT_KEPT)
            yield NotApplicable("D25/1", FIT_NOT_KEPT)
            return
        if len(self.classes_) > 2:
            yield NotApplicable(
                "D24/1",
                "With more than two classes SAMME's exponential loss does not bound the training error.",
            )
        elif rows.has_weight:
            yield NotApplicable("D24/1", "Row weights: the bound is about rows that count alike.")
        else:
            yield Claim(
                "D24/1",
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


def _seeded(estimator: Any, rng: Any) -> Any:
    member = clone(estimator)
    if "random_state" in member.get_params():
        member.set_params(random_state=rng.randint(2**31 - 1))
    return member

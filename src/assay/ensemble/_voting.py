"""Committees of any learners: votes with or without the right to reject a row, and weighted means.

    plurality   H(x) = the class with the largest  s_k(x) = sum_t w_t h_t^k(x)
    majority    the same if  s_k(x) > share * sum_t w_t,  else the row is rejected
    mean        H(x) = sum_t w_t h_t(x) / sum_t w_t

h_t^k is 1 for the class that member t decides for ("hard") or its probability ("soft"). With the labels -1 and +1 a
vote is the sign of the members' sum. Weights are given, equal, or learnt from rows that no member was fitted to. A
rejected row is visible: `predict` returns `reject_label`, `score` counts it as wrong, and the certificate bounds how
often the rows that are not rejected are wrong: at the share that was fixed in advance, or (`scores=True`) for every
share that could be asked for at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import check_random_state
from sklearn.utils._metadata_requests import _raise_for_params
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples, check_is_fitted

from assay.card import Card
from assay.claims.claim import NotApplicable
from assay.data.blocks import Block
from assay.ensemble._combined import (
    Output,
    labelled,
    mean_of,
    probability_link,
    raw_link,
    reject_label,
    vote_link,
    votes_of,
)
from assay.ensemble._members import one_hot, routed_fits
from assay.ensemble._named_members import WeightedEnsemble, drawn_ties
from assay.fitlog import FitLog
from assay.guarantees.evidence import Gathered, Scores, labels
from assay.guarantees.ledger import OUTWARD, CertifyOptions, Statement, Vacuous, claim
from assay.linear_model import LinearRegression, LogisticRegression, Ridge
from assay.messages import Message
from assay.params import Choice, Number, check, refuse
from assay.scan import Rows, thread_map
from assay.theory import holdout
from assay.theory.spaces import Unbounded
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor


def _soft(model: Any) -> bool:
    if model.voting != "soft":
        raise AttributeError(
            f"predict_proba is not available when voting={model.voting!r}; vote_shares has the shares of hard votes"
        )
    return True


@dataclass(eq=False, repr=False)
class VotingClassifier(ClassifierMixin, TransformerMixin, WeightedEnsemble):
    """Votes of classifiers of any kind, with or without the right to reject a row.

    Parameters
    ----------
    estimators : list of (name, classifier), or None
        Members; "drop" leaves one out. None is a logistic regression and a tree.
    voting : "hard" or "soft"
        One vote each, or probabilities.
    weights : None, numbers, "learn" or "auto"
        Equal, given (>= 0, divided by their sum), of least squared error on rows that the members did not see, or
        whichever of equal and learnt weights those rows favour: members that differ little are best weighted equally,
        and many members on few rows overfit their weights.
    rule : "plurality" or "majority"
        The most votes, ties drawn by `random_state`, the same row the same way; or more than `share` of all votes, else
        the row is rejected.
    share : float in [0, 1)
        Share of the votes that a majority must exceed.
    reject_label : label, or None
        What `predict` returns for a rejected row; None is "reject" for labels of text, and for numbers -1, or 0 if
        that is a class, or one less than the smallest.
    holdout, cv : share of the rows, or None and folds
        Rows that weights are learnt from; with `holdout` members are fitted to the others alone.
    flatten_transform : bool
        Whether `transform` of soft votes returns (rows, members times classes).
    n_jobs : int or None
        Threads; changes the time, never a bit.
    verbose : bool
        Whether the time of each member is printed.

    Ctrl-C ends the fit and keeps the members that are fitted, with their weights; `kept_` has their positions.

    Attributes
    ----------
    classes_, estimators_ (fitted to positions in `classes_`), named_estimators_, weights_
    member_kinds_ : dict
        The class of each member by name.
    homogeneous_ : bool
        Whether all members are of one class.
    weight_gap_, held_ : how far learnt weights can be from the best ones, and the rows that they were learnt from

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.ensemble import VotingClassifier
    >>> from assay.linear_model import LogisticRegression
    >>> from assay.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [("linear", LogisticRegression()), ("tree", DecisionTreeClassifier(random_state=0))]
    >>> model = VotingClassifier(members, rule="majority", reject_label=-1).fit(X, y)
    >>> round(model.coverage(X), 2), model.score(X, y) <= model.coverage(X)
    (0.97, True)
    """

    family = "votes.classifier"
    own_arrays: ClassVar = ("tie_seed_",)
    constraints: ClassVar = {
        "voting": Choice("hard", "soft"),
        "rule": Choice("plurality", "majority"),
        "share": Number(0.0, 1.0, open_high=True),
        "flatten_transform": Choice(True, False),
    }
    card = Card(
        name="Committee of classifiers",
        task="classify",
        ensemble="parallel",
        model=Unbounded("votes of learners of any class"),
        strategy="that of the members; voting",
        algorithm="members on threads; weights by a quadratic programme over the simplex",
        guarantee=("weights.simplex", "selective.fixed", "selective.risk"),
        role="vote",
        begin=lambda rows: {"voting": "soft"},
    )

    _: KW_ONLY
    voting: str = "hard"
    rule: str = "plurality"
    share: float = 0.5
    reject_label: Any = None
    flatten_transform: bool = True
    vote_weights_: np.ndarray = field(init=False)

    def _default(self) -> list[tuple[str, Any]]:
        return [("linear", LogisticRegression()), ("tree", DecisionTreeClassifier(random_state=0))]

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> "VotingClassifier":
        """Fit the members side by side to rows X and labels y; weights go to the members, and with scikit-learn's
        routing whatever they ask for."""
        _raise_for_params(params, self, "fit")
        check(self)
        if type_of_target(y).startswith(("multilabel", "multiclass-multioutput")):
            raise NotImplementedError("VotingClassifier: multilabel and multi-output targets are not supported.")
        X = self._rows(X, reset=True)
        codes, weight = self._targets(X, y, sample_weight)
        more = routed_fits(self, [name for name, _ in self._named()], weight, params)
        self.tie_seed_ = np.int64(check_random_state(self.random_state).randint(2**31 - 1))
        with FitLog(self, len(self._named()), X, y) as log:
            self._fit_members(X, codes, more, log)
            log.step(self._training_error(X, codes), 0.0)
        self._check_label()
        return self

    def _error(self, X: Any, y: np.ndarray) -> float:
        return float(np.mean(self._positions(X) != y))

    @property
    def needed_(self) -> np.ndarray:
        """The share of the votes that a class must exceed, or -1."""
        return np.array(float(self.share) if self.rule == "majority" else -1.0)

    @property
    def le_(self) -> LabelEncoder:
        """scikit-learn's coding of the labels, which the members are fitted to."""
        check_is_fitted(self, "members_")
        return LabelEncoder().fit(self.classes_)

    @property
    def rejected_as_(self) -> Any:
        """The label of rejected rows."""
        return reject_label(self.classes_, self.reject_label)

    def _derive(self) -> None:
        super()._derive()
        self._check_label()

    def _check_label(self) -> None:
        if self.rule == "majority" and self.rejected_as_ in self.classes_.tolist():
            raise refuse(self, f"reject_label must be no class; got {self.rejected_as_!r}.")

    def _link_of(self, t: int) -> int:
        return (probability_link if self.voting == "soft" else vote_link)(self.members_[t])

    def _combine(self, outputs: Sequence[Output], block: Block) -> Output:
        return votes_of(outputs, self.vote_weights_, self.links_, float(self.needed_))

    # What it says
    # ----------------------------------------------------------------------------------------

    def _member_output(self, member: Any, X: Any) -> np.ndarray:
        if self.voting == "hard":
            return one_hot(np.asarray(member.predict(X), dtype=np.int64), len(self.classes_))
        if not hasattr(member, "predict_proba"):
            raise refuse(self, f'voting="soft" needs probabilities, which {type(member).__name__} does not have.')
        return np.asarray(member.predict_proba(X), dtype=np.float64)

    def _combined(self, X: Any) -> np.ndarray:
        """Return the weight of the votes for each class, (rows, classes)."""
        if self.voting == "soft":
            return super()._combined(X)
        total = np.zeros((len(self.classes_), _num_samples(X)))
        for weight, predicted in self._answers(lambda item: np.asarray(item.predict(X))):
            for k, of_class in enumerate(total):
                np.add(of_class, weight, out=of_class, where=predicted == k)
        return np.ascontiguousarray(total.T)

    def vote_shares(self, X: Any) -> np.ndarray:
        """Return the share of the total vote that each class has, (rows, classes)."""
        check_is_fitted(self, "members_")
        return self._combined(self._rows(X, reset=False)) / self.vote_weights_.sum()

    @available_if(_soft)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the weighted mean of the members' probabilities."""
        return self.vote_shares(X)

    def _positions(self, X: Any) -> np.ndarray:
        """Return the position of each row's class, -1 if it is rejected; X is as the members take it."""
        total = self._combined(X)
        best = drawn_ties(total, X, int(self.tie_seed_)) if self.voting == "hard" else total.argmax(axis=1)
        if self.rule == "plurality":
            return best
        return np.where(total.max(axis=1) > float(self.share) * self.vote_weights_.sum(), best, -1)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each row, and `reject_label` for rows without the majority that is asked for."""
        check_is_fitted(self, "members_")
        at = self._positions(self._rows(X, reset=False))
        if self.rule == "plurality":
            return self.classes_[at]
        return labelled(self.classes_, at, self.rejected_as_)

    def rejected(self, X: Any) -> np.ndarray:
        """Return which rows are rejected."""
        check_is_fitted(self, "members_")
        return self._positions(self._rows(X, reset=False)) < 0

    def coverage(self, X: Any) -> float:
        """Return the share of the rows that are decided."""
        return float(1 - self.rejected(X).mean())

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of right rows; a rejected row is not right."""
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    def member_votes(self, X: Any) -> np.ndarray:
        """Return the class position that each member votes for, (rows, members)."""
        check_is_fitted(self, "members_")
        X = self._rows(X, reset=False)
        return np.stack(thread_map(lambda item: np.asarray(item.predict(X)), self.members_, n_jobs=self.n_jobs), axis=1)

    def transform(self, X: Any) -> np.ndarray:
        """Return what the members say: class positions (rows, members), or probabilities (soft)."""
        check_is_fitted(self, "members_")
        if self.voting == "hard":
            return self.member_votes(X)
        outputs = self._outputs(self.members_, self._rows(X, reset=False)).transpose(1, 0, 2)
        return np.concatenate(list(outputs), axis=1) if self.flatten_transform else outputs

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each column of `transform`."""
        names = self._names()
        if self.voting == "soft" and not self.flatten_transform:
            raise refuse(
                self, "get_feature_names_out is not supported when `voting='soft'` and `flatten_transform=False`."
            )  # fmt: skip
        if self.voting == "soft":
            names = [f"{name}{k}" for name in names for k in range(len(self.classes_))]
        return np.array([f"votingclassifier_{name}" for name in names], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    # Certificate
    # ----------------------------------------------------------------------------------------

    def selective_risk(self, X: Any, y: Any, delta: float = 0.05) -> holdout.Curve:
        """Return error and coverage on rows that nothing was chosen on, for all shares that could be asked for, with a
        limit of the error on new data that holds for all of them at once."""
        shares = self.vote_shares(X)
        right = self.classes_[shares.argmax(axis=1)] == np.asarray(y)
        return holdout.curve(shares.max(axis=1), ~right, delta)

    def holdout_statements(self, rows: Rows | None, asked: CertifyOptions) -> Iterator[Statement | NotApplicable]:
        """Yield how often the rows that it decides are wrong: at the share that it asks for, and if the scores are
        asked about, for all shares at once."""
        if rows is not None and self.rule == "majority":
            yield partial(self._selective, rows, "selective.fixed", holdout.fixed_threshold)
            if asked.scores:
                yield partial(self._selective, rows, "selective.risk", holdout.at_threshold)

    def _selective(self, rows: Rows, name: str, limit_of: Any, delta: str) -> Any:
        values, radius = Gathered(self.evidence(rows)).the(Scores).values(rows)
        K, total = len(self.classes_), float(self.vote_weights_.sum())
        ranked, slack = np.sort(values[:, :K], axis=1) / total, 2 * radius / total + 2.0**-48
        right = (values[:, :K].argmax(axis=1) == labels(rows)) & (ranked[:, -1] - ranked[:, -2] > 2 * slack)
        result = limit_of(ranked[:, -1], ~right, float(self.share), float(delta), slack)
        if result is None or result.limit >= 1:
            return Vacuous(name, Message("why.few-decided"), delta)
        params: dict[str, Any] = {"rows": rows.n_rows, **result.params()}
        return claim(name, min(1.0, result.limit + OUTWARD), params, "holdout", delta)


@dataclass(eq=False, repr=False)
class VotingRegressor(RegressorMixin, TransformerMixin, WeightedEnsemble):
    """Weighted mean of regressors of any kind; parameters as `VotingClassifier`.

    Attributes: estimators_, named_estimators_, member_kinds_, homogeneous_, weights_.

    >>> from assay.ensemble import VotingRegressor
    >>> from assay.linear_model import LinearRegression
    >>> from assay.tree import DecisionTreeRegressor
    >>> members = [("line", LinearRegression()), ("tree", DecisionTreeRegressor())]
    >>> VotingRegressor(members).fit([[1.0], [2.0], [3.0]], [2.0, 4.0, 6.0]).predict([[4.0]]).round(6)
    array([7.])
    """

    family = "votes.regressor"
    card = Card(
        name="Committee of regressors",
        task="regress",
        ensemble="parallel",
        model=Unbounded("means of learners of any class"),
        strategy="that of the members; averaging",
        algorithm="members on threads; weights by a quadratic programme over the simplex",
        guarantee=("weights.simplex",),
        role="vote",
    )
    vote_weights_: np.ndarray = field(init=False)

    def _default(self) -> list[tuple[str, Any]]:
        return [("linear", LinearRegression()), ("ridge", Ridge()), ("tree", DecisionTreeRegressor(random_state=0))]

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> "VotingRegressor":
        """Fit the members side by side to rows X and numbers y; weights go to the members, and with scikit-learn's
        routing whatever they ask for."""
        _raise_for_params(params, self, "fit")
        check(self)
        X = self._rows(X, reset=True)
        target, weight = self._targets(X, y, sample_weight)
        more = routed_fits(self, [name for name, _ in self._named()], weight, params)
        with FitLog(self, len(self._named()), X, y) as log:
            self._fit_members(X, target, more, log)
            log.step(self._training_error(X, target), 0.0)
        return self

    def _error(self, X: Any, y: np.ndarray) -> float:
        return float(np.mean((self._combined(X)[:, 0] / self.vote_weights_.sum() - y) ** 2))

    def _link_of(self, t: int) -> int:
        return raw_link(self.members_[t])

    def _combine(self, outputs: Sequence[Output], block: Block) -> Output:
        return mean_of(outputs, self.vote_weights_)

    def _member_output(self, member: Any, X: Any) -> np.ndarray:
        return np.asarray(member.predict(X), dtype=np.float64).reshape(-1, 1)

    def predict(self, X: Any) -> np.ndarray:
        """Return the weighted mean of the members' numbers."""
        check_is_fitted(self, "members_")
        return self._combined(self._rows(X, reset=False))[:, 0] / self.vote_weights_.sum()

    def transform(self, X: Any) -> np.ndarray:
        """Return the members' numbers, (rows, members)."""
        check_is_fitted(self, "members_")
        return self._outputs(self.members_, self._rows(X, reset=False))[:, :, 0]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each column of `transform`."""
        return np.array([f"votingregressor_{name}" for name in self._names()], dtype=object)

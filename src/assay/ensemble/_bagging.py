"""Bagging and random subspaces: one base learner fitted to many samples of the rows, of the columns, or of both.

    member_t  the base learner fitted to m rows drawn from the n (with replacement: a bootstrap sample) and to d'
              of the d columns
    predict   mean of the members' probabilities ("soft"), plurality of their votes ("hard"), or mean of numbers

The rows that a member did not see are its out-of-bag rows; predictions by those members alone estimate the error on
new data, and a member may be pruned or stopped on them. Fitting costs T times one fit of the base learner plus T
samples. Every member has its own seed: the ensemble is the same for any number of threads. Breiman, Machine
Learning 24, 1996; Ho, IEEE PAMI 20, 1998.
"""

from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import sklearn.ensemble as scikit
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from assay.base import streams
from assay.card import Card
from assay.ensemble._bagging_base import Bagging, Fitted
from assay.ensemble._members import Given, asked_by, one_hot, routed_to
from assay.ensemble._votes import Mean, Vote
from assay.params import Choice, Number
from assay.tree import DecisionTreeClassifier, DecisionTreeRegressor
from assay.tree._claims import OfAnySize
from assay.tree._reading import Read, read_columns, read_labelled


@dataclass(eq=False, repr=False)
class BaggingClassifier(Vote, Bagging):
    """Votes of one kind of classifier fitted to many samples of the rows.

    Parameters
    ----------
    estimator : classifier or None
        Base learner of Assay or in scikit-learn's style; None is an unpruned `DecisionTreeClassifier`.
    n_estimators : int
    max_samples : None (as many as there are), int, or share > 0 of the rows or of the sum of their weights
        Rows drawn for each member, in proportion to their weights. Members that take weights are told how often each
        row was drawn, others get the rows drawn.
    max_features : None, int, share in (0, 1], "sqrt" or "log2"
        Columns drawn for each member.
    bootstrap, bootstrap_features : bool
        Whether rows (columns) are drawn with replacement.
    voting : "soft" or "hard"
        Mean of probabilities (of votes, for members without), or plurality of votes.
    oob_score : bool
        Whether the out-of-bag attributes are computed.
    out_of_bag : None, "prune" or "stop"
        What else out-of-bag rows are used for: each tree is pruned on its own ones wherever that does not raise its
        error, or each member with `partial_fit` is trained at most `max_epochs` epochs, until its error on them has
        not fallen for `patience` epochs, and is restored to its best epoch.
    flip_labels : share in [0, 1)
        Exactly this share of the rows, drawn for each member, is told to it with another label, drawn too.
    parameters : dict or None
        Parameters of the base learner that are drawn for each member: a list of values, or a distribution with `rvs`.
    warm_start : bool
        Whether a second `fit` keeps the members and adds those that are missing; the rows must be the same.
    n_jobs : int or None
        Threads; changes the time, never a bit.

    Attributes
    ----------
    classes_, estimators_ (fitted to positions in `classes_`), feature_importances_ (trees)
    estimator_params_ : the parameters drawn for each member
    estimators_samples_, estimators_features_ : rows (repeated as drawn) and columns of each member
    oob_score_, oob_decision_function_ (rows, classes), oob_votes_ (rows, classes) : out-of-bag accuracy, mean
        probabilities, numbers of votes; oob_errors_ (members,) : out-of-bag error after each member
    member_seconds_ : time of each member;  epoch_errors_ : out-of-bag errors of each member's epochs

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.ensemble import BaggingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> BaggingClassifier(n_estimators=30, oob_score=True, random_state=0).fit(X, y).oob_score_ > 0.9
    True
    """

    of_trees, of_others = "trees.vote", "committee.bagging-classifier"
    constraints: ClassVar = {"voting": Choice("soft", "hard"), "flip_labels": Number(0.0, 1.0, open_high=True)}
    card = Card(
        name="Bagging classifier",
        task="classify",
        ensemble="parallel",
        model=OfAnySize("votes of any number of members"),
        strategy="that of the base learner; averaging",
        algorithm="base learner on bootstrap samples, members on threads",
        guarantee=("pac-bayes.vote",),
        role="sample",
    )

    _: KW_ONLY
    voting: str = "soft"
    flip_labels: float = 0.0

    def _told(self, data: Any, seed: int) -> Any:
        if not self.flip_labels:
            return data
        rng, n = np.random.default_rng([int(seed), 2]), len(data.y)
        flipped = rng.permutation(n)[: round(float(self.flip_labels) * n)]
        y = data.y.copy()
        y[flipped] = (data.y[flipped] + rng.integers(1, len(self.classes_), len(flipped))) % len(self.classes_)
        if isinstance(data, Given):
            return data._replace(y=y)
        copied = copy(data)
        copied.y = y
        return copied

    def _base(self) -> Any:
        return DecisionTreeClassifier() if self.estimator is None else self.estimator

    def _read_trees(self, X: Any, y: Any, sample_weight: Any) -> Read:
        y = y if y is None or streams(X, y) else column_or_1d(y, warn=True)
        return read_labelled(self, X, y, sample_weight, one_class=True)

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        check_is_fitted(self)
        return len(self.classes_)

    def _join(self, trees: bool, made: list[Fitted]) -> None:
        super()._join(trees, made)
        if self.voting == "hard" and self.has_nodes:
            self.node_value_ = one_hot(self.node_value_.argmax(axis=1), len(self.classes_))

    def _member_output(self, member: Any, X: Any, **given: Any) -> np.ndarray:
        if self.voting == "soft" and hasattr(member, "predict_proba"):
            outputs = np.asarray(member.predict_proba(X, **given), dtype=np.float64)
            shares = np.zeros((len(outputs), len(self.classes_)))
            shares[:, member.classes_] = outputs
            return shares
        outputs = np.asarray(member.predict(X, **given))
        return one_hot(outputs.astype(np.int64), len(self.classes_))

    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """Return the class with the largest mean probability, or the most votes; the first of equals. `params` are
        metadata for the members."""
        given = routed_to(self, "predict", params, asked_by(self._base(), "predict"))
        shares = self._values(X, **given)
        return self.classes_[shares.argmax(axis=1)]

    def predict_proba(self, X: Any, **params: Any) -> np.ndarray:
        """Return the mean of the members' probabilities; of votes, for members without or with hard voting."""
        return self._values(X, **routed_to(self, "predict_proba", params, asked_by(self._base(), "predict_proba")))

    def predict_log_proba(self, X: Any, **params: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        callee = asked_by(self._base(), "predict_log_proba")
        given = routed_to(self, "predict_log_proba", params, callee)
        if given and callee == "predict_log_proba":
            return self._log_means(X, given)
        with np.errstate(divide="ignore"):
            return np.log(self._values(X, **given))

    def _log_means(self, X: Any, given: dict[str, Any]) -> np.ndarray:
        X, total = self._rows(X), None
        for member, columns in zip(self.members_, self.member_columns_):
            logarithms = np.full((X.shape[0], len(self.classes_)), -np.inf)
            logarithms[:, member.classes_] = member.predict_log_proba(self._part(X, None, columns), **given)
            total = logarithms if total is None else np.logaddexp(total, logarithms)
        return np.asarray(total) - np.log(len(self.members_))

    @available_if(lambda model: _all_have(model, "decision_function"))
    def decision_function(self, X: Any, **params: Any) -> np.ndarray:
        """Return the mean of the members' scores."""
        given = routed_to(self, "decision_function", params)
        X = self._rows(X)
        parts = zip(self.members_, self.member_columns_)
        return np.mean([item.decision_function(self._part(X, None, at), **given) for item, at in parts], axis=0)

    def _training_error(self, data: Any) -> float:
        total = sum(self._every_value(data.X))
        return float((np.asarray(total).argmax(axis=1) != data.y).mean())


def _all_have(model: Any, method: str) -> bool:
    """Tell whether the members, or before the fit the base learner, have a method; raise the reason if not."""
    for item in getattr(model, "members_", None) or [model._base()]:
        getattr(item, method)
    return True


class BaggingRegressor(Mean, Bagging):
    """Mean of one kind of regressor fitted to many samples of the rows; parameters as `BaggingClassifier`.

    Attributes: `oob_prediction_` (rows,), `oob_score_` (R^2), `oob_errors_` (mean squared error after each member);
    the others are those of `BaggingClassifier`.

    >>> from assay.ensemble import BaggingRegressor
    >>> BaggingRegressor(n_estimators=5, bootstrap=False).fit([[1.0], [2.0]], [3.0, 4.0]).predict([[1.0], [2.0]])
    array([3., 4.])
    """

    of_trees, of_others = "trees.mean", "committee.bagging-regressor"
    card = Card(
        name="Bagging regressor",
        task="regress",
        ensemble="parallel",
        model=OfAnySize("means of any number of members"),
        strategy="that of the base learner; averaging",
        algorithm="base learner on bootstrap samples, members on threads",
        guarantee=(),
        role="sample",
    )

    def _base(self) -> Any:
        return DecisionTreeRegressor() if self.estimator is None else self.estimator

    def _read_trees(self, X: Any, y: Any, sample_weight: Any) -> Read:
        return read_columns(self, X, y, sample_weight, reset=True)

    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """Return the mean of the members' predictions; `params` are metadata for the members."""
        values = self._values(X, **routed_to(self, "predict", params))
        return values[:, 0] if values.shape[1] == 1 else values

    def _member_output(self, member: Any, X: Any, **given: Any) -> np.ndarray:
        said = np.asarray(member.predict(X, **given), dtype=np.float64)
        return said[:, None] if said.ndim == 1 else said

    def _training_error(self, data: Any) -> float:
        mean = np.asarray(sum(self._every_value(data.X))) / self._n_members
        return float(((mean - data.y.reshape(mean.shape)) ** 2).mean())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = get_tags(self._base()).target_tags.multi_output
        return tags


# Tools that ask for scikit-learn's classes read ours by `estimators_`.
scikit.BaggingClassifier.register(BaggingClassifier)
scikit.BaggingRegressor.register(BaggingRegressor)


# Random subspaces -------------------------------------------------------------------------------------------------


class RandomSubspaceClassifier(BaggingClassifier):
    """Votes of one kind of classifier, each member fitted to all rows and to its own `max_features` columns.

    The parameters and attributes are those of `BaggingClassifier`.

    >>> from sklearn.datasets import load_iris
    >>> from assay.ensemble import RandomSubspaceClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RandomSubspaceClassifier(n_estimators=3, random_state=0).fit(X, y)
    >>> [len(columns) for columns in model.estimators_features_]
    [2, 2, 2]
    """

    card = Card(
        name="Random subspace classifier",
        task="classify",
        ensemble="parallel",
        model=OfAnySize("votes of any number of members"),
        strategy="that of the base learner; averaging",
        algorithm="base learner on random columns, members on threads",
        guarantee=(),
        role="sample",
    )

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_features: Any = 0.5,
        voting: str = "soft",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            estimator,
            n_estimators,
            max_features=max_features,
            bootstrap=False,
            voting=voting,
            random_state=random_state,
            n_jobs=n_jobs,
        )


class RandomSubspaceRegressor(BaggingRegressor):
    """Mean of one kind of regressor, each member fitted to all rows and to its own `max_features` columns.

    >>> from assay.ensemble import RandomSubspaceRegressor
    >>> model = RandomSubspaceRegressor(n_estimators=4, max_features=1.0).fit([[1.0, 0.0], [2.0, 1.0]], [3.0, 4.0])
    >>> model.predict([[1.0, 0.0]])
    array([3.])
    """

    card = Card(
        name="Random subspace regressor",
        task="regress",
        ensemble="parallel",
        model=OfAnySize("means of any number of members"),
        strategy="that of the base learner; averaging",
        algorithm="base learner on random columns, members on threads",
        guarantee=(),
        role="sample",
    )

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_features: Any = 0.5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            estimator,
            n_estimators,
            max_features=max_features,
            bootstrap=False,
            random_state=random_state,
            n_jobs=n_jobs,
        )

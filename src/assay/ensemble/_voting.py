"""What ensembles of equal members say about rows: the vote of classifiers, the mean of regressors."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from assay.claims.claim import NotApplicable
from assay.ensemble._out_of_bag import Curve, oob_score
from assay.ensemble._vote_claims import vote_statements
from assay.ensemble._votes import Strength, bounded_means, bounded_shares, strength_of
from assay.guarantees.evidence import Evidence, Predictions, Scores
from assay.guarantees.ledger import Statement
from assay.scan import Rows
from assay.tree._nodes import TreeModel
from assay.tree._predict import most_frequent, split_outputs
from assay.tree._reading import read_columns


class Members(TreeModel):
    """Members drawn on samples of the rows: what `Vote` and `Mean` ask of an ensemble."""

    figure = "importance"
    n_features_in_: int

    def bags(self) -> np.ndarray:
        """Return (members, rows): how often each training row was drawn for each member."""
        raise NotImplementedError

    def _values(self, X: Any) -> np.ndarray:
        """Return the mean of what the members say about rows X, (rows, outputs)."""
        raise NotImplementedError

    def _every_value(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Yield what each member says about coded rows X: class shares or votes, or numbers, (rows, outputs)."""
        raise NotImplementedError


class Vote(ClassifierMixin, Members):
    """Mixin: the class with the largest mean share, or the most votes."""

    classes_: np.ndarray

    def predict_proba(self, X: Any) -> Any:
        """Return the mean of the members' probabilities, with hard voting the shares of the votes; a list of them for
        several outputs."""
        values = self._values(X)
        return split_outputs(values, self.classes_)

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            values = np.log(self._values(X))
        return split_outputs(values, self.classes_)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest mean probability, or the most votes, the first of equals; (rows, outputs)
        for several outputs."""
        values = self._values(X)
        return most_frequent(values, self.classes_)

    def member_votes(self, X: Any) -> np.ndarray:
        """Return the class position that each member votes for, (rows, members)."""
        check_is_fitted(self)
        if self.has_nodes:
            self.nodes_.check(self.n_features_in_)
        X = read_columns(self, X).X
        return np.stack([values.argmax(axis=1) for values in self._every_value(X)], axis=1)

    def strength(self, X: Any, y: Any, *, out_of_bag: bool = False) -> Strength:
        """Return strength and mean correlation of the members on some rows (Breiman 2001, sections 2.2 and
        appendix II).

        Margin of row i: share of votes for its class minus the largest share of another class; s its mean.
        The bound correlation (1 - s^2) / s^2 on the error holds at the level of the distribution when s > 0.
        With `out_of_bag`, X are the training rows and each is judged by the members that did not see it.
        """
        said = self.bags().T == 0 if out_of_bag else None
        return strength_of(self.member_votes(X), np.searchsorted(self.classes_, y), len(self.classes_), said)

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield the bound of the error on new data by out-of-bag rows."""
        yield from vote_statements(self, rows)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the mean shares."""
        yield Scores(bounded_shares, (self.nodes_,))

    def _keep_out_of_bag(self, found: Curve, y: np.ndarray) -> None:
        self.oob_decision_function_, self.oob_votes_, self.oob_errors_ = found.values, found.votes, found.errors
        said = self.classes_[found.values[found.seen].argmax(axis=1)]
        self.oob_score_ = oob_score(self, accuracy_score, self.classes_[y[found.seen]], said)


class Mean(RegressorMixin, Members):
    """Mixin: the mean of the members' numbers."""

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean of the members' predictions; (rows, outputs) for several outputs."""
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the mean of the trees."""
        yield Predictions(bounded_means, (self.nodes_,))

    def _keep_out_of_bag(self, found: Curve, y: np.ndarray) -> None:
        self.oob_prediction_, self.oob_errors_ = found.values[:, 0], found.errors
        self.oob_score_ = oob_score(self, r2_score, y[found.seen], found.values[found.seen, 0])

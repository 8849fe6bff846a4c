"""What ensembles of equal members say about rows: the vote of classifiers, the mean of regressors."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from assay.claims.claim import NotApplicable
from assay.ensemble._out_of_bag import Curve
from assay.ensemble._vote_claims import vote_statements
from assay.ensemble._votes import Strength, bounded_means, bounded_shares, strength_of
from assay.guarantees.evidence import Evidence, Predictions, Scores
from assay.guarantees.ledger import Statement
from assay.scan import Rows
from assay.tree._nodes import TreeModel
from assay.tree._reading import read_columns


class Members(TreeModel):
    """Members drawn on samples of the rows: what `Vote` and `Mean` ask of an ensemble."""

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

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the mean of the members' probabilities; with hard voting the shares of the votes."""
        return self._values(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self._values(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest mean probability, or the most votes; the first of equals."""
        shares = self._values(X)
        return self.classes_[shares.argmax(axis=1)]

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
        hits = found.values[found.seen].argmax(axis=1) == y[found.seen]
        self.oob_score_ = float(hits.mean()) if found.seen.any() else float("nan")


class Mean(RegressorMixin, Members):
    """Mixin: the mean of the members' numbers."""

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean of the members' predictions."""
        return self._values(X)[:, 0]

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the mean of the trees."""
        yield Predictions(bounded_means, (self.nodes_,))

    def _keep_out_of_bag(self, found: Curve, y: np.ndarray) -> None:
        self.oob_prediction_, self.oob_errors_ = found.values[:, 0], found.errors
        error = ((found.values[found.seen, 0] - y[found.seen]) ** 2).sum()
        self.oob_score_ = float(1 - error / max(((y[found.seen] - y[found.seen].mean()) ** 2).sum(), 1e-300))

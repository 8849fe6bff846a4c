"""Classification by a Bayesian network: the class is a node, predicted from all others.

    predict(x) = argmax_c P(c, x),      P(c, x) = P(c | parents) prod_i P(x_i | parents of x_i, c among them or not)

Claims: the counts are those of the rows; no change of one edge lowers the criterion.
Method: search for edges between the columns, all children of the class; counting, EM for gaps.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import _check_y, check_consistent_length

from assay import scan
from assay.base import fit_log, label_classes, streams
from assay.bayes_net import _claims, _search
from assay.bayes_net._base import SEARCH, NetworkLearner, SearchParameters
from assay.bayes_net._gaps import Coded, counted_rows, log_known, raw, read_coded
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.data.columns import ColumnType
from assay.fitlog import FitLog
from assay.guarantees.evidence import Evidence, Scores
from assay.params import NameOr, Positive, check, refuse
from assay.scan import Rows
from assay.theory.spaces import Unbounded

CLASS = "class"
"""Name of the node of the class."""


@dataclass(eq=False, repr=False)
class BayesianNetworkClassifier(SearchParameters, ClassifierMixin, NetworkLearner):
    """A classifier whose classes and columns are the nodes of a Bayesian network.

    Columns of text, categories and booleans of a frame have states; columns of numbers are Gaussian given their
    parents, unless `nominal` says that their numbers are names. Missing entries, and states that were not seen in
    `fit`, are summed over; a column that lacks values in `fit` is the parent of no number.

    Parameters
    ----------
    structure : "augmented", "naive", "greedy" or a list of edges
        "naive": the class is the only parent of each column. "augmented": it is a parent of each, and edges between
        columns are searched for. "greedy": the best graph that is found over columns and class. Pairs (parent, child)
        name columns, or give their positions; the class is "class", or the position after the last column.
    criterion, equivalent_sample_size, max_parents, required, forbidden, tabu, restarts, max_iter, tol, hidden
        Of the search, and of EM: see `BayesianNetwork`.
    alpha : float > 0
        Rows added to each entry of a table.
    nominal : None, "all" or a list of columns
        Columns whose numbers are names.
    random_state, n_jobs
        Seed of the restarts; threads (they change the time, never a bit of the result).

    Attributes
    ----------
    classes_ : (n_classes,)
    network_ : Network
        The class is its last node.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from assay.bayes_net import BayesianNetworkClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> round(BayesianNetworkClassifier().fit(X, y).score(X, y), 2)
    0.98
    """

    family = "bayes_net.classifier"
    card = Card(
        name="Bayesian network classifier",
        task="classify",
        model=Unbounded("networks over the columns and the class"),
        strategy="score of the network of columns and class",
        algorithm="greedy changes of one edge with a tabu list; counting, EM",
        guarantee=(
            "network.counts",
            "network.local-optimum",
            "network.local-optimum-mixed",
            "network.regressions",
        ),
        input=("numbers", "nominal", "missing"),
    )

    constraints: ClassVar = {
        **SEARCH,
        "structure": NameOr(None, "augmented", "naive", "greedy"),
        "alpha": Positive(why="a value that was never seen with a class would rule the class out"),
    }

    structure: Any = "augmented"

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "BayesianNetworkClassifier":
        """Learn the network of rows X and labels y, each counted as often as `sample_weight` says."""
        check(self)
        y = self._labels(X, y)
        X, y, weight = counted_rows(self, X, y, sample_weight)
        known: Any = scan.rows(np.empty((len(y), 0)), y)
        self.classes_ = label_classes(self, known)
        codes = np.asarray(known.encoded(self.classes_).y, dtype=np.float64)
        data = read_coded(self, X, (self._class_type(), codes), weight)
        with fit_log(self, self.max_iter, X, y) as log:
            parents = self._structure(data, log)
            self._keep(self._estimate(data, parents))
            if data.gaps and not log.stopped:
                self._fill_gaps(data, log)
            if not log.history:
                log.step(0.0, 0.0, **(self._usable(self._arrays()) if log.watched else {}))
            self.n_iter_ = len(log.history)
        return self

    def _labels(self, X: Any, y: Any) -> np.ndarray:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        if streams(X, y):
            raise refuse(self, "rows must be an array or a frame in memory, with the target beside them.")
        y = _check_y(y, multi_output=False, y_numeric=False, estimator=self)
        check_consistent_length(X, y)
        return y

    def _class_type(self) -> ColumnType:
        return ColumnType(CLASS, "nominal", tuple(map(str, self.classes_.tolist())))

    def _node_types(self) -> tuple[ColumnType, ...]:
        return (*self.columns_, self._class_type())

    def _structure(self, data: Coded, log: FitLog) -> _search.Parents:
        names = [kind.name for kind in self._node_types()]
        if names.count(CLASS) > 1:
            raise refuse(self, f"a column is named {CLASS!r}, which is the name of the node of the class; rename it.")
        last = len(names) - 1
        if not isinstance(self.structure, str):
            return self._given(self.structure, names, data.sizes)
        if self.structure == "naive":
            return (*((last,),) * last, ())
        whole = self._complete(data)
        families = self._families(whole, self.criterion, self.equivalent_sample_size)
        return self._climb(whole, families, self._own_limits(data), log)[0]

    def _own_limits(self, data: Coded) -> _search.Limits:
        names = [kind.name for kind in self._node_types()]
        augmented, last = self.structure == "augmented", len(names) - 1
        required = [*self.required, *((last, j) for j in range(last) if augmented)]
        most = None if self.max_parents is None else self.max_parents + augmented
        return self._limits(data, names, required, self.forbidden, most)

    # Prediction ---------------------------------------------------------------------------------------------------

    def log_joint(self, X: Any) -> np.ndarray:
        """Return ln P(class, row), (rows, classes); of a row with gaps, of what is known of it."""
        return np.concatenate(scan.rows(self._raw(X), n_jobs=self.n_jobs).map(_log_joint, self))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return ln P(class, row); for two classes how much larger it is for the second."""
        logs = self.log_joint(X)
        return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return ln P(class | row)."""
        return log_softmax(self.log_joint(X), axis=1)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return P(class | row)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        best = self.log_joint(X).argmax(axis=1)
        return self.classes_[best]

    def sample(
        self, n_samples: int = 1, random_state: Any = None, *, frame: str | None = None
    ) -> tuple[Any, np.ndarray]:
        """Return rows drawn from the network, as in an array that was fitted (codes of a frame's states), and their
        classes; with `frame` ("pandas", "polars" or "pyarrow") rows are a frame, of the states' names."""
        rows, codes = self._drawn(n_samples, random_state, frame)
        return rows, self.classes_[codes[:, -1].astype(np.intp)]

    # Certificates ---------------------------------------------------------------------------------------------------

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        rows: Any = scan.rows(raw(self, X), self._labels(X, y), sample_weight, n_jobs=self.n_jobs)
        return rows.encoded(self.classes_)

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the scores of the classes."""
        yield Scores(_bounded, (self,), logistic=True)

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield that the counts are those of the rows, and that no change of an edge is better."""
        codes = _claims.coded_rows(self, rows)
        yield _claims.counts(self, rows, codes)
        yield from _claims.structure(self, rows, codes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _labelled(rows: np.ndarray, code: int) -> np.ndarray:
    return np.column_stack([rows, np.full(len(rows), float(code))])


def _log_joint(block: Block, model: BayesianNetworkClassifier) -> np.ndarray:
    rows = model._coded(block.X)
    return np.stack([log_known(model.network_, _labelled(rows, c)) for c in range(len(model.classes_))], axis=1)


def _bounded(block: Block, model: BayesianNetworkClassifier) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of the rows of a block and how far rounding can move them."""
    return _log_joint(block, model), _claims.rounding(model.network_, _labelled(model._coded(block.X), 0))

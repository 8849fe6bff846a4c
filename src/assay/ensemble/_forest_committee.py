"""A vote of few forests, each grown on its own share of the rows: accuracy of a forest, bound of a small vote.

    forest g  grown on m of the n rows, drawn without replacement
    predict   the class that most forests name; between equals the one with the larger mean share

The vote of G forests is wrong only where at least ceil(G/2) of them are. Each is judged on the n - m rows that it did
not see, where it errs about as rarely as one forest does on new data; a single tree of a forest errs far more often,
which is what bounds for a vote of its trees pay for. With three forests the bound is 3/2 of their mean error, plus
what few rows leave open; with one forest it would be a hold-out set. See `assay.theory.pac_bayes`.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner, label_classes
from assay.card import Card
from assay.claims.claim import NotApplicable
from assay.data.blocks import Block
from assay.ensemble._bootstrap import bag
from assay.ensemble._forest import RandomForestClassifier
from assay.ensemble._votes import chunks
from assay.fitlog import FitLog
from assay.guarantees.evidence import NOBODY, OPEN, Evidence, Votes
from assay.guarantees.holdout import Bags, out_of_bag_vote
from assay.guarantees.ledger import FIT_NOT_KEPT, Statement
from assay.messages import Message
from assay.params import Count, check, refuse
from assay.scan import Rows, rows
from assay.tree._claims import OfAnySize
from assay.tree._decision_tree import known_rows
from assay.tree._nodes import Nodes, TreeModel, joined, one_leaf
from assay.tree._predict import leaves
from assay.tree._reading import read_columns
from assay.tree.growth._growers import row_count


@dataclass(eq=False, repr=False)
class ForestCommitteeClassifier(TreeModel, ClassifierMixin, Learner):
    """A vote of forests on different shares of the rows, with a tight bound of its error from the training rows alone.

    Parameters
    ----------
    estimator : forest or bagging of trees for classes, or None
        What each member is; None is `RandomForestClassifier(60)`. Its `random_state` and `n_jobs` are set.
    n_forests : int
        Members; an odd number has no ties between two classes.
    max_samples : int, or share in (0, 1)
        Rows that each member is grown on; it is judged on the others.
    n_jobs : int or None
        Threads; changes the time, never a bit.

    Attributes
    ----------
    classes_, committee_ (trees,) : the forest of each tree;  seeds_ (forests,), bag_size_ : what its rows were drawn by

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from assay.ensemble import ForestCommitteeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ForestCommitteeClassifier(random_state=0).fit(X, y)
    >>> model.certify(X, y).find("pac-bayes.vote").value < 0.2
    True
    """

    family = "trees.committee"
    figure = "tree"
    constraints: ClassVar = {"n_forests": Count()}
    card = Card(
        name="Committee of forests",
        task="classify",
        ensemble="parallel",
        model=OfAnySize("votes of forests of trees of any size"),
        strategy="that of the forests; voting",
        algorithm="a forest on each of a few samples without replacement",
        guarantee=("pac-bayes.vote",),
    )

    estimator: Any = None
    _: KW_ONLY
    n_forests: int = 3
    max_samples: Any = 0.5
    random_state: Any = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any) -> "ForestCommitteeClassifier":
        """Fit to rows X and labels y."""
        check(self)
        base = RandomForestClassifier(60) if self.estimator is None else self.estimator
        if getattr(base, "family", None) != "trees.vote":
            raise refuse(self, f"estimator must be a forest, or bagging of assay's trees, for classes; got {base!r}.")
        data = read_columns(self, X, y, reset=True)
        known: Any = rows(data.X, data.y)
        self.classes_ = label_classes(self, known)
        n = len(data.y)
        size = min(row_count(self, "max_samples", n, 1), n)
        rng = check_random_state(self.random_state)
        self.seeds_, self.bag_size_, self.n_rows_ = rng.randint(2**31 - 1, size=self.n_forests), size, n
        with FitLog(self, self.n_forests, data.X, data.y) as log:
            parts = []
            for seed in self.seeds_.tolist():
                parts.append(self._forest(clone(base), seed, data.X, data.y))
                if log.step(0.0, 0.0):
                    break
        self.seeds_ = self.seeds_[: len(parts)]
        self.keep_nodes(joined(parts))
        self.committee_ = np.repeat(np.arange(len(parts)), [len(part.root) for part in parts])
        return self

    def _forest(self, forest: Any, seed: int, X: np.ndarray, y: np.ndarray) -> Nodes:
        """Return the trees of one forest, with a column of values for each class of all rows."""
        sample = bag(seed, len(y), self.bag_size_, replace=False)
        present = np.unique(y[sample])
        if len(present) < 2:
            return one_leaf((self.classes_ == present[0]).astype(np.float64))
        forest.set_params(random_state=seed, n_jobs=self.n_jobs).fit(X[sample], y[sample])
        nodes = forest.nodes_
        value = np.zeros((len(nodes.value), len(self.classes_)))
        value[:, np.searchsorted(self.classes_, forest.classes_)] = nodes.value
        return nodes._replace(value=value)

    def _named(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (rows, forests): the class each forest names, by how much its share leads, and (rows, classes) mean
        shares of all trees."""
        nodes = self.nodes_.check(self.n_features_in_)
        at = leaves(nodes, X, self.n_jobs)
        named, lead, mean = [], [], np.zeros((len(X), len(self.classes_)))
        forests = int(self.committee_.max()) + 1
        for g in range(forests):
            trees = np.flatnonzero(self.committee_ == g)
            share = np.add.reduce([nodes.value[at[:, t]] for t in trees]) / len(trees)
            two = np.partition(share, -2, axis=1)[:, -2:]
            named.append(share.argmax(axis=1))
            lead.append(two[:, 1] - two[:, 0])
            mean += share / forests
        return np.stack(named, axis=1), np.stack(lead, axis=1), mean

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the mean of the shares of votes and, with a small weight that breaks ties, of the mean shares."""
        check_is_fitted(self)
        named, _, mean = self._named(read_columns(self, X).X)
        votes = np.stack([(named == k).mean(axis=1) for k in range(len(self.classes_))], axis=1)
        weight = 0.5 / named.shape[1]
        return (1 - weight) * votes + weight * mean

    def predict(self, X: Any) -> np.ndarray:
        """Return the class that most forests name; between equals the one with the larger mean share."""
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the class that most forests name."""
        yield Votes(self._decided)

    def _decided(self, block: Block) -> np.ndarray:
        """Return the class with most votes; NOBODY for a tie, OPEN where forests that rounding leaves open decide."""
        named, certain = self._judged(block.X)
        votes = np.stack([(certain & (named == k)).sum(axis=1) for k in range(len(self.classes_))], axis=1)
        unsure, ranked = np.sum(~certain, axis=1), np.sort(votes, axis=1)
        lead = ranked[:, -1] - ranked[:, -2]
        return np.where(lead > unsure, votes.argmax(axis=1), np.where((lead == 0) & (unsure == 0), NOBODY, OPEN))

    def _judged(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what each forest names for each row, and whether rounding leaves no doubt about it."""
        leaf = self.node_value_[self.node_child_ < 0]
        whole = np.all((leaf == 0) | (leaf == 1))  # then shares are counts, exact
        slack = -1.0 if whole else 2.0**-49 * (len(self.committee_) + 8)
        named, lead, _ = self._named(X)
        return named, lead > slack

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield the bound of the error on new data by the rows that each forest did not see."""
        if self._from_file:
            yield NotApplicable("pac-bayes.vote", FIT_NOT_KEPT)
            return
        if self.bag_size_ >= self.n_rows_ or rows.n_rows != self.n_rows_:
            yield NotApplicable("pac-bayes.vote", Message("why.forest-bags"))
            return
        G = len(self.seeds_)
        bags = Bags(self.seeds_, self.bag_size_, False)
        yield out_of_bag_vote(self._losses(rows, bags), bags, rows.n_rows, (G + 1) // 2 / G)

    def _losses(self, rows: Rows, bags: Bags) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        out = np.ones((rows.n_rows, len(bags.seeds)), dtype=bool)
        for g, seed in enumerate(bags.seeds.tolist()):
            out[bag(seed, rows.n_rows, bags.size, replace=False), g] = False
        for first, X, y in chunks(rows):
            named, certain = self._judged(X)
            wrong = (named != y[:, None]) | ~certain
            yield wrong.astype(np.float64), out[first : first + len(y)]

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        return known_rows(self, X, y, sample_weight)

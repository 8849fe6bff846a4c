"""Ensembles whose members have equal weight, forests and bagging: votes, means, strength, bounds, importances.

    strength     s = mean margin of the vote, correlation of the members, error <= correlation (1 - s^2) / s^2
    importance   I(j)     mean over members of  error with column j permuted - error,  each on its out-of-bag rows
                 I(j, k)  the same with both columns permuted by one permutation
                 H(j, k)  I(j) + I(k) - I(j, k): what the two columns share; 0 for columns that act separately

Errors are error rates, or mean squared errors. Breiman, Machine Learning 45, 2001.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner
from assay.claims.claim import NotApplicable
from assay.data.blocks import Block
from assay.ensemble._bootstrap import Curve, bag, oob_score
from assay.ensemble._members import Indexed
from assay.guarantees.evidence import Evidence, Predictions, Scores
from assay.guarantees.holdout import Bags, out_of_bag_vote
from assay.guarantees.ledger import FIT_NOT_KEPT, Statement
from assay.messages import Message
from assay.params import refuse
from assay.scan import Rows, thread_map
from assay.tree._nodes import Nodes, TreeModel
from assay.tree._predict import (
    goes_one_way,
    leaves,
    mean_values,
    mixed_leaves,
    most_frequent,
    split_outputs,
    weighted_values,
)
from assay.tree._reading import read_columns

# Predictions of the members, strength and correlation -------------------------------------------------------------


class Strength(NamedTuple):
    """The two factors of a forest's error: strength s, mean correlation of the trees, bound correlation (1 -
    s^2) / s^2."""

    strength: float
    correlation: float
    bound: float


def member_values(nodes: Nodes, t: int, X: np.ndarray, n_jobs: int | None = 1) -> np.ndarray:
    """Return what tree t predicts for rows X, (rows, outputs)."""
    one = nodes._replace(root=nodes.root[t : t + 1])
    if not np.any(nodes.table >= 0) and not np.isnan(X).any():
        return nodes.value[leaves(one, X, n_jobs)[:, 0]]
    if goes_one_way(nodes):
        return nodes.value[mixed_leaves(one, X, n_jobs)[:, 0]]
    return weighted_values(nodes, int(nodes.root[t]), X)


def strength_of(votes: np.ndarray, codes: np.ndarray, n_classes: int, said: np.ndarray | None = None) -> Strength:
    """Return strength and correlation from the votes (rows, members) for rows of classes `codes`.

    Margin of a row: share of votes for its class minus the largest share of another class; s its mean. The raw
    margin of a member is 1 where it votes for the class, -1 where it votes for that rival, else 0; the
    correlation is var(margin) over the squared mean deviation of the raw margins (Breiman 2001, 2.2 and
    appendix II). `said` (rows, members) tells which votes count: those of members that did not see the row.
    """
    said = np.ones(votes.shape, dtype=bool) if said is None else said
    heard = said.any(axis=1)
    votes, codes, said = votes[heard], codes[heard], said[heard]
    count = said.sum(axis=1)
    shares = np.stack([((votes == k) & said).sum(axis=1) / count for k in range(n_classes)], axis=1)
    at = np.arange(len(codes))
    right = shares[at, codes]
    shares[at, codes] = -1.0
    rival = shares.argmax(axis=1)
    margin = right - shares.max(axis=1)
    raw = (votes == codes[:, None]).astype(float) - (votes == rival[:, None])
    deviation = np.array([raw[said[:, t], t].std() for t in range(votes.shape[1]) if said[:, t].any()])
    s = float(margin.mean())
    correlation = float(margin.var() / max(deviation.mean() ** 2, 1e-300))
    return Strength(s, correlation, correlation * (1 - s * s) / (s * s) if s > 0 else float("inf"))


def bounded_shares(block: Block, nodes: Nodes) -> tuple[np.ndarray, float]:
    """Return the mean shares of each row, and how far rounding can move them."""
    return mean_values(nodes, block.X, 1), 2.0**-51 * (len(nodes.root) + 2)


def bounded_means(block: Block, nodes: Nodes) -> tuple[np.ndarray, float]:
    """Return the mean of the trees' values for each row, and how far rounding can move it."""
    slack = 2.0**-49 * (len(nodes.root) + 2) * float(np.abs(nodes.value).max())
    return mean_values(nodes, block.X, 1), slack


# The bound by out-of-bag rows (pac-bayes.vote)
# -------------------------------------------------------------------------------


def vote_statements(model: Any, rows: Rows) -> Iterator[Statement | NotApplicable]:
    """Yield the bound of the vote's error by out-of-bag rows, or why it is not made."""
    reason = next((sentence for holds, sentence in _conditions(model, rows) if not holds), None)
    if reason is not None:
        yield NotApplicable("pac-bayes.vote", reason)
        return
    n, binned = rows.n_rows, int(getattr(model, "binned_rows_", 0))
    shared_seed = int(model.bin_seed_) if binned else 0
    bags = Bags(np.asarray(model.seeds_), int(model.bag_size_), bool(model.bootstrap), binned, shared_seed)
    value = model.nodes_.value[model.nodes_.child < 0]
    hard = bool(np.all((value == 0) | (value == 1)) and np.all(value.sum(axis=1) == 1))
    T = len(model.seeds_)
    yield out_of_bag_vote(_blocks(model, rows, bags), bags, n, (T + 1) // 2 / T if hard else 0.5)


def sampling(model: Any) -> dict[str, str]:
    """Return the parameters that decide which rows a member depends on; kept at the fit, as they can be set later."""
    return {name: repr(getattr(model, name, None)) for name in ("bootstrap", "class_weight", "out_of_bag")}


def _conditions(model: Any, rows: Rows) -> Iterator[tuple[bool, str]]:
    yield hasattr(model, "seeds_"), FIT_NOT_KEPT
    yield (
        getattr(model, "sampled_by_", None) == sampling(model),
        Message("why.parameters-after"),
    )
    yield (
        bool(model.bootstrap) or model.bag_size_ < model.n_rows_,
        Message("why.no-bags"),
    )
    yield not rows.has_weight, Message("why.weights.errors")
    yield (
        getattr(model, "class_weight", None) is None,
        Message("why.bag-class-weight"),
    )
    yield not getattr(model, "drawn_by_weight_", False), Message("why.weighted-draws")
    yield (
        getattr(model, "out_of_bag", None) is None,
        Message("why.pruned-out-of-bag"),
    )
    yield (
        not getattr(model, "kept_members_", 0),
        Message("why.warm-start"),
    )
    yield (
        getattr(model, "binned_rows_", 0) < model.n_rows_,
        Message("why.shared-bins"),
    )
    yield (
        not np.any(model.nodes_.table >= 0),
        Message("why.bag-levels"),
    )
    yield rows.n_rows == model.n_rows_, Message("why.other-count")


def _blocks(model: Any, rows: Rows, bags: Bags) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield one minus the share that each member gives to the true class, and whether the row is out of its bag."""
    n = rows.n_rows
    out = np.ones((len(bags.seeds), n), dtype=bool)
    if bags.shared:
        out[:, bag(bags.shared_seed, n, bags.shared, replace=False)] = False
    for j, seed in enumerate(bags.seeds.tolist()):
        out[j, bag(seed, n, bags.size, bags.replace)] = False
    nodes = model.nodes_
    for first, X, y in chunks(rows):
        at = leaves(nodes, X, model.n_jobs)
        yield 1.0 - nodes.value[at, y[:, None]], out[:, first : first + len(X)].T


def chunks(rows: Rows, size: int = 32_768) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield the number of the first row, rows and labels, so many at a time that threads can share the work."""
    held: list[Any] = []
    for block in rows.blocks():
        held.append(block)
        if sum(len(item.X) for item in held) >= size:
            yield _joined(held)
            held = []
    if held:
        yield _joined(held)


def _joined(held: list[Any]) -> tuple[int, np.ndarray, np.ndarray]:
    X, y = (np.concatenate([getattr(item, name) for item in held]) for name in ("X", "y"))
    return held[0].start, X, y


# Parallel ensembles: members fitted independently, with equal weights --------------------------------------------


class ParallelEnsemble(Indexed, TreeModel, Learner):
    """Members fitted independently to samples of the rows; a subclass adds `Vote` or `Mean`."""

    figure = "importance"
    classes_: Any
    n_rows_: int
    seeds_: np.ndarray
    n_features_in_: int
    n_jobs: int | None

    def bags(self) -> np.ndarray:
        """Return (members, rows): how often each training row was drawn for each member."""
        raise NotImplementedError

    def _values(self, X: Any) -> np.ndarray:
        """Return the mean output of the members for rows X, (rows, outputs)."""
        raise NotImplementedError

    def _member_values(self, t: int, X: np.ndarray) -> np.ndarray:
        """Return the output of member t for coded rows X: class shares or votes, or numbers, (rows, outputs)."""
        raise NotImplementedError

    def _every_value(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the output of each member for coded rows X."""
        raise NotImplementedError

    def permutation_importances(self, X: Any, y: Any, *, n_repeats: int = 1, random_state: Any = None) -> np.ndarray:
        """Return I(j) of each column, in units of the error; X and y are the training rows.

        >>> import numpy as np
        >>> from assay.ensemble import BaggingClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> y = X[:, 1] > 0
        >>> model = BaggingClassifier(random_state=0).fit(X, y)
        >>> int(model.permutation_importances(X, y, random_state=0).argmax())
        1
        """
        singles = [(j,) for j in range(self.n_features_in_)]
        return self._rises(X, y, singles, n_repeats, random_state)

    def interactions(self, X: Any, y: Any, *, n_repeats: int = 1, random_state: Any = None) -> np.ndarray:
        """Return H(j, k) (columns, columns), zero on the diagonal; X and y are the training rows."""
        d = self.n_features_in_
        pairs = [(j, k) for j in range(d) for k in range(j + 1, d)]
        result = self._rises(X, y, [*((j,) for j in range(d)), *pairs], n_repeats, random_state)
        shared = np.zeros((d, d))
        for (j, k), both in zip(pairs, result[d:]):
            shared[j, k] = shared[k, j] = result[j] + result[k] - both
        return shared

    def _rises(
        self, X: Any, y: Any, groups: Sequence[tuple[int, ...]], n_repeats: int, random_state: Any
    ) -> np.ndarray:
        """Return the mean rise of the out-of-bag error when the columns of each group are permuted together."""
        check_is_fitted(self)
        if self.has_nodes:
            self.nodes_.check(self.n_features_in_)
        data = read_columns(self, X, y)
        if len(data.y) != self.n_rows_:
            raise refuse(self, f"permutations need the {self.n_rows_} training rows; got {len(data.y)} rows.")
        out = self.bags() == 0
        if not out.any():
            raise refuse(self, "every member saw every row; permutations need out-of-bag rows (bootstrap=True).")
        codes = np.searchsorted(self.classes_, data.y) if is_classifier(self) else data.y
        seeds = check_random_state(random_state).randint(2**31 - 1, size=len(out))
        X = data.dense("a permutation importance")

        def member(t: int) -> np.ndarray | None:
            held = np.flatnonzero(out[t])
            if not len(held):
                return None
            rng = np.random.default_rng(int(seeds[t]))
            return np.mean(list(self._member_rises(t, X[held], codes[held], groups, n_repeats, rng)), axis=0)

        result = thread_map(member, range(len(out)), n_jobs=self.n_jobs)
        return np.mean([item for item in result if item is not None], axis=0)

    def _member_rises(self, t: int, X, y, groups, n_repeats: int, rng: Any) -> Iterator[np.ndarray]:
        before = self._member_error(t, X, y)
        for _ in range(n_repeats):
            order = rng.permutation(len(X))
            rises = []
            for group in groups:
                changed = X.copy()
                changed[:, group] = X[np.ix_(order, group)]
                rises.append(self._member_error(t, changed, y) - before)
            yield np.array(rises)

    def _member_error(self, t: int, X: np.ndarray, y: np.ndarray) -> float:
        outputs = self._member_values(t, X)
        if is_classifier(self):
            return float((outputs.argmax(axis=1) != y).mean())
        return float(((outputs[:, 0] - y) ** 2).mean())


class Vote(ClassifierMixin, ParallelEnsemble):
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

    def _keep_out_of_bag(self, curve: Curve, y: np.ndarray) -> None:
        self.oob_decision_function_, self.oob_votes_, self.oob_errors_ = curve.values, curve.votes, curve.errors
        said = self.classes_[curve.values[curve.seen].argmax(axis=1)]
        self.oob_score_ = oob_score(self, accuracy_score, self.classes_[y[curve.seen]], said)


class Mean(RegressorMixin, ParallelEnsemble):
    """Mixin: the mean of the members' numbers."""

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean of the members' predictions; (rows, outputs) for several outputs."""
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the mean of the trees."""
        yield Predictions(bounded_means, (self.nodes_,))

    def _keep_out_of_bag(self, curve: Curve, y: np.ndarray) -> None:
        self.oob_prediction_, self.oob_errors_ = curve.values[:, 0], curve.errors
        self.oob_score_ = oob_score(self, r2_score, y[curve.seen], curve.values[curve.seen, 0])

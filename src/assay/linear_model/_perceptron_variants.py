"""Variants of the perceptron for data that no hyperplane separates: the voted perceptron and the pocket algorithm.

Voted perceptron (Freund and Schapire 1999): one pass, after which all intermediate hypotheses vote.

    h_1 = 0; for each row t: if h_t errs on it, w_y <- w_y + x, w_k <- w_k - x, with k the predicted class
    the class of x is the majority vote of h_1 .. h_n

For two classes w_1 = -w_0, the perceptron. A score of zero, or equal scores, are an error and an abstention.
Claims: h_t is evaluated on row t before it is updated, so the mean risk of h_1 .. h_n is at most the share of
        mistakes plus a deviation, and the vote errs at most twice as often (Blum, Kalai and Langford 1999). The
        mistakes determine the vote: a compression bound.
Method: a compiled pass, O(n d). A row whose score is within its rounding error is decided in rational arithmetic, so
        that whoever repeats the pass makes the same mistakes.

Pocket algorithm (Gallant 1990): perceptron updates, keeping the hyperplane with the fewest errors so far.

    minimise over w, b    number of rows with y_i (<w, x_i> + b) <= 0          (NP-hard; this is a heuristic)

Claims: its number of training errors; the margin if there are none; or a few rows whose convex hulls intersect, which
        prove that every hyperplane makes an error.
Method: rows are visited in a new random order each epoch; after each update errors are counted until the hyperplane in
        the pocket cannot be beaten.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from assay import scan
from assay.base import Learner, fit_log, label_classes, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.guarantees.compression import Pass, outside, vote_statements
from assay.guarantees.evidence import NOBODY, OPEN, Decided, Evidence, Gathered, Votes
from assay.guarantees.ledger import FIT_NOT_KEPT, Statement
from assay.linear_model._base import LinearClassifier, packed
from assay.linear_model._separator import inseparability_claim, separation_claim
from assay.messages import Message
from assay.params import Count, Flag, Number, check, refuse
from assay.scan import Rows
from assay.scan.memory import MemoryRows
from assay.theory.spaces import Linear, Space, Unbounded

_UNIT = 2.0**-53
_LEAST = 1e-290  # what underflow can hide
_ENTRIES = 2**20  # numbers of hyperplanes, and of scores, that are held at once
_GAMMA = np.uint64(0x9E3779B97F4A7C15)


class PerceptronVotes(NamedTuple):
    """Updates w_gained += (vector, constant), w_lost -= the same, from zero, and the votes of what is between them."""

    vectors: np.ndarray
    gained: np.ndarray
    lost: np.ndarray
    votes: np.ndarray
    constant: float
    classes: int

    def hypotheses(self, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield hyperplanes (members, 1 or K, d + 1) that have a vote, and their votes, so many as fit into memory with
        their scores on that many rows. The first hypothesis, zero, votes for nobody and is left out."""
        outputs, (updates, d) = 1 if self.classes == 2 else self.classes, self.vectors.shape
        size = max(1, _ENTRIES // (outputs * max(d + 1, rows)))
        W = np.zeros((outputs, d + 1))
        for first in range(0, updates, size):
            steps = self._steps(slice(first, first + size), outputs)
            steps[0] += W
            members = np.add.accumulate(steps, axis=0)
            W, votes = members[-1], self.votes[first + 1 : first + 1 + size]
            if votes.any():
                yield members[votes > 0], votes[votes > 0].astype(np.float64)

    def _steps(self, some: slice, outputs: int) -> np.ndarray:
        rows = np.column_stack([self.vectors[some], np.full(len(self.vectors[some]), self.constant)])
        if outputs == 1:
            return np.where(self.gained[some] == 1, 1.0, -1.0)[:, None, None] * rows[:, None, :]
        steps, at = np.zeros((len(rows), outputs, rows.shape[1])), np.arange(len(rows))
        steps[at, self.gained[some]] = rows
        steps[at, self.lost[some]] = -rows
        return steps


class HalfSpaceVotes:
    """The family of votes of half-spaces, as many as there are mistakes."""

    def at(self, n_features: int, n_classes: int = 2, intercept: bool = True) -> Space:
        return Unbounded("votes of any number of half-spaces")

    def __str__(self) -> str:
        return "votes of linear classifiers, as many as there were mistakes"


@dataclass(eq=False, repr=False)
class VotedPerceptron(ClassifierMixin, Learner):
    """Perceptron whose hypotheses vote, each with the number of rows that it survived.

    One pass is all that it takes, and what makes its error rate on new data known from the training rows: every
    hypothesis was tested on a row before it learnt from it.

    Parameters
    ----------
    fit_intercept : bool
        Whether hyperplanes may miss the origin: a constant column of ones.
    burn_in : float in [0, 1)
        Share of the rows, the first ones of the pass, before which hypotheses have no vote; fix it in advance.
    shuffle : bool
        Pass over the rows in a random order; otherwise in that of the data, which must then have been left to chance:
        rows sorted by class would be learnt badly and certified wrongly.
    random_state : int, RandomState or None
        Seed of the order.
    n_jobs : int or None
        Threads of prediction; the pass itself is sequential.

    Attributes
    ----------
    classes_
    vectors_ : (n_updates_, n_features)
        Rows that were learnt from, in the order of the pass.
    gained_, lost_ : (n_updates_,)
        Positions in `classes_` of the class of each, and of the one that it was taken for.
    votes_ : (n_updates_ + 1,)
        Rows that the hypothesis before each update, and the last one, were judged on.
    constant_ : (1,)
        The constant column: 1, or 0 without intercept.
    updates_ : (n_updates_,)
        Row numbers of the updates.
    places_ : (n_updates_,)
        Their places in the pass, counted from 0.
    n_updates_ : int
    progressive_error_ : float
        Share of mistakes on the rows after the burn-in.
    seed_ : int or None
        Seed of the order; None if it was that of the data.

    Examples
    --------
    >>> from assay.linear_model import VotedPerceptron
    >>> model = VotedPerceptron(shuffle=False).fit([[1.0], [-1.0], [2.0], [-2.0], [3.0]], [1, 0, 1, 0, 1])
    >>> model.n_updates_, model.votes_.tolist(), model.predict([[-3.0], [3.0]]).tolist()
    (2, [1, 1, 3], [0, 1])
    """

    card = Card(
        name="Voted perceptron",
        task="classify",
        model=HalfSpaceVotes(),
        strategy="number of misclassified rows, by correcting mistakes; a vote of all hypotheses met",
        algorithm="one pass of perceptron updates",
        guarantee=("progressive.vote", "compression.voted-perceptron"),
        most_rows=20_000,
    )
    family = "voted.classifier"
    figure = "votes"
    constraints: ClassVar = {
        "fit_intercept": Flag,
        "shuffle": Flag,
        "burn_in": Number(low=0.0, high=1.0, open_high=True),
    }

    _: KW_ONLY
    fit_intercept: bool = True
    burn_in: float = 0.0
    shuffle: bool = True
    random_state: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "VotedPerceptron":
        """Fit to rows X and labels y. Parquet files and Dask collections need shuffle=False."""
        check(self)
        rows = read_rows(self, X, y)
        self.classes_ = label_classes(self, rows)
        rows = rows.encoded(self.classes_)
        require_finite(rows, self)
        self.seed_ = int(check_random_state(self.random_state).randint(2**31)) if self.shuffle else None
        self.skipped_ = int(self.burn_in * rows.n_rows)
        self.n_rows_ = rows.n_rows
        with fit_log(self, 1, X, y) as log:
            run = self._visit(rows)
            self._keep(run)
            names = ("vectors_", "gained_", "lost_", "votes_")
            log.step(self.progressive_error_, run.mistakes, **{name: getattr(self, name) for name in names})
        return self

    def _keep(self, run: "_Run") -> None:
        self.vectors_, self.gained_, self.lost_, self.updates_ = run.vectors, run.gained, run.lost, run.rows
        self.places_ = run.at
        borders = np.concatenate([[0], run.at + 1, [self.n_rows_]])
        self.votes_ = np.diff(np.maximum(borders, self.skipped_))
        self.n_updates_ = run.mistakes
        self.progressive_error_ = self._errors(run) / (self.n_rows_ - self.skipped_)

    def _errors(self, run: "_Run") -> int:
        return int(np.count_nonzero(run.at >= self.skipped_))

    def _visit(self, rows: Rows) -> "_Run":
        """Make the pass; a row that rounding leaves open is decided in rational arithmetic."""
        from assay.linear_model._perceptron_loops import voted_block

        W = np.zeros((1 if len(self.classes_) == 2 else len(self.classes_), rows.n_features + 1))
        constant, parts = float(self.constant_[0]), []
        for X, y, order, start in self._order(rows):
            at, lost = np.empty(len(order), dtype=np.int64), np.empty(len(order), dtype=np.int64)
            place, made = voted_block(X, y, order, 0, constant, W, at, lost, 0)
            while place < len(order):
                x, code = np.append(X[order[place]], constant), int(y[order[place]])
                taken = self._decide(x, code, W)
                if taken is not None:
                    at[made], lost[made], made = place, taken, made + 1
                    _correct(W, x, code, taken)
                place, made = voted_block(X, y, order, place + 1, constant, W, at, lost, made)
            met = order[at[:made]]
            parts.append(_Run(at[:made] + start, met + start, X[met], y[met].astype(np.int64), lost[:made].copy()))
        if not np.isfinite(W).all():
            raise refuse(self, "the entries are too large: sums of rows overflow. Divide X by a constant.")
        return _Run(*(np.concatenate(part) for part in zip(*parts)))

    def _order(self, rows: Any) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
        """Yield (X, classes, order of the visit, number of the first row)."""
        if self.seed_ is None:
            for block in rows.blocks():
                X = np.ascontiguousarray(block.X, dtype=np.float64)
                yield X, np.asarray(block.y), np.arange(len(X)), block.start
            return
        if not hasattr(rows, "X"):
            raise refuse(self, "rows that are not in memory are read in order; pass shuffle=False.")
        yield np.ascontiguousarray(rows.X, dtype=np.float64), rows.y, drawn_order(self.seed_, rows.n_rows), 0

    def _decide(self, x: np.ndarray, code: int, W: np.ndarray) -> int | None:
        """Return the class that x is taken for, or None if it is right, in exact arithmetic."""
        if not np.isfinite(W).all():
            raise refuse(self, "the entries are too large: sums of rows overflow. Divide X by a constant.")
        row = [Fraction(value) for value in x.tolist()]
        scores = [sum((Fraction(w) * v for w, v in zip(weights, row)), Fraction(0)) for weights in W.tolist()]
        scores = [-scores[0], scores[0]] if len(scores) == 1 else scores
        others = [k for k in range(len(scores)) if k != code]
        taken = max(others, key=lambda k: scores[k])  # the first of equals
        return taken if scores[taken] >= scores[code] else None

    # Prediction

    @property
    def constant_(self) -> np.ndarray:
        """The entry that stands for the intercept beside those of each row: 1, or 0 without one."""
        return np.array([float(self.fit_intercept)])

    @property
    def _voters(self) -> PerceptronVotes:
        return PerceptronVotes(
            self.vectors_, self.gained_, self.lost_, self.votes_, float(self.constant_[0]), len(self.classes_)
        )

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the share of the votes for each class; for two classes that of the second minus that of the first."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        rows = scan.rows(X, None, None, n_jobs=self.n_jobs)
        shares = np.concatenate([votes for votes, _ in rows.map(tally, self._voters, False)]) / self.votes_.sum()
        return shares[:, 1] - shares[:, 0] if len(self.classes_) == 2 else shares

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with most votes; the first of equals."""
        scores = self.decision_function(X)
        winner = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[winner]

    # Certificate

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the class with most votes."""
        yield Votes(sure_positions, (self._voters,))

    def statements(self, rows: Rows) -> Iterator[Statement | NotApplicable]:
        """Yield what the pass says of the vote's error rate, and what the rows that were learnt from do."""
        reason = None
        if self._from_file:
            reason = FIT_NOT_KEPT
        elif rows.n_rows != self.n_rows_ or (self.seed_ is not None and not isinstance(rows, MemoryRows)):
            reason = Message("why.other-rows")
        else:
            run = self._visit(rows)
            same = np.array_equal(run.rows, self.updates_) and np.array_equal(run.vectors, self.vectors_)
            if not same or not np.array_equal(run.lost, self.lost_) or not np.array_equal(run.gained, self.gained_):
                reason = Message("why.pass-elsewhere")
        if reason is not None:
            yield NotApplicable("progressive.vote", reason)
            yield NotApplicable("compression.voted-perceptron", reason)
            return
        visited = Pass(self.n_rows_, self.skipped_, self._errors(run), self.n_updates_, self.seed_)
        yield from vote_statements(visited, lambda: int(rows.sum(lost_rows, self._voters, np.sort(self.updates_))))


class _Run(NamedTuple):
    """The mistakes of a pass: their places in it, row numbers, rows, classes, and the classes they were taken for."""

    at: np.ndarray
    rows: np.ndarray
    vectors: np.ndarray
    gained: np.ndarray
    lost: np.ndarray

    @property
    def mistakes(self) -> int:
        return len(self.at)


def drawn_order(seed: int, n: int) -> np.ndarray:
    """Return the numbers 0 .. n - 1 in the order of n draws of SplitMix64 from the state mix(seed)."""
    start = _mix(np.array([seed], dtype=np.uint64))
    return np.argsort(_mix(start + np.arange(1, n + 1, dtype=np.uint64) * _GAMMA), kind="stable")


def _mix(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _correct(W: np.ndarray, x: np.ndarray, code: int, taken: int) -> None:
    if len(W) == 1:
        W[0] += x if code == 1 else -x
    else:
        W[code] += x
        W[taken] -= x


def tally(block: Block, voters: PerceptronVotes, rounded: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the votes (rows, K) for each class, and for each row the votes that rounding leaves open; these are not
    looked for unless `rounded`."""
    X = np.column_stack([block.X, np.full(len(block.X), voters.constant)])
    votes, unsure = np.zeros((len(X), voters.classes)), np.zeros(len(X))
    size = np.abs(X) if rounded else None
    for W, weight in voters.hypotheses(len(X)):
        outputs = W.shape[1]
        scores = (X @ W.reshape(-1, X.shape[1]).T).reshape(len(X), -1, outputs)
        slack = 0.0
        if size is not None:
            magnitude = (size @ np.abs(W).reshape(-1, X.shape[1]).T).reshape(scores.shape).max(axis=2)
            slack = 8 * (X.shape[1] + 4) * _UNIT * magnitude + np.where(magnitude > 0, _LEAST, 0.0)
        if outputs == 1:
            score = scores[:, :, 0]
            sides = [score < -slack, score > slack]
        else:
            best = np.partition(scores, outputs - 2, axis=2)[:, :, -2:]
            sure, winner = best[:, :, 1] - best[:, :, 0] > 2 * slack, scores.argmax(axis=2)
            sides = [sure & (winner == k) for k in range(outputs)]
        for k, side in enumerate(sides):
            votes[:, k] += side @ weight
        if size is not None:
            unsure += ((slack > 0) & ~np.logical_or.reduce(sides)) @ weight
    return votes, unsure


def _margins(block: Block, voters: PerceptronVotes) -> tuple[np.ndarray, np.ndarray]:
    """Return by how many votes the class of each row leads, and the votes that rounding leaves open."""
    votes, unsure = tally(block, voters, True)
    at = np.arange(len(votes))
    own = votes[at, block.y].copy()
    votes[at, block.y] = -1.0
    return own - votes.max(axis=1), unsure


def lost_rows(block: Block, voters: PerceptronVotes, kept: np.ndarray) -> int:
    """Return how many rows outside the sorted row numbers `kept` are not certainly right."""
    margin, unsure = _margins(block, voters)
    return outside(block, margin - unsure <= 0, kept)


def sure_positions(block: Block, voters: PerceptronVotes) -> np.ndarray:
    """Return the class with most votes; NOBODY for a tie, OPEN where rounding leaves it so."""
    votes, unsure = tally(block, voters, True)
    best = np.sort(votes, axis=1)[:, -2:]
    lead = best[:, 1] - best[:, 0]
    return np.where(lead > unsure, votes.argmax(axis=1), np.where((lead == 0) & (unsure == 0), NOBODY, OPEN))


@dataclass(eq=False, repr=False)
class Pocket(ClassifierMixin, LinearClassifier):
    """A perceptron for classes that no hyperplane separates: the best hyperplane met is kept.

    Needs all rows in memory, since each update is judged on all of them; sparse rows are read as they are.
    More than two
    classes are learnt one against the rest.

    Parameters
    ----------
    fit_intercept : bool
        Whether to learn b.
    max_updates : int
        Updates allowed for each hyperplane.
    random_state : int, RandomState or None
        Seed of the orders in which rows are visited.
    n_jobs : int or None
        Threads for certifying; the updates themselves are sequential.

    Attributes
    ----------
    classes_, coef_, intercept_
    n_updates_ : int
        Updates made, over all hyperplanes.
    errors_ : list of int
        Training errors of each kept hyperplane, a score of zero counted as an error.

    Examples
    --------
    >>> from assay.linear_model import Pocket
    >>> model = Pocket(random_state=0).fit([[-1, -1], [1, 1], [-1, 1], [1, -1]], [0, 0, 1, 1])
    >>> model.errors_
    [1]
    """

    card = Card(
        name="Pocket",
        task="classify",
        model=Linear(),
        strategy="number of misclassified rows",
        algorithm="perceptron updates, keeping the best hyperplane",
        guarantee=("margin.bounds", "inseparability", "vc", "margin.kernel", "margin.multiclass", "pac-bayes.linear"),
    )

    constraints: ClassVar = {"fit_intercept": Flag, "max_updates": Count()}

    _: KW_ONLY
    fit_intercept: bool = True
    max_updates: int = 1000
    random_state: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "Pocket":
        """Fit to rows X (an array, a frame or a SciPy sparse matrix) and labels y."""
        check(self)
        limit = self.max_updates
        rows = read_rows(self, X, y)
        self.classes_ = label_classes(self, rows)
        rows = rows.encoded(self.classes_)
        require_finite(rows, self)
        if not hasattr(rows, "X"):
            raise refuse(
                self,
                "each update is judged on all rows, so they must be in memory; use Perceptron or SGDClassifier.",
            )
        random = check_random_state(self.random_state)
        targets = [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))
        with fit_log(self, limit * len(targets), X, y) as log:
            runs = [self._run(rows, code, limit, random, log) for code in targets]
        self.coef_ = np.vstack([w for w, *_ in runs])
        self.intercept_ = np.array([b for _, b, *_ in runs])
        self.errors_ = [errors for *_, errors, _ in runs]
        self.n_updates_ = sum(updates for *_, updates in runs)
        return self

    def _run(self, rows: Any, code: int, limit: int, random: Any, log: FitLog) -> tuple[np.ndarray, float, int, int]:
        """Learn to tell class `code` from the others; return w, b, errors and updates."""
        from assay.linear_model._perceptron_loops import pocket_pass

        table = packed(rows.X)
        signs = np.where(rows.y == code, 1.0, -1.0)
        w, b, best_w = np.zeros(rows.n_features), np.zeros(1), np.zeros(rows.n_features)
        best = np.array([float(len(signs)), 0.0])  # a zero vector has every row on the hyperplane: all errors
        updates, going = 0, True
        while going and updates < limit and best[0] > 0 and not log.stopped:
            order = random.permutation(len(signs))
            made, going = pocket_pass(
                *table, signs, order, bool(self.fit_intercept), w, b, best_w, best, limit - updates
            )
            updates += made
            log.step(best[0], best[0], coef_=best_w[None, :].copy(), intercept_=best[1:].copy())
            if made == 0:
                break
        return best_w, float(best[1]), int(best[0]), updates

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield the margin of a hyperplane without errors, or a proof that every hyperplane makes one."""
        binary = len(self.classes_) == 2
        for k in range(len(self.coef_)):
            code, params = (1, {}) if binary else (k, {"class": k})
            yield from separation_claim(
                rows, self.coef_[k], float(self.intercept_[k]), bool(self.fit_intercept), code, params
            )
        if binary and Gathered(self.evidence(rows)).the(Decided).count_errors(rows)[0]:
            yield inseparability_claim(rows, bool(self.fit_intercept))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

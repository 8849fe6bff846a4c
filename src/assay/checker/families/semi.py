"""Learners from labelled and unlabelled rows: a classifier that wraps another, one vouched for by a certified teacher
(teacher.disagreement), and labels spread over a graph of neighbours (graph.fixed-point).

Arrays: "wrapped" has none beside its member's. "vouched" has two members, student and teacher, `split_` (3,), seed and
numbers of labelled rows and of those kept from the teacher, and `unlabelled_` (m, d), on which the two are compared.
"graph" has `fit_X_` (n, d), `labels_` (n,) positions of labels, -1 for none, `spread_` (n,
classes), and `graph_numbers_` (3,): k (0: a Gaussian kernel), alpha (0: labels are held) and gamma. "masked"
(masked.error) is a network that fills rows: `center_`, `scale_` (d,), `W_` (d, k), `b_` (k,), `V_` (k, d), `c_` (d,).

Labels spread over a graph of stored rows: the checker's own graph, its predictions, and the fixed point
(graph.fixed-point).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.special import expit

from assay.checker.bounds.tails import binomial_at_most, ln
from assay.checker.family import NUMBERS, WHOLE, Family, Variant
from assay.checker.numerics import above, gamma
from assay.checker.predictors import Predictor, decided
from assay.checker.record import Refused, Rejected, exact_decimal
from assay.checker.rule import Rule, View
from assay.checker.rules.copies import check_drawn, keys_of, repeated
from assay.checker.rules.stored_rows import StoredRows
from assay.claims.definitions import Definition
from assay.claims.sentences import Part, Sentence

_CELLS = 500_000  # weights held at a time
_LEAST = 1e-300  # weights below are 0
_SMALL = 1e-280  # sums of weights below may lack some that rounding put below the least


@dataclass(frozen=True)
class Spread(StoredRows):
    """The sum of the distributions of the k nearest stored rows, or, where k is 0, the mean of all of them with weights
    exp(-sharpness |x - v|^2); the largest entry decides. A distribution is a row of F divided by its sum, 0 if that
    is 0."""

    F: np.ndarray = None  # type: ignore[assignment]
    labels: np.ndarray = None  # type: ignore[assignment]
    alpha: float = 0.0
    sharpness: float = 0.0

    @property
    def shares(self) -> np.ndarray:
        total = self.F.sum(axis=1, keepdims=True)
        return np.divide(self.F, total, out=np.zeros_like(self.F), where=total > 0)

    def _predicted(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self.k:
            weights = [self.weights_of(part) for part in self._parts(X)]
            values = np.concatenate([W @ self.shares for W, _ in weights])
            total, edge = values.sum(axis=1, keepdims=True), np.concatenate([edge for _, edge in weights])[:, None]
            open_rows = (edge | (total > 0)) & (total < _SMALL)
            shares = np.divide(values, total, out=np.zeros_like(values), where=total > 0)
            return shares, above(np.where(total > 0, 2 * self.lost(), 0.0) + 2.0 * open_rows, 8) * np.ones_like(values)
        values = self.shares[self.nearest(X)].sum(axis=1)
        return values, np.full(values.shape, gamma(2 * self.k + len(self.classes or ()) + 8) * self.k)

    def _parts(self, X: np.ndarray) -> list[np.ndarray]:
        step = max(1, _CELLS // len(self.X))
        return [X[at : at + step] for at in range(0, max(1, len(X)), step)]

    def weights_of(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return exp(-sharpness |x - v|^2) for each row and each stored row, 0 below `_LEAST`, and whether rounding may
        have put a weight of the row on the wrong side of that."""
        square = np.zeros((len(X), len(self.X)))
        for j in range(self.columns):
            square += np.square(X[:, j, None] - self.X[None, :, j])
        W = np.exp(-self.sharpness * square)
        edge = np.asarray(((W > _LEAST / 2) & (W < _LEAST * 2)).any(axis=1))
        W[W < _LEAST] = 0.0
        return W, edge

    def lost(self) -> float:
        """Return the relative error of a sum of weights times numbers that are not negative: an exponent is at most 746
        where its weight is not lost, and is off by so many units."""
        return 2 * 746 * gamma(self.columns + 8) + gamma(2 * len(self.X) + 32)


def read_graph(
    X: np.ndarray, codes: np.ndarray, F: np.ndarray, numbers: np.ndarray, classes: tuple[str, ...]
) -> Spread:
    """Return the predictor after checking that rows, labels and distributions go together."""
    if X.ndim != 2 or not X.size or codes.shape != (len(X),) or F.shape != (len(X), len(classes)):
        raise Rejected(f"fit_X_ has shape {X.shape}, labels_ {codes.shape}, spread_ {F.shape}")
    if np.any((codes < -1) | (codes >= len(classes))) or np.any(F < 0):
        raise Rejected("labels_ are positions in classes_ or -1, and spread_ is not negative")
    if numbers.shape != (3,) or numbers[0] != np.rint(numbers[0]) or not 0 <= numbers[0] < len(X):
        raise Rejected("graph_numbers_ must be k, less than the number of rows, alpha and gamma")
    if not 0 <= numbers[1] < 1 or numbers[2] < 0:
        raise Rejected("alpha must lie in [0, 1), and gamma must not be negative")
    return Spread(X, codes, int(numbers[0]), 0, 0, classes, {}, F, codes, float(numbers[1]), float(numbers[2]))


class FixedPoint(Rule):
    """graph.fixed-point: F is what spreading labels over the graph leaves as it is.

    The graph joins two stored rows if one is among the k nearest of the other, or, where k is 0, any two, by the weight
    exp(-gamma |x - v|^2). alpha = 0: labels are held, and every other row that is joined to one is the weighted mean of
    its neighbours; else F = alpha S F + (1 - alpha) Y with S = D^(-1/2) W D^(-1/2). The value bounds the largest entry
    of the difference. The training rows are the stored rows with a label, in order.
    """

    def prepare(self) -> None:
        model = self.model
        if not isinstance(model, Spread):
            raise Rejected("it needs labels that are spread over a graph")
        self.check_rows()
        if self.count("k") != model.k or self.number("alpha", zero=True) != model.alpha:
            raise Rejected("k and alpha are not those of the model")
        if self.number("gamma", zero=True) != model.sharpness:
            raise Rejected("gamma is not that of the model")
        if self.count("stored", 2) != len(model.X):
            raise Rejected(f"the model keeps {len(model.X)} rows")
        self.where = np.flatnonzero(model.labels >= 0)
        if len(self.where) != self.rows:
            raise Rejected(f"the model keeps {len(self.where)} labelled rows, there are {self.rows}")

    def block(self, view: View) -> None:
        here = self.where[view.start : view.start + len(view.X)]
        if not np.array_equal(view.X, self.model.X[here]):
            raise Rejected("the labelled rows that the model keeps are not the training rows, in order")
        if not np.array_equal(view.known_codes, self.model.labels[here]):
            raise Rejected("the labels that the model keeps are not those of the training rows")

    def measure(self) -> float:
        model = self.model
        F, held = model.F, model.labels >= 0
        Y = np.zeros_like(F)
        Y[held, model.labels[held]] = 1.0
        want, slack = (self._near if model.k else self._gaussian)(F)
        alpha = model.alpha
        want = alpha * want + (1 - alpha) * Y if alpha else np.where(held[:, None], Y, want)
        return float(above(np.abs(F - want).max() + slack, 16))

    def _near(self, F: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the means of F over neighbours, or S F, and a bound of their error."""
        row = self.model.nearest(self.model.X, own=0)
        n, k = row.shape
        near = csr_array((np.ones(n * k), row.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
        W = near.maximum(near.T)
        degree = np.asarray(W.sum(axis=1)).ravel()
        slack = gamma(4 * int(degree.max()) + 64) * (1 + float(F.max()) * float(np.sqrt(degree.max())))
        if self.model.alpha == 0:
            return (W @ F) / degree[:, None], slack
        root = diags_array(1 / np.sqrt(degree))
        return root @ (W @ (root @ F)), slack

    def _gaussian(self, F: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the same for weights of all pairs, which are made twice, some rows at a time."""
        model = self.model
        sums = [(W.sum(axis=1), edge) for W, edge in self._weights()]
        degree, edge = (np.concatenate(part) for part in zip(*sums))
        if np.any(((degree > 0) | edge) & (degree < _SMALL)):
            raise Refused("a row is so far from all others that its weights have lost their digits")
        alone = degree == 0
        power = 1.0 if model.alpha == 0 else 0.5
        scale = np.divide(1.0, degree**power, out=np.zeros_like(degree), where=~alone)[:, None]
        inner = F if model.alpha == 0 else scale * F
        want = scale * np.concatenate([W @ inner for W, _ in self._weights()])
        if model.alpha == 0:
            want[alone] = F[alone]
        return want, float(above(model.lost() * max(1.0, float(want.max(initial=0.0))), 16))

    def _weights(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        at = 0
        for part in self.model._parts(self.model.X):
            self.context.clock.check()
            W, edge = self.model.weights_of(part)
            W[np.arange(len(part)), np.arange(at, at + len(part))] = 0.0
            at += len(part)
            yield W, edge


_ROWS = 1024  # of the unlabelled ones, at a time


def read_wrapped(members: list[Any], classes: tuple[str, ...]) -> Predictor:
    """Return the predictor of the one member, which has the same classes."""
    if len(members) != 1 or members[0].classes != classes:
        raise Rejected("it consists of one classifier with the same classes")
    return members[0]


class Vouched(Predictor):
    """A student, which predicts, and the teacher that it is compared with."""

    def __init__(self, student: Predictor, teacher: Predictor, split: np.ndarray, unlabelled: np.ndarray):
        self.student, self.teacher, self.unlabelled = student, teacher, unlabelled
        self.seed, self.labelled, self.kept = (int(value) for value in split)
        self.classes, self.width, self.compared = student.classes, student.width, student.compared
        self.degree, self.reads_gaps = student.degree, student.reads_gaps
        self.first_of_equals = student.first_of_equals

    @property
    def columns(self) -> int:
        return self.student.columns

    @property
    def binary(self) -> bool:
        return self.student.binary

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.student.scores(X, largest)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self.student.row_errors(X)

    def own_growth(self, descriptor: Any, points: int) -> Decimal | None:
        return self.student.own_growth(descriptor, points)

    def price(self, descriptor: Any) -> int:
        return self.student.price(descriptor)

    def kept_rows(self) -> np.ndarray:
        """Return which labelled rows the teacher did not see: the first of a permutation that the seed fixes."""
        return np.random.RandomState(self.seed).permutation(self.labelled)[: self.kept]


def read_vouched(members: list[Any], split: np.ndarray, unlabelled: np.ndarray, classes: tuple[str, ...]) -> Vouched:
    """Return the pair after checking that both read the same columns and know the same classes."""
    if len(members) != 2 or any(member.classes != classes for member in members):
        raise Rejected("it consists of two classifiers with the same classes, student and teacher")
    columns = members[0].columns
    if members[1].columns != columns or unlabelled.ndim != 2 or unlabelled.shape[1] != columns:
        raise Rejected("student, teacher and unlabelled_ must have the same columns")
    if split.shape != (3,) or not 0 <= split[0] < 2**31 or not 0 <= split[2] <= split[1] < 2**40:
        raise Rejected("split_ must be a seed, the number of labelled rows, and how many of them are kept")
    return Vouched(members[0], members[1], split, unlabelled)


class VouchedRisk(Rule):
    """teacher.disagreement: error(student) <= error(teacher) + P[they differ].

    `errors` of the `kept` labelled rows, which the teacher did not see, give `teacher`, a limit of its error rate at
    delta / 2; on `differ` of the `unlabelled` rows the two may differ, which gives `difference` at delta / 2. A row on
    which rounding leaves a decision open counts as an error, or as one on which they differ. The issuer chose which
    rows are kept: `repeated` of the unlabelled ones nearly repeat a labelled row or another of them, and rows that do
    so more often than chance allows are rejected.
    """

    def prepare(self) -> None:
        model = self.model
        if not isinstance(model, Vouched):
            raise Rejected("it needs a student with a teacher")
        self.check_rows()
        if self.rows != model.labelled:
            raise Rejected(f"the model was fitted to {model.labelled} labelled rows, there are {self.rows}")
        if self.count("kept", 1) != model.kept or self.count("unlabelled", 1) != len(model.unlabelled):
            raise Rejected("kept and unlabelled are not the numbers of rows that the model keeps")
        self.delta = exact_decimal(self.claim.delta, "delta") / 2
        self.stated = self.count("errors"), self.count("differ")
        self.limits = self.number("teacher"), self.number("difference")
        self.kept = np.zeros(self.rows, dtype=bool)
        self.kept[model.kept_rows()] = True
        self.errors, self.keys = 0, list[np.ndarray]()

    def block(self, view: View) -> None:
        self.keys.append(keys_of(view.X))
        mine = self.kept[view.start : view.start + len(view.X)]
        if mine.any():
            guess, sure = decided(self.model.teacher, view.X[mine])
            self.errors += int(np.sum(~sure | (guess != view.known_codes[mine])))

    def measure(self) -> float:
        self._check_rows_kept()
        pairs = ((self.errors, self.model.kept), (self._differ(), len(self.model.unlabelled)))
        for (counted, of), stated, limit in zip(pairs, self.stated, self.limits):
            if not counted <= stated <= of:
                raise Rejected(f"{stated} of {of} rows stated, recounted {counted}")
            if limit < 1 and not binomial_at_most(stated, of, Fraction(limit)).high <= ln(self.delta):
                raise Rejected(f"the limit for {stated} of {of} rows lies above {limit:.10g}")
        return math.nextafter(float(Fraction(self.limits[0]) + Fraction(self.limits[1])), math.inf)

    def _check_rows_kept(self) -> None:
        labelled, unlabelled = np.concatenate(self.keys), keys_of(self.model.unlabelled)
        check_drawn(labelled[self.kept], labelled[~self.kept], "the rows kept from the teacher")
        check_drawn(unlabelled, labelled, "the rows without labels")
        if self.count("repeated") != (result := repeated(unlabelled, labelled)):
            raise Rejected(f"repeated is {self.params['repeated']}, recounted {result}")

    def _differ(self) -> int:
        X, differ = self.model.unlabelled, 0
        for start in range(0, len(X), _ROWS):
            self.context.clock.check()
            part = X[start : start + _ROWS]
            (own, sure), (other, other_sure) = (
                decided(item, part) for item in (self.model.student, self.model.teacher)
            )
            differ += int(np.sum(~sure | ~other_sure | (own != other)))
        return differ


_ACTIVATIONS = {
    "identity": lambda z: z,
    "logistic": expit,
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0.0),
}


@dataclass(frozen=True)
class Filling(Predictor):
    """A network of one hidden layer that predicts each column from the others; its scores are the hidden layer."""

    center: np.ndarray
    scale: np.ndarray
    W: np.ndarray
    b: np.ndarray
    V: np.ndarray
    c: np.ndarray
    activation: str

    @property
    def columns(self) -> int:
        return len(self.center)

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        hidden = self.hidden(self.scaled(X) @ self.W + self.b)
        return hidden, self._error((largest + np.abs(self.center)) / self.scale)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self._error((np.abs(X) + np.abs(self.center)) / self.scale)

    def _error(self, size: np.ndarray) -> np.ndarray:
        """No activation has a slope above 1, and its own rounding is a few units of at most |z| + 1."""
        return gamma(2 * self.columns + 32) * (size @ np.abs(self.W) + np.abs(self.b) + 1.0)

    def scaled(self, X: np.ndarray) -> np.ndarray:
        return (X - self.center) / self.scale

    def hidden(self, z: np.ndarray) -> np.ndarray:
        return _ACTIVATIONS[self.activation](z)

    def squared_errors(self, X: np.ndarray) -> tuple[float, float]:
        """Return the sum of squared errors of all entries, each hidden in turn, and a bound of its rounding."""
        Z, total, slack = self.scaled(X), 0.0, 0.0
        base, size = Z @ self.W + self.b, (np.abs(X) + np.abs(self.center)) / self.scale
        reach = self._error(size) * 4
        for j in range(Z.shape[1]):
            error = self.hidden(base - np.outer(Z[:, j], self.W[j])) @ self.V[:, j] + self.c[j] - Z[:, j]
            off = reach @ np.abs(self.V[:, j]) + gamma(len(self.b) + 16) * (
                (np.abs(base) + reach + np.outer(np.abs(Z[:, j]), np.abs(self.W[j])) + 1.0) @ np.abs(self.V[:, j])
                + np.abs(self.c[j])
                + size[:, j]
            )
            total += float(error @ error)
            slack += float((2 * np.abs(error) + off) @ off) + gamma(len(error) + 8) * float(error @ error)
        return total, slack


def read_masked(parameters: Mapping[str, Any], *arrays: Any) -> Filling:
    """Return the network after checking that its layers fit together."""
    center, scale, W, b, V, c, _ = arrays
    d, k = W.shape if W.ndim == 2 else (0, 0)
    shapes = [part.shape for part in (center, scale, b, V, c)]
    if not d or not k or shapes != [(d,), (d,), (k,), (k, d), (d,)] or np.any(scale <= 0):
        raise Rejected("the layers of the network do not fit together")
    if parameters.get("activation") not in _ACTIVATIONS or parameters.get("n_components") != k:
        raise Rejected("activation or n_components are not those of such a network")
    return Filling(center, scale, W, b, V, c, parameters["activation"])


class MaskedError(Rule):
    """masked.error: the mean over rows and columns of (entry - prediction from the others)^2, in units of `scale_`."""

    def prepare(self) -> None:
        if not isinstance(self.model, Filling):
            raise Rejected("it needs a network that fills hidden entries")
        self.check_rows()
        self.total = self.slack = 0.0

    def block(self, view: View) -> None:
        total, slack = self.model.squared_errors(view.X)
        self.total, self.slack = self.total + total, self.slack + slack

    def measure(self) -> float:
        return float(above((self.total + self.slack) / (self.rows * self.model.columns), self.rows + 64))


_VOUCHED = Sentence.plain(
    "The error rate on new data is at most {value:percent}: that of the teacher is at most {teacher:percent-up} "
    "({errors} errors on {kept} rows that it did not see), and the two differ on at most {difference:percent-up} of "
    "new data ({differ} of {unlabelled} rows without labels that neither saw, {repeated} of which nearly repeat a "
    "labelled row or another of them)."
)


_FIXED = Sentence(
    {
        "": "On the graph of {graph} of {stored} rows, {rows} of them labelled, {rule} changes no entry of the "
        "distributions by more than {value:up}.",
        "spread": "spreading with alpha = {alpha:g}",
        "mean": "taking the mean of its neighbours",
        "nearest": "the {k} nearest",
        "gaussian": "Gaussian weights (gamma = {gamma:g})",
    },
    lambda value, direction, params: {
        "rule": Part("spread" if params["alpha"] else "mean"),
        "graph": Part("nearest" if params["k"] else "gaussian"),
    },
)


_MASKED = Sentence.plain(
    "Each entry of the {rows} training rows, predicted from the others of its row, is off by a mean square of at most "
    "{value:up} in units of the columns' spread."
)


CLAIMS = {
    "D60/1": Definition("graph.fixed-point", FixedPoint, _FIXED),
    "D61/1": Definition("masked.error", MaskedError, _MASKED),
    "P60/1": Definition(
        "teacher.disagreement",
        VouchedRisk,
        _VOUCHED,
        ("A-IID(train)", "A-KEPT", "A-RNG", "A-DELTA"),
        quantity="error rate",
        own_assumptions={
            "A-KEPT": "the rows kept for the certificate, labelled ones from the teacher and unlabelled ones from both "
            "models, were drawn without looking at them, had no part in those fits, and come from the distribution of "
            "new data"
        },
    ),
}
FAMILY = Family(
    "semi",
    {
        "wrapped": Variant({}, read_wrapped, classes=True, members=True),
        "vouched": Variant({"split_": WHOLE, "unlabelled_": NUMBERS}, read_vouched, classes=True, members=True),
        "graph": Variant(
            {"fit_X_": NUMBERS, "labels_": WHOLE, "spread_": NUMBERS, "graph_numbers_": NUMBERS},
            read_graph,
            classes=True,
            probabilities=("counts",),
        ),
        "masked": Variant(
            dict.fromkeys(("center_", "scale_", "W_", "b_", "V_", "c_"), NUMBERS),
            read_masked,
            target=False,
            parameters=True,
        ),
    },
    CLAIMS,
)

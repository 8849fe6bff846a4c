"""Prefix codes for models and labels: how many bits a rule takes, and the prior that this is worth.

A code is fixed in advance, before the data are seen; then 2^-bits is a prior over models whose sum is at
most 1 (Kraft's inequality), and `pac.occam_bound(k, n, delta, -bits ln 2)` bounds the error of any model
that was encoded (Blumer, Ehrenfeucht, Haussler and Warmuth 1987). Every code here is real:
`decode(encode(model)) == model`, bits are text of 0 and 1.

Thresholds are dyadic points low + (high - low) m / 2^j, m odd, of a box fixed in advance: j takes j bits in
unary and m takes j - 1, together 2j - 1. A threshold learnt from data is replaced by the shortest such
point between the two data values it separates, which leaves the training error as it is.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from assay.theory import _checks as check

_DEEPEST = 52
Predictor = Callable[[Sequence[int]], Sequence[Fraction]]


def fixed(i: int, n: int) -> str:
    """Return the truncated binary code of i in 0..n-1: floor(log2 n) or one more bits.

    Parameters
    ----------
    i : int
        A number below n.
    n : int
        How many numbers there are.

    Returns
    -------
    str
        The code word.
    """
    k = n.bit_length() - 1
    short = 2 ** (k + 1) - n
    if i < short:
        return format(i, f"0{k}b") if k else ""
    return format(i + short, f"0{k + 1}b")


class Reader:
    """Reads what the codes wrote, from the left; refuses to read past the end.

    Parameters
    ----------
    bits : str
        A string of 0 and 1.
    """

    def __init__(self, bits: str) -> None:
        if set(bits) - {"0", "1"}:
            raise ValueError("a codeword consists of the characters 0 and 1.")
        self.bits, self.at = bits, 0

    def take(self, count: int) -> int:
        """Return the next `count` bits as a number.

        Parameters
        ----------
        count : int
            Number of bits.
        """
        if self.at + count > len(self.bits):
            raise ValueError("the codeword ends too early.")
        self.at += count
        return int(self.bits[self.at - count : self.at] or "0", 2)

    def fixed(self, n: int) -> int:
        """Return a number written by `fixed`.

        Parameters
        ----------
        n : int
            Number of values.
        """
        k = n.bit_length() - 1
        short, i = 2 ** (k + 1) - n, self.take(k)
        return i if i < short else 2 * i + self.take(1) - short

    def unary(self) -> int:
        """Return the number of ones before the next zero."""
        count = 0
        while self.take(1):
            count += 1
        return count

    def end(self) -> None:
        """Refuse bits that were not read."""
        if self.at != len(self.bits):
            raise ValueError(f"{len(self.bits) - self.at} bits follow the end of the codeword.")


@dataclass(frozen=True)
class Leaf:
    """A label 0..K-1.

    Parameters
    ----------
    label : int
        The label.
    """

    label: int


@dataclass(frozen=True)
class Split:
    """Rows with x[feature] <= at go left, the others right.

    Parameters
    ----------
    feature : int
        Number of the feature.
    at : float
        Threshold.
    left : Leaf or Split
        Subtree of rows up to the threshold.
    right : Leaf or Split
        Subtree of the others.
    """

    feature: int
    at: float
    left: "Leaf | Split"
    right: "Leaf | Split"


Tree = Leaf | Split


@dataclass(frozen=True)
class Rule:
    """A label for rows that meet all conditions (feature, at, above): x > at if above, else x <= at.

    Parameters
    ----------
    conditions : tuple of tuple of int, float, bool
        Conditions (feature, at, above).
    label : int
        Label of rows that meet all of them.
    """

    conditions: tuple[tuple[int, float, bool], ...]
    label: int


@dataclass(frozen=True)
class RuleList:
    """The first rule that matches decides, the default label if none does.

    Parameters
    ----------
    rules : tuple of Rule
        Rules, in order.
    default : int
        Label of rows that no rule matches.
    """

    rules: tuple[Rule, ...]
    default: int


@dataclass(frozen=True)
class ModelCode:
    """The code for trees and rule lists over features in boxes [low_j, high_j] and K labels.

    Parameters
    ----------
    low : tuple of float
        Smallest value of each feature.
    high : tuple of float
        Largest value of each feature.
    n_classes : int
        Number of classes.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    n_classes: int

    def __post_init__(self) -> None:
        check.whole("n_classes", self.n_classes, low=2)
        sound = all(math.isfinite(a) and math.isfinite(b) and a < b for a, b in zip(self.low, self.high))
        if not self.low or len(self.low) != len(self.high) or not sound:
            raise ValueError("low and high must be finite, of one length, and low < high for every feature.")

    def point(self, feature: int, j: int, m: int) -> float:
        """Return low + (high - low) m / 2^j of a feature, rounded once.

        Parameters
        ----------
        feature : int
            Number of the feature.
        j, m : int
            The point m / 2^j.
        """
        low, high = Fraction(self.low[feature]), Fraction(self.high[feature])
        return float(low + (high - low) * Fraction(m, 2**j))

    def shortest(self, feature: int, left: float, right: float) -> float:
        """Return the point t with the shortest code such that left <= t < right.

        Parameters
        ----------
        feature : int
            Number of the feature.
        left, right : float
            Ends of the interval.
        """
        low, high = Fraction(self.low[feature]), Fraction(self.high[feature])
        for j in range(1, _DEEPEST + 1):
            m = math.ceil((Fraction(left) - low) / (high - low) * 2**j)
            for odd in (m, m + 1):
                if odd % 2 and 0 < odd < 2**j and left <= self.point(feature, j, odd) < right:
                    return self.point(feature, j, odd)
        raise ValueError(f"no point of the box of feature {feature} lies between {left!r} and {right!r}.")

    def _threshold(self, feature: int, at: float) -> str:
        low, high = Fraction(self.low[feature]), Fraction(self.high[feature])
        for j in range(1, _DEEPEST + 1):
            m = round((Fraction(at) - low) / (high - low) * 2**j)
            if m % 2 and 0 < m < 2**j and self.point(feature, j, m) == at:
                return "1" * (j - 1) + "0" + (format(m // 2, f"0{j - 1}b") if j > 1 else "")
        raise ValueError(f"{at!r} is not a dyadic point of the box of feature {feature}; use shortest().")

    def _read_threshold(self, reader: Reader, feature: int) -> float:
        j = reader.unary() + 1
        return self.point(feature, j, 2 * reader.take(j - 1) + 1)

    def encode(self, model: Tree | RuleList) -> str:
        """Return the codeword of a tree or of a rule list."""
        return "1" + self._list(model) if isinstance(model, RuleList) else "0" + self._tree(model)

    def decode(self, bits: str) -> Tree | RuleList:
        """Return the model behind a codeword; refuse anything that is not exactly one codeword.

        Parameters
        ----------
        bits : str
            A string of 0 and 1.
        """
        reader = Reader(bits)
        model: Tree | RuleList = self._read_list(reader) if reader.take(1) else self._read_tree(reader)
        reader.end()
        return model

    def log_prior(self, model: Tree | RuleList) -> float:
        """Return -bits ln 2, for `pac.occam_bound`."""
        return -len(self.encode(model)) * math.log(2.0)

    def _tree(self, tree: Tree) -> str:
        if isinstance(tree, Leaf):
            return "0" + fixed(tree.label, self.n_classes)
        test = fixed(tree.feature, len(self.low)) + self._threshold(tree.feature, tree.at)
        return "1" + test + self._tree(tree.left) + self._tree(tree.right)

    def _read_tree(self, reader: Reader) -> Tree:
        if not reader.take(1):
            return Leaf(reader.fixed(self.n_classes))
        feature = reader.fixed(len(self.low))
        return Split(feature, self._read_threshold(reader, feature), self._read_tree(reader), self._read_tree(reader))

    def _list(self, rules: RuleList) -> str:
        text = ""
        for rule in rules.rules:
            tests = (
                "1" + fixed(feature, len(self.low)) + self._threshold(feature, at) + ("1" if above else "0")
                for feature, at, above in rule.conditions
            )
            text += "1" + "".join(tests) + "0" + fixed(rule.label, self.n_classes)
        return text + "0" + fixed(rules.default, self.n_classes)

    def _read_list(self, reader: Reader) -> RuleList:
        rules = []
        while reader.take(1):
            conditions = []
            while reader.take(1):
                feature = reader.fixed(len(self.low))
                at = self._read_threshold(reader, feature)
                conditions.append((feature, at, bool(reader.take(1))))
            rules.append(Rule(tuple(conditions), reader.fixed(self.n_classes)))
        return RuleList(tuple(rules), reader.fixed(self.n_classes))

    def rounded(self, tree: Tree, X: ArrayLike) -> Tree:
        """Return the tree with the shortest thresholds that send every row of X where it went before.

        Parameters
        ----------
        tree : Split or Leaf
            The tree.
        """
        return self._rounded(tree, np.asarray(X, dtype=np.float64))

    def _rounded(self, tree: Tree, X: np.ndarray) -> Tree:
        if isinstance(tree, Leaf):
            return tree
        column = X[:, tree.feature]
        goes_left = column <= tree.at
        if goes_left.all() or not goes_left.any():
            return self._rounded(tree.left if goes_left.all() else tree.right, X)
        at = self.shortest(tree.feature, float(column[goes_left].max()), float(column[~goes_left].min()))
        return Split(tree.feature, at, self._rounded(tree.left, X[goes_left]), self._rounded(tree.right, X[~goes_left]))


def predict(model: Tree | RuleList, X: ArrayLike) -> np.ndarray:
    """Return the label of each row under a tree or a rule list.

    Parameters
    ----------
    model : Split or Leaf or RuleList
        The tree or list.
    X : array-like
        Rows.

    Returns
    -------
    ndarray
        A label for each row.
    """
    rows = np.asarray(X, dtype=np.float64)
    return np.array([_label(model, row) for row in rows], dtype=np.int64)


def _label(model: Tree | RuleList, row: np.ndarray) -> int:
    if isinstance(model, RuleList):
        for rule in model.rules:
            if all((row[feature] > at) == above for feature, at, above in rule.conditions):
                return rule.label
        return model.default
    while isinstance(model, Split):
        model = model.left if row[model.feature] <= model.at else model.right
    return model.label


@dataclass(frozen=True)
class LinearCode:
    """The code for vectors of integer weights in -steps..steps, few of them not zero.

    The number of non-zero weights, their positions, then each as one of 2 steps values.

    Parameters
    ----------
    features : int
        Number of weights.
    steps : int
        Largest absolute weight.
    """

    features: int
    steps: int

    def encode(self, weights: Sequence[int]) -> str:
        """Return the codeword of integer weights in -steps..steps.

        Parameters
        ----------
        weights : sequence of int
            Integer weights.
        """
        if len(weights) != self.features or any(abs(int(w)) > self.steps for w in weights):
            raise ValueError(f"weights must be {self.features} integers in [-{self.steps}, {self.steps}].")
        used = [i for i, w in enumerate(weights) if w]
        rank = sum(math.comb(position, i + 1) for i, position in enumerate(used))
        text = fixed(len(used), self.features + 1) + fixed(rank, math.comb(self.features, len(used)))
        values = (int(weights[i]) + self.steps - (1 if weights[i] > 0 else 0) for i in used)
        return text + "".join(fixed(value, 2 * self.steps) for value in values)

    def decode(self, bits: str) -> tuple[int, ...]:
        """Return the weights behind a codeword.

        Parameters
        ----------
        bits : str
            A string of 0 and 1.
        """
        reader = Reader(bits)
        count = reader.fixed(self.features + 1)
        rank, used = reader.fixed(math.comb(self.features, count)), []
        for i in range(count, 0, -1):
            position = next(p for p in range(self.features - 1, -1, -1) if math.comb(p, i) <= rank)
            used.append(position)
            rank -= math.comb(position, i)
        weights = [0] * self.features
        for position in sorted(used):
            value = reader.fixed(2 * self.steps) - self.steps
            weights[position] = value + 1 if value >= 0 else value
        reader.end()
        return tuple(weights)


class ShortestRule(NamedTuple):
    """The rule, its training errors, its length and that of the table of labels in bits, and whether it is shorter.

    Parameters
    ----------
    rule : object
        The rule.
    errors : int
        Number of its training errors.
    bits : float
        Its length.
    table_bits : float
        Length of the list of labels.
    accepted : bool
        Whether the rule is shorter than the list.
    """

    rule: Any
    errors: int
    bits: float
    table_bits: float
    accepted: bool


def shortest_rule(
    rules: Iterable[Any],
    rows: Any,
    labels: Any,
    *,
    length: Callable[[Any], float],
    predict: Callable[[Any, Any], Any] = lambda rule, rows: rule(rows),
    n_labels: int | None = None,
) -> ShortestRule:
    """Return, of the rules with the fewest training errors, the shortest: Occam's razor.

    It is accepted only if it is shorter than writing down the labels, `table_bits(rows, labels)`: else nothing was
    learnt that a list of the labels does not say.

    Parameters
    ----------
    rules : iterable of object
        Rules that are compared.
    rows : array-like
        Training rows.
    labels : array-like
        Labels 0..K-1.
    length : callable
        Number of bits of a rule.
    predict : callable
        Labels that a rule gives to rows.
    n_labels : int or None
        Number of classes; None: as many as there are in the labels.

    Returns
    -------
    ShortestRule
        The rule and its length.

    Examples
    --------
    >>> rules = {"all": lambda x: [1] * len(x), "above two": lambda x: [int(v > 2) for v in x]}
    >>> found = shortest_rule(rules, [1, 2, 3, 4], [0, 0, 1, 1], length=len, predict=lambda name, x: rules[name](x))
    >>> found.rule, found.errors, found.bits, found.table_bits, found.accepted
    ('above two', 0, 9.0, 4.0, False)
    """
    labels = np.asarray(labels)
    best = min(
        ((int(np.sum(np.asarray(predict(rule, rows)) != labels)), float(length(rule)), i, rule)
         for i, rule in enumerate(rules)),
        key=lambda found: found[:3],
        default=None,
    )  # fmt: skip
    if best is None:
        raise ValueError("shortest_rule: there is no rule to choose from.")
    errors, bits, _, rule = best
    listed = float(table_bits(len(labels), max(2, len(np.unique(labels)) if n_labels is None else n_labels)))
    return ShortestRule(rule, errors, bits, listed, bits < listed)


def table_bits(n: int, n_classes: int) -> int:
    """Return n log2 K, rounded up: the bits of listing the labels of n rows. A rule must be shorter.

    Parameters
    ----------
    n : int
        Number of rows.
    n_classes : int
        Number of classes.

    Returns
    -------
    int
        Number of bits.
    """
    return math.ceil(check.whole("n", n) * math.log2(check.whole("n_classes", n_classes, low=2)) - 1e-9)


def laplace(n_classes: int) -> Predictor:
    """Return Laplace's rule: the next label is k with probability (times seen + 1) / (labels seen + K).

    Parameters
    ----------
    n_classes : int
        Number of classes.

    Returns
    -------
    callable
        The predictor.
    """
    n_classes = check.whole("n_classes", n_classes, low=2)

    def probabilities(past: Sequence[int]) -> list[Fraction]:
        return [Fraction(sum(y == k for y in past) + 1, len(past) + n_classes) for k in range(n_classes)]

    return probabilities


def code_length(labels: Sequence[int], predictor: Predictor) -> float:
    """Return sum_t -log2 P(y_t | y_1 .. y_{t-1}) in bits: prediction is compression.

    Parameters
    ----------
    labels : sequence of int
        Labels 0..K-1.
    predictor : callable
        Probabilities of the next label, given the labels so far.

    Returns
    -------
    float
        Number of bits.
    """
    return -math.fsum(math.log2(predictor(labels[:t])[y]) for t, y in enumerate(labels))


def arithmetic_encode(labels: Sequence[int], predictor: Predictor) -> str:
    """Return fewer than code_length + 2 bits from which `arithmetic_decode` gets the labels back.

    Each label narrows an interval of [0, 1) in proportion to its probability; the shortest binary fraction
    whose own interval lies inside names it.

    Parameters
    ----------
    labels : sequence of int
        Labels 0..K-1.
    predictor : callable
        Probabilities of the next label, given the labels so far.

    Returns
    -------
    str
        The bits.
    """
    low, width = Fraction(0), Fraction(1)
    for t, y in enumerate(labels):
        p = predictor(labels[:t])
        low += width * sum(p[:y], Fraction(0))
        width *= p[y]
        if not width > 0:
            raise ValueError(f"label {y} at position {t} was given probability 0, so it cannot be encoded.")
    bits = 0
    while True:
        number = math.ceil(low * 2**bits)
        if Fraction(number + 1, 2**bits) <= low + width:
            return format(number, f"0{bits}b") if bits else ""
        bits += 1


def arithmetic_decode(bits: str, count: int, predictor: Predictor) -> list[int]:
    """Return the `count` labels behind the bits.

    Parameters
    ----------
    bits : str
        A string of 0 and 1.
    count : int
        Number of labels.
    predictor : callable
        Probabilities of the next label, given the labels so far.

    Returns
    -------
    list of int
        The labels.
    """
    value, low, width = Fraction(int(bits or "0", 2), 2 ** len(bits)), Fraction(0), Fraction(1)
    labels: list[int] = []
    for _ in range(count):
        p = predictor(labels)
        y = 0
        while value >= low + width * p[y]:
            low += width * p[y]
            y += 1
        width *= p[y]
        labels.append(y)
    return labels

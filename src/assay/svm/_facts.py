"""What kernel machines prove about their training rows (the producer's side; the checker has its own).

Scores are recomputed in double precision; every published number is enlarged by more than rounding can hide.
"""

import math
from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.evidence import NOBODY, OPEN
from assay.kernels import Kernel, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from assay.kernels._tiles import double_expansion
from assay.optim.duality import enclosure, outward
from assay.scan import Rows
from assay.svm._base import support_rows

_UNIT = 2.0**-53
_SHORTEN = 1 - 1e-12


def kernel_magnitude(kernel: Kernel, X: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each row bounds of |kappa(x, v)| and of its rounding, four times what the formulas give."""
    if isinstance(kernel, Precomputed):
        size = np.abs(X).max(axis=1, initial=0.0)
        return size, 8 * _UNIT * size
    d = X.shape[1]
    x = np.sqrt(np.einsum("ij,ij->i", X, X))
    v = float(np.sqrt(np.einsum("ij,ij->i", vectors, vectors)).max(initial=0.0))
    ones, roundings = np.ones(len(X)), 4 * (2 * d + 40) * _UNIT
    if isinstance(kernel, Linear):
        return x * v, roundings * x * v
    if isinstance(kernel, Laplacian):
        return ones, roundings * (1 + kernel.gamma * d * _UNIT) * ones
    if isinstance(kernel, Polynomial):
        size = (kernel.gamma * x * v + abs(kernel.coef0)) ** kernel.degree
        return size, 4 * (kernel.degree + 1) * roundings * size
    if isinstance(kernel, Sigmoid):
        return ones, roundings * (1 + abs(kernel.gamma) * x * v + abs(kernel.coef0))
    gamma = getattr(kernel, "gamma", 1.0)
    return ones, roundings * (1 + gamma * (x + v) ** 2)


def scores(machine: Any, block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Return the score of each pair, (n, pairs), in double precision, and how far rounding can move it.

    While a certificate is issued they are kept: most of its claims ask for them. The rows are kept with them, so
    that no other rows can come to lie at the same address.
    """
    kept = getattr(machine, "_kept_scores", None)
    if kept is None:
        return _scores(machine, block)
    place = (block.X.__array_interface__["data"][0], block.X.shape)
    if place not in kept:
        kept[place] = (block.X, *_scores(machine, block))
    return kept[place][1:]


def _scores(machine: Any, block: Block) -> tuple[np.ndarray, np.ndarray]:
    kernel = machine._kernel()
    vectors, coef = support_rows(machine), machine.pair_coef_
    if isinstance(kernel, Precomputed):
        values = block.X[:, machine.support_] @ coef.T
    else:
        values = double_expansion(kernel, vectors, coef, block.X)
    size, slack = kernel_magnitude(kernel, block.X, vectors)
    m = coef.shape[1]
    slip = slack + 4 * (2 * m + 32) * _UNIT * size
    error = np.outer(slip, np.abs(coef).sum(axis=1)) * 1.01 + 64 * _UNIT * np.abs(machine.intercept_)
    return values + machine.intercept_, error


# Counts -----------------------------------------------------------------------------------------------------


def bounded_scores(block: Block, machine: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the score of each row, (rows, 1), and how far rounding can move it."""
    values, error = scores(machine, block)
    return values, 1.01 * error[:, 0]


def decided(block: Block, machine: Any) -> np.ndarray:
    """Return the class that most pairs vote for; NOBODY for a tie, OPEN where rounding leaves the vote of a pair so."""
    from assay.svm._pairwise_classifier import votes

    values, error = scores(machine, block)
    sure = ((np.abs(values) > error) | (error == 0)).all(axis=1)
    counted = votes(values, len(machine.classes_))
    tied = (counted == counted.max(axis=1)[:, None]).sum(axis=1) > 1
    return np.where(sure, np.where(tied, NOBODY, counted.argmax(axis=1)), OPEN)


# Gaps -------------------------------------------------------------------------------------------------------


def why_no_gap(machine: Any) -> str | None:
    """Return why no gap can be claimed, or None."""
    kernel = machine._kernel()
    if isinstance(kernel, Precomputed):
        return "The Gram matrix was given: nothing proves that it is positive semidefinite."
    if machine.chosen_kernel_ == "given":
        return "The kernel is a function or object which the checker does not have."
    if not kernel.psd:
        return f"{kernel!r} is not positive semidefinite in general: the problem is not convex."
    return None


def dual_gap(machine: Any, rows: Rows, output: int, bracket: Any) -> float:
    """Return the duality gap of one machine at theta = beta, shortened and balanced; bracket(block, f,
    error, theta) per row."""
    beta = machine.pair_coef_[output]
    positive, negative = float(beta[beta > 0].sum()), float(-beta[beta < 0].sum())
    least = min(positive, negative)
    factor = np.where(beta > 0, least / max(positive, 1e-300), least / max(negative, 1e-300)) * _SHORTEN
    own = np.sqrt(np.maximum(machine._kernel().diagonal(support_rows(machine)), 0.0)) if len(beta) else beta
    apart = float((np.abs(beta) * (1 - factor + 1e-14) * own).sum())
    theta = np.zeros(rows.n_rows)
    theta[machine.support_] = beta * factor

    def part(block: Block) -> float:
        values, error = scores(machine, block)
        dual = theta[block.start : block.start + len(block.X)]
        return float(
            np.sum(bracket(block, values[:, output], error[:, output] + 1e-13 * np.abs(values[:, output]), dual))
        )

    return outward(float(np.sum(rows.map(part))) * (1 + 1e-10) + 0.51 * apart**2 + 1e-13)


def hinge_bracket(
    machine: Any, pair: tuple[int, int], block: Block, f: np.ndarray, error: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    """Return c (max(0, 1 - y f) - a + a y f), a = theta y, of each row of a pair of classes, rounded up; 0 for
    others."""
    first, second = pair
    inside = (block.y == first) | (block.y == second)
    y = np.where(block.y == first, 1.0, -1.0)
    c = machine.C * machine.class_weight_[block.y] * (1.0 if block.weight is None else block.weight) * inside
    a, s = np.minimum(theta * y, c), 1 - y * f
    return np.maximum((c - a) * s, -a * s) + c * (error + 1e-12 * (1 + np.abs(s)))


def classifier_facts(machine: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield D10 for each pair of classes, D15, and for a hard margin D13 from both sides."""
    reason = why_no_gap(machine)
    if reason is not None:
        yield NotApplicable("D10/1", reason)
        if np.isfinite(getattr(machine, "C", np.inf)) and machine.chosen_kernel_ != "given":
            for p, pair, params in _pairs(machine):
                yield Claim("D15/2", _kkt_residual(machine, rows, p, pair), params=params)
        return
    C = getattr(machine, "C", None)
    if C is None:
        yield NotApplicable("D10/1", "The problem with nu has no C of its own; SVC at C = 1/rho is the same machine.")
        return
    if np.isinf(C):
        yield NotApplicable(
            "D10/1", "A hard margin has no losses to weigh; its optimality is the margin from both sides."
        )
        if len(machine.classes_) == 2:
            yield from _margin_claims(machine, rows)
        return
    for p, pair, params in _pairs(machine):
        gap = dual_gap(machine, rows, p, partial(hinge_bracket, machine, pair))
        yield Claim("D10/1", gap, params=params)
        yield Claim("D15/2", _kkt_residual(machine, rows, p, pair), params=params)
        if len(machine.classes_) == 2:
            yield enclosure("D10/1", gap, 1.0)
    free = "A free intercept is not held by the penalty: the gap does not bound what a row left out changes."
    yield NotApplicable("D16/2", free)


def _pairs(machine: Any) -> Iterator[tuple[int, tuple[int, int], dict[str, Any]]]:
    """Yield number, classes and the claims' parameters of each pair of classes."""
    n_classes, weights = len(machine.classes_), machine.class_weight_
    common = {"C": float(machine.C), "class_weight": None if machine.class_weight is None else weights.tolist()}
    if n_classes == 2:
        yield 0, (1, 0), common
        return
    for p, pair in enumerate(combinations(range(n_classes), 2)):
        yield p, pair, {**common, "pair": p}


def _kkt_residual(machine: Any, rows: Rows, output: int, pair: tuple[int, int]) -> float:
    """Return by how much some alpha y that can rise would gain over one that can fall, rounded up."""
    beta = np.zeros(rows.n_rows)
    beta[machine.support_] = machine.pair_coef_[output]

    def part(block: Block) -> tuple[float, float]:
        values, error = scores(machine, block)
        y = np.where(block.y == pair[0], 1.0, -1.0)
        c = machine.C * machine.class_weight_[block.y] * (1.0 if block.weight is None else block.weight)
        used = np.isin(block.y, pair) & (c > 0)
        own = beta[block.start : block.start + len(y)]
        below, nonzero = np.abs(own) < _SHORTEN * c, own != 0
        e, slack = y - values[:, output], 1.01 * error[:, output] + 1e-14 * (1 + np.abs(values[:, output]))
        rise = used & np.where(y > 0, below, nonzero)
        fall = used & np.where(y > 0, nonzero, below)
        return float((e + slack)[rise].max(initial=-np.inf)), float((e - slack)[fall].min(initial=np.inf))

    ends = np.array(rows.map(part))
    highest, lowest = float(ends[:, 0].max()), float(ends[:, 1].min())
    return outward(max(0.0, highest - lowest)) if np.isfinite(highest - lowest) else 0.0


def one_class_facts(machine: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield D12: alpha is beta, its sum mended, in the problem scaled so that alpha_i lies in [0, s_i]."""
    reason = why_no_gap(machine)
    if reason is not None:
        yield NotApplicable("D12/1", reason)
        return
    nu, beta = float(machine.nu), machine.pair_coef_[0]
    weight = np.concatenate(rows.map(lambda block: np.ones(len(block.X)) if block.weight is None else block.weight))
    room, wanted, total = weight[machine.support_], nu * math.fsum(weight), math.fsum(beta)
    free = math.fsum(room - beta)
    if total >= wanted:
        alpha = beta * (wanted / total)
    elif wanted - total <= free:
        alpha = beta + (room - beta) * ((wanted - total) / free)
    else:
        yield NotApplicable("D12/1", "The dual vector misses its sum by more than the box allows.")
        return
    dual = np.zeros(len(weight))
    dual[machine.support_] = alpha
    own = np.sqrt(np.maximum(machine._kernel().diagonal(support_rows(machine)), 0.0))
    apart = float(((np.abs(alpha - beta) + 1e-13 * (room + beta)) * own).sum()) * (1 + 1e-9)

    def part(block: Block) -> float:
        values, error = scores(machine, block)
        here = slice(block.start, block.start + len(values))
        short, s, a = -values[:, 0], weight[here], dual[here]
        slack = (s + a) * (1.01 * error[:, 0] + 1e-13 * (np.abs(short) + error[:, 0]))
        return float(np.sum(np.maximum(np.where(short > 0, (s - a) * short, -a * short), 0.0) + slack))

    yield Claim("D12/1", outward(float(np.sum(rows.map(part))) * (1 + 1e-9) + 0.51 * apart**2), params={"nu": nu})


def _margin_claims(machine: Any, rows: Rows) -> Iterator[Claim]:
    beta = machine.pair_coef_[0]
    kernel = machine._kernel()
    square = float(beta @ kernel(support_rows(machine)) @ beta)

    def part(block: Block) -> tuple[float, float]:
        values, error = scores(machine, block)
        f, second = values[:, 0] - machine.intercept_[0], block.y == 1
        low = np.min(f[second] - 2 * error[second, 0], initial=np.inf)
        return float(low), float(np.min(-f[~second] - 2 * error[~second, 0], initial=np.inf))

    width = float(np.min(np.array(rows.map(part)), axis=0).sum())
    total = min(float(beta[beta > 0].sum()), float(-beta[beta < 0].sum()))
    lower = width / (2 * math.sqrt(square)) * (1 - 1e-9)
    unequal = abs(float(beta.sum())) / total
    most = float(np.abs(kernel.diagonal(support_rows(machine))).max())
    upper = 0.5 * (math.sqrt(square) / total) * (1 + 1e-9) + 1.01 * unequal * math.sqrt(most) + 1e-12
    if lower > 0:
        yield Claim("D13/2", lower, "lower")
    yield Claim("D13/2", upper, "upper")


def regressor_facts(machine: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield D11 and D15."""
    reason = why_no_gap(machine)
    if reason is not None:
        yield NotApplicable("D11/1", reason)
        return
    C, epsilon = float(machine.C), machine.epsilon_

    def insensitive(block: Block, f: np.ndarray, error: np.ndarray, theta: np.ndarray) -> np.ndarray:
        c = C * (np.ones(len(f)) if block.weight is None else block.weight)
        r, t = block.y - f, np.clip(theta, -c, c)
        value = c * np.maximum(np.abs(r) - epsilon, 0.0) - t * r + epsilon * np.abs(t)
        return value + 2 * c * (error + 1e-12 * (1 + np.abs(r) + np.abs(block.y) + epsilon))

    gap = dual_gap(machine, rows, 0, insensitive)
    yield Claim("D11/1", gap, params={"C": C, "epsilon": float(epsilon)})
    yield enclosure("D11/1", gap, 1.0)

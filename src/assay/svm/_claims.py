"""What kernel machines prove about their training rows and say about new data (the producer's side; the checker has its
own).

MarginScores are recomputed in double precision; every published number is enlarged by more than rounding can hide.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import combinations
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.compression import Supported, kernel_perceptron_statement, support_statement
from assay.guarantees.evidence import NOBODY, OPEN, Norm
from assay.guarantees.ledger import Statement
from assay.guarantees.margins import MarginScores, statements
from assay.kernels import Gaussian, Kernel, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from assay.kernels._tiles import double_expansion
from assay.losses import log_loss
from assay.messages import Message
from assay.optim.duality import enclosure, outward
from assay.scan import Rows
from assay.svm._base import support_rows

_UNIT = 2.0**-53
_SHORTEN = 1 - 1e-12  # keeps theta inside its box whatever the order in which C_i was rounded
GAP = "kernel-duality-gap"


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
    gamma = kernel.gamma if isinstance(kernel, Gaussian) else 1.0
    return ones, roundings * (1 + gamma * (x + v) ** 2)


def scores(machine: Any, block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Return the score of each pair, (n, pairs), in double precision, and how far rounding can move it.

    While a certificate is issued they are kept: most of its claims ask for them. The rows are kept with them, so
    that no other rows can come to lie at the same address.
    """
    kept = machine._kept_scores
    if kept is None:
        return computed_scores(machine, block)
    place = (block.X.__array_interface__["data"][0], block.X.shape)
    if place not in kept:
        kept[place] = (block.X, *computed_scores(machine, block))
    return kept[place][1:]


def computed_scores(machine: Any, block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Return what `scores` returns, computed anew."""
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
        return Message("why.gram-definite")
    if machine.chosen_kernel_ == "given":
        return Message("why.kernel-function")
    if not kernel.psd:
        return Message("why.kernel-indefinite", kernel=kernel)
    return None


class MachineProblem(NamedTuple):
    """l2/2 |w|^2 + sum C_i loss(y_i, f_i) of one output of a machine: y = +1 for the first of `sides` and -1 for the
    second, or for all others if there is no second; `which` says to claims which output it is."""

    loss: str
    C: float
    l2: float = 1.0
    intercept: bool = True
    epsilon: float | None = None
    class_weight: np.ndarray | None = None
    output: int = 0
    sides: tuple[int, ...] | None = (1, 0)
    which: Mapping[str, int] = MappingProxyType({})

    def costs_and_targets(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        c = self.C * (np.ones(len(block.X)) if block.weight is None else block.weight)
        if self.sides is None:
            return c, block.y
        c = c if self.class_weight is None else c * self.class_weight[block.y]
        inside = np.isin(block.y, self.sides) if len(self.sides) == 2 else True
        return np.where(inside, c, 0.0), np.where(block.y == self.sides[0], 1.0, -1.0)

    def params(self) -> dict[str, Any]:
        """Return the parameters of the claim of the gap."""
        stated = {
            "loss": self.loss,
            "loss_params": {} if self.epsilon is None else {"epsilon": self.epsilon},
            "penalty": {"L2": self.l2},
            "C": self.C,
            "intercept": self.intercept,
            **self.which,
        }
        if self.sides is None:
            return stated
        return {**stated, "class_weight": None if self.class_weight is None else self.class_weight.tolist()}


def gap_claims(machine: Any, rows: Rows, problem: MachineProblem) -> Iterator[Claim]:
    """Yield the claim of the gap and, where the machine has one output alone, the enclosure that follows.

    The dual vector is what the machine itself is; of the squared loss without intercept also the slopes, and the
    smaller gap is claimed.
    """
    duals = ("model", "slopes") if problem.loss == "squared" and not problem.intercept else ("model",)
    gap, dual = min((machine_gap(machine, rows, problem, dual), dual) for dual in duals)
    yield Claim(GAP, gap, params={**problem.params(), "dual": dual})
    if not problem.which:
        yield enclosure(GAP, gap, problem.l2)


def machine_gap(
    machine: Any, rows: Rows, problem: MachineProblem, dual: str = "model", kept: np.ndarray | None = None
) -> float:
    """Return an upper bound of the duality gap |l2 w - v|^2 / (2 l2) + sum of brackets, v = sum theta_i phi(x_i).

    theta is l2 beta, shortened and balanced, or the slopes of the loss; the problem may be that of the `kept` rows.
    """
    beta, theta = np.zeros(rows.n_rows), np.zeros(rows.n_rows)
    beta[machine.support_] = problem.l2 * machine.pair_coef_[problem.output]
    theta[:] = balanced(beta, problem.intercept) * _SHORTEN
    kernel = machine._kernel()

    def part(block: Block) -> tuple[float, float]:
        values, error = scores(machine, block)
        f, here = values[:, problem.output], slice(block.start, block.start + len(values))
        c, y = problem.costs_and_targets(block)
        c = c if kept is None else np.where(kept[here], c, 0.0)
        own = c * (y - f) if dual == "slopes" else theta[here]
        slack = error[:, problem.output] + 1e-13 * np.abs(f)
        lengths = np.sqrt(np.maximum(kernel.diagonal(block.X), 0.0))
        apart = (np.abs(beta[here] - own) + 1e-14 * (np.abs(beta[here]) + np.abs(own))) @ lengths
        return float(np.sum(_BRACKETS[problem.loss](c, y, f, slack, own, problem.epsilon))), float(apart)

    brackets, apart = np.sum(rows.map(part), axis=0).tolist()
    return outward(brackets * (1 + 1e-10) + 0.5 * apart**2 * (1 + 1e-9) / problem.l2 + 1e-13)


def balanced(beta: np.ndarray, intercept: bool) -> np.ndarray:
    """Return beta, with an intercept with the heavier of its positive and negative sides shortened until it sums to
    zero."""
    if not intercept:
        return beta
    positive, negative = float(beta[beta > 0].sum()), float(-beta[beta < 0].sum())
    least = min(positive, negative)
    return beta * np.where(beta > 0, least / max(positive, 1e-300), least / max(negative, 1e-300))


# Upper bounds of c (loss(f) + loss*(-tau) + tau f), c tau = theta, for all scores within `error` of f, of each row.
def _hinge(
    c: np.ndarray, y: np.ndarray, f: np.ndarray, error: np.ndarray, theta: np.ndarray, _epsilon: None
) -> np.ndarray:
    a, s = np.minimum(theta * y, c), 1 - y * f
    return np.maximum((c - a) * s, -a * s) + c * (error + 1e-12 * (1 + np.abs(s)))


def _insensitive(
    c: np.ndarray, y: np.ndarray, f: np.ndarray, error: np.ndarray, theta: np.ndarray, epsilon: float
) -> np.ndarray:
    r, t = y - f, np.clip(theta, -c, c)
    value = c * np.maximum(np.abs(r) - epsilon, 0.0) - t * r + epsilon * np.abs(t)
    return value + 2 * c * (error + 1e-12 * (1 + np.abs(r) + np.abs(y) + epsilon))


def _squared(
    c: np.ndarray, y: np.ndarray, f: np.ndarray, error: np.ndarray, theta: np.ndarray, _epsilon: None
) -> np.ndarray:
    tau = np.divide(theta, c, out=np.zeros_like(theta), where=c > 0)
    return 0.5 * c * (np.abs(y - f - tau) + error + 1e-13 * (np.abs(y) + np.abs(f) + np.abs(tau))) ** 2


def _logistic(
    c: np.ndarray, y: np.ndarray, f: np.ndarray, error: np.ndarray, theta: np.ndarray, _epsilon: None
) -> np.ndarray:
    """kl(p || s), p = |tau| and s = sigma(-y f), has slope at most 1 in f, and is at most (p - s)^2 / (s (1 - s)),
    which is sharper where p is close to s."""
    slack = error + 1e-13
    p, s, rest = share(np.abs(theta), c), expit(-y * f), expit(y * f)
    distance = np.abs(p - s) + 2 * slack * s * rest + 1e-14 * (p + s)
    square = 1.01 * distance**2 / np.maximum(s * rest, 1e-300)
    return c * np.minimum(divergence(p, y * f) + 2 * slack, square)


def share(theta: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Return theta / cost, 0 where a row costs nothing."""
    return np.divide(theta, cost, out=np.zeros_like(theta), where=cost > 0)


def divergence(p: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return kl(p || sigma(-z))."""
    assert log_loss.dual is not None
    return log_loss.dual.bracket(1.0, z, p)


_BRACKETS: dict[str, Callable[..., np.ndarray]] = {
    "hinge": _hinge,
    "epsilon-insensitive": _insensitive,
    "squared": _squared,
    "logistic": _logistic,
}


def classifier_facts(machine: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield kernel-duality-gap for each pair of classes, solution.enclosure, and for a hard margin margin.bounds from
    both sides."""
    reason = why_no_gap(machine)
    if reason is not None:
        yield NotApplicable(GAP, reason)
        if machine._cost is not None and np.isfinite(machine._cost) and machine.chosen_kernel_ != "given":
            for p, pair, params in _pairs(machine):
                yield Claim("kkt.residual", _kkt_residual(machine, rows, p, pair), params=params)
        return
    C = machine._cost
    if C is None:
        yield NotApplicable(GAP, Message("why.nu-problem"))
        return
    if np.isinf(C):
        yield NotApplicable(GAP, Message("why.hard-margin"))
        if len(machine.classes_) == 2:
            yield from _margin_claims(machine, rows)
        return
    for p, pair, params in _pairs(machine):
        yield from gap_claims(machine, rows, hinge_problem(machine, p, pair))
        yield Claim("kkt.residual", _kkt_residual(machine, rows, p, pair), params=params)
    free = Message("why.free-intercept-gap")
    yield NotApplicable("loo.errors", free)


def hinge_problem(machine: Any, output: int = 0, pair: tuple[int, int] = (1, 0)) -> MachineProblem:
    """Return the problem of one pair of classes."""
    weights = None if machine.class_weight is None else machine.class_weight_
    which = {"pair": output} if len(machine.classes_) > 2 else {}
    return MachineProblem("hinge", float(machine.C), class_weight=weights, output=output, sides=pair, which=which)


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
    """Yield one-class.gap: alpha is beta, its sum mended, in the problem scaled so that alpha_i lies in [0, s_i]."""
    reason = why_no_gap(machine)
    if reason is not None:
        yield NotApplicable("one-class.gap", reason)
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
        yield NotApplicable("one-class.gap", Message("why.dual-sum"))
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

    yield Claim(
        "one-class.gap", outward(float(np.sum(rows.map(part))) * (1 + 1e-9) + 0.51 * apart**2), params={"nu": nu}
    )


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
        yield Claim("kernel-margin.bounds", lower, "lower")
    yield Claim("kernel-margin.bounds", upper, "upper")


def regressor_facts(machine: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield kernel-duality-gap and solution.enclosure."""
    reason = why_no_gap(machine)
    if reason is not None:
        yield NotApplicable(GAP, reason)
        return
    if np.isinf(machine.C):
        yield NotApplicable(GAP, Message("why.infinite-c"))
        return
    problem = MachineProblem("epsilon-insensitive", float(machine.C), epsilon=float(machine.epsilon_), sides=None)
    yield from gap_claims(machine, rows, problem)


def margin_statements(machine: Any, rows: Rows) -> Iterator[Statement | NotApplicable]:
    """Yield margin.kernel (margin.multiclass for a score per class) and pac-bayes.linear in the kernel's space, with a
    constant column if b is free."""
    several = len(machine.classes_) > 2
    reason = why_not_fixed(machine) or _why_no_space(machine)
    if several and machine.family == "kernel.classifier":
        reason = Message("why.pair-votes")
    if reason is not None:
        yield from (
            NotApplicable(name, reason)
            for name in ("margin.multiclass" if several else "margin.kernel", "pac-bayes.linear")
        )
        return
    norm, slack = _length(machine)
    intercept = machine._has_intercept
    parameters = (machine, machine._kernel(), intercept)
    slack += 64 * (rows.n_features * len(machine.pair_coef_) + len(machine.support_) + 64) * _UNIT
    yield from statements(MarginScores(_margins, parameters, norm, len(machine.classes_), intercept, slack), rows)


def _length(machine: Any) -> tuple[float, float]:
    """Return |(w, b)|, all outputs together, and how far rounding can have moved it, as a share of it."""
    kernel, vectors, beta = machine._kernel(), support_rows(machine), machine.pair_coef_
    square = float(np.einsum("ki,ij,kj->", beta, kernel(vectors), beta, optimize=True)) if beta.size else 0.0
    size, slip = (float(part.max(initial=0.0)) for part in kernel_magnitude(kernel, vectors, vectors))
    most = slip + 16 * (beta.shape[1] + len(beta) + 16) * _UNIT * size
    slip = most * float(np.square(np.abs(beta).sum(axis=1)).sum())
    norm = float(np.sqrt(max(0.0, square) + np.square(machine.intercept_).sum()))
    return norm, 2 * slip / norm**2 if norm > 0 else 0.0


def _margins(block: Block, machine: Any, kernel: Any, intercept: bool) -> tuple[np.ndarray, np.ndarray]:
    values, error = scores(machine, block)
    own = np.maximum(kernel.diagonal(block.X), 0.0) + float(intercept)
    if values.shape[1] == 1:
        return np.where(block.y == 1, values[:, 0], -values[:, 0]) - 1.01 * error.max(), own
    row = np.arange(len(values))
    best = values.copy()
    best[row, block.y] = -np.inf
    return values[row, block.y] - best.max(axis=1) - 2.1 * error.max(), own


def compression_statements(machine: Any, rows: Rows) -> Iterator[Statement | NotApplicable]:
    """Yield compression.support-vectors: the machine rebuilt from its support vectors."""
    reason = why_no_gap(machine)
    if len(machine.classes_) > 2:
        reason = Message("why.pair-support")
    elif machine._cost is None or np.isinf(machine._cost):
        reason = Message("why.finite-c")
    elif rows.has_weight:
        reason = Message("why.weights.likely")
    if reason is not None:
        yield NotApplicable("compression.support-vectors", reason)
    else:
        yield support_statement(rows, len(machine.support_), partial(_supported, machine, rows))


def _supported(machine: Any, rows: Rows) -> Supported:
    kept, kernel = np.sort(machine.support_).astype(np.int64), machine._kernel()
    is_kept = np.zeros(rows.n_rows, dtype=bool)
    is_kept[kept] = True

    def open_margins(block: Block) -> tuple[np.ndarray, np.ndarray, float]:
        values, error = scores(machine, block)
        others = ~is_kept[block.start : block.start + len(values)]
        margin = np.where(block.y == 1, values[:, 0], -values[:, 0])
        return margin[others], np.sqrt(np.maximum(kernel.diagonal(block.X), 0.0))[others], float(error.max())

    margins, lengths, errors = zip(*rows.map(open_margins), strict=True)
    margin, length, error = np.concatenate(margins), np.concatenate(lengths) * (1 + 1e-9), max(errors)

    def lost(slope: float, step: float) -> int:
        return int(np.count_nonzero(margin <= (2 * slope * length + step) * (1 + 1e-9) + 1.01 * error))

    weighted = machine.class_weight is not None
    params = {"C": float(machine.C), "class_weight": machine.class_weight_.tolist() if weighted else None}
    n_numbers = 2 * (isinstance(machine.class_weight, str)) + told_numbers(machine)
    gap = machine_gap(machine, rows, hinge_problem(machine), kept=is_kept)
    return Supported(kept, gap, float(machine.intercept_[0]), int(n_numbers), params, lost)


def told_numbers(machine: Any) -> int:
    """Return how many numbers of the kernel were computed from the rows: gamma, and which kernel for "auto"."""
    auto = isinstance(machine.kernel, str) and machine.kernel == "auto"
    return int(why_not_fixed(machine) is not None) + int(auto)


def update_statements(machine: Any, rows: Rows) -> Iterator[Statement | NotApplicable]:
    """Yield compression.kernel-perceptron of an expansion whose coefficients are numbers of updates."""
    if machine.chosen_kernel_ in ("given", "precomputed"):
        yield NotApplicable("compression.kernel-perceptron", Message("why.kernel-unknown"))
        return
    if np.any(machine.pair_coef_ != np.rint(machine.pair_coef_)):
        yield NotApplicable("compression.kernel-perceptron", Message("why.not-update-counts"))
        return
    is_kept = np.zeros(rows.n_rows, dtype=bool)
    is_kept[machine.support_] = True
    kernel = machine._kernel()

    def part(block: Block) -> int:
        margin = _margins(block, machine, kernel, False)[0]
        return int(np.count_nonzero(~(margin > 0) & ~is_kept[block.start : block.start + len(margin)]))

    counts, intercept = np.abs(machine.pair_coef_.T).astype(np.int64), bool(machine.fit_intercept)
    yield kernel_perceptron_statement(
        rows.n_rows, counts, intercept, told_numbers(machine), lambda: sum(rows.map(part))
    )


def _why_no_space(machine: Any) -> str | None:
    """Return why the kernel gives no space that the checker knows, or None."""
    kernel = machine._kernel()
    if isinstance(kernel, Precomputed) or machine.chosen_kernel_ == "given":
        return Message("why.kernel-unknown")
    return None if kernel.psd else Message("why.kernel-no-space", kernel=kernel)


def why_not_fixed(machine: Any) -> str | None:
    """Return which parameter of the kernel was computed from the training rows, or None."""
    if isinstance(machine.kernel, str) and machine.kernel == "auto":
        return Message("why.kernel-auto")
    scaled = isinstance(machine.gamma, str) and machine.gamma == "scale"
    if scaled and machine.chosen_kernel_ not in ("linear", "precomputed", "given"):
        return Message("why.gamma-scale")
    return None


def function_norm(machine: Any, rows: Rows, intercept: bool) -> Norm:
    """Return |(w, b)|, rounded up, and the trace of the Gram matrix; or why the space was not fixed or has no norm."""
    reason = why_not_fixed(machine) or why_no_gap(machine)
    if reason is not None:
        return Norm(why_not=reason)
    kernel, vectors = machine._kernel(), support_rows(machine)
    beta, b = machine.pair_coef_[0], float(machine.intercept_[0])
    square = max(0.0, float(beta @ kernel(vectors) @ beta)) if len(beta) else 0.0
    size, slip = (float(part.max(initial=0.0)) for part in kernel_magnitude(kernel, vectors, vectors))
    slip = 2 * (slip + 16 * (len(beta) + 16) * _UNIT * size) * float(np.abs(beta).sum()) ** 2
    trace = sum(rows.map(lambda block: float(np.maximum(kernel.diagonal(block.X), 0.0).sum())))
    return Norm(float(np.sqrt(square + slip + b * b)), trace, intercept)

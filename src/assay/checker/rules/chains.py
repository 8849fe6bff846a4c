"""The checker's own hidden Markov models: probabilities of sequences between bounds (claims hmm.log-likelihood,
hmm.holdout).

The model is that of its stored numbers: p(x_1..x_T) = sum over paths of pi(s_1) b(x_1|s_1) prod A(s_{t-1}, s_t)
b(x_t|s_t). Every term is at least 0, so that sums of lower bounds are lower bounds; each pass carries a lower and an
upper vector, scaled by the same numbers. Rounding multiplies either by at most exp(T gamma), and underflow is taken
off and put on.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

from assay.checker.bounds.holdout import Bets, Betting
from assay.checker.identity import digests_of
from assay.checker.numerics import U, above, gamma
from assay.checker.predictors import Predictor
from assay.checker.record import Refused, Rejected, exact_decimal, signed
from assay.checker.rule import Rule, View
from assay.checker.rules.copies import repeated, sequence_keys
from assay.checker.rules.densities import Mixture, check_factor, summed

_LOG_GAMMA = 1e-13  # relative error of the logarithm of the gamma function, generously
_TINY = 1e-290  # more than underflow hides of a scaled vector
MOST_ENTRIES = 2**26
"""Rows times states up to which sequences are held."""


@dataclass(frozen=True)
class Symbols:
    """b(x | s): the product over columns of tables (columns, states, symbols)."""

    tables: np.ndarray

    @property
    def columns(self) -> int:
        return len(self.tables)

    def log_bounds(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        there = ~np.isnan(X)
        codes = np.where(there, X, 0.0)
        if np.any(codes != np.floor(codes)) or codes.min() < 0 or codes.max() >= self.tables.shape[2]:
            raise Rejected("a row has a symbol that the model does not know")
        with np.errstate(divide="ignore"):
            logs = np.log(self.tables)
        value, size = np.zeros((len(X), self.tables.shape[1])), np.zeros((len(X), self.tables.shape[1]))
        for j, table in enumerate(logs):
            own = np.where(there[:, j, None], table.T[codes[:, j].astype(int)], 0.0)
            value, size = value + own, size + np.where(np.isfinite(own), np.abs(own), 0.0)
        error = gamma(2 * self.columns + 8) * size
        return value - error, value + error


@dataclass(frozen=True)
class Counting:
    """b(x | s): the product over columns of Poisson probabilities of counts, of rates (states, columns)."""

    rates: np.ndarray

    @property
    def columns(self) -> int:
        return self.rates.shape[1]

    def log_bounds(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        there = ~np.isnan(X)
        counts = np.where(there, X, 0.0)[:, None, :]
        if np.any(counts != np.floor(counts)) or counts.min() < 0 or counts.max() >= 2.0**53:
            raise Rejected("a row has an entry that is no count")
        parts = np.stack([xlogy(counts, self.rates), -np.broadcast_to(self.rates, counts.shape[:1] + self.rates.shape),
                          -np.broadcast_to(gammaln(counts + 1), counts.shape[:1] + self.rates.shape)])  # fmt: skip
        parts = np.where(there[:, None, :], parts, 0.0)
        size = np.where(np.isfinite(parts), np.abs(parts), 0.0).sum(axis=(0, 3))
        value, error = parts.sum(axis=(0, 3)), above((gamma(4 * self.columns + 16) + _LOG_GAMMA) * (size + 1))
        return value - error, value + error


@dataclass(frozen=True)
class Gaussians:
    """b(x | s): a mixture of components; those of state s are s n .. (s + 1) n - 1, n of each state."""

    weights: np.ndarray  # (states, n)
    parts: Mixture

    @property
    def columns(self) -> int:
        return self.parts.columns

    def log_bounds(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.zeros((len(X), len(self.weights))), np.zeros((len(X), len(self.weights)))
        kinds, which = np.unique(np.isnan(X), axis=0, return_inverse=True)
        for i, missing in enumerate(kinds):
            rows = which.ravel() == i
            if missing.all():
                continue  # nothing was seen: b = 1
            if missing.any() and self.parts.factors[0].ndim == 2:
                raise Refused("rows that lack entries are not judged under full covariances")
            low[rows], high[rows] = self._of(X[rows][:, ~missing], ~missing)
        return low, high

    def _of(self, X: np.ndarray, there: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = self.parts
        if not there.all():
            parts = Mixture(parts.weights, parts.means[:, there], tuple(u[there] for u in parts.factors), parts.kind)
        joint, errors, _ = parts.joint(X, np.abs(X).max(axis=0))
        states, n = self.weights.shape
        ends = [summed(joint[:, s * n : (s + 1) * n], errors[:, s * n : (s + 1) * n]) for s in range(states)]
        # The weights of `parts` are those of the states over their number.
        more, slack = math.log(math.fsum(parts.weights)), 16 * U * (1 + math.log(states + 1))
        low, high = (np.stack([end[side] for end in ends], axis=1) + more for side in (0, 1))
        return low - slack - 4 * U * np.abs(low), high + slack + 4 * U * np.abs(high)


@dataclass(frozen=True)
class Chain(Predictor):
    """pi (k,), A (k, k), and what the states emit."""

    start: np.ndarray
    trans: np.ndarray
    emission: "Symbols | Counting | Gaussians"
    reads_gaps = True
    loss = "sequence"

    @property
    def columns(self) -> int:
        return self.emission.columns

    def log_likelihood(self, X: np.ndarray) -> tuple[float, float]:
        """Return bounds of ln p of one sequence."""
        return Passes(self, X).log_likelihood()


class Passes:
    """Forward and backward vectors of one sequence, (T, 2, k): a lower and an upper bound, of the same scale."""

    def __init__(self, chain: Chain, X: np.ndarray):
        self.chain, (low, high) = chain, chain.emission.log_bounds(X)
        top = high.max(axis=1)
        if not np.isfinite(top).all():
            raise Rejected("a sequence has probability 0")
        slack = 4 * U * (np.abs(np.where(np.isfinite(high), high, 0.0)) + np.abs(top)[:, None] + 1)
        self.b = np.stack([np.exp(low - top[:, None] - slack), np.exp(high - top[:, None] + slack)], axis=1)
        self.T, k = low.shape
        self.rounding = above(self.T * gamma(2 * k + 24))
        self.alpha, self.logs, self.top = np.empty_like(self.b), np.zeros(self.T), top
        at = chain.start * self.b[0]
        for t in range(self.T):
            if t:
                at = (at @ chain.trans) * self.b[t]
            at, self.logs[t] = _scaled(at)
            self.alpha[t] = at

    def log_likelihood(self) -> tuple[float, float]:
        parts = np.concatenate([np.log(self.logs), self.top])
        total, slack = math.fsum(parts), 4 * U * math.fsum(np.abs(parts)) + self.rounding + 8 * U
        ends = self.alpha[-1].sum(axis=1)
        if not ends[0] > 0:
            raise Refused("underflow leaves the probability of a sequence open")
        low, high = total + math.log(ends[0]) - slack, total + math.log(ends[1]) + slack
        return low - 4 * U * abs(low), high + 4 * U * abs(high)

    def expected(self) -> "Expectations":
        """Return bounds of the probabilities of states (T, k) and of the expected steps (k, k)."""
        A, k = self.chain.trans, len(self.chain.start)
        beta, at = np.empty_like(self.b), np.ones((2, k))
        beta[-1] = at
        for t in range(self.T - 2, -1, -1):
            at, _ = _scaled((self.b[t + 1] * at) @ A.T)
            beta[t] = at
        wide = above(math.expm1(2 * self.rounding + gamma(8 * k + 64)))
        joint = self.alpha * beta
        sums = joint.sum(axis=2)
        if not sums[:, 0].min() > 0:
            raise Refused("underflow leaves the probabilities of states open")
        least, most = joint[:, 0] / sums[:, 1, None], joint[:, 1] / sums[:, 0, None]
        before, after = self.alpha[:-1], self.b[1:] * beta[1:]
        ends = [((before[:, i] @ A) * after[:, i]).sum(axis=1) for i in (0, 1)]
        if self.T > 1 and not ends[0].min() > 0:
            raise Refused("underflow leaves the probabilities of states open")
        low, high = (A * ((before[:, i] / ends[1 - i][:, None]).T @ after[:, i]) for i in (0, 1))
        more = above(wide + gamma(self.T + 8))
        return Expectations(least * (1 - wide), np.minimum(most * (1 + wide), 1.0), low * (1 - more), high * (1 + more))


class Expectations(NamedTuple):
    """Bounds of the probabilities of states (T, k), and of the expected steps (k, k)."""

    low: np.ndarray
    high: np.ndarray
    steps_low: np.ndarray
    steps_high: np.ndarray


def _scaled(at: np.ndarray) -> tuple[np.ndarray, float]:
    """Return both vectors over the sum of the upper one, with what underflow can hide, and that sum."""
    size = float(at[1].sum())
    if not size > 0:
        raise Rejected("a sequence has probability 0")
    at = at / size
    return np.stack([np.maximum(at[0] - _TINY, 0.0), at[1] + _TINY]), size


# Readers ------------------------------------------------------------------------------------------------------


def check_rows_of(table: np.ndarray, name: str, shape: tuple[int, ...]) -> None:
    """Reject a table whose rows are not distributions."""
    if table.shape != shape or not table.size:
        raise Rejected(f"{name} has shape {table.shape}; it must be {shape}")
    if np.any(table < 0) or np.max(np.abs(table.sum(axis=-1) - 1)) > 1e-9:
        raise Rejected(f"rows of {name} must be at least 0 and sum to 1")


def _chain(start: np.ndarray, trans: np.ndarray, emission: Symbols | Counting | Gaussians, k: int) -> Chain:
    check_rows_of(start, "startprob_", (k,))
    check_rows_of(trans, "transmat_", (k, k))
    return Chain(start, trans, emission)


def read_counts(start: np.ndarray, trans: np.ndarray, rates: np.ndarray, classes: None) -> Chain:
    """Return the model of counts that these arrays define."""
    if rates.ndim != 2 or rates.shape[0] != len(start) or not rates.size or np.any(rates < 0):
        raise Rejected(f"lambdas_ must be rates >= 0, (states, columns); it has shape {rates.shape}")
    return _chain(start, trans, Counting(rates), len(start))


def read_symbols(start: np.ndarray, trans: np.ndarray, tables: np.ndarray, names: np.ndarray, classes: None) -> Chain:
    """Return the model of symbols that these arrays define; one column may have a plain table."""
    if tables.ndim == 3 and len(tables) < 2:
        raise Rejected("emissionprob_ of one column must have two dimensions")
    tables = tables[None] if tables.ndim == 2 else tables
    if tables.ndim != 3:
        raise Rejected(f"emissionprob_ has shape {tables.shape}")
    check_rows_of(tables, "emissionprob_", (len(tables), len(start), tables.shape[2]))
    if len(names) and not len(set(names.tolist())) == len(names) <= tables.shape[2]:
        raise Rejected("symbols_ must be different names, one for each symbol at most")
    return _chain(start, trans, Symbols(tables), len(start))


def read_gaussians(kind: str, start: np.ndarray, trans: np.ndarray, *arrays: np.ndarray | None) -> Chain:
    """Return the model that means (k, d) and factors define."""
    means, factors = arrays[0], arrays[1]
    if means is None or factors is None or means.ndim != 2 or not means.size:
        raise Rejected("means_ must be (states, columns)")
    weights = np.ones((len(means), 1))
    return _gaussian_chain(kind, start, trans, weights, means[:, None, :], factors, tied=(1,))


def read_mixtures(
    kind: str,
    start: np.ndarray,
    trans: np.ndarray,
    weights: np.ndarray,
    means: np.ndarray,
    factors: np.ndarray,
    classes: None,
) -> Chain:
    """Return the model that weights (k, n), means (k, n, d) and factors define."""
    if means.ndim != 3 or not means.size:
        raise Rejected(f"means_ has shape {means.shape}; it must be (states, components, columns)")
    check_rows_of(weights, "weights_", means.shape[:2])
    shape = {"full": 2, "tied": 1, "diag": 2, "spherical": 2}[kind]
    if factors.shape[:shape] != means.shape[:shape]:
        raise Rejected(f"precisions_cholesky_ has shape {factors.shape}")
    flat = factors if kind == "tied" else factors.reshape(-1, *factors.shape[2:])
    return _gaussian_chain(kind, start, trans, weights, means, flat, tied=(len(means),))


def _gaussian_chain(
    kind: str,
    start: np.ndarray,
    trans: np.ndarray,
    weights: np.ndarray,
    means: np.ndarray,
    factors: np.ndarray,
    tied: tuple[int],
) -> Chain:
    (k, n), d = weights.shape, means.shape[2]
    if kind == "tied":
        factors = factors[None] if tied == (1,) and factors.ndim == 2 else factors
        each = np.repeat(factors, k * n // len(factors), axis=0) if factors.shape == (*tied, d, d) else None
    else:
        wanted = {"full": (k * n, d, d), "diag": (k * n, d), "spherical": (k * n,)}[kind]
        each = factors if factors.shape == wanted else None
    if each is None:
        raise Rejected(f"precisions_cholesky_ has shape {factors.shape}")
    each = np.repeat(each[:, None], d, axis=1) if kind == "spherical" else each
    for item in each:
        check_factor(item)
    parts = Mixture(weights.ravel(), means.reshape(-1, d), tuple(each), kind)
    return _chain(start, trans, Gaussians(weights, parts), k)


# Rules ---------------------------------------------------------------------------------------------------------


class ChainRule(Rule):
    """A rule about sequences: the rows one below the other, cut as the witness `lengths` says."""

    model: Chain

    def prepare(self) -> None:
        if not isinstance(self.model, Chain):
            raise Rejected("it needs a hidden Markov model")
        self.lengths, self.parts = lengths_of(self), list[np.ndarray]()

    def block(self, view: View) -> None:
        self.parts.append(view.X)

    def sequences(self) -> Iterator[np.ndarray]:
        X = np.concatenate(self.parts)
        for part in np.split(X, np.cumsum(self.lengths)[:-1]):
            self.context.clock.check()
            yield part


def lengths_of(rule: Rule) -> np.ndarray:
    """Return the witness `lengths`: at least 1 each, together the rows of the set."""
    lengths = rule.witness("lengths", None, integer=True)
    rows = rule.context.rows[rule.set]
    if not len(lengths) or lengths.min() < 1 or int(lengths.sum()) != rows:
        raise Rejected(f"the lengths of the sequences must be at least 1 and sum to {rows}")
    if rows * len(rule.model.start) > MOST_ENTRIES:
        raise Refused(f"sequences of {rows} rows are not held")
    return lengths


class LogLikelihood(ChainRule):
    """hmm.log-likelihood: ln p of all sequences over the number of rows is within `value` of `center`."""

    def prepare(self) -> None:
        super().prepare()
        self.center = signed(self.param("center"), "center")

    def measure(self) -> float:
        ends = np.array([self.model.log_likelihood(X) for X in self.sequences()])
        slack = 4 * U * math.fsum(np.abs(ends).max(axis=1))
        low, high = (math.fsum(ends[:, 0]) - slack) / self.rows, (math.fsum(ends[:, 1]) + slack) / self.rows
        return float(above(max(high - self.center, self.center - low, 0.0) + 8 * U * abs(self.center), 4))


class SequenceBetting(Betting, ChainRule):
    """hmm.holdout: as holdout.betting, the loss of a hold-out sequence being -ln p / T clipped to [low, low + clip],
    less low.

    `repeated` of the sequences nearly repeat an earlier one: independent draws may, and whoever reads it judges.
    """

    def prepare(self) -> None:
        ChainRule.prepare(self)
        self.low, self.clip = signed(self.param("low"), "low"), self.number("clip")
        if self.count("sequences") != len(self.lengths):
            raise Rejected(f"sequences is {self.params['sequences']}, listed are {len(self.lengths)}")
        self.delta = exact_decimal(self.claim.delta, "delta")
        self.bets, self.digests = Bets(), list[bytes]()

    @property
    def rows(self) -> int:
        return len(self.lengths)

    def block(self, view: View) -> None:
        ChainRule.block(self, view)
        self.digests += digests_of(view)

    def _sequence_digests(self) -> list[bytes]:
        ends = np.cumsum(self.lengths).tolist()
        parts = (self.digests[end - length : end] for end, length in zip(ends, self.lengths.tolist()))
        return [hashlib.sha256(b"".join(part)).digest() for part in parts]

    def measure(self) -> float:
        if self.count("repeated") != (result := repeated(sequence_keys(self.sequences()), np.empty(0, np.uint64))):
            raise Rejected(f"repeated is {self.params['repeated']}, recounted {result}")
        least = np.array([self.model.log_likelihood(X)[0] / len(X) for X in self.sequences()])
        loss = -least - self.low + 8 * U * (np.abs(least) + abs(self.low))
        losses = np.minimum(np.clip(loss, 0.0, self.clip) / self.clip * (1 + 4 * U), 1.0)
        self.bets.add(losses, self._sequence_digests())
        return super().measure()

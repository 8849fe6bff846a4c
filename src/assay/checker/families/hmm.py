"""Hidden Markov models.

Arrays: `startprob_` (k,), `transmat_` (k, k), and `emissionprob_` (k, symbols) or (columns, k, symbols) and `symbols_`,
their names if they are text; or `lambdas_` (k, columns), rates of counts; or `means_` (k, d) and `precisions_cholesky_`
((k, d, d) full, (d, d) tied, (k, d) diag, (k,) spherical), upper triangular with a positive diagonal; or, with n
components in each state, `weights_` (k, n), `means_` (k, n, d) and `precisions_cholesky_` ((k, n, d, d), (k, d, d),
(k, n, d), (k, n)). A row may lack entries (NaN), which are left out.

That a hidden Markov model is near a fixed point of EM, and that EM never fell on the way (claims hmm.stationary,
hmm.monotone).

With expected counts c_j of a row of a table p, and prior - 1 added to each, the M step gains C KL(c / C, p), C = sum
c_j. Of a Gaussian component with N expected rows, z = U'(x - m), mean s and covariance C of z, and a prior that adds
`scale` to sums of squares and `count` to the number they are divided by, it gains
N |s|^2 / 2 + (N + count) / 2 sum_j h(l_j), 1 + l_j the eigenvalues of (N C + U' Psi U) / (N + count), restricted to the
kind; h(x) = x - ln(1 + x). Psi is `scale` times the matrix of ones for full and tied covariances, times the identity
for the others. Of a rate l with S expected counts in N expected rows, `shape` added to the first and `rate` to the
second, it gains N l e(S / (N l) - 1), e(x) = (1 + x) ln(1 + x) - x.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.special import xlogy

from assay.checker.family import NUMBERS, TEXT, Family, Variant
from assay.checker.numerics import U, above, entropy_excess, gamma, largest
from assay.checker.record import Refused, Rejected
from assay.checker.rules import chains, densities
from assay.checker.rules.chains import Chain, ChainRule, Counting, Gaussians, Passes, Symbols, check_rows_of
from assay.checker.rules.densities import Mixture, check_factor
from assay.checker.rules.mixtures import Shares, Stationary
from assay.claims.definitions import HOLDOUT, Definition
from assay.claims.sentences import Params, Sentence, with_digits

MOST_STEPS = 4e5
"""Rows times steps of EM that are made again at most."""


class Counts:
    """Expected counts of the tables, between bounds, and moments of the Gaussian components."""

    def __init__(self, chain: Chain):
        k = len(chain.start)
        self.chain, self.low, self.high = chain, dict[str, np.ndarray](), dict[str, np.ndarray]()
        shapes = {"s": (1, k), "t": (k, k)}
        if isinstance(chain.emission, Symbols):
            shapes["e"] = (chain.columns * k, chain.emission.tables.shape[2])
        elif isinstance(chain.emission, Counting):
            shapes |= dict.fromkeys(("rows", "sums"), chain.emission.rates.shape)
        else:
            shapes["w"] = chain.emission.weights.shape
            self.shares = Shares(chain.emission.parts)
        for letter, shape in shapes.items():
            self.low[letter], self.high[letter] = np.zeros(shape), np.zeros(shape)
        self.adds = 0

    def tables(self) -> dict[str, np.ndarray]:
        """Return the model's own tables, by letter."""
        chain, emission = self.chain, self.chain.emission
        results = {"s": chain.start[None], "t": chain.trans}
        if isinstance(emission, Symbols):
            return {**results, "e": emission.tables.reshape(-1, emission.tables.shape[2])}
        return results if isinstance(emission, Counting) else {**results, "w": emission.weights}

    def add(self, X: np.ndarray) -> tuple[float, float]:
        """Take in one sequence; return bounds of ln p."""
        passes = Passes(self.chain, X)
        result = passes.expected()
        self.adds += len(X)
        for side, states, steps in (
            (self.low, result.low, result.steps_low),
            (self.high, result.high, result.steps_high),
        ):
            side["s"] += states[0]
            side["t"] += steps
        emission = self.chain.emission
        if isinstance(emission, Symbols):
            self._symbols(X, result.low, result.high)
        elif isinstance(emission, Counting):
            there, counts = ~np.isnan(X), np.nan_to_num(X)
            for side, states in ((self.low, result.low), (self.high, result.high)):
                side["rows"] += states.T @ there
                side["sums"] += states.T @ counts
        else:
            self._moments(X, result.low, result.high, emission)
        return passes.log_likelihood()

    def _symbols(self, X: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        k = low.shape[1]
        for j in range(X.shape[1]):
            there = ~np.isnan(X[:, j])
            at, codes = slice(j * k, (j + 1) * k), X[there, j].astype(int)
            for side, states in ((self.low, low), (self.high, high)):
                np.add.at(side["e"][at].T, codes, states[there])

    def _moments(self, X: np.ndarray, low: np.ndarray, high: np.ndarray, emission: Gaussians) -> None:
        missing = np.isnan(X)
        there = ~missing.any(axis=1)
        if np.any(missing.any(axis=1) & ~missing.all(axis=1)):
            raise Refused("moments of rows that lack entries are not judged")
        if not there.any():
            return
        X, low, high = X[there], low[there], high[there]
        joint, errors, seen = emission.parts.joint(X, np.abs(X).max(axis=0))
        states, n = emission.weights.shape
        joint, errors = joint.reshape(-1, states, n), errors.reshape(-1, states, n)
        own = np.exp(joint - joint.max(axis=2, keepdims=True))
        own /= own.sum(axis=2, keepdims=True)
        off = 0.0 if n == 1 else np.expm1(2 * (errors + errors.max(axis=2, keepdims=True)) + 64 * U)
        bottom, top = low[:, :, None] * own * (1 - np.minimum(off, 1.0)), high[:, :, None] * own * (1 + off)
        self.low["w"] += bottom.sum(axis=0)
        self.high["w"] += top.sum(axis=0)
        share = ((bottom + top) / 2).reshape(len(X), -1)
        lost = above((top - bottom) / 2 + 4 * U * top + 1e-290).reshape(len(X), -1)
        self.shares.take(share, lost, seen, np.ones(len(X)))

    def bounds(self, letter: str) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the counts of one table."""
        wide = gamma(self.adds + 64)
        return self.low[letter] * (1 - wide), self.high[letter] * (1 + wide)


def table_gain(low: np.ndarray, high: np.ndarray, prior: float, table: np.ndarray) -> float:
    """Return an upper bound of sum over rows of C KL(c / C, p), counts c between bounds, prior - 1 added to each."""
    added, total = prior - 1, 0.0
    if added > 0 and np.any(table == 0):
        raise Rejected("an entry of 0 has no finite prior")
    for least, most, p in zip(low, high, table):
        live = p > 0
        c_low, c_high, p = least[live] + added, most[live] + added, p[live]
        C_low, C_high = math.fsum(c_low) * (1 - 8 * U), math.fsum(c_high) * (1 + 8 * U)
        bound = C_high * float(np.max(-np.log(p)) * (1 + 8 * U) + 8 * U)
        if C_low > 0:
            ends = [entropy_excess(ratio - 1) for ratio in (c_low / (C_high * p), c_high / (C_low * p))]
            gain = float(p @ np.maximum(*ends)) * (1 + 1e-9) + abs(1 - math.fsum(p)) + 16 * U
            bound = min(bound, C_high * gain)
        total += bound
    return float(above(total, 64))


def rate_gain(counts: Counts, rates: np.ndarray, shape: float, rate: float) -> float:
    """Return an upper bound of sum over rates l of N l e(S / (N l) - 1), S and N between bounds."""
    if np.any(rates <= 0):
        raise Refused("what a step gains at a rate of 0 is not bounded")
    (N_low, N_high), (S_low, S_high) = counts.bounds("rows"), counts.bounds("sums")
    N_low, N_high, S_low, S_high = N_low + rate, N_high + rate, S_low + shape, S_high + shape
    if np.any(N_low <= 0):
        raise Refused("a state has hardly any rows")
    ends = [entropy_excess(ratio - 1) for ratio in (S_low / (N_high * rates), S_high / (N_low * rates))]
    slack = 64 * U * (S_high + N_high * rates)
    return float(above(math.fsum((N_high * rates * np.maximum(*ends) * (1 + 1e-9) + slack).ravel()), 64))


class Priors:
    """What a claim says of the priors, and which parts the M step may change."""

    def __init__(self, rule: ChainRule):
        gaussian, counting = (isinstance(rule.model.emission, kind) for kind in (Gaussians, Counting))
        letters = "stwmc" if gaussian else "stl" if counting else "ste"
        self.parts = str(rule.param("parts"))
        if not set(self.parts) <= set(letters) or len(set(self.parts)) != len(self.parts):
            raise Rejected(f"parts must consist of letters of {letters}")
        if not self.parts:
            raise Rejected("without a part that an M step may change nothing is said")
        names = {"s": "start_prior", "t": "trans_prior", "e": "emission_prior", "w": "weights_prior"}
        self.dirichlet = {letter: rule.number(names[letter]) for letter in letters if letter in names}
        if any(value < 1 for value in self.dirichlet.values()):
            raise Rejected("priors below 1 have no bounded objective")
        self.scale = rule.number("scale", zero=True) if gaussian else 0.0
        self.count = rule.number("count", zero=True) if gaussian else 0.0
        self.shape, self.rate = (rule.number(name, zero=True) if counting else 0.0 for name in ("shape", "rate"))


class ChainStationary(Stationary, ChainRule):
    """hmm.stationary: an M step raises the expected log-likelihood of rows and states, plus the logarithms of the
    priors, by at most `value` per row."""

    model: Chain  # type: ignore[assignment]

    def prepare(self) -> None:
        ChainRule.prepare(self)
        self.priors, self.reg = Priors(self), 0.0

    def block(self, view) -> None:  # type: ignore[no-untyped-def]
        ChainRule.block(self, view)

    def measure(self) -> float:
        counts = Counts(self.model)
        for X in self.sequences():
            counts.add(X)
        gain = 0.0
        for letter, table in counts.tables().items():
            if letter in self.priors.parts:
                gain += table_gain(*counts.bounds(letter), self.priors.dirichlet[letter], table)
        if isinstance(self.model.emission, Counting) and "l" in self.priors.parts:
            gain += rate_gain(counts, self.model.emission.rates, self.priors.shape, self.priors.rate)
        if isinstance(self.model.emission, Gaussians) and {"m", "c"} & set(self.priors.parts):
            self.part, self.shares = self.model.emission.parts, counts.shares
            gain += self._gaussian_gain(self.model.emission)
        return float(above(gain / self.rows, 8))

    def _gaussian_gain(self, emission: Gaussians) -> float:
        """Return what means and covariances gain, those of them that the step changes."""
        mass, off, _ = self.shares.masses()
        if np.any(mass <= 2 * off + 1e-12):
            raise Refused("a component has hardly any rows")
        d, K = self.part.columns, len(mass)
        kind, gain = self.part.kind, 0.0
        pooled: dict[int, tuple[np.ndarray, float, float, float]] = {}
        for c in range(K):
            s, s_off, A, error = self._moments(c, mass[c], off[c])
            length = above(float(np.linalg.norm(s)) + s_off, d + 8)
            second = A + np.eye(d)
            if "m" in self.priors.parts:
                gain += (mass[c] + off[c]) * length**2 / 2
            else:
                second, error = second + np.outer(s, s), error + 2 * length * s_off + s_off**2 + 16 * U * length**2
            group = self._group(c, kind, emission)
            total, slack, N, N_off = pooled.get(group, (np.zeros((d, d)), 0.0, 0.0, 0.0))
            slack += (mass[c] + off[c]) * error + float(np.linalg.norm(second)) * (off[c] + 16 * U * mass[c])
            pooled[group] = total + mass[c] * second, slack, N + mass[c], N_off + off[c]
        for group, (total, slack, N, N_off) in pooled.items() if "c" in self.priors.parts else ():
            factor = self.part.factors[group]
            added = self.priors.scale * _square(factor)
            size = float(np.linalg.norm(total)) + float(np.linalg.norm(added)) + d
            B = (total + added) / (N + self.priors.count) - np.eye(d)
            error = (slack + gamma(8 * d + 64) * size) / (N + self.priors.count)
            error += 2 * size * (N_off + 8 * U * N) / (N + self.priors.count) / max(N - N_off, 1e-300)
            more, _ = self._covariance((B + B.T) / 2, float(above(error)), factor)
            gain += (N + N_off + self.priors.count) * more / 2
        return gain

    @staticmethod
    def _group(c: int, kind: str, emission: Gaussians) -> int:
        """Return the first component that shares the covariance of component c."""
        if kind != "tied":
            return c
        first = [i for i, factor in enumerate(emission.parts.factors) if factor is emission.parts.factors[c]]
        same = [
            i for i, factor in enumerate(emission.parts.factors) if np.array_equal(factor, emission.parts.factors[c])
        ]
        return min(first + same)


def _square(factor: np.ndarray) -> np.ndarray:
    """Return U' 1 1' U of a matrix, U' U of scales."""
    if factor.ndim == 1:
        return np.diag(factor**2)
    one = factor.sum(axis=0)
    return np.outer(one, one)


class ChainMonotone(ChainRule):
    """hmm.monotone: EM from the listed start reaches the model in `steps` steps, none of which lowers ln-likelihood
    plus ln-prior, over the number of rows, by more than `value`. The steps are made again here, in binary64."""

    def prepare(self) -> None:
        super().prepare()
        self.priors, self.steps, self.distance = Priors(self), self.count("steps", 1), self.number("distance")
        if self.rows * self.steps > MOST_STEPS:
            raise Refused("so many steps on so many rows are not made again")
        k, emission = len(self.model.start), self.model.emission
        start, trans = self.witness("start", k), self.witness("trans", k, k)
        check_rows_of(start, "start", (k,))
        check_rows_of(trans, "trans", (k, k))
        if isinstance(emission, Symbols):
            tables = self.witness("tables", *emission.tables.shape)
            check_rows_of(tables, "tables", emission.tables.shape)
            self.at = Chain(start, trans, Symbols(tables))
            return
        if isinstance(emission, Counting):
            rates = self.witness("rates", *emission.rates.shape)
            if np.any(rates < 0):
                raise Rejected("a rate is negative")
            self.at = Chain(start, trans, Counting(rates))
            return
        K, d = emission.parts.means.shape
        weights, factors = self.witness("weights", *emission.weights.shape), self.witness("factors", K, d, d)
        check_rows_of(weights, "weights", emission.weights.shape)
        for factor in factors:
            check_factor(factor)
        self.at = self._of(start, trans, weights, self.witness("means", K, d), factors)

    def _of(self, start, trans, weights, means, factors) -> Chain:  # type: ignore[no-untyped-def]
        kind = self.model.emission.parts.kind  # type: ignore[union-attr]
        flat = kind in ("diag", "spherical")
        each = tuple(np.diag(factor) if flat else factor for factor in factors)
        return Chain(start, trans, Gaussians(weights, Mixture(weights.ravel(), means, each, kind)))

    def measure(self) -> float:
        fall, before = 0.0, None
        data = list(self.sequences())
        for step in range(self.steps + 1):
            self.context.clock.check()
            counts = Counts(self.at)
            ends = np.array([counts.add(X) for X in data])
            prior, slack = _log_prior(self.at, self.priors)
            low, high = math.fsum(ends[:, 0]) + prior - slack, math.fsum(ends[:, 1]) + prior + slack
            if before is not None:
                fall = largest(fall, before - low)
            before = high
            if step < self.steps:
                self.at = self._step(counts)
        apart = largest(*_apart(self.model, self.at))
        if not apart <= self.distance:
            raise Rejected(f"EM from the listed start ends {apart:.3g} away from the model")
        return float(above(fall / self.rows, 8))

    def _step(self, counts: Counts) -> Chain:
        tables = {}
        for letter, old in counts.tables().items():
            low, high = counts.bounds(letter)
            result = (low + high) / 2 + self.priors.dirichlet[letter] - 1
            total = result.sum(axis=1, keepdims=True)
            new = np.where(total > 0, result / np.where(total > 0, total, 1.0), old)
            tables[letter] = new if letter in self.priors.parts else old
        start, trans, emission = tables["s"][0], tables["t"], self.at.emission
        if isinstance(emission, Symbols):
            return Chain(start, trans, Symbols(tables["e"].reshape(emission.tables.shape)))
        if isinstance(emission, Counting):
            return Chain(start, trans, Counting(self._rates(counts, emission.rates)))
        means, S = self._gaussians(counts, emission.parts)
        factors = [np.triu(np.linalg.inv(np.linalg.cholesky((node + node.T) / 2)).T) for node in S]
        return self._of(start, trans, tables["w"], means, factors)

    def _rates(self, counts: Counts, old: np.ndarray) -> np.ndarray:
        if "l" not in self.priors.parts:
            return old
        N, S = (np.add(*counts.bounds(name)) / 2 for name in ("rows", "sums"))
        if np.any(N + self.priors.rate <= 1e-12):
            raise Refused("a state loses its rows")
        return (S + self.priors.shape) / (N + self.priors.rate)

    def _gaussians(self, counts: Counts, parts: Mixture) -> tuple[np.ndarray, list[np.ndarray]]:
        (mass, _, _), d, groups = counts.shares.masses(), parts.columns, self._groups(parts)
        if np.any(mass <= 1e-12):
            raise Refused("a component loses its rows")
        means, sums, counted = parts.means.copy(), {g: np.zeros((d, d)) for g in groups}, dict.fromkeys(groups, 0.0)
        ones = np.ones((d, d)) if parts.factors[0].ndim == 2 else np.eye(d)
        old = []
        for c, (group, factor) in enumerate(zip(groups, parts.factors)):
            back = np.linalg.inv(factor.T) if factor.ndim == 2 else np.diag(1 / factor)
            old.append(back @ back.T)
            s, M = counts.shares.linear[c] / mass[c], counts.shares.square[c] / mass[c]
            if "m" in self.priors.parts:
                means[c] += back @ s
                M = M - np.outer(s, s)
            sums[group] += mass[c] * (back @ M @ back.T)
            counted[group] += float(mass[c])
        if "c" not in self.priors.parts:
            return means, old
        results = {g: (S + self.priors.scale * ones) / (counted[g] + self.priors.count) for g, S in sums.items()}
        kind = self.model.emission.parts.kind  # type: ignore[union-attr]
        return means, [_restricted(results[group], kind) for group in groups]

    def _groups(self, parts: Mixture) -> list[int]:
        model = self.model.emission
        assert isinstance(model, Gaussians)
        return [ChainStationary._group(c, model.parts.kind, model) for c in range(len(parts.means))]


def _restricted(S: np.ndarray, kind: str) -> np.ndarray:
    if kind in ("full", "tied"):
        return S
    return np.diag(np.diag(S)) if kind == "diag" else np.eye(len(S)) * float(np.mean(np.diag(S)))


def _log_prior(at: Chain, priors: Priors) -> tuple[float, float]:
    """Return the logarithm of the priors, up to a constant, and how far it can be off."""
    terms: list[float] = []
    for letter, table in Counts(at).tables().items():
        power = priors.dirichlet[letter] - 1
        if power > 0:
            terms += (power * np.log(table)).ravel().tolist()
    if isinstance(at.emission, Counting):
        terms += (xlogy(priors.shape, at.emission.rates) - priors.rate * at.emission.rates).ravel().tolist()
    if isinstance(at.emission, Gaussians):
        terms += list(_gaussian_terms(at.emission.parts, priors))
    return math.fsum(terms), 1e-12 * math.fsum(map(abs, terms))


def _gaussian_terms(parts: Mixture, priors: Priors) -> Iterator[float]:
    seen: list[np.ndarray] = []
    for factor in parts.factors:
        if parts.kind == "tied" and any(np.array_equal(factor, item) for item in seen):
            continue
        seen.append(factor)
        yield priors.count * float(np.log(np.diag(factor) if factor.ndim == 2 else factor).sum())
        yield -0.5 * priors.scale * float(np.trace(_square(factor)))


def _apart(chain: Chain, other: Chain) -> Iterator[float]:
    """Yield how far two models are apart: tables and rates in their entries, means in units of spread, covariances as
    shares."""
    for mine, its in zip(Counts(chain).tables().values(), Counts(other).tables().values()):
        yield float(np.abs(mine - its).max())
    if isinstance(chain.emission, Counting) and isinstance(other.emission, Counting):
        yield float(np.abs(chain.emission.rates - other.emission.rates).max())
    if isinstance(chain.emission, Gaussians) and isinstance(other.emission, Gaussians):
        a, b = chain.emission.parts, other.emission.parts
        for c in range(len(a.means)):
            V, W = (np.diag(f) if f.ndim == 1 else f for f in (a.factors[c], b.factors[c]))
            back = np.linalg.inv(W) @ V
            yield float(np.linalg.norm(V.T @ (b.means[c] - a.means[c])))
            yield float(np.linalg.norm(back.T @ back - np.eye(len(V))))


_LIKELIHOOD = Sentence(
    {
        "": "The log-likelihood of the training sequences, cut as listed, is {shown} nats per row, to within "
        "{within:up1}."
    },
    with_digits,
)


def _letters(value: float, direction: str, params: Params) -> Params:
    return {"letters": list(params["parts"])}


_STATIONARY = Sentence(
    {
        "": "The model is near a fixed point of EM on the training sequences: an M step of the parts {letters:, } with "
        "the stated priors gains at most {value:up} nats per row."
    },
    _letters,
)


_MONOTONE = Sentence(
    {
        "": "EM of the parts {letters:, } from the listed start comes within {distance:up1} of the model in {steps} "
        "steps, none of which lowers the log-likelihood and log-prior together by more than {value:up1} per row."
    },
    _letters,
)


_HOLDOUT = Sentence(
    {
        "": "The mean over new sequences of -ln p / length, clipped to [{low:g}, {high:g}], is at most {bound:up4} "
        "nats (betting, {sequences} hold-out sequences, {repeated} of which nearly repeat an earlier one)."
    },
    lambda value, direction, params: {"high": params["low"] + params["clip"], "bound": value + params["low"]},
)


CLAIMS = {
    "D50/1": Definition("hmm.log-likelihood", chains.LogLikelihood, _LIKELIHOOD),
    "D50/2": Definition("hmm.stationary", ChainStationary, _STATIONARY),
    "D50/3": Definition("hmm.monotone", ChainMonotone, _MONOTONE),
    "P50/1": Definition(
        "hmm.holdout",
        chains.SequenceBetting,
        _HOLDOUT,
        ("A-SEQUENCES(holdout)", *HOLDOUT[1:], "A-RANGE", "A-RNG"),
        own_assumptions={
            "A-SEQUENCES(holdout)": "the hold-out sequences, cut as the claim lists them, are independent draws from "
            "one distribution, from which new sequences come too"
        },
    ),
}
_CHAIN = {"startprob_": NUMBERS, "transmat_": NUMBERS}
_GAUSSIANS = {"means_": NUMBERS, "precisions_cholesky_": NUMBERS}
FAMILY = Family(
    "hmm",
    {
        "categorical": Variant(
            {**_CHAIN, "emissionprob_": NUMBERS, "symbols_": TEXT}, chains.read_symbols, target=False
        ),
        "poisson": Variant({**_CHAIN, "lambdas_": NUMBERS}, chains.read_counts, target=False),
        **{
            kind: Variant({**_CHAIN, **_GAUSSIANS}, partial(chains.read_gaussians, kind), target=False)
            for kind in densities.KINDS
        },
        **{
            f"mixtures-{kind}": Variant(
                {**_CHAIN, "weights_": NUMBERS, **_GAUSSIANS}, partial(chains.read_mixtures, kind), target=False
            )
            for kind in densities.KINDS
        },
    },
    CLAIMS,
)

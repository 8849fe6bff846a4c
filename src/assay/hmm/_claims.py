"""What the certificate of a hidden Markov model says: facts of the fit (hmm.log-likelihood), and new sequences
(hmm.holdout)."""

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

from assay.claims.claim import Claim, NotApplicable
from assay.guarantees.fingerprint import BetOrder, repeats, sequence_keys
from assay.guarantees.ledger import FIT_NOT_KEPT, OUTWARD, CertifyOptions, Statement, Vacuous, claim
from assay.hmm._base import ChainProblem, Parameters
from assay.hmm._chain import Sequences, expect
from assay.hmm._discrete import CategoricalHMM, PoissonHMM
from assay.messages import Message
from assay.optim.duality import outward
from assay.optim.em import em
from assay.scan import Rows
from assay.theory import concentration

_UNIT = 2.0**-53
_MOST_ENTRIES = 2**26  # rows times states that the checker holds
_MOST_STEPS = 5e4  # rows times steps of EM that are worth making again
_AGREE = 1e-6  # two runs of EM that end farther apart were near a saddle


class Seen(NamedTuple):
    """Expectations at the fitted parameters, and how far rounding can move ln p of each sequence."""

    at: Parameters
    sequences: Sequences
    expected: Any
    counts: Any
    errors: np.ndarray


def _is_gaussian(model: Any) -> bool:
    return not isinstance(model, (CategoricalHMM, PoissonHMM))


def facts(model: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield the claims hmm.log-likelihood about a fitted model on the rows it was fitted to."""
    sequences = rows.sequences  # type: ignore[attr-defined]
    why = _why_not(model, sequences)
    if why:
        yield NotApplicable("hmm.log-likelihood", why)
        return
    seen = _seen(model, sequences)
    if not np.isfinite(seen.expected.logs).all():
        yield NotApplicable("hmm.log-likelihood", Message("why.impossible-sequence"))
        return
    n, lengths = len(sequences.X), np.diff(sequences.offsets)
    center, slack = float(seen.expected.logs.sum()) / n, float(seen.errors.sum()) / n
    value = outward(4 * slack + 1e-13 * (1 + abs(center)))
    yield Claim("hmm.log-likelihood", value, params={"center": center}, witness={"lengths": lengths})
    why = _why_no_step(model, sequences)
    if why:
        yield NotApplicable("hmm.stationary", why)
        return
    yield _stationary(model, seen, lengths)
    yield _monotone(model, sequences, lengths)


def _why_not(model: Any, sequences: Sequences) -> str:
    if sequences.X.shape[0] * model.n_components > _MOST_ENTRIES:
        return Message("why.too-many-rows")
    partial_rows = np.isnan(sequences.X).any(axis=1) & ~np.isnan(sequences.X).all(axis=1)
    full = _is_gaussian(model) and model.covariance_type in ("full", "tied")
    return Message("why.gaps-full") if full and partial_rows.any() else ""


def _why_no_step(model: Any, sequences: Sequences) -> str:
    """Return why nothing is claimed of a step of EM; empty if something is."""
    if model._from_file:
        return FIT_NOT_KEPT
    if model.start_ is None:
        return Message("why.counted")
    if model.mended_:
        return Message("why.component-widened")
    if any(np.ndim(getattr(model, name)) or getattr(model, name) < 1 for name in model.dirichlet):
        return Message("why.table-priors")
    if isinstance(model, PoissonHMM) and (model.lambdas_ <= 0).any():
        return Message("why.zero-rate")
    if not _is_gaussian(model):
        return ""
    prior = model._prior(sequences.X.shape[1])
    if np.any(prior.weight) or np.ndim(prior.scale) or np.ndim(prior.count) or prior.count < 0 or prior.scale < 0:
        return Message("why.mean-priors")
    whole = np.isnan(sequences.X).any(axis=1) == np.isnan(sequences.X).all(axis=1)
    return "" if whole.all() else Message("why.gap-moments")


def _seen(model: Any, sequences: Sequences) -> Seen:
    at = model._parameters()
    emissions = model._see(sequences, at.emission)
    expected = expect(sequences, emissions, at.start, at.trans, each=True)
    shares = expected.shares
    if not emissions.each:
        shares = np.zeros((len(emissions.table), model.n_components))
        np.add.at(shares, emissions.which, expected.shares)
    counts = model._count(sequences, emissions, shares, at.emission)
    k = model.n_components
    logs = np.abs(np.nan_to_num(emissions.log_rows(slice(0, len(sequences.X))), neginf=0.0))
    per_row = (expected.shares * (_emission_errors(model, sequences, at) + 64 * _UNIT * logs)).sum(axis=1)
    per_row += (4 * k + 64) * _UNIT
    return Seen(at, sequences, expected, counts, 2 * np.add.reduceat(per_row, sequences.offsets[:-1]))


def _emission_errors(model: Any, sequences: Sequences, at: Parameters) -> np.ndarray:
    """Return how far rounding can move ln b_j(x_t) (rows, k), about."""
    X = sequences.X
    if isinstance(model, CategoricalHMM):
        return np.full((len(X), model.n_components), 16 * (X.shape[1] + 8) * _UNIT)
    if isinstance(model, PoissonHMM):
        counts, rates = np.nan_to_num(X)[:, None, :], at.emission[0]
        size = np.abs(xlogy(counts, np.maximum(rates, 1e-300))) + rates + gammaln(counts + 1)
        return 4e-13 * (size.sum(axis=2) + 1)
    means, factors = model._flat(*at.emission[-2:])
    d, k = X.shape[1], model.n_components
    largest = np.nan_to_num(np.nanmax(np.abs(np.concatenate([X, np.zeros((1, d))])), axis=0))
    size = largest + np.abs(means)
    each = np.einsum("kj,kji->ki", size, np.abs(factors)) if factors.ndim == 3 else size * factors
    reach = (2 * d + 32) * _UNIT * np.sqrt((each**2).sum(axis=1))
    filled = np.where(np.isnan(X), 0.0, X)
    errors = np.empty((len(X), len(means)))
    for c, (m, factor) in enumerate(zip(means, factors)):
        z = (filled - m) @ factor if factor.ndim == 2 else (filled - m) * factor
        length = np.sqrt((z**2).sum(axis=1))
        logs = np.abs(np.log(np.diag(factor) if factor.ndim == 2 else factor)).sum()
        errors[:, c] = 2 * length * reach[c] + reach[c] ** 2 + (d + 32) * _UNIT * (length**2 + logs + d + 8)
    return errors.reshape(len(X), k, -1).max(axis=2)


def _stationary(model: Any, seen: Seen, lengths: np.ndarray) -> Claim | NotApplicable:
    """Return how much an M step would gain."""
    n, at, gain = len(seen.sequences.X), seen.at, 0.0
    wide = 16 * float(seen.errors.max()) + 64 * n * _UNIT
    tables = [("s", seen.expected.start[None], model.startprob_prior, at.start[None])]
    tables += [("t", seen.expected.pairs, model.transmat_prior, at.trans)]
    if isinstance(model, CategoricalHMM):
        symbols = at.emission[0].shape[2]
        counts = seen.counts.reshape(-1, symbols)
        tables += [("e", counts, model.emissionprob_prior, at.emission[0].reshape(-1, symbols))]
    elif _is_gaussian(model) and model.per_state:
        tables += [("w", seen.counts[0], model.weights_prior, at.emission[0])]
    for letter, counts, prior, table in tables:
        if letter in model.params:
            if prior > 1 and np.any(table == 0):
                return NotApplicable("hmm.stationary", Message("why.zero-entry"))
            gain += _table_gain(counts, float(prior), table, wide)
    if isinstance(model, PoissonHMM) and "l" in model.params:
        gain += _rate_gain(model, seen, wide)
    if _is_gaussian(model) and {"m", "c"} & set(model.params):
        more = _gaussian_gain(model, seen, wide)
        if more is None:
            return NotApplicable("hmm.stationary", Message("why.small-component"))
        gain += more
    value = float(outward(gain / n + 1e-13))
    return Claim("hmm.stationary", value, params=_params(model, seen.sequences), witness={"lengths": lengths})


def _params(model: Any, sequences: Sequences) -> dict[str, Any]:
    """Return the priors, and the parts that a step changes, as the claims state them."""
    results: dict[str, Any] = {"start_prior": float(model.startprob_prior), "trans_prior": float(model.transmat_prior)}
    if isinstance(model, CategoricalHMM):
        return {**results, "emission_prior": float(model.emissionprob_prior), "parts": model.params}
    if isinstance(model, PoissonHMM):
        added = {"shape": float(model.lambdas_prior), "rate": float(model.lambdas_weight)}
        return {**results, **added, "parts": model.params}
    prior = model._prior(sequences.X.shape[1])
    weights = float(getattr(model, "weights_prior", 1.0))
    return {
        **results,
        "weights_prior": weights,
        "scale": float(prior.scale),
        "count": float(prior.count),
        "parts": model.params,
    }


def _excess(x: np.ndarray) -> np.ndarray:
    """Return (1 + x) ln(1 + x) - x, a little enlarged."""
    near, x = np.abs(x) < 1e-3, np.maximum(x, -1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(x <= -1, 1.0, (1 + x) * np.log1p(x) - x)
    return np.where(near, x**2 / 2 * (1 + np.abs(x)), far) * (1 + 1e-6)


def _table_gain(counts: np.ndarray, prior: float, table: np.ndarray, wide: float) -> float:
    total = 0.0
    for row, p in zip(counts, table):
        live = p > 0
        c, q = row[live] + prior - 1, p[live]
        C = float(c.sum())
        bound = C * (1 + wide) * float(np.max(-np.log(q))) * 1.001 + 1e-13
        if C > 0:
            ratio = c / (C * q)
            ends = np.maximum(_excess(ratio * (1 + 4 * wide) - 1), _excess(ratio * (1 - 4 * wide) - 1))
            bound = min(bound, C * (1 + wide) * (float(q @ ends) + abs(1 - float(q.sum())) + 64 * _UNIT))
        total += bound
    return total * (1 + 1e-9)


def _rate_gain(model: Any, seen: Seen, wide: float) -> float:
    """Return what the rates gain at an M step: N l e(S / (N l) - 1)."""
    rates = seen.at.emission[0]
    N, S = seen.counts.rows + model.lambdas_weight, seen.counts.sums + model.lambdas_prior
    ratio = S / np.maximum(N * rates, 1e-300)
    ends = np.maximum(_excess(ratio * (1 + 4 * wide) - 1), _excess(ratio * (1 - 4 * wide) - 1))
    return float((N * rates * (1 + wide) * ends + 128 * _UNIT * (S + N * rates)).sum()) * (1 + 1e-6)


def _gaussian_gain(model: Any, seen: Seen, wide: float) -> float | None:
    """Return what means and covariances gain at an M step; None if that is not bounded."""
    result = seen.counts[1] if model.per_state else seen.counts
    means, factors = model._flat(*seen.at.emission[-2:])
    d, K = means.shape[1], len(means)
    prior = model._prior(d)
    groups = {"tied": np.arange(K) // (K // (model.n_components if model.per_state else 1))}
    group = groups.get(model.covariance_type, np.arange(K))
    gain, sums = 0.0, dict[int, tuple[np.ndarray, float, float, np.ndarray]]()
    largest = np.nanmax(np.abs(seen.sequences.X), axis=0)
    for c in range(K):
        U = factors[c] if factors.ndim == 3 else np.diag(factors[c])
        N = float(result.mass[c] if result.mass.ndim == 1 else result.mass[c].max())
        if N < 1e-6:
            return None
        s = U.T @ result.linear[c] / N
        square = result.square[c] if result.square.ndim == 3 else np.diag(result.square[c])
        second = U.T @ square @ U / N
        reach = (2 * d + 64) * _UNIT * float(np.linalg.norm((largest + np.abs(means[c])) @ np.abs(U)))
        size = float(np.linalg.norm(second)) + d + float(s @ s)
        off = 8 * (wide * size + reach * (np.sqrt(size) + reach) + 64 * d * d * _UNIT * size)
        S, error, mass, _ = sums.get(group[c], (np.zeros((d, d)), 0.0, 0.0, U))
        if "m" in model.params:
            gain += N * (1 + wide) * (float(np.linalg.norm(s)) + off) ** 2 / 2
            second = second - np.outer(s, s)
        sums[group[c]] = S + N * second, error + N * off, mass + N, U
    for S, error, N, U in sums.values() if "c" in model.params else ():
        one = U.sum(axis=0)
        added = float(prior.scale) * (np.outer(one, one) if factors.ndim == 3 else U.T @ U)
        B = (S + added) / (N + prior.count)
        values = np.diag(B) if model.covariance_type == "diag" else np.full(d, np.trace(B) / d)
        if factors.ndim == 3:
            values = np.linalg.eigvalsh((B + B.T) / 2)
        error = 4 * (error / N + 512 * d * d * _UNIT * (1 + float(np.abs(values).max())))
        error += 4 * wide * (float(np.linalg.norm(B)) + d)
        ends = np.stack([values - error, values + error])
        if ends.min() <= 1e-3:
            return None
        gain += 0.5 * (N + prior.count) * (1 + wide) * float((ends - 1 - np.log(ends)).max(axis=0).sum() + d * 1e-15)
    return gain * (1 + 1e-6)


# The way there ---------------------------------------------------------------------------------------------------


def _monotone(model: Any, sequences: Sequences, lengths: np.ndarray) -> Claim | NotApplicable:
    """Return that EM from the start did not lower the objective; the run is made once more, from nearly the same."""
    steps, n = model.monitor_.iter, len(sequences.X)
    if not steps:
        return NotApplicable("hmm.monotone", Message("why.no-em-step"))
    if n * steps > _MOST_STEPS:
        return NotApplicable("hmm.monotone", Message("why.steps-cost", steps=steps, rows=n))
    blurred = model.start_._replace(start=_blurred(model.start_.start))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = ChainProblem(model, sequences)
        solution = em(problem, blurred, tol=-np.inf, max_iter=steps)
    distance = _apart(model, model._parameters(), solution.parameters)
    if problem.mended or not distance < _AGREE:
        return NotApplicable("hmm.monotone", Message("why.saddle"))
    errors = float(_seen(model, sequences).errors.sum()) / n
    fall = max(0.0, float(-np.min(np.diff(solution.history)))) / n
    value = fall + 1e-9 * (1 + abs(solution.log_likelihood) / n) + 32 * errors
    params = {**_params(model, sequences), "steps": int(steps), "distance": outward(100 * distance + 1e-8)}
    return Claim("hmm.monotone", outward(value), params=params, witness={"lengths": lengths, **_witness(model)})


def _blurred(start: np.ndarray) -> np.ndarray:
    """Return probabilities that differ by less than anybody can tell: a run from them shows what rounding can do."""
    moved = start * (1 + 1e-12 * np.cos(np.arange(len(start))))
    return moved / moved.sum()


def _witness(model: Any) -> dict[str, np.ndarray]:
    start = model.start_
    results = {"start": start.start, "trans": start.trans}
    if isinstance(model, CategoricalHMM):
        return {**results, "tables": start.emission[0]}
    if isinstance(model, PoissonHMM):
        return {**results, "rates": start.emission[0]}
    means, factors = model._flat(*start.emission[-2:])
    factors = factors if factors.ndim == 3 else factors[:, :, None] * np.eye(means.shape[1])
    weights = start.emission[0] if model.per_state else np.ones((model.n_components, 1))
    return {**results, "weights": weights, "means": means, "factors": factors}


def _apart(model: Any, parameters: Parameters, other: Parameters) -> float:
    results = [float(np.abs(a - b).max()) for a, b in zip(parameters[:2], other[:2])]
    if not _is_gaussian(model):
        return max(*results, float(np.abs(parameters.emission[0] - other.emission[0]).max()))
    if model.per_state:
        results.append(float(np.abs(parameters.emission[0] - other.emission[0]).max()))
    (m, U), (l, V) = (model._flat(*at.emission[-2:]) for at in (parameters, other))
    for c in range(len(m)):
        A, B = (f if f.ndim == 2 else np.diag(f) for f in (U[c], V[c]))
        back = np.linalg.inv(B) @ A
        results.append(float(np.linalg.norm(A.T @ (l[c] - m[c]))))
        results.append(float(np.linalg.norm(back.T @ back - np.eye(len(A)))))
    return max(results)


# New sequences ----------------------------------------------------------------------------------------------------


def holdout(rows: Rows | None, asked: CertifyOptions, model: Any) -> Iterator[Statement | NotApplicable]:
    """Yield a bound of the mean over new sequences of -ln p / T, clipped to a range fixed in advance."""
    if rows is None:
        yield NotApplicable("hmm.holdout", Message("why.no-sequences"))
        return
    sequences = rows.sequences  # type: ignore[attr-defined]
    if len(asked.compared):
        yield NotApplicable("hmm.holdout", Message("why.compared-sequences"))
    elif asked.clip is None:
        yield NotApplicable("hmm.holdout", Message("why.log-clip-missing"))
    elif len(sequences.offsets) < 3:
        yield NotApplicable("hmm.holdout", Message("why.one-sequence"))
    elif why := _why_not(model, sequences):
        yield NotApplicable("hmm.holdout", why)
    else:
        yield partial(_betting, model, rows, asked.clip)


def _betting(model: Any, rows: Rows, clip: Any, delta: str) -> Claim | NotApplicable:
    sequences = rows.sequences  # type: ignore[attr-defined]
    low, width = float(clip[0]), float(clip[1]) - float(clip[0])
    seen, lengths = _seen(model, sequences), np.diff(sequences.offsets)
    with np.errstate(invalid="ignore"):
        losses = (-seen.expected.logs + 8 * np.nan_to_num(seen.errors)) / lengths - low
    losses = np.clip(np.nan_to_num(losses, nan=width, posinf=width), 0.0, width)
    order = BetOrder(rows, has_target=False).of_runs(lengths)
    bound = width * concentration.betting_upper(losses[order] / width, float(delta))
    if bound >= width or not np.isfinite(seen.expected.logs).all():
        return Vacuous("hmm.holdout", Message("why.sequences-vacuous", sequences=len(losses)), delta)
    told = sequence_keys(np.split(sequences.X, sequences.offsets[1:-1]))
    again = repeats(told, np.empty(0, dtype=np.uint64))
    params = {"low": low, "clip": width, "sequences": len(losses), "repeated": again}
    return claim("hmm.holdout", bound + width * OUTWARD, params, "holdout", delta, witness={"lengths": lengths})

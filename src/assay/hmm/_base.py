"""What hidden Markov models have in common: sequences, EM, decoding and drawing.

    p(x_1..x_T) = sum over states s_1..s_T of  pi(s_1) b(x_1 | s_1) prod_t A(s_{t-1}, s_t) b(x_t | s_t)

    maximise over pi, A, b    sum over sequences of ln p, plus the logarithms of the priors

Claims: the log-likelihood of the parameters returned, that a step of EM gains no more than a stated amount, and for
        small problems that no step from the start lowered the objective.
Method: EM (Baum and Welch): forward and backward passes, O(T k^2).
"""

import sys
import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import Learner, fit_log, read_rows
from assay.claims.claim import Certificate, Claim, NotApplicable
from assay.fitlog import FitLog
from assay.guarantees.ledger import CertifyOptions, Statement
from assay.hmm._chain import Arrays, Emissions, Expected, Sequences, best_paths, expect, joined, log_likelihoods
from assay.optim import em as optim
from assay.params import Choice, Count, Flag, Maybe, Number, check, refuse
from assay.scan import Rows, one_blas_thread

ALGORITHMS = ("viterbi", "map")


class Parameters(NamedTuple):
    """pi (k,), A (k, k), and the arrays that the emissions need."""

    start: np.ndarray
    trans: np.ndarray
    emission: Arrays


class Monitor(NamedTuple):
    """How a fit went: ln-likelihood at the start and after each step, and whether a step gained less than `tol`."""

    history: list[float]
    iter: int
    converged: bool
    tol: float


@dataclass(eq=False, repr=False)
class HiddenMarkovModel(Learner):
    """Base of the hidden Markov models."""

    figure = "transitions"
    constraints: ClassVar = {
        "n_components": Count(),
        "algorithm": Choice(*ALGORITHMS),
        "n_iter": Count(low=0),
        "n_init": Count(),
        "tol": Number(),
        "verbose": Flag,
        "n_jobs": Maybe(Count(low=-256)),
    }

    n_components: int = 1
    _: KW_ONLY
    startprob_prior: Any = 1.0
    transmat_prior: Any = 1.0
    algorithm: str = "viterbi"
    random_state: Any = None
    n_iter: int = 10
    tol: float = 1e-2
    n_init: int = 1
    verbose: bool = False
    params: str = "st"
    init_params: str = "st"
    n_jobs: int | None = None

    letters: ClassVar[dict[str, str]] = {"s": "startprob_", "t": "transmat_"}
    dirichlet: ClassVar[tuple[str, ...]] = ("startprob_prior", "transmat_prior")
    if TYPE_CHECKING:
        startprob_: np.ndarray
        transmat_: np.ndarray

    # What a kind of emission brings -------------------------------------------------------------------------

    def _see(self, sequences: Sequences, emission: Arrays) -> Emissions:
        """Return the densities of the rows in each state."""
        raise NotImplementedError

    def _count(self, sequences: Sequences, seen: Emissions, shares: np.ndarray, emission: Arrays) -> Any:
        """Return what the M step needs of the rows, weighted by the probabilities of the states."""
        raise NotImplementedError

    def _maximise(self, counts: Any, emission: Arrays) -> tuple[Arrays, int]:
        """Return the emissions of largest expected log-likelihood plus log-prior, and how many had to be widened."""
        raise NotImplementedError

    def _log_prior(self, emission: Arrays) -> float:
        """Return the logarithm of the prior, up to a constant."""
        return 0.0

    def _begin(self, X: np.ndarray, random_state: Any) -> Arrays:
        """Return the emissions that EM starts from, drawn for the letters of `init_params`."""
        raise NotImplementedError

    def _emission(self) -> Arrays:
        """Return the arrays of the emissions, after checking those that a user has set."""
        raise NotImplementedError

    def _attributes(self, emission: Arrays) -> dict[str, np.ndarray]:
        """Return the emissions as attributes."""
        raise NotImplementedError

    def _check_rows(self, X: np.ndarray, *, reset: bool) -> None:
        """Refuse rows that cannot be emitted."""

    def _draw(self, states: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        raise NotImplementedError

    def n_parameters(self) -> int:
        """Return the number of free parameters that `params` lets the fit choose."""
        k = self.n_components
        return (k - 1) * ("s" in self.params) + k * (k - 1) * ("t" in self.params)

    # Fitting ------------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any = None, lengths: Any = None, states: Any = None) -> Any:
        """Fit to sequences of rows.

        Parameters
        ----------
        X : (n, d), or a list of sequences
            The rows of all sequences, one sequence below the other. NaN is an entry that is missing; a row of NaN
            is a step at which nothing was seen. Or a list with the rows (n, d) of each sequence.
        y : ignored, or lengths
            Not used; but an argument of another length than X is taken for `lengths`, as the second argument of
            hmmlearn's methods is.
        lengths : (sequences,), optional
            How many rows each sequence has; all rows are one sequence if there are none.
        states : (n,), optional
            The state of each row, 0 .. n_components - 1. Then nothing is hidden, and the fit counts (with the priors).
        """
        check(self)
        self._check_letters()
        X, lengths = self._numbers(*joined(self, X, self._lengths(X, y, lengths)), reset=True)
        sequences = self._sequences(read_rows(self, X, None), lengths)
        self._check_rows(sequences.X, reset=True)
        with fit_log(self, self.n_init * self.n_iter, X, None) as log, one_blas_thread():
            if states is None:
                self._run(sequences, log)
            else:
                self._count_states(sequences, states, log)
        return self

    def _run(self, sequences: Sequences, log: FitLog) -> None:
        def watch(parameters: Parameters, value: float, gain: float) -> bool:
            if self.verbose:
                print(f"{type(self).__name__}: step {len(log.history) + 1}: {value:.10g}, {gain:+.3g}", file=sys.stderr)
            return log.step(-value, abs(gain), **self._as_attributes(parameters))

        runs: list[tuple[optim.Found, Parameters, ChainProblem]] = []
        for seed in self._seeds():
            start = Parameters(*self._begin_chain(seed), self._begin(sequences.X, seed))
            problem = ChainProblem(self, sequences)
            runs.append((optim.em(problem, start, tol=self.tol, max_iter=self.n_iter, watch=watch), start, problem))
            if log.stopped:
                break
        result, start, problem = max(runs, key=lambda run: np.nan_to_num(run[0].log_likelihood, nan=-np.inf))
        if not np.isfinite(result.log_likelihood):
            raise refuse(self, problem.impossible())
        if not log.history:
            log.step(-result.log_likelihood, 0.0, **self._as_attributes(result.parameters))
        self._finish(result.parameters)
        self.start_: Parameters | None = start
        self.mended_ = problem.mended
        self.monitor_ = Monitor(problem.values, result.n_iter, result.converged, self.tol)
        if problem.mended:
            warnings.warn(
                f"{type(self).__name__}: a component shrank to a point, or to fewer dimensions than it has, and was "
                f"widened {problem.mended} times; take fewer components, or a larger min_covar.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _seeds(self) -> list[Any]:
        """Return what each of the `n_init` starts is drawn by."""
        if self.n_init == 1:
            return [self.random_state]
        random = check_random_state(self.random_state)
        return [random.randint(2**31 - 1) for _ in range(self.n_init)]

    def _count_states(self, sequences: Sequences, states: Any, log: FitLog) -> None:
        """Fit to labelled rows: relative frequencies."""
        k, n = self.n_components, len(sequences.X)
        states = np.asarray(states)
        if states.shape != (n,) or states.dtype.kind not in "iu" or not (0 <= states.min() <= states.max() < k):
            raise refuse(self, f"states must be {n} integers from 0 to {k - 1}, one for each row of X.")
        start = Parameters(np.full(k, 1 / k), np.full((k, k), 1 / k), self._begin(sequences.X, self.random_state))
        ends = sequences.offsets[1:] - 1
        inside = np.delete(np.arange(n), ends)
        pairs = np.bincount(states[inside] * k + states[inside + 1], minlength=k * k).reshape(k, k).astype(float)
        first = np.bincount(states[sequences.offsets[:-1]], minlength=k).astype(float)
        problem, seen = ChainProblem(self, sequences), self._see(sequences, start.emission)
        shares = np.eye(k)[states]
        if not seen.each:
            shares, every = np.zeros((len(seen.table), k)), shares
            np.add.at(shares, seen.which, every)
        counts = self._count(sequences, seen, shares, start.emission)
        result = problem.m_step((start, Expected(np.zeros(1), first, pairs, shares), counts))
        value = problem.log_likelihood(result)
        log.step(-value, 0.0, **self._as_attributes(result))
        self._finish(result)
        self.mended_ = problem.mended
        self.monitor_ = Monitor(problem.values, 1, True, self.tol)
        self.start_ = None

    def _begin_chain(self, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
        k, random = self.n_components, check_random_state(random_state)
        even = np.full(k, 1 / k)
        start, trans = random.dirichlet(even), random.dirichlet(even, size=k)
        start = start if self._draws("s") else self._chain()[0]
        return start, trans if self._draws("t") else self._chain()[1]

    def _draws(self, letter: str) -> bool:
        """Tell whether the start of that part is drawn: its letter is in `init_params`, or there is none."""
        return letter in self.init_params or not hasattr(self, self.letters[letter])

    def _check_letters(self) -> None:
        for name in ("params", "init_params"):
            value = getattr(self, name)
            if not isinstance(value, str) or set(value) - set(self.letters):
                raise refuse(self, f"{name} must consist of letters of {''.join(self.letters)!r}; got {value!r}.")

    def _chain(self) -> tuple[np.ndarray, np.ndarray]:
        """Return pi and A, after checking those that a user has set."""
        k = self.n_components
        return self._table("startprob_", (k,)), self._table("transmat_", (k, k))

    def _table(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Return an attribute whose rows are distributions."""
        value = np.array(getattr(self, name), dtype=np.float64, order="C")
        if value.shape != shape:
            raise refuse(self, f"{name} must have shape {shape}; got {value.shape}.")
        if not (value >= 0).all() or not np.allclose(value.sum(axis=-1), 1.0, rtol=0, atol=1e-6):
            raise refuse(self, f"each row of {name} must be numbers >= 0 that sum to 1.")
        return value

    def _parameters(self) -> Parameters:
        check_is_fitted(self, list(self.letters.values()))
        return Parameters(*self._chain(), self._emission())

    def _as_attributes(self, at: Parameters) -> dict[str, np.ndarray]:
        return {"startprob_": at.start, "transmat_": at.trans, **self._attributes(at.emission)}

    def _finish(self, at: Parameters) -> None:
        for name, value in self._as_attributes(at).items():
            setattr(self, name, value)

    def _derive(self) -> None:
        self._parameters()  # what was stored must go together

    def __sklearn_is_fitted__(self) -> bool:
        return all(hasattr(self, name) for name in self.letters.values())

    # Sequences ----------------------------------------------------------------------------------------------

    def _lengths(self, X: Any, y: Any, lengths: Any) -> Any:
        """Return `lengths`, or a second argument that must be meant as such."""
        if lengths is not None or y is None:
            return lengths
        return None if len(y) == (X.shape[0] if hasattr(X, "shape") else len(X)) else y

    def _numbers(self, X: Any, lengths: Any, *, reset: bool) -> tuple[Any, Any]:
        """Return rows of numbers, and lengths; symbols that are text become numbers where a model emits symbols."""
        return X, lengths

    def _offsets(self, n: int, lengths: Any) -> np.ndarray:
        if lengths is None:
            return np.array([0, n], dtype=np.int64)
        lengths = np.asarray(lengths)
        if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or not len(lengths) or lengths.min() < 1:
            raise refuse(self, "lengths must be integers >= 1, the number of rows of each sequence.")
        if lengths.sum() != n:
            raise refuse(self, f"lengths must sum to the number of rows, {n}; their sum is {lengths.sum()}.")
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def _sequences(self, rows: Rows, lengths: Any) -> Sequences:
        """Return the rows in memory, cut into sequences."""
        X = rows.X if hasattr(rows, "X") else np.concatenate([np.array(block.X) for block in rows.blocks()])
        X = np.ascontiguousarray(X, dtype=np.float64)
        if np.isinf(X).any():
            raise refuse(self, "Input X contains infinity; a missing entry is NaN.")
        return Sequences(X, self._offsets(len(X), lengths), self.n_jobs)

    def _given(self, X: Any, lengths: Any) -> tuple[Parameters, Sequences]:
        """Return the parameters, and rows that a method is asked about."""
        at = self._parameters()
        if not hasattr(self, "n_features_in_"):  # parameters set by hand, as hmmlearn allows
            self.n_features_in_ = self._columns(at.emission)
        X, lengths = self._numbers(*joined(self, X, lengths), reset=False)
        X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
        sequences = Sequences(np.ascontiguousarray(X), self._offsets(len(X), lengths), self.n_jobs)
        self._check_rows(sequences.X, reset=False)
        return at, sequences

    def _columns(self, emission: Arrays) -> int:
        raise NotImplementedError

    # Answers ------------------------------------------------------------------------------------------------

    def score(self, X: Any, y: Any = None, lengths: Any = None) -> float:
        """Return the log-likelihood of all sequences together; -inf if one of them cannot occur."""
        at, sequences = self._given(X, self._lengths(X, y, lengths))
        return float(log_likelihoods(sequences, self._see(sequences, at.emission), at.start, at.trans).sum())

    def score_samples(self, X: Any, lengths: Any = None) -> tuple[float, np.ndarray]:
        """Return the log-likelihood, and the probability of each state at each row given its whole sequence (n, k)."""
        at, sequences = self._given(X, lengths)
        result = expect(sequences, self._see(sequences, at.emission), at.start, at.trans, each=True)
        if not np.isfinite(result.logs).all():
            raise refuse(self, _IMPOSSIBLE.format(int(np.argmin(result.logs))))
        return float(result.logs.sum()), result.shares

    def predict_proba(self, X: Any, lengths: Any = None) -> np.ndarray:
        """Return the probability of each state at each row given its whole sequence (n, k)."""
        return self.score_samples(X, lengths)[1]

    def decode(self, X: Any, lengths: Any = None, algorithm: str | None = None) -> tuple[float, np.ndarray]:
        """Return ln p(X, states) and the states found.

        "viterbi": the states that are most probable together. "map": at each row the most probable state; a path of
        such states may be one that cannot occur, and ln p is then -inf.
        """
        algorithm = self.algorithm if algorithm is None else algorithm
        if algorithm not in ALGORITHMS:
            raise refuse(self, f"algorithm must be one of {', '.join(map(repr, ALGORITHMS))}; got {algorithm!r}.")
        at, sequences = self._given(X, lengths)
        seen = self._see(sequences, at.emission)
        if algorithm == "viterbi":
            states, values = best_paths(sequences, seen, at.start, at.trans)
            if not np.isfinite(values).all():
                raise refuse(self, _IMPOSSIBLE.format(int(np.argmin(values))))
            return float(values.sum()), states
        states = self.predict_proba(X, lengths).argmax(axis=1)
        firsts = sequences.offsets[:-1]
        with np.errstate(divide="ignore"):
            steps = np.log(at.trans)[states[:-1], states[1:]]
            steps[firsts[1:] - 1] = np.log(at.start)[states[firsts[1:]]]
            value = steps.sum() + np.log(at.start[states[0]])
        logs = seen.log_rows(slice(0, len(states)))[np.arange(len(states)), states]
        return float(value + logs.sum()), states

    def predict(self, X: Any, lengths: Any = None) -> np.ndarray:
        """Return the state of each row, by `algorithm`."""
        return self.decode(X, lengths)[1]

    def sample(
        self, n_samples: int = 1, random_state: Any = None, currstate: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return one drawn sequence, (n_samples, d), and its states; `currstate` is the first state if it is given."""
        at = self._parameters()
        if isinstance(n_samples, bool) or not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
            raise refuse(self, f"n_samples must be an integer >= 1; got {n_samples!r}.")
        random = check_random_state(self.random_state if random_state is None else random_state)
        states, draws = np.empty(int(n_samples), np.int64), random.random_sample(int(n_samples))
        cumulative = np.cumsum(at.trans, axis=1)
        first = np.searchsorted(np.cumsum(at.start), draws[0] * at.start.sum(), side="right")
        states[0] = min(first, self.n_components - 1) if currstate is None else currstate
        for t in range(1, len(states)):
            row = cumulative[states[t - 1]]
            states[t] = min(np.searchsorted(row, draws[t] * row[-1], side="right"), self.n_components - 1)
        return self._draw(states, random), states

    def get_stationary_distribution(self) -> np.ndarray:
        """Return a distribution of states that a step of the chain leaves as it is."""
        k, trans = self.n_components, self._parameters().trans
        wanted = np.concatenate([trans.T - np.eye(k), np.ones((1, k))])
        result = np.linalg.lstsq(wanted, np.append(np.zeros(k), 1.0), rcond=None)[0]
        return np.clip(result, 0.0, None) / np.clip(result, 0.0, None).sum()

    def bic(self, X: Any, lengths: Any = None) -> float:
        """Return Bayes's information criterion, -2 ln-likelihood + parameters ln n; smaller is better."""
        n = len(self._given(X, lengths)[1].X)
        return -2 * self.score(X, lengths=lengths) + self.n_parameters() * np.log(n)

    def aic(self, X: Any, lengths: Any = None) -> float:
        """Return Akaike's information criterion, -2 ln-likelihood + 2 parameters; smaller is better."""
        return -2 * self.score(X, lengths=lengths) + 2 * self.n_parameters()

    # Certificates -------------------------------------------------------------------------------------------

    def certify(self, X: Any, y: Any = None, *, lengths: Any = None, **asked: Any) -> Certificate:
        """Return a certificate of this fitted model; see `Learner.certify`.

        `lengths` are those of `fit`. `holdout` is a pair (X, lengths): the independent draws are whole sequences, and
        so is the unit of every statement about new data; clip is the least and the largest -ln p(sequence) / T.
        """
        return super().certify(X, self._lengths(X, y, lengths), **asked)

    def _known_rows(self, X: Any, y: Any, sample_weight: Any = None) -> Rows:
        X, lengths = self._numbers(*joined(self, X, self._lengths(X, y, None)), reset=False)
        rows = read_rows(self, X, None, reset=False)
        sequences = self._sequences(rows, lengths)
        self._check_rows(sequences.X, reset=False)
        rows.sequences = sequences  # type: ignore[attr-defined]
        return rows

    def _row_numbers(self, holdout: Any, n: int) -> np.ndarray:
        super()._row_numbers(holdout, n)
        raise refuse(self, "holdout must be a pair (X, lengths): rows of one sequence are not independent draws.")

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        from assay.hmm._claims import facts

        yield from facts(self, rows)

    def holdout_statements(self, rows: Rows | None, asked: CertifyOptions) -> Iterator[Statement | NotApplicable]:
        """Yield the mean log-loss of new sequences: these, not rows, are independent draws."""
        from assay.hmm._claims import holdout

        yield from holdout(rows, asked, self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


_IMPOSSIBLE = "sequence {} (counted from 0) has probability 0 under the model, so that its states have none."


class ChainProblem:
    """Sequences of rows with hidden states, as `optim.em` sees them; the value is ln-likelihood plus ln-prior."""

    def __init__(self, model: Any, sequences: Sequences):
        self.model, self.sequences = model, sequences
        self.values: list[float] = []
        self.mended, self.logs = 0, np.zeros(0)
        self.sure = not any(np.any(np.asarray(getattr(model, name)) < 1) for name in model.dirichlet)
        self.exact = self.sure

    def e_step(self, at: Parameters) -> optim.Expected:
        seen = self.model._see(self.sequences, at.emission)
        result = expect(self.sequences, seen, at.start, at.trans)
        self._told(result.logs)
        counts = self.model._count(self.sequences, seen, result.shares, at.emission)
        return optim.Expected(self._value(at), (at, result, counts))

    def m_step(self, statistics: Any) -> Parameters:
        at, result, counts = statistics
        if not np.isfinite(self.logs).all():
            raise refuse(self.model, self.impossible())
        model = self.model
        start = _normalised(result.start, model.startprob_prior, at.start) if "s" in model.params else at.start
        trans = _normalised(result.pairs, model.transmat_prior, at.trans) if "t" in model.params else at.trans
        emission, mended = model._maximise(counts, at.emission)
        self.mended += mended
        self.exact = self.sure and not self.mended  # a component next to a point has a likelihood that rounding hides
        return Parameters(start, trans, emission)

    def log_likelihood(self, at: Parameters) -> float:
        seen = self.model._see(self.sequences, at.emission)
        self._told(log_likelihoods(self.sequences, seen, at.start, at.trans))
        return self._value(at)

    def _told(self, logs: np.ndarray) -> None:
        self.logs = logs
        self.values.append(float(logs.sum()))

    def _value(self, at: Parameters) -> float:
        prior = log_dirichlet(at.start, self.model.startprob_prior) + log_dirichlet(at.trans, self.model.transmat_prior)
        return float(self.values[-1] + prior + self.model._log_prior(at.emission))

    def impossible(self) -> str:
        return _IMPOSSIBLE.format(int(np.argmin(np.nan_to_num(self.logs, nan=-np.inf))))


def _normalised(counts: np.ndarray, prior: Any, old: np.ndarray) -> np.ndarray:
    """Return rows in proportion to counts + prior - 1; a row without counts stays as it is."""
    result = np.maximum(counts + (np.asarray(prior, dtype=float) - 1), 0.0)
    total = result.sum(axis=-1, keepdims=True)
    return np.where(total > 0, result / np.where(total > 0, total, 1.0), old)


def log_dirichlet(table: np.ndarray, prior: Any) -> float:
    """Return sum (prior - 1) ln p, of the entries where prior is above 1; below 1 it has no maximum to speak of."""
    power = np.broadcast_to(np.asarray(prior, dtype=float) - 1, table.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(power > 0, power * np.log(table), 0.0).sum())

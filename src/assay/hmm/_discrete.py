"""Hidden Markov models that emit symbols (categorical) or counts (Poisson)."""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy
from sklearn.utils import check_random_state

from assay.card import Card
from assay.hmm._base import HiddenMarkovModel, _normalised, log_dirichlet
from assay.hmm._chain import Arrays, Emissions, Sequences, joined, numbered, of_distinct, text_in
from assay.params import Count, Maybe, Number, refuse


@dataclass(eq=False, repr=False)
class CategoricalHMM(HiddenMarkovModel):
    """A hidden Markov chain each of whose states emits symbols with probabilities of its own.

    Symbols are 0, 1, ..., or text: words, or the characters of strings. A list of sequences may be given wherever rows
    are.

        p(x_1..x_T) = sum over states s_1..s_T of  pi(s_1) B(s_1, x_1) prod_t A(s_{t-1}, s_t) B(s_t, x_t)

    Parameters are fitted by EM (Baum and Welch), or counted where the states are known (`fit(X, states=...)`). Several
    columns are independent given the state, each with a table of its own. A missing symbol (NaN) is left out.

    Parameters
    ----------
    n_components : int >= 1
        Number of states.
    startprob_prior, transmat_prior, emissionprob_prior : float >= 0, or arrays
        Dirichlet priors of the rows of the tables; 1 is none. Above 1 pulls towards even tables, below 1 makes
        entries zero (the objective then has no bound, and may fall).
    n_features : int, optional
        Number of symbols; the largest one seen plus one if not given.
    algorithm : "viterbi" or "map"
        How `predict` decodes.
    random_state : int, RandomState or None
    n_iter : int >= 0
        Steps of EM allowed.
    tol : float
        In nats. After a step that gains less, one more is made and EM ends.
    n_init : int >= 1
        Starts of EM; the fit of largest objective is kept.
    verbose : bool
    params, init_params : str
        Letters of the parts that the fit changes, and of those that it draws anew: s(tart), t(ransitions), e(missions).
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    startprob_ (k,), transmat_ (k, k), emissionprob_ (k, symbols), or (columns, k, symbols)
        They may also be set by hand instead of fitted.
    symbols_ : array of text
        The symbols in order, if they are text; empty if they are numbers.
    monitor_ : history, iter, converged, tol
        The log-likelihood at the start and after each step.

    Examples
    --------
    Three boxes with red (0) and white (1) balls; red, white, red is drawn (Li Hang, example 10.2).

    >>> import numpy as np
    >>> from assay.hmm import CategoricalHMM
    >>> model = CategoricalHMM(3)
    >>> model.startprob_ = np.array([0.2, 0.4, 0.4])
    >>> model.transmat_ = np.array([[0.5, 0.2, 0.3], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]])
    >>> model.emissionprob_ = np.array([[0.5, 0.5], [0.4, 0.6], [0.7, 0.3]])
    >>> balls = [[0], [1], [0]]
    >>> round(float(np.exp(model.score(balls))), 6)
    0.130218
    >>> log_p, states = model.decode(balls)
    >>> round(float(np.exp(log_p)), 4), states.tolist()
    (0.0147, [2, 2, 2])
    """

    card = Card(
        name="Hidden Markov model of symbols",
        task="density",
        model="distributions of sequences of symbols by a hidden Markov chain",
        strategy="log-likelihood of the sequences, plus the logarithms of priors",
        algorithm="EM (Baum and Welch), forward and backward passes for each step; counts where states are known",
        guarantee=("hmm.log-likelihood", "hmm.stationary", "hmm.monotone", "hmm.holdout"),
        input=("numbers", "missing"),
    )
    family = "hmm.categorical"

    constraints: ClassVar = {"n_features": Maybe(Count())}
    letters: ClassVar = {**HiddenMarkovModel.letters, "e": "emissionprob_"}
    dirichlet: ClassVar = (*HiddenMarkovModel.dirichlet, "emissionprob_prior")

    _: KW_ONLY
    emissionprob_prior: Any = 1.0
    n_features: int | None = None
    params: str = "ste"
    init_params: str = "ste"

    if TYPE_CHECKING:
        emissionprob_: np.ndarray
    symbols_ = np.empty(0, dtype=str)

    def codes(self, X: Any) -> np.ndarray:
        """Return rows of numbers: the positions of symbols that are text, NaN where there is none."""
        return np.asarray(self._numbers(*joined(self, X, None), reset=False)[0], dtype=np.float64)

    def _numbers(self, X: Any, lengths: Any, *, reset: bool) -> tuple[Any, Any]:
        if isinstance(X, str):
            X = [[row] for row in X]
        text = text_in(X)
        if text is None:
            if not reset and len(self.symbols_):
                raise refuse(self, f"symbols are text such as {self.symbols_[0]!r}; got numbers.")
            if reset:
                self.__dict__.pop("symbols_", None)
            return X, lengths
        if not reset and not len(self.symbols_):
            raise refuse(self, "symbols are numbers 0, 1, ...; got text, of which the model knows none.")
        codes, known = numbered(self, text, None if reset else self.symbols_)
        if reset:
            self.symbols_ = known
        return codes, lengths

    def _check_rows(self, X: np.ndarray, *, reset: bool) -> None:
        there = X[~np.isnan(X)]
        if there.size and (there.min() < 0 or (there != np.floor(there)).any()):
            raise refuse(self, "Negative values in data passed to X, or fractions: symbols are integers 0, 1, 2, ...")
        most = int(there.max()) if there.size else 0
        known = self.n_features if reset else self._emission()[0].shape[2]
        if known is not None and most >= known:
            raise refuse(self, f"symbol {most} is not among the {known} symbols 0 .. {known - 1}.")
        if most >= 2**20:
            raise refuse(self, f"symbol {most} is beyond the 2^20 that are held; number the symbols 0, 1, 2, ...")

    def _emission(self) -> Arrays:
        table = np.asarray(self.emissionprob_, dtype=float)
        columns = len(table) if table.ndim == 3 else 1
        shape = (self.n_components, table.shape[-1])
        return (self._table("emissionprob_", shape if table.ndim < 3 else (columns, *shape)).reshape(columns, *shape),)

    def _columns(self, emission: Arrays) -> int:
        return len(emission[0])

    def _attributes(self, emission: Arrays) -> dict[str, np.ndarray]:
        (table,) = emission
        return {"emissionprob_": table[0] if len(table) == 1 else table}

    def _begin(self, X: np.ndarray, random_state: Any) -> Arrays:
        if not self._draws("e"):
            return self._emission()
        seen = X[~np.isnan(X)]
        symbols = self.n_features or len(self.symbols_) or (int(seen.max()) + 1 if seen.size else 1)
        table = check_random_state(random_state).rand(X.shape[1], self.n_components, symbols)
        return (table / table.sum(axis=2, keepdims=True),)

    def _see(self, sequences: Sequences, emission: Arrays) -> Emissions:
        (tables,), (rows, index) = emission, sequences.distinct
        logs = np.zeros((len(rows), self.n_components))
        with np.errstate(divide="ignore"):
            for j, table in enumerate(tables):
                logs += np.concatenate([np.zeros((1, len(table))), np.log(table).T])[rows[:, j] + 1]
        return of_distinct(logs, index)

    def _count(self, sequences: Sequences, seen: Emissions, shares: np.ndarray, emission: Arrays) -> Any:
        (tables,), (rows, _) = emission, sequences.distinct
        result = np.zeros_like(tables)
        for j, counts in enumerate(result):
            there = rows[:, j] >= 0
            np.add.at(counts.T, rows[there, j], shares[there])
        return result

    def _maximise(self, counts: Any, emission: Arrays) -> tuple[Arrays, int]:
        if "e" not in self.params:
            return emission, 0
        return (_normalised(counts, self.emissionprob_prior, emission[0]),), 0

    def _log_prior(self, emission: Arrays) -> float:
        return log_dirichlet(emission[0], self.emissionprob_prior)

    def _draw(self, states: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        (tables,) = self._emission()
        X = np.empty((len(states), len(tables)), np.int64)
        for j, table in enumerate(tables):
            cumulative = np.cumsum(table, axis=1)
            draws = random.random_sample(len(states)) * cumulative[states, -1]
            X[:, j] = np.minimum((draws[:, None] >= cumulative[states]).sum(axis=1), table.shape[1] - 1)
        if not len(self.symbols_):
            return X
        if X.max() >= len(self.symbols_):
            raise refuse(
                self,
                f"symbol {X.max()} was drawn, but only {len(self.symbols_)} symbols have a text; leave n_features out.",
            )
        return self.symbols_[X]

    def n_parameters(self) -> int:
        (tables,) = self._emission()
        columns, k, symbols = tables.shape
        return super().n_parameters() + columns * k * (symbols - 1) * ("e" in self.params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.positive_only = True
        return tags


class CountSums(NamedTuple):
    """Expected number of rows, and expected sum of counts, in each state, (k, columns): of entries that are there."""

    rows: np.ndarray
    sums: np.ndarray


@dataclass(eq=False, repr=False)
class PoissonHMM(HiddenMarkovModel):
    """A hidden Markov chain each of whose states emits counts, Poisson with a rate of its own for each column.

        p(x_1..x_T) = sum over states of  pi(s_1) prod_t A(s_{t-1}, s_t) prod_j exp(-l) l^x / x!,  l = lambda(s_t, j)

    Parameters are fitted by EM, or counted where the states are known (`fit(X, states=...)`). Columns are independent
    given the state; a missing count (NaN) is left out.

    Parameters
    ----------
    n_components : int >= 1
        Number of states.
    startprob_prior, transmat_prior : float >= 0, or arrays
        Dirichlet priors of the rows of the tables; 1 is none.
    lambdas_prior, lambdas_weight : float >= 0
        Counts, and rows that they were seen in, which are added in each state: the rate is
        (sum of counts + lambdas_prior) / (rows + lambdas_weight). 0 is maximum likelihood.
    algorithm : "viterbi" or "map"
        How `predict` decodes.
    random_state : int, RandomState or None
    n_iter : int >= 0
        Steps of EM allowed.
    tol : float
        In nats. After a step that gains less, one more is made and EM ends.
    n_init : int >= 1
        Starts of EM; the fit of largest objective is kept.
    verbose : bool
    params, init_params : str
        Letters of the parts that the fit changes, and of those that it draws anew: s(tart), t(ransitions), l(ambdas).
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    startprob_ (k,), transmat_ (k, k), lambdas_ (k, columns)
        They may also be set by hand instead of fitted.
    monitor_ : history, iter, converged, tol

    Examples
    --------
    >>> import numpy as np
    >>> from assay.hmm import PoissonHMM
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.poisson(rate, (100, 1)) for rate in (2.0, 20.0, 2.0)])
    >>> model = PoissonHMM(2, random_state=0).fit(X)
    >>> np.sort(model.lambdas_.ravel()).round(1).tolist()
    [2.1, 20.3]
    """

    card = Card(
        name="Hidden Markov model of counts",
        task="density",
        model="distributions of sequences of counts by a hidden Markov chain",
        strategy="log-likelihood of the sequences, plus the logarithms of priors",
        algorithm="EM (Baum and Welch), forward and backward passes for each step; counts where states are known",
        guarantee=("hmm.log-likelihood", "hmm.stationary", "hmm.monotone", "hmm.holdout"),
        input=("numbers", "missing", "counts"),
    )
    family = "hmm.poisson"

    constraints: ClassVar = {
        "lambdas_prior": Number(low=0.0, why="it is a number of counts"),
        "lambdas_weight": Number(low=0.0, why="it is a number of rows"),
    }
    letters: ClassVar = {**HiddenMarkovModel.letters, "l": "lambdas_"}

    _: KW_ONLY
    lambdas_prior: float = 0.0
    lambdas_weight: float = 0.0
    params: str = "stl"
    init_params: str = "stl"

    if TYPE_CHECKING:
        lambdas_: np.ndarray

    def _check_rows(self, X: np.ndarray, *, reset: bool) -> None:
        there = X[~np.isnan(X)]
        if there.size and (there.min() < 0 or (there != np.floor(there)).any() or there.max() >= 2.0**53):
            raise refuse(self, "Negative values in data passed to X, or fractions: counts are integers 0, 1, 2, ...")

    def _emission(self) -> Arrays:
        rates = np.array(self.lambdas_, dtype=np.float64, order="C")
        if rates.ndim != 2 or len(rates) != self.n_components or not rates.size:
            raise refuse(self, f"lambdas_ must have a row for each of {self.n_components} states; got {rates.shape}.")
        if not np.isfinite(rates).all() or (rates < 0).any():
            raise refuse(self, "lambdas_ must be finite numbers >= 0.")
        return (rates,)

    def _columns(self, emission: Arrays) -> int:
        return emission[0].shape[1]

    def _attributes(self, emission: Arrays) -> dict[str, np.ndarray]:
        return {"lambdas_": emission[0]}

    def _begin(self, X: np.ndarray, random_state: Any) -> Arrays:
        """Return rates drawn from a gamma distribution with the mean and the variance of all entries."""
        if not self._draws("l"):
            return self._emission()
        seen, shape = X[~np.isnan(X)], (self.n_components, X.shape[1])
        mean, variance = (float(seen.mean()), float(seen.var())) if seen.size else (1.0, 1.0)
        if not mean > 0 or not variance > 0:
            return (np.full(shape, mean),)
        return (check_random_state(random_state).gamma(mean**2 / variance, variance / mean, size=shape),)

    def _see(self, sequences: Sequences, emission: Arrays) -> Emissions:
        (rates,), (rows, index) = emission, sequences.distinct
        there = rows >= 0
        counts = np.where(there, rows, 0)[:, None, :]
        logs = np.where(there[:, None, :], xlogy(counts, rates) - rates - gammaln(counts + 1), 0.0).sum(axis=2)
        return of_distinct(logs, index)

    def _count(self, sequences: Sequences, seen: Emissions, shares: np.ndarray, emission: Arrays) -> CountSums:
        rows = sequences.distinct[0]
        return CountSums(shares.T @ (rows >= 0), shares.T @ np.maximum(rows, 0))

    def _maximise(self, counts: Any, emission: Arrays) -> tuple[Arrays, int]:
        if "l" not in self.params:
            return emission, 0
        rows = counts.rows + self.lambdas_weight
        return (np.where(rows > 0, (counts.sums + self.lambdas_prior) / np.where(rows > 0, rows, 1.0), emission[0]),), 0

    def _log_prior(self, emission: Arrays) -> float:
        return float((xlogy(self.lambdas_prior, emission[0]) - self.lambdas_weight * emission[0]).sum())

    def _draw(self, states: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        return random.poisson(self._emission()[0][states])

    def n_parameters(self) -> int:
        return super().n_parameters() + self._emission()[0].size * ("l" in self.params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.positive_only = True  # whole numbers, that is
        return tags

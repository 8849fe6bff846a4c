"""Restricted Boltzmann machines: a layer of visible and one of hidden units, connected across and not within.

    E(v, h) = -v'a - h'b - h'W v,    P(v, h) = exp(-E(v, h)) / Z,    units are 0 or 1
    maximise   mean ln P(v),   whose gradient by W is <h v'> of the data less <h v'> of the machine

The second mean is estimated from chains of Gibbs sampling: persistent ones that go on from batch to batch (Tieleman
2008), or k steps that start at the data (contrastive divergence, Hinton 2002). Up to 16 units in the smaller layer
likelihood and gradient are exact (`log_likelihood`, `gradient`).

Claims: for few units and rows of 0 and 1 the mean log-likelihood (rbm.log-likelihood) and the length of its gradient
        (rbm.gradient), by the checker's own enumeration.
Method: with k = 1 and persistent chains the steps are scikit-learn's, from the same random numbers.

A machine of few units is summed exactly, over all states of the smaller layer:

    ln P(v) = v'a + sum_k ln(1 + exp(b_k + W_k v)) - ln Z

Given one layer the units of the other are independent, so that 2^min(d, h) terms are enough where a general machine
(`BoltzmannMachine`) needs 2^(d + h).

Deep belief networks: restricted Boltzmann machines on top of each other, trained one layer after the other.

The first machine learns the rows, the next one the chances of its hidden units, and so on (Hinton, Osindero and Teh
2006). The weights are a starting point for a feed-forward network with the same layers of logistic units, which
`classifier` then trains with labels: the rows without labels have shaped its features.

Claims: the chances of the last layer, recomputed by the checker for any row; what the single machines prove is theirs
        (`machines_`).
Method: `BernoulliRBM` for each layer.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg.blas import dgemm, sgemm
from scipy.sparse import issparse
from scipy.special import expit, logsumexp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state, gen_even_slices
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import Diagram, Learner, fit_log, read_rows, require_finite
from assay.card import Card
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.fitlog import FitLog
from assay.messages import Message
from assay.neural_network._boltzmann import MOST_UNITS, states
from assay.neural_network._multilayer_perceptron import MLPClassifier
from assay.neural_network._network import unpack
from assay.params import Count, Flag, Maybe, Positive, check, refuse
from assay.scan import Rows, one_blas_thread

_SHOWN = 1000  # rows on which the pseudo-likelihood of each iteration is told
_UNIT = 2.0**-53


class Machines:
    """The distributions of restricted Boltzmann machines."""

    def __str__(self) -> str:
        return "two layers of binary units, P = exp(-energy) / Z"


def sigmoid(Z: np.ndarray) -> np.ndarray:
    """Write 1 / (1 + exp(-z)) over Z, in vector registers; exp may overflow, which gives 0."""
    np.negative(Z, out=Z)
    np.exp(Z, out=Z)
    Z += 1
    return np.reciprocal(Z, out=Z)


class Machine(NamedTuple):
    """Weights (h, d), intercepts of the visible units (d,) and of the hidden units (h,)."""

    W: np.ndarray
    visible: np.ndarray
    hidden: np.ndarray

    @property
    def is_small(self) -> bool:
        """Whether the states of the smaller layer can be listed."""
        return min(self.W.shape) <= MOST_UNITS

    def minus_free_energy(self, V: np.ndarray) -> np.ndarray:
        """Return v'a + sum_k ln(1 + exp(b_k + W_k v)) of each row."""
        return V @ self.visible + np.logaddexp(0, V @ self.W.T + self.hidden).sum(axis=1)

    def _listed(self) -> tuple[np.ndarray, np.ndarray, "Machine", bool]:
        """Return all states of the smaller layer, ln of the weight of each, the machine with that layer as the visible
        one, and whether it is the hidden layer."""
        turned = self.W.shape[0] < self.W.shape[1]
        machine = Machine(self.W.T, self.hidden, self.visible) if turned else self
        S = states(machine.W.shape[1])
        return S, machine.minus_free_energy(S), machine, turned

    def log_partition(self) -> float:
        """Return ln Z."""
        return float(logsumexp(self._listed()[1]))

    def log_likelihood(self, V: np.ndarray) -> np.ndarray:
        """Return ln P(v) of each row of 0 and 1."""
        return self.minus_free_energy(V) - self.log_partition()

    def gradient(self, V: np.ndarray) -> "Machine":
        """Return the gradient of the mean of ln P(v) over rows: what the data show less what the machine expects."""
        H = expit(V @ self.W.T + self.hidden)
        S, weights, machine, turned = self._listed()
        p = np.exp(weights - logsumexp(weights))
        other = expit(S @ machine.W.T + machine.hidden)
        pairs, own, means = (other * p[:, None]).T @ S, p @ S, p @ other
        expected = Machine(pairs.T, means, own) if turned else Machine(pairs, own, means)
        n = len(V)
        seen = Machine(H.T @ V / n, V.mean(axis=0), H.mean(axis=0))
        return Machine(*(data - model for data, model in zip(seen, expected, strict=True)))


@dataclass(eq=False, repr=False)
class BernoulliRBM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Learner):
    """Bernoulli restricted Boltzmann machine.

    Parameters
    ----------
    n_components : int
        Hidden units.
    learning_rate : float > 0
    batch_size : int
        Rows of an update, and number of chains.
    n_iter : int
        Passes over the rows.
    k : int
        Steps of Gibbs sampling for each update.
    persistent : bool
        Whether chains go on from update to update, or start at the rows (contrastive divergence).
    verbose : int
        Whether the pseudo-likelihood is printed after each pass.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads of `transform`; None uses all cores.

    Attributes
    ----------
    components_ : (n_components, d), intercept_hidden_ : (n_components,), intercept_visible_ : (d,)
    h_samples_ : (batch_size, n_components)
        Hidden units of the chains.
    history_
        For each pass minus the pseudo-log-likelihood of some rows.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.neural_network import BernoulliRBM
    >>> X = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]])
    >>> model = BernoulliRBM(n_components=2, random_state=0).fit(X)
    >>> model.transform(X).shape, bool(model.log_likelihood(X) < 0)
    ((4, 2), True)
    """

    family = "rbm.machine"
    figure = "network"
    card = Card(
        name="Restricted Boltzmann machine",
        task="transform",
        model=Machines(),
        strategy="likelihood of the rows",
        algorithm="contrastive divergence or persistent chains",
        guarantee=("rbm.log-likelihood", "rbm.gradient"),
    )
    constraints: ClassVar = {
        "n_components": Count(),
        "learning_rate": Positive(),
        "batch_size": Count(),
        "n_iter": Count(),
        "k": Count(),
        "persistent": Flag,
        "verbose": Maybe(Count(low=0), True, False),
    }

    n_components: int = 256
    _: KW_ONLY
    learning_rate: float = 0.1
    batch_size: int = 10
    n_iter: int = 10
    k: int = 1
    persistent: bool = True
    verbose: Any = 0
    random_state: Any = None
    n_jobs: int | None = None

    def diagram(self) -> Diagram:
        """Return the layers that a diagram shows."""
        return Diagram([self.components_.T], ["visible", "hidden"])

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    @property
    def machine(self) -> Machine:
        """The fitted weights as a machine whose sums are exact."""
        parts = (self.components_, self.intercept_visible_, self.intercept_hidden_)
        return Machine(*(np.asarray(part, dtype=np.float64) for part in parts))

    # Training

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "BernoulliRBM":
        """Fit to rows X, of 0 and 1 or of chances; y is not used."""
        check(self)
        data = self._read(X, afresh=True)
        random = check_random_state(self.random_state)
        self._begin(data, random)
        batches = math.ceil(data.shape[0] / self.batch_size)
        cuts = list(gen_even_slices(batches * self.batch_size, batches, n_samples=data.shape[0]))
        with fit_log(self, self.n_iter, X, None) as log:
            self._run(data, cuts, random, log)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> "BernoulliRBM":
        """Make one update with these rows."""
        check(self)
        first = not hasattr(self, "components_")
        data = self._read(X, afresh=first)
        if not hasattr(self, "random_state_"):
            self.random_state_ = check_random_state(self.random_state)
        if first:
            self._begin(data, self.random_state_)
        with fit_log(self, 1, X, None) as log, np.errstate(over="ignore"):
            self._update(dense(data), self.random_state_)
            log.step(-self._shown(data), 0.0)
        return self

    def _read(self, X: Any, afresh: bool) -> Any:
        """Return the rows as an array, or sparse as they are: each batch of those becomes one."""
        rows = read_rows(self, X, None, reset=afresh, dtype=[np.float64, np.float32])
        require_finite(rows, self)
        if hasattr(rows, "X") and (isinstance(rows.X, np.ndarray) or issparse(rows.X)):
            return rows.X
        return np.concatenate([block.X for block in rows.blocks()])

    def _begin(self, X: np.ndarray, random: np.random.RandomState) -> None:
        h, d = self.n_components, X.shape[1]
        self.components_ = np.asarray(random.normal(0, 0.01, (h, d)), order="F", dtype=X.dtype)
        self.intercept_hidden_, self.intercept_visible_ = np.zeros(h, dtype=X.dtype), np.zeros(d, dtype=X.dtype)
        self.h_samples_ = np.zeros((self.batch_size, h), dtype=X.dtype)

    def _run(self, X: np.ndarray, cuts: list[slice], random: np.random.RandomState, log: FitLog) -> None:
        """Make all passes; an interrupt leaves the weights of the pass with the largest pseudo-likelihood."""
        best, kept = -math.inf, self._parts()
        try:
            with one_blas_thread(), np.errstate(over="ignore"):
                for turn in range(1, self.n_iter + 1):
                    begun = time.perf_counter()
                    for cut in cuts:
                        self._update(dense(X[cut]), random)
                    if not np.isfinite(self.components_).all():
                        raise refuse(self, f"the weights grew beyond all bounds in pass {turn}; lower learning_rate.")
                    told = self._shown(X)
                    if told > best:
                        best, kept = told, self._parts()
                    if self.verbose:
                        spent = time.perf_counter() - begun
                        print(f"[BernoulliRBM] Iteration {turn}, pseudo-likelihood = {told:.2f}, time = {spent:.2f}s")
                    if log.step(-told, 0.0, **self._parts()):
                        break
        except KeyboardInterrupt:
            log.stopped = True
            for name, value in kept.items():
                setattr(self, name, value)
        self._no_tiny()

    def _parts(self) -> dict[str, np.ndarray]:
        names = ("components_", "intercept_hidden_", "intercept_visible_", "h_samples_")
        return {name: getattr(self, name).copy(order="A") for name in names}

    def _no_tiny(self) -> None:
        for name in ("components_", "intercept_hidden_", "intercept_visible_"):
            part = getattr(self, name)
            part[np.abs(part) < 1e-140] = 0.0

    def _update(self, V: np.ndarray, random: np.random.RandomState) -> None:
        """Climb the likelihood of one batch: rows against chains, in one product of both."""
        W, many = self.components_, len(V)
        H = self.h_samples_ if self.persistent else self._drawn(self._mean_hiddens(V), random)
        for step in range(self.k):
            Z = H @ W
            Z += self.intercept_visible_
            fantasy = self._drawn(sigmoid(Z), random)
            if step < self.k - 1:
                H = self._drawn(self._mean_hiddens(fantasy), random)
        both = np.concatenate([V, fantasy])
        H = self._mean_hiddens(both)
        chance = H[many:].copy()
        rate = self.learning_rate / many
        np.negative(H[many:], out=H[many:])
        gemm = dgemm if W.dtype == np.float64 else sgemm
        self.components_ = gemm(rate, H.T, both.T, 1.0, W, trans_b=1, overwrite_c=1)
        self.intercept_hidden_ += rate * H.sum(axis=0)
        self.intercept_visible_ += rate * (V.sum(axis=0) - fantasy.sum(axis=0))
        if self.persistent:
            self.h_samples_ = self._drawn(chance, random)

    @staticmethod
    def _drawn(chance: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        return (random.random_sample(chance.shape) < chance).astype(chance.dtype)

    def _mean_hiddens(self, V: np.ndarray) -> np.ndarray:
        Z = V @ self.components_.T
        Z += self.intercept_hidden_
        return sigmoid(Z)

    def _shown(self, X: np.ndarray) -> float:
        return float(self._pseudo(dense(X[:_SHOWN]), np.random.RandomState(0)).mean())

    # What a fitted machine says

    def transform(self, X: Any) -> np.ndarray:
        """Return the chance of each hidden unit given each row, (n, n_components)."""
        check_is_fitted(self)
        V = validate_data(self, X, reset=False, dtype=[np.float64, np.float32], accept_sparse="csr")
        with np.errstate(over="ignore"):
            return self._mean_hiddens(V)

    def free_energy(self, X: Any) -> np.ndarray:
        """Return F(v) = -ln sum_h exp(-E(v, h)) of each row: the larger, the less likely."""
        check_is_fitted(self)
        return -self.machine.minus_free_energy(validate_data(self, X, reset=False, dtype=np.float64))

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the pseudo-log-likelihood of each row, d ln P(v_j | the others) of one entry j drawn at random."""
        check_is_fitted(self)
        V = validate_data(self, X, reset=False, dtype=[np.float64, np.float32], accept_sparse="csr")
        return self._pseudo(dense(V), check_random_state(self.random_state))

    def _pseudo(self, V: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        at = np.arange(len(V)), random.randint(0, V.shape[1], len(V))
        other = V.copy()
        other[at] = 1 - other[at]
        machine = self.machine
        gain = machine.minus_free_energy(V) - machine.minus_free_energy(other)
        return -V.shape[1] * np.logaddexp(0, -gain)

    def gibbs(self, v: Any) -> np.ndarray:
        """Return the visible units after one step of Gibbs sampling from each row, as True and False."""
        check_is_fitted(self)
        if not hasattr(self, "random_state_"):
            self.random_state_ = check_random_state(self.random_state)
        with np.errstate(over="ignore"):
            H = self._drawn(self._mean_hiddens(np.asarray(dense(v), dtype=self.components_.dtype)), self.random_state_)
            return self._drawn(sigmoid(H @ self.components_ + self.intercept_visible_), self.random_state_) > 0

    def sample(self, n_samples: int = 1, *, steps: int = 1000, random_state: Any = None) -> np.ndarray:
        """Return rows drawn from the machine, each the end of a chain of its own that started at random."""
        check_is_fitted(self)
        random = check_random_state(random_state)
        V = random.randint(0, 2, (n_samples, self.components_.shape[1])).astype(np.float64)
        with np.errstate(over="ignore"):
            for _ in range(steps):
                H = self._drawn(self._mean_hiddens(V), random)
                V = self._drawn(sigmoid(H @ self.components_ + self.intercept_visible_), random)
        return V.astype(np.int64)

    def _exact(self, X: Any) -> tuple[Machine, np.ndarray]:
        check_is_fitted(self)
        V = validate_data(self, X, reset=False, dtype=np.float64)
        if not np.isin(V, (0.0, 1.0)).all():
            raise refuse(self, "the likelihood is that of rows of 0 and 1.")
        return self.machine, V

    def log_likelihood(self, X: Any) -> float:
        """Return the mean of ln P(v) over rows of 0 and 1, exactly; one layer must have at most 16 units."""
        machine, V = self._exact(X)
        return float(machine.log_likelihood(V).mean())

    def gradient(self, X: Any) -> Machine:
        """Return the exact gradient of `log_likelihood` by weights, visible and hidden intercepts."""
        machine, V = self._exact(X)
        return machine.gradient(V)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # Certificate

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield likelihood and length of its gradient, where they can be computed."""
        machine = self.machine
        why = Message("why.layer-size", most=MOST_UNITS)
        if machine.is_small and not all(rows.map(_is_binary)):
            why = Message("why.binary-rows")
        elif machine.is_small:
            yield from _exact_claims(machine, rows)
            return
        yield NotApplicable("rbm.log-likelihood", why)
        yield NotApplicable("rbm.gradient", why)


def dense(V: Any) -> np.ndarray:
    """Return rows as an array."""
    return V.toarray() if issparse(V) else V


def _is_binary(block: Block) -> bool:
    return bool(np.isin(block.X, (0.0, 1.0)).all())


def _exact_claims(machine: Machine, rows: Rows) -> Iterator[Claim]:
    n, (h, d) = rows.n_rows, machine.W.shape
    size = float(np.abs(machine.W).sum() + np.abs(machine.visible).sum() + np.abs(machine.hidden).sum()) + h + d
    rounding = 64 * (h + d + 64) * _UNIT * size
    result = rows.sum(_data_sums, machine)
    center = float(result[0]) / n - machine.log_partition()
    slack = 4 * rounding + 64 * (n + 2 ** min(h, d)) * _UNIT * (1 + size)
    yield Claim("rbm.log-likelihood", slack, params={"rows": n, "center": center})
    none = machine.gradient(np.zeros((1, d)))
    still = 1 / (1 + np.exp(-machine.hidden))
    # The gradient at an all-zero row is what it shows less what the machine expects; so the machine's part is known.
    expected = (-none.W, -none.visible, still - none.hidden)
    parts = [np.abs(seen / n - mean) for seen, mean in zip(result[1:], expected, strict=True)]
    off = 8 * (rounding + (n + 2 ** min(h, d) + 64) * _UNIT)
    length = math.sqrt(sum(float(np.square(part + off).sum()) for part in parts))
    yield Claim("rbm.gradient", length * (1 + 1e-9), params={"rows": n})


def _data_sums(block: Block, machine: Machine) -> tuple[Any, ...]:
    with np.errstate(over="ignore"):
        H = sigmoid(block.X @ machine.W.T + machine.hidden)
    return float(machine.minus_free_energy(block.X).sum()), H.T @ block.X, block.X.sum(axis=0), H.sum(axis=0)


@dataclass(eq=False, repr=False)
class DeepBeliefNetwork(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Learner):
    """A stack of restricted Boltzmann machines.

    Parameters
    ----------
    layers : sequence of int
        Hidden units of each machine.
    learning_rate, batch_size, n_iter, k, persistent
        Of each machine, see `BernoulliRBM`.
    random_state : int, RandomState or None
    n_jobs : int or None
        Has no effect on the machines, which are trained one after the other.

    Attributes
    ----------
    machines_ : list of BernoulliRBM

    Examples
    --------
    >>> import numpy as np
    >>> from assay.neural_network import DeepBeliefNetwork
    >>> X = np.random.default_rng(0).integers(0, 2, size=(60, 6))
    >>> stack = DeepBeliefNetwork((8, 4), random_state=0).fit(X)
    >>> stack.transform(X).shape
    (60, 4)
    >>> net = stack.classifier(X, X[:, 0] ^ X[:, 1], max_iter=300, learning_rate_init=0.02)
    >>> net.n_layers_
    4
    """

    family = "rbm.stack"
    figure = "network"
    card = Card(
        name="Deep belief network",
        task="transform",
        model=Machines(),
        strategy="likelihood of the rows, layer by layer",
        algorithm="contrastive divergence or persistent chains for each layer, greedily",
        guarantee=(),
    )
    constraints: ClassVar = {
        "learning_rate": Positive(),
        "batch_size": Count(),
        "n_iter": Count(),
        "k": Count(),
        "persistent": Flag,
    }

    layers: Any = (64, 32)
    _: KW_ONLY
    learning_rate: float = 0.1
    batch_size: int = 10
    n_iter: int = 10
    k: int = 1
    persistent: bool = True
    random_state: Any = None
    n_jobs: int | None = None

    def diagram(self) -> Diagram:
        """Return the layers that a diagram shows."""
        names = [f"hidden {k + 1}" for k in range(len(self.machines_))]
        return Diagram([machine.components_.T for machine in self.machines_], ["visible", *names])

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "DeepBeliefNetwork":
        """Train a machine for each layer on rows X; y is not used."""
        check(self)
        sizes = self._sizes()
        rows = read_rows(self, X, None)
        require_finite(rows, self)
        data = np.concatenate([block.X for block in rows.blocks()])
        random = check_random_state(self.random_state)
        machines: list[BernoulliRBM] = []
        options = {name: getattr(self, name) for name in ("learning_rate", "batch_size", "n_iter", "k", "persistent")}
        with fit_log(self, len(sizes), X, None) as log:
            for size in sizes:
                seed = int(random.randint(2**31 - 1))
                machine = BernoulliRBM(size, random_state=seed, **options)
                if not log.stopped:
                    machine.fit(data)
                else:  # the layers above stand as they begin
                    machine.partial_fit(data[: self.batch_size])
                machines.append(machine)
                data = machine.transform(data)
                self.machines_ = machines
                told = machine.history_[-1].objective if machine.history_ else math.inf
                log.step(told, 0.0, machines_=list(machines))
                log.stopped |= len(machine.history_) < self.n_iter
        return self

    def _sizes(self) -> list[int]:
        given = self.layers
        fits = isinstance(given, (tuple, list, np.ndarray)) and len(given) > 0
        if not fits or not all(isinstance(size, Integral) and int(size) >= 1 for size in given):
            raise refuse(self, f"layers must be numbers of hidden units >= 1, one for each machine; got {given!r}.")
        return [int(size) for size in given]

    @property
    def _n_features_out(self) -> int:
        return len(self.machines_[-1].components_)

    def transform(self, X: Any) -> np.ndarray:
        """Return the chances of the hidden units of the last layer, (n, units)."""
        check_is_fitted(self)
        values = validate_data(self, X, reset=False, dtype=np.float64)
        for machine in self.machines_:
            values = machine.transform(values)
        return values

    def classifier(self, X: Any, y: Any, **parameters: Any) -> MLPClassifier:
        """Return an `MLPClassifier` with these layers, trained with labels from the weights of the machines on.

        `parameters` are those of `MLPClassifier`, except for its layers, its units (which are logistic) and
        `warm_start`.
        """
        check_is_fitted(self)
        taken = {"hidden_layer_sizes", "activation", "warm_start"} & set(parameters)
        if taken:
            raise refuse(self, f"{min(taken)} follows from the machines; it cannot be given.")
        net = MLPClassifier(tuple(self._sizes()), "logistic", warm_start=True, **{"random_state": 0, **parameters})
        net.classes_, net.n_features_in_ = unique_labels(y), self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            net.feature_names_in_ = self.feature_names_in_
        net.several_labels_ = np.array(0)
        shape = net._shape(self.n_features_in_, 1 if len(net.classes_) == 2 else len(net.classes_))
        theta = shape.start(check_random_state(net.random_state), np.float64)
        weights, intercepts = unpack(shape.sizes, theta)
        for k, machine in enumerate(self.machines_):
            weights[k][:], intercepts[k][:] = machine.components_.T, machine.intercept_hidden_
        net._forget()
        net.network_sizes_, net.network_weights_ = np.array(shape.sizes, dtype=np.int64), theta
        return net.fit(X, y).set_params(warm_start=False)

    # Storage

    def members(self) -> Sequence[Learner]:
        """Return the machines."""
        return self.machines_

    def _take_members(self, members: Sequence[Any]) -> None:
        if not all(isinstance(member, BernoulliRBM) for member in members):
            raise refuse(self, "its members must be restricted Boltzmann machines.")
        if [member.n_components for member in members] != self._sizes():
            raise refuse(self, f"the machines have other sizes than layers={self.layers!r}.")
        self.machines_ = list(members)

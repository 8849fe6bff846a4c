"""The shape of a network: sizes, units, loss; its parameters as one vector; what it says of rows, in NumPy.

`NetworkParameters` are the parameters and attributes that classifiers and regressions by networks share.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

UNITS = ("identity", "logistic", "tanh", "relu")
OUTPUTS = ("softmax", "logistic", "identity", "exp", "squared_logistic")
"""Output and loss, numbered as in the compiled loops: log loss of softmax, log loss of logistic outputs, squared error,
Poisson deviance of exp, squared error of logistic outputs."""
PARAMETERS = """    hidden_layer_sizes : int or sequence of int
        Units of each hidden layer; an empty sequence is a linear model.
    activation : "identity", "logistic", "tanh" or "relu"
        What a hidden unit does with its sum.
    solver : "adam", "sgd", "lbfgs", "standard_bp", "accumulated_bp", "anneal" or "genetic"
        "standard_bp" moves after every row, "accumulated_bp" once per epoch along the mean gradient of all rows, both
        without momentum. "lbfgs" sums over all rows. "anneal" is simulated annealing of the weights, 100 proposals an
        iteration; "genetic" evolves 40 weight vectors in the box [-10, 10], a generation an iteration: ways out of
        local minima for small networks.
    alpha : float >= 0
        Weight of the penalty alpha / (2 m) |W|^2, m the rows of a batch (all rows for "lbfgs"); intercepts are free.
    batch_size : int or "auto"
        Rows per update of "sgd" and "adam"; "auto" is min(200, n).
    learning_rate : "constant", "invscaling" or "adaptive"
        Not for "adam": the rate divided by (rows visited + 1)^power_t after each epoch, or by 5 when progress ends.
    learning_rate_init : float > 0, or a sequence of them
        The (first) learning rate; for "standard_bp" and "accumulated_bp" it may be one for each layer of weights.
    power_t : float >= 0
        Exponent of "invscaling".
    max_iter : int
        Epochs, or iterations, allowed.
    shuffle : bool
        Visit the rows in a new random order each epoch.
    random_state : int, RandomState or None
        Seed of first weights, orders, and rows kept out.
    tol : float >= 0
        An epoch is progress when the loss falls, or the validation score rises, by more than tol. For "lbfgs" the
        largest entry of the gradient at the end.
    verbose : bool or int
        Print the loss of each epoch.
    warm_start : bool
        Start at the weights of the last fit.
    momentum, nesterovs_momentum
        Inertia of "sgd" in [0, 1], and whether it looks ahead.
    early_stopping : bool
        Judge progress on rows kept out, and keep the weights that were best there.
    validation_fraction : float in (0, 1)
        Share of rows kept out.
    beta_1, beta_2, epsilon
        Decay of Adam's two means, in [0, 1), and what keeps its denominator from zero.
    n_iter_no_change : int or np.inf
        Epochs without progress after which the fit ends.
    max_fun : int
        Evaluations of the objective allowed to "lbfgs".
    lam : float in (0, 1] or None
        If given, the objective is lam x mean loss + (1 - lam) sum_i w_i^2 over all weights and intercepts, and alpha
        plays no part.
    n_restarts : int
        Runs from different first weights; the one that ends lowest is kept.
    n_jobs : int or None
        Threads of "lbfgs" and of certifying; None uses all cores. It changes no bit. Batches of wide layers are
        multiplied by BLAS on threads of its own, whose number may change the last bits of the weights.
"""
ATTRIBUTES = """    Attributes
    ----------
    coefs_, intercepts_ : lists of arrays
        Weights (k_l, k_l+1) and intercepts (k_l+1,) of each layer.
    loss_, loss_curve_, best_loss_
        Loss with penalty of the last epoch, of every epoch, and the lowest.
    validation_scores_, best_validation_score_
        Accuracy or R^2 on the rows kept out, with early stopping; else None.
    n_iter_, t_ : int
        Epochs of the last fit; rows visited in all.
    restarts_ : array
        With several starts the lowest objective after each.
    n_layers_, n_outputs_, out_activation_
    history_
        Per epoch the loss and the length of the gradient of the last batch, or per iteration the objective and the
        length of its gradient.
"""


class Shape(NamedTuple):
    """Sizes of all layers, inputs and outputs included; the unit of the hidden layers; output with loss, by name."""

    sizes: tuple[int, ...]
    unit: str
    output: str

    @property
    def codes(self) -> tuple[np.ndarray, int, int]:
        """Sizes, unit and output as the compiled loops read them."""
        return np.array(self.sizes, dtype=np.int64), UNITS.index(self.unit), OUTPUTS.index(self.output)

    @property
    def n_weights(self) -> int:
        return sum(a * b for a, b in pairwise(self.sizes))

    @property
    def n_parameters(self) -> int:
        return self.n_weights + sum(self.sizes[1:])

    @property
    def widest_product(self) -> int:
        """Multiplications of the most expensive layer for one row."""
        return max(a * b for a, b in pairwise(self.sizes))

    def by_layer(self, values: Sequence[float]) -> np.ndarray:
        """Return one number per layer as one per parameter; none as none."""
        weights = [np.full(a * b, value) for value, (a, b) in zip(values, pairwise(self.sizes))]
        return np.concatenate([*weights, *(np.full(b, value) for value, b in zip(values, self.sizes[1:])), np.empty(0)])

    def start(self, random: np.random.RandomState, dtype: Any) -> np.ndarray:
        """Return first parameters: uniform in +-sqrt(6 / (fan in + fan out)), of the logistic unit sqrt(2 / ...)
        (Glorot and Bengio 2010), drawn as scikit-learn draws them."""
        weights, intercepts = [], []
        for a, b in pairwise(self.sizes):
            bound = np.sqrt((2.0 if self.unit == "logistic" else 6.0) / (a + b))
            weights.append(random.uniform(-bound, bound, (a, b)).ravel())
            intercepts.append(random.uniform(-bound, bound, b))
        return np.concatenate([*weights, *intercepts]).astype(dtype)


def unpack(sizes: Sequence[int] | np.ndarray, theta: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the weights (k_l, k_l+1) and intercepts (k_l+1,) of every layer, as views of theta: one vector of the
    weights of every layer, then the intercepts."""
    weights, intercepts, at = [], [], 0
    for a, b in pairwise(sizes):
        weights.append(theta[at : at + a * b].reshape(a, b))
        at += a * b
    for b in sizes[1:]:
        intercepts.append(theta[at : at + b])
        at += b
    return weights, intercepts


_VALUES = {
    "identity": lambda Z: Z,
    "logistic": lambda Z: expit(Z, out=Z),
    "tanh": lambda Z: np.tanh(Z, out=Z),
    "relu": lambda Z: np.maximum(Z, 0, out=Z),
}


def sums_of_last(X: Any, coefs: list[np.ndarray], intercepts: list[np.ndarray], unit: str) -> np.ndarray:
    """Return what the output units receive of each row, (n, outputs): the scores, before the output function."""
    A = X
    for k, (W, b) in enumerate(zip(coefs, intercepts, strict=True)):
        A = A @ W + b
        A = _VALUES[unit](A) if k < len(coefs) - 1 else A
    return A


def outputs(Z: np.ndarray, output: str) -> np.ndarray:
    """Return the output function of the scores."""
    if output == "identity":
        return Z
    if output == "exp":
        return np.exp(Z)
    return softmax(Z, axis=1) if output == "softmax" else expit(Z)


@dataclass(eq=False, repr=False)
class NetworkParameters:
    """The parameters of `Network`; a regression takes `loss` by position, before the others."""

    loss: str = field(kw_only=True)
    hidden_layer_sizes: Any = (100,)
    activation: str = "relu"
    _: KW_ONLY
    solver: str = "adam"
    alpha: float = 1e-4
    batch_size: Any = "auto"
    learning_rate: str = "constant"
    learning_rate_init: Any = 1e-3
    power_t: float = 0.5
    max_iter: int = 200
    shuffle: bool = True
    random_state: Any = None
    tol: float = 1e-4
    verbose: Any = False
    warm_start: bool = False
    momentum: float = 0.9
    nesterovs_momentum: bool = True
    early_stopping: bool = False
    validation_fraction: float = 0.1
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    n_iter_no_change: float = 10
    max_fun: int = 15_000
    lam: float | None = None
    n_restarts: int = 1
    n_jobs: int | None = None

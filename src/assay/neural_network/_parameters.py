"""The parameters and attributes that classifiers and regressions by networks share."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

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

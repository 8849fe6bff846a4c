"""Regression by a feed-forward network.

    minimise over W, b   1/S sum_i s_i loss(y_i, f(x_i)) + alpha / (2 S) sum |W|^2

The outputs are the sums of the last layer, or their exponentials for counts (Poisson deviance).

Claims: mean squared error, hold-out statements from the checker's own forward pass, and the length of the gradient.
Method: as `MLPClassifier`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.metrics import r2_score
from sklearn.utils.validation import column_or_1d

from assay.card import Card, log
from assay.data.blocks import Block
from assay.guarantees.evidence import Evidence, Predictions
from assay.neural_network._base import Data, Network, learns_by_epochs
from assay.neural_network._claims import Networks
from assay.neural_network._network import outputs
from assay.neural_network._parameters import ATTRIBUTES, PARAMETERS
from assay.params import Choice, refuse
from assay.scan import Rows

_UNIT, _LEAST = 2.0**-53, 1e-140


@dataclass(eq=False, repr=False)
class MLPRegressor(RegressorMixin, Network):
    __doc__ = f"""Regression by a multi-layer feed-forward network.

    Started from the same seed it makes scikit-learn's steps: the same weights up to rounding, the same `loss_curve_`
    (except L-BFGS with several targets, where scikit-learn's loss and gradient belong to different objectives).

    Parameters
    ----------
    loss : "squared_error" or "poisson"
        Half the squared error of the outputs, or half the Poisson deviance of their exponentials.
{PARAMETERS}
{ATTRIBUTES}
    Examples
    --------
    >>> import numpy as np
    >>> from assay.neural_network import MLPRegressor
    >>> x = np.linspace(-3, 3, 50)[:, None]
    >>> model = MLPRegressor(hidden_layer_sizes=8, activation="tanh", solver="lbfgs", alpha=0, max_iter=2000,
    ...                      tol=1e-8, random_state=0).fit(x, np.sin(x[:, 0]))
    >>> bool(np.abs(model.predict(x) - np.sin(x[:, 0])).max() < 0.02)
    True
    """

    family = "network.regressor"
    card = Card(
        name="Neural network regression",
        zh="神经网络回归",
        mission=("NNW-07", "NNW-14", "NNW-15", "NNW-38"),
        task="regress",
        model=Networks(),
        strategy="squared error or Poisson deviance + L2 on the weights",
        algorithm="back-propagation: Adam, momentum, L-BFGS; or annealing, genetic search, several starts",
        guarantee=("network.gradient",),
        most_rows=50_000,
        search={"alpha": log(1e-5, 1), "learning_rate_init": log(3e-4, 0.03)},
    )

    constraints: ClassVar = {"loss": Choice("squared_error", "poisson")}

    loss: str = "squared_error"

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MLPRegressor":
        """Fit to rows X, targets y, (n,) or (n, targets), and row weights.

        X may be a file or a cluster's table with solver="lbfgs", which is a sum over rows.
        """
        return self._fit((X, y, sample_weight), warm=self.warm_start and hasattr(self, "coefs_"))

    @learns_by_epochs
    @with_callbacks
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "MLPRegressor":
        """Visit these rows once, from where the last call ended."""
        if self.early_stopping:
            raise refuse(self, "partial_fit does not support early_stopping=True, since it sees each row once.")
        return self._fit((X, y, sample_weight), warm=hasattr(self, "coefs_"), once=True)

    def _data(self, rows: Any, warm: bool, classes: np.ndarray | None) -> Data:
        y = getattr(rows, "y", None)
        y = y if isinstance(y, np.ndarray) else None  # of files it is the name of a column
        if y is not None and y.ndim == 2 and y.shape[1] == 1:
            y = rows.y = column_or_1d(y, warn=True)
        if self.loss == "poisson" and any(rows.map(_has_negative)):
            raise refuse(self, 'loss="poisson" needs y >= 0 (counts or rates); some targets are negative.')
        several = max(rows.map(_columns)) if y is None else 1 if y.ndim == 1 else y.shape[1]
        return Data(rows, several, False, self._table(rows, lambda: rows.y.reshape(len(rows.y), -1)))

    def _output(self) -> str:
        return "exp" if self.loss == "poisson" else "identity"

    def _held_score(self, Z: np.ndarray, Y: np.ndarray, weight: np.ndarray | None) -> float:
        said = outputs(Z, self._output())
        return float(r2_score(Y, said, sample_weight=weight)) if np.isfinite(said).all() else np.nan

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted value of each row, (n,), or (n, targets)."""
        said = outputs(self._scores(X), self.out_activation_)
        return said.ravel() if said.shape[1] == 1 else said

    # Certificate

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the predictions."""
        yield Predictions(self._bounded, (2 * self._rounding(rows),))

    def _bounded(self, block: Block, radius: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._double_scores(block), radius


def _has_negative(block: Block) -> bool:
    return bool(np.any(np.asarray(block.y) < 0))


def _columns(block: Block) -> int:
    return 1 if np.ndim(block.y) == 1 else np.shape(block.y)[1]

"""The bottleneck inside a network: what each layer still tells about the rows, and about their labels.

A layer Z of a network is a function of the row X, and Y - X - Z a Markov chain. With the values of Z cut into bins,
I(X; Z) and I(Z; Y) are those of tables of counts over the given rows; I(Z; Y) <= min(I(X; Z), I(X; Y)), and a layer
that keeps the second number while the first falls has forgotten what does not matter (Tishby and Zaslavsky 2015).
Binning makes the numbers depend on the number of bins; they describe these rows, and claim nothing about new ones.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.neural_network._network import sums_of_last
from assay.neural_network._recurrence import activated
from assay.params import refuse
from assay.theory.bottleneck import mutual_information


class LayerInformation(NamedTuple):
    """For the rows themselves, each hidden layer and the outputs: I(X; Z) and I(Z; Y), in bits."""

    about_rows: np.ndarray
    about_labels: np.ndarray


def layer_information(model: Any, X: Any, y: Any, *, bins: int = 30) -> LayerInformation:
    """Return what the layers of a fitted `MLPClassifier` or `MLPRegressor` tell about rows X and labels y, in bits.

    Each unit's values are cut into `bins` of equal width between its least and its largest value.

    >>> import numpy as np
    >>> from assay.neural_network import MLPClassifier, layer_information
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> net = MLPClassifier((4, 1), "tanh", solver="lbfgs", random_state=0).fit(X, y)
    >>> found = layer_information(net, X, y)
    >>> bool(found.about_rows[-1] < found.about_rows[0] - 1), bool(found.about_labels[-1] > 0.95)
    (True, True)
    """
    check_is_fitted(model)
    if not hasattr(model, "coefs_"):
        raise refuse(model, "has no layers; it must be a fitted feed-forward network.")
    if bins < 2:
        raise ValueError(f"layer_information: bins must be at least 2; got {bins!r}.")
    X, labels = validate_data(model, X, reset=False, dtype=np.float64), np.asarray(y)
    check_consistent_length(X, labels)
    rows = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    codes = np.unique(labels, return_inverse=True)[1].ravel()
    cells = [rows]
    for depth in range(1, len(model.coefs_) + 1):
        Z = sums_of_last(X, model.coefs_[:depth], model.intercepts_[:depth], model.activation)
        cells.append(_binned(activated(Z, model.activation) if depth < len(model.coefs_) else Z, bins))
    bits = 1 / np.log(2)
    about = [[bits * mutual_information(_counts(Z, other)) for Z in cells] for other in (rows, codes)]
    return LayerInformation(*(np.array(part) for part in about))


def _binned(Z: np.ndarray, bins: int) -> np.ndarray:
    """Return the number of the cell of each row, a cell being a bin of every unit."""
    low, span = Z.min(axis=0), np.ptp(Z, axis=0)
    cut = np.minimum((bins * (Z - low) / np.where(span > 0, span, 1.0)).astype(int), bins - 1)
    return np.unique(cut, axis=0, return_inverse=True)[1].ravel()


def _counts(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    table = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(table, (one, other), 1.0)
    return table / len(one)

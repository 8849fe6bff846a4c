"""What linear models and kernel expansions share: the reader of coefficients, sentences of claims that both make."""

from typing import Any

import numpy as np

from assay.checker.predictors import Linear
from assay.checker.record import Rejected
from assay.claims.sentences import CLASSES, Sentence, classes, part


def read_linear(W: np.ndarray, b: np.ndarray, classes: tuple[str, ...] | None) -> Linear:
    """Return the model after checking that coefficients, intercepts and classes fit together."""
    if not 1 <= W.ndim <= 2 or b.ndim > 1 or not W.size or b.size not in (1, len(np.atleast_2d(W))):
        raise Rejected(f"coef_ has shape {W.shape} and intercept_ {b.shape}; they must be (K, d) and (K,)")
    if W.ndim == 1 and classes is not None:
        raise Rejected("coef_ of a classifier must have a row for each output")
    W = np.atleast_2d(W)
    if classes is not None and len(W) != len(classes) and (len(W), len(classes)) != (1, 2):
        raise Rejected(f"coef_ has {len(W)} rows for {len(classes)} classes")
    return Linear(W, np.broadcast_to(b, (len(W),)), classes)


MISTAKES = Sentence(
    CLASSES
    | {
        "": "To separate {classes} the perceptron made {updates} updates, within the bound (R / margin)^2 <= "
        "{value:up6} for a separator of margin {margin:down6}."
    },
    lambda value, direction, params: {"classes": classes(params)},
)


ENCLOSURE = Sentence(
    {
        "": "The coefficients are within distance {value:up} of the exact optimum's.{same}",
        "fixed": " The exact optimum predicts the same class on at least {fixed_rows} training rows.",
    },
    lambda value, direction, params: {"same": part("fixed_rows" in params, "fixed")},
)


def class_weights(array: np.ndarray, model: Any) -> bool:
    """Tell whether an array weighs the classes of a model."""
    return array.shape == (len(model.classes),) and bool(np.all(array >= 0))

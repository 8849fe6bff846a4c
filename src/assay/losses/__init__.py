"""Losses: value, slope, curvature, dual and compiled form of each, defined once.

A loss is a small frozen object, `Loss`. Losses of labels take y = -1, +1 and a score f; losses of numbers take y and a
prediction f; `multinomial` takes class positions and one score per class. Losses with a parameter are functions that
return the object. Means with a link (generalised linear models) are in `assay.losses.deviance`; what compiled loops
call is in `assay.losses.compiled`, which alone needs Numba.

>>> import numpy as np
>>> hinge.value(np.array([1.0, -1.0]), np.array([0.5, 2.0])).tolist()
[0.5, 3.0]
>>> huber(1.0).slope(0.0, np.array([0.5, 7.0])).tolist()
[0.5, 1.0]
"""

from assay.losses._losses import (
    CODES,
    Dual,
    Loss,
    absolute_error,
    epsilon_insensitive,
    exponential,
    gamma,
    gradient_table,
    hinge,
    huber,
    log_loss,
    modified_huber,
    multinomial,
    perceptron,
    poisson,
    quantile,
    sigmoid_squared,
    squared_epsilon_insensitive,
    squared_error,
    squared_hinge,
    squared_margin,
    surrogates,
    zero_one,
)

_PLAIN = {
    loss.name: loss
    for loss in (
        squared_error,
        absolute_error,
        log_loss,
        hinge,
        squared_hinge,
        exponential,
        sigmoid_squared,
        perceptron,
        modified_huber,
        squared_margin,
        zero_one,
        poisson,
        gamma,
        multinomial,
    )
}
_WITH_PARAMETER = {
    "epsilon_insensitive": epsilon_insensitive,
    "squared_epsilon_insensitive": squared_epsilon_insensitive,
    "huber": huber,
    "quantile": quantile,
}


def named(name: str, parameter: float = 0.0) -> Loss:
    """Return the loss of that name; `parameter` is the epsilon, delta or level of those that have one.

    Parameters
    ----------
    name : str
        Name of the loss.
    parameter : float, default=0.0
        epsilon, delta or level of those that have one.

    Returns
    -------
    Loss
        The loss.

    Examples
    --------
    >>> float(named("epsilon_insensitive", 0.5).value(1.0, 3.0))
    1.5
    """
    if name in _PLAIN:
        return _PLAIN[name]
    if name in _WITH_PARAMETER:
        return _WITH_PARAMETER[name](parameter)
    raise ValueError(f"no loss is called {name!r}; there are {', '.join([*_PLAIN, *_WITH_PARAMETER])}.")


__all__ = [
    "CODES",
    "Dual",
    "Loss",
    "absolute_error",
    "epsilon_insensitive",
    "exponential",
    "gamma",
    "gradient_table",
    "hinge",
    "huber",
    "log_loss",
    "modified_huber",
    "multinomial",
    "named",
    "perceptron",
    "poisson",
    "quantile",
    "sigmoid_squared",
    "squared_epsilon_insensitive",
    "squared_error",
    "squared_hinge",
    "squared_margin",
    "surrogates",
    "zero_one",
]

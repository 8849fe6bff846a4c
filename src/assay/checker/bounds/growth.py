"""Classes of hypotheses: the growth function from a descriptor, and whether the model belongs to the class."""

import math
from collections.abc import Mapping
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from assay.checker.bounds.tails import ln, ln_patterns
from assay.checker.predictors import Linear
from assay.checker.record import Rejected, count

MOST_COLUMNS = 100_000
_DEEPEST = 16


def ln_growth(descriptor: Any, points: int, model: Any) -> Decimal:
    """Return ln of an upper bound of the number of ways in which the class labels that many points.

    The labels counted are those that the model's rule assigns: score > 0, second class; otherwise, ties
    included, first class. (The errors counted by the rules, ties as errors, are never fewer.) Affine
    half-spaces in d dimensions: 2 sum_{i <= d} C(N - 1, i) (Cover 1965; lowering the bias a little moves every
    tie to the first class's side and changes no label). Without bias that shift is not available, and
    sum_{i <= d} C(N, i) bounds the patterns instead (Sauer).
    """
    own = model.own_growth(descriptor, points) if isinstance(descriptor, Mapping) else None
    if own is not None:
        return own
    kind = _kind(descriptor)
    if kind == "function-space":
        return _function_space(descriptor, points, model)
    d, pairs = _dimension(descriptor, model), 1
    bias = descriptor.get("bias", True if kind == "multiclass-halfspaces" else None)
    if not isinstance(bias, bool):
        raise Rejected("bias of the class must be true or false")
    if not bias and np.any(model.b):
        raise Rejected("the class has no bias, the model has an intercept")
    if kind == "multiclass-halfspaces":  # the label is fixed by the comparisons of two scores
        k = count(descriptor.get("classes"), "classes of the class", 2)
        if model.classes is None or k < len(model.classes):
            raise Rejected(f"the class has {k} labels, the model more")
        pairs = k * (k - 1) // 2
    else:
        _binary(model)
    with localcontext(prec=60):
        return (ln(2) + ln_patterns(points - 1, d) if bias else ln_patterns(points, d)) * pairs


def _function_space(descriptor: Mapping[str, Any], points: int, model: Any) -> Decimal:
    """Bound the patterns of the sign (or largest) of functions from a linear space with constants, by its
    dimension.

    A model of degree p in d columns lies in the space of C(d + p, p) monomials; as half-spaces in R^(D - 1).
    """
    dimension = count(descriptor.get("dimension"), "dimension of the class", 2)
    k = count(descriptor.get("classes"), "classes of the class", 2)
    needed = _polynomials(model)
    if model.classes is None or k < len(model.classes) or not needed <= dimension <= MOST_COLUMNS:
        raise Rejected(f"the class has dimension {dimension} and {k} labels; the model does not belong to it")
    with localcontext(prec=60):
        return (ln(2) + ln_patterns(points - 1, dimension - 1)) * (k * (k - 1) // 2)


def _polynomials(model: Any) -> int:
    """Return the dimension of the polynomials that the model's scores lie in; refuse scores that are none."""
    if model.degree is None:
        raise Rejected("its scores are not known to lie in a space of functions of finite dimension")
    if min(model.columns, model.degree) > _DEEPEST:
        return MOST_COLUMNS + 1  # C(34, 17) is larger, and larger ones may be too large to compute
    return math.comb(model.columns + model.degree, model.degree)


def _kind(descriptor: Any) -> str:
    known = ("function-space", "halfspaces", "multiclass-halfspaces")
    if not isinstance(descriptor, Mapping) or descriptor.get("class") not in known:
        raise Rejected(f"unknown class of hypotheses {str(descriptor)[:60]}")
    return descriptor["class"]


def _dimension(descriptor: Mapping[str, Any], model: Linear) -> int:
    d = count(descriptor.get("d"), "d of the class", 1)
    if not isinstance(model, Linear):
        raise Rejected("half-spaces are linear; the model is another kind")
    if d < model.W.shape[1]:
        raise Rejected(f"the class uses {d} columns, the model {model.W.shape[1]}")
    if d > MOST_COLUMNS:
        raise Rejected(f"d of the class is {d}; at most {MOST_COLUMNS} can be checked")
    return d


def _binary(model: Linear) -> None:
    if not model.binary:
        raise Rejected("half-spaces label two classes; the model is another kind")

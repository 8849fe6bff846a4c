"""What the parameters of a tree or a forest allow, as numbers of rows, columns and leaves."""

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from assay.params import refuse
from assay.tree._reading import Read
from assay.tree.growth._records import Limits


def feature_count(owner: Any, d: int) -> int:
    """Return how many columns `max_features` asks for: a number, a share, "sqrt", "log2" (floor, at least 1)
    or None (all)."""
    asked = owner.max_features
    if asked is None:
        return d
    if asked == "sqrt":
        return max(1, int(np.sqrt(d)))
    if asked == "log2":
        return max(1, int(np.log2(d)))
    if isinstance(asked, float) and 0 < asked <= 1:
        return max(1, int(asked * d))
    if isinstance(asked, (int, np.integer)) and not isinstance(asked, bool) and asked >= 1:
        return min(int(asked), d)
    raise refuse(
        owner,
        f'max_features must be None, "sqrt", "log2", a share in (0, 1] or a count; got {asked!r}.',
    )


def row_count(owner: Any, name: str, n: int, low: int) -> int:
    """Return a number of rows given as such or, as a float in (0, 1], as a share of n."""
    value = getattr(owner, name)
    if isinstance(value, (float, np.floating)) and 0 < value <= 1:
        return max(low, int(np.ceil(value * n)))
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low:
        return min(int(value), n + 1)  # a larger number says no more
    raise refuse(
        owner,
        f"the '{name}' parameter must be an int in the range [{low}, inf) or a float in the range (0.0, 1.0]; "
        f"got {value!r}.",
    )


def limits_of(owner: Any, data: Read, random: bool) -> Limits:
    """Return the limits that the parameters of a tree or a forest set; `random`: nodes draw their thresholds."""
    n, d = data.rows.n_rows, data.rows.n_features
    total = float(n if data.weight is None else data.weight.sum())
    most = max(2, n)  # leaves of a tree; a larger number says no more
    return Limits(
        row_count(owner, "min_samples_leaf", n, 1),
        owner.min_weight_fraction_leaf * total,
        row_count(owner, "min_samples_split", n, 2),
        2**31 if owner.max_depth is None else min(int(owner.max_depth), 2**31),
        min(int(owner.max_leaf_nodes or 0), most),
        owner.min_impurity_decrease * total,
        feature_count(owner, d),
        random,
    )


def monotone_signs(owner: Any, d: int) -> np.ndarray | None:
    """Return `monotonic_cst` as (d,) integers, None if it constrains nothing."""
    asked = owner.monotonic_cst
    if asked is None:
        return None
    signs = np.asarray(asked)
    wanted = f"it must hold -1, 0 or 1 for each of the {d} columns."
    if signs.shape != (d,):
        shape = signs.shape[0] if signs.ndim == 1 else signs.shape
        raise refuse(owner, f"monotonic_cst has shape {shape} but the input data X has {d} features; {wanted}")
    if not np.isin(signs, (-1, 0, 1)).all():
        got = np.unique(signs)
        raise refuse(owner, f"monotonic_cst must be None or an array-like of -1, 0 or 1, but got {got}: {wanted}")
    return signs.astype(np.int64) if signs.any() else None


def column_order(random_state: Any, d: int) -> np.ndarray:
    """Return the order of columns in which equally good splits are taken, by scikit-learn's generator and seed: at the
    root, the tree that scikit-learn grows with the same `random_state`.

    >>> column_order(0, 5).tolist()
    [2, 4, 0, 1, 3]
    """
    state = int(check_random_state(random_state).randint(0, 2**31 - 1)) or 1
    left, order = np.arange(d), np.empty(d, dtype=np.int64)
    for end in range(d, 0, -1):
        for shift in (13, -17, 5):
            state ^= state << shift if shift > 0 else state >> -shift
            state &= 2**32 - 1
        at = state % 2**31 % end
        order[d - end] = left[at]
        left[at] = left[end - 1]
    return order

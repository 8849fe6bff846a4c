"""The numbers behind the figures of `assay.plot.theory`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from assay.claims.claim import Certificate
from assay.losses import surrogates
from assay.textbook.concepts import VersionSpace
from assay.theory import bottleneck

Frame = dict[str, Any]


def tightness(certificates: Mapping[str, Certificate], errors: Mapping[str, float] | None = None) -> Frame:
    """Return `names`, `kinds`, `bounds` (names, kinds; NaN where there is none) and `errors` (NaN: not known)."""
    found = {
        name: {claim.kind: claim.value for claim in one.claims if claim.quantity and claim.direction == "upper"}
        for name, one in certificates.items()
    }
    kinds = list(dict.fromkeys(kind for bounds in found.values() for kind in bounds))
    if not kinds:
        raise ValueError("tightness: none of these certificates bounds an error on new data.")
    table = np.array([[bounds.get(kind, np.nan) for kind in kinds] for bounds in found.values()])
    known = np.array([(errors or {}).get(name, np.nan) for name in found])
    return {"names": list(found), "kinds": kinds, "bounds": table, "errors": known}


def version_space(space: VersionSpace, rows: ArrayLike, labels: Sequence[int], steps: int = 60) -> Frame:
    """Observe the rows; return `sizes`, `rows`, and on a grid `x`, `y` the `share` of hypotheses left that say +1."""
    X = np.asarray(rows, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != 2 or len(X) != len(labels):
        raise ValueError(f"version_space: needs rows of the plane and a label for each; got shape {X.shape}.")
    for row, label in zip(X, labels):
        space.observe(row, int(label))
    low, high = X.min(axis=0), X.max(axis=0)
    pad = np.where(high > low, 0.15 * (high - low), 1.0)
    x, y = (np.linspace(low[j] - pad[j], high[j] + pad[j], steps) for j in range(2))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    votes = [np.asarray(one(grid)) > 0 for one in space.hypotheses]
    share = np.mean(votes, axis=0) if votes else np.full(len(grid), np.nan)
    return {"sizes": space.sizes, "rows": X, "x": x, "y": y, "share": share.reshape(steps, steps)}


def surrogate_losses(margins: ArrayLike | None = None) -> Frame:
    """Return `margin`, and `losses`: every loss of the margin by name."""
    z = np.linspace(-3.0, 3.0, 601) if margins is None else np.asarray(margins, dtype=np.float64)
    return {"margin": z, "losses": surrogates(z)}


def structural_risk(errors: ArrayLike, dimensions: ArrayLike, rows: int, delta: float = 0.05) -> Frame:
    """Return `dimension`, `empirical` risk, `confidence` (Vapnik's term for that VC dimension), their sum `bound`, and
    the place `best` of its least value.

    confidence = sqrt((h (ln(2 n / h) + 1) + ln(4 / delta)) / n); classes are nested, h growing.
    """
    h, empirical = np.asarray(dimensions, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    grow = h.ndim == 1 and len(h) > 0 and bool(np.all(np.diff(h) > 0))
    if h.shape != empirical.shape or not grow or h[0] < 1 or h[-1] > 2 * rows:
        raise ValueError("structural_risk: an error for each VC dimension, which grow from at least 1 to at most 2 n.")
    confidence = np.sqrt((h * (np.log(2 * rows / h) + 1) + np.log(4 / delta)) / rows)
    bound = empirical + confidence
    return {
        "dimension": h,
        "empirical": empirical,
        "confidence": confidence,
        "bound": bound,
        "best": int(bound.argmin()),
    }


def information_curve(joint: ArrayLike, **options: Any) -> Frame:
    """Return `beta`, `compression` I(X;Z), `relevance` I(Z;Y), and their limits H(X) and I(X;Y)."""
    table = np.asarray(joint, dtype=np.float64)
    points = bottleneck.information_curve(table, **options)
    columns = {name: np.array([getattr(one, name) for one in points]) for name in bottleneck.CurvePoint._fields}
    limits = {
        "compression_limit": bottleneck.entropy(table.sum(axis=1)),
        "relevance_limit": bottleneck.mutual_information(table),
    }
    return columns | limits

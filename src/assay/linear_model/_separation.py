"""Whether a hyperplane separates two classes, with the evidence for either answer (claims D13 and D14)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.linear_model import _logistic_sums as sums
from assay.optim.duality import gamma
from assay.optim.lp import intersecting_hulls
from assay.scan import Rows

_LP_ROWS = 50_000
_EXACT_COLUMNS = 50


def separation_claim(
    rows: Rows, w: np.ndarray, b: float, intercept: bool, code: int = 1, params: dict[str, Any] | None = None
) -> Iterator[Claim]:
    """Yield claim D13 (lower) if <w, x> separates class `code` from the others: the margin that w leaves.

    With an intercept the margin is that of the best offset: half the gap between the classes' scores over
    |w|.
    """
    norm = float(np.linalg.norm(w))
    if norm == 0:
        return
    extremes = rows.map(_extremes, w, code)
    inside, outside = min(low for low, _ in extremes), max(high for _, high in extremes)
    gap = (inside - outside) / 2 if intercept else min(inside, -outside)
    rounding = 8 * gamma(rows) / rows.n_rows * (rows.n_features + 4) * float(np.abs(w) @ rows.largest_entries)
    margin = (gap - rounding) / norm * (1 - 1e-9)
    if margin > 0:
        radius = float(np.sqrt(max(rows.map(sums.largest_norm)))) * (1 + 1e-9)
        yield Claim(
            "D13/1",
            margin,
            "lower",
            {"intercept": intercept, "radius": radius, **(params or {})},
            witness={"w": w},
        )


def _extremes(block: Block, w: np.ndarray, code: int) -> tuple[float, float]:
    """Return the least <w, x> over class `code` and the largest over the others."""
    s = block.X @ w
    own = block.y == code
    return float(s[own].min(initial=np.inf)), float(s[~own].max(initial=-np.inf))


def inseparability_claim(rows: Rows, intercept: bool) -> Claim | NotApplicable:
    """Return claim D14: a few rows whose class hulls intersect, found by a linear programme and verified
    exactly."""
    if rows.n_rows > _LP_ROWS or rows.n_features > _EXACT_COLUMNS:
        return NotApplicable(
            "D14/1",
            f"Deciding separability exactly is done up to {_LP_ROWS} rows and {_EXACT_COLUMNS} columns.",
        )
    parts = list(rows.blocks())
    X, y = np.vstack([part.X for part in parts]), np.concatenate([part.y for part in parts])
    found = intersecting_hulls(X, y, intercept)
    if found is None:
        return NotApplicable("D14/1", "No exact proof was found that the classes cannot be separated.")
    witness = {"rows": found, "set": np.zeros(len(found), dtype=np.int64)}
    return Claim("D14/1", 1.0, "lower", {"form": "ii", "intercept": intercept}, witness=witness)

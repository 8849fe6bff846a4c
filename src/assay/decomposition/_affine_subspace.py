"""What PCA and the truncated decomposition share: rows seen from a flat, and what is proved of it."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from assay.base import Learner, read_rows, require_finite
from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.guarantees.evidence import Distances, Evidence
from assay.messages import Message
from assay.params import refuse
from assay.scan import Rows, rows_per_block
from assay.theory.rademacher import projection_bound

_WIDEST = 2_000  # columns up to which the checker encloses eigenvalues


class Flats:
    """The flats of k dimensions."""

    def __str__(self) -> str:
        return "flats of k dimensions"


class FlatLearner(Learner):
    """A learner whose model is the flat through `center_` that the rows of `components_` span."""

    family = "projection"
    figure = "loadings"
    components_: np.ndarray
    center_: np.ndarray
    centred = True  # whether the point of the flat is fitted, or the origin
    fixed_number_ = True  # whether the number of dimensions was given, not chosen by looking at the rows

    def _projected(self, X: Any, directions: np.ndarray) -> np.ndarray:
        rows = read_rows(self, X, None, reset=False)
        require_finite(rows, self)
        return np.concatenate(rows.map(_coordinates, self.center_, directions))

    def _given_coordinates(self, X: Any) -> np.ndarray:
        """Return what `inverse_transform` was given, one column for each component."""
        X, k = np.asarray(X, dtype=np.float64), len(self.components_)
        if X.ndim != 2 or X.shape[1] != k:
            raise refuse(self, f"inverse_transform takes {k} columns, one for each component; got shape {X.shape}.")
        return X

    def facts(self, rows: Rows) -> Iterator[Claim | NotApplicable]:
        """Yield how much nearer to the rows another flat could be."""
        d = rows.n_features
        if d > _WIDEST:
            yield NotApplicable("pca.optimality", Message("why.eigenvalue-columns", most=_WIDEST))
            return
        M = scatter_about(rows, self.center_)
        S, V, n, k = M[:-1, :-1], self.components_, rows.n_rows, len(self.components_)
        best = float(np.linalg.eigvalsh(S)[::-1][:k].clip(0.0).sum())
        apart = float(np.sum(M[:-1, -1] ** 2)) / n if self.centred else 0.0
        trace, sums = float(np.trace(S)), min(n, rows_per_block(d)) + n / rows_per_block(d)
        loss = float(np.linalg.norm(V @ V.T - np.eye(k)))
        rounding = 2.3e-16 * max(k, 1) * trace * (4 * sums + 200 * d + 1000) + 3 * loss * best
        excess = max(best - float(np.einsum("ij,jl,il->", V, S, V, optimize=True)), 0.0) + 1.01 * apart + 2 * rounding
        params = {"components": k, "centred": self.centred, "rows": n}
        yield Claim("pca.optimality", excess / n * (1 + 1e-6), params=params)

    # New data

    def evidence(self, rows: Rows) -> Iterator[Evidence]:
        """Yield the squared distance of each row to the flat, and the bound of its mean for new rows."""
        reason = "" if self.fixed_number_ else Message("why.components-chosen")
        bound = partial(_distance_bound, self.components_.shape, self.centred)
        yield Distances(_distances, (self.center_, self.components_), "projection.risk", bound, reason)


def _distance_bound(
    shape: tuple[int, int], centred: bool, mean: float, sizes: Any, n: int, radius: float, delta: float
) -> tuple[dict[str, Any], float]:
    """Return parameters and value of the bound of the mean squared distance of new rows."""
    k, d = shape
    bound = projection_bound(mean, sizes.squares, sizes.fourth, n, k, d, radius, delta, fitted=centred)
    return {"components": k, "centred": centred}, bound


def scatter_about(rows: Rows, center: np.ndarray) -> np.ndarray:
    """Return the (d + 1, d + 1) sum over the rows of a a', a = (x - center, 1)."""
    with np.errstate(invalid="ignore", over="ignore"):
        return rows.sum(_scatter, center)


def _scatter(block: Block, center: np.ndarray) -> np.ndarray:
    from assay.loops.moments import scatter

    return scatter(block.X, center)


def _coordinates(block: Block, center: np.ndarray, directions: np.ndarray) -> np.ndarray:
    return (block.X - center) @ directions.T


def _distances(block: Block, center: np.ndarray, V: np.ndarray) -> np.ndarray:
    moved = block.X - center
    rest = moved - (moved @ V.T) @ V
    return np.einsum("ij,ij->i", rest, rest)

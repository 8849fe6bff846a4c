"""What prototypes of numbers and names prove of their rows: cost, means and modes (D20/3)."""

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from assay.claims.claim import Claim
from assay.data.blocks import Block
from assay.optim.duality import outward
from assay.scan import Rows


def mixed_claim(learner: Any, rows: Rows) -> Claim:
    """Return claim D20/3, rows given to the first prototype that is nearest in the arithmetic that SPEC.md names."""
    prototypes, nominal = learner.prototypes_, learner.nominal_columns_ > 0
    parts = rows.map(_nearest, prototypes, nominal, learner.gamma_)
    X, labels, costs = (np.concatenate(part) for part in zip(*parts))
    shift, odd = 0.0, 0
    for j in np.unique(labels):
        own = X[labels == j]
        apart = own[:, ~nominal].mean(axis=0) - prototypes[j, ~nominal]
        shift = max(shift, float(np.linalg.norm(apart)))
        for f in np.flatnonzero(nominal):
            _, counts = np.unique(own[:, f], return_counts=True)
            odd += int(np.sum(own[:, f] == prototypes[j, f]) < counts.max())
    rounding = 1e-13 * (float(np.linalg.norm(np.abs(X[:, ~nominal]).max(axis=0))) if (~nominal).any() else 0.0)
    stated = {"clusters": len(prototypes), "rows": len(X), "shift": shift * (1 + 1e-9) + rounding, "odd": odd}
    return Claim("D20/3", outward(float(costs.sum())), params=stated)


def _nearest(block: Block, prototypes: np.ndarray, nominal: np.ndarray, gamma: float) -> tuple[np.ndarray, ...]:
    differ = np.zeros((len(block.X), len(prototypes)))
    for f in np.flatnonzero(nominal):
        differ += block.X[:, f, None] != prototypes[None, :, f]
    apart = gamma * differ
    if not nominal.all():
        apart = cdist(block.X[:, ~nominal], prototypes[:, ~nominal], "sqeuclidean") + apart
    labels = apart.argmin(axis=1)
    return block.X, labels, apart[np.arange(len(labels)), labels]

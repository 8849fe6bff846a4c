"""Distances that were computed before and kept as a sparse matrix: only pairs with an entry, zeros among them, can be
neighbours."""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from assay.params import refuse

_FORMATS = ("csr", "csc", "coo", "lil")


def check_graph(owner: Any, D: Any) -> None:
    """Refuse a sparse matrix of distances whose form loses zeros, or that has distances below zero."""
    if not issparse(D):
        return
    if D.format not in _FORMATS:
        raise TypeError(
            f"{type(owner).__name__}: a sparse matrix of distances in {D.format!r} format is not supported due to its "
            f"handling of explicit zeros; use one of {', '.join(_FORMATS)}."
        )
    if D.tocsr().data.min(initial=0.0) < 0:
        raise refuse(owner, "Negative values in data passed to precomputed distance matrix.")


class Graph:
    """Nearest rows by the entries of a sparse matrix (queries, rows)."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def search(self, Q: csr_matrix, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and row numbers (rows, k) of the smallest entries of each row, the first of equal ones."""
        counts = np.diff(Q.indptr)
        if counts.min(initial=k) < k:
            raise refuse(
                self.owner,
                f"{k} neighbors per samples are required, but some samples have only {counts.min()} neighbors in "
                "precomputed graph matrix. Lower n_neighbors, or compute more distances.",
            )
        query = np.repeat(np.arange(Q.shape[0]), counts)
        order = np.lexsort((Q.indices, Q.data, query))
        chosen = order[Q.indptr[:-1, None] + np.arange(k)]
        return Q.data[chosen], Q.indices[chosen].astype(np.int64)

    def distance(self, powers: np.ndarray) -> np.ndarray:
        """Return the distances themselves."""
        return powers

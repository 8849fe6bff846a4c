"""Fingerprints of data and models, recomputed by the checker's own code (SPEC.md, section 1)."""

import hashlib
import json
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from assay.checker.families.centroids import read_centroids
from assay.checker.families.folds import PREFIX as FOLDS
from assay.checker.families.folds import read_folds
from assay.checker.families.glm import LINKS, read_linked
from assay.checker.families.neighbors import read_stored
from assay.checker.families.network import read_network
from assay.checker.families.oblique import read_oblique
from assay.checker.families.projection import read_projection
from assay.checker.families.voted import read_voted
from assay.checker.numerics import LARGEST, SMALLEST
from assay.checker.predictors import Linear, Quadratic
from assay.checker.record import Refused, Rejected, array
from assay.checker.rules.densities import KINDS as MIXTURES
from assay.checker.rules.densities import read_classifier, read_histogram, read_mixture
from assay.checker.rules.expansions import read_expansion
from assay.checker.rules.kernels import read_kernel_machine
from assay.checker.rules.trees import FAMILIES as TREES
from assay.checker.rules.trees import read_trees

CHUNK = 4096
_MOST_DENSE = 2**30  # entries of a sparse matrix that is made dense
_FAMILIES = {
    "linear-classifier": ("coef_", "intercept_", "classes_"),
    "linear-regressor": ("coef_", "intercept_"),
    "network-classifier": ("network_sizes_", "network_weights_", "network_codes_", "classes_"),
    "network-regressor": ("network_sizes_", "network_weights_", "network_codes_"),
    "quadratic-classifier": ("center_", "quadratic_", "linear_", "constant_", "classes_"),
    "kernel-classifier": ("support_vectors_", "pair_coef_", "intercept_", "support_", "kernel_numbers_", "classes_"),
    "kernel-regressor": ("support_vectors_", "pair_coef_", "intercept_", "support_", "kernel_numbers_"),
    "expansion-classifier": ("support_vectors_", "pair_coef_", "intercept_", "support_", "kernel_numbers_", "classes_"),
    "expansion-map": ("support_vectors_", "pair_coef_", "intercept_", "support_", "kernel_numbers_"),
    **{f"{link}-link-regressor": ("coef_", "intercept_") for link in LINKS},
    "voted-classifier": ("vectors_", "gained_", "lost_", "votes_", "constant_", "classes_"),
    "neighbors-classifier": ("fit_X_", "fit_y_", "neighbor_numbers_", "classes_"),
    "neighbors-regressor": ("fit_X_", "fit_y_", "neighbor_numbers_"),
    "prototype-classifier": ("prototypes_", "prototype_codes_", "neighbor_numbers_", "classes_"),
    "oblique-tree-classifier": ("node_weights_", "node_threshold_", "node_child_", "node_value_", "classes_"),
    **{f"{kind}-gaussian-mixture": ("weights_", "means_", "precisions_cholesky_") for kind in MIXTURES},
    "histogram-density": ("edges_", "cells_", "counts_", "alpha_"),
    "mixture-classifier": ("priors_", "component_class_", "weights_", "means_", "precisions_cholesky_", "classes_"),
    "centroids": ("cluster_centers_",),
    "projection": ("components_", "center_"),
    **TREES,
}
WITHOUT_TARGET = (
    "expansion-map",
    "centroids",
    "projection",
    "histogram-density",
    *(f"{kind}-gaussian-mixture" for kind in MIXTURES),
)
"""Families of models that are learnt from X alone: y, if there is one, is neither read nor part of the fingerprint."""


def _plain(value: Any, name: str) -> np.ndarray:
    """Return a stored value as an array, a CSR matrix as the one that it stands for."""
    if type(value) not in (csr_matrix, csr_array):
        return np.atleast_1d(value)
    if value.ndim != 2 or value.shape[0] * value.shape[1] > _MOST_DENSE:
        raise Refused(f"{name} is a sparse matrix of shape {value.shape}, too large to be looked at as an array")
    try:
        value.check_format(full_check=True)
    except ValueError as error:
        raise Rejected(f"{name} is not a sound sparse matrix") from error
    return value.toarray()


def read_model(model: Any, family: str) -> tuple[Any, str]:
    """Return the parameters of a model and their fingerprint."""
    if isinstance(family, str) and family.startswith(FOLDS):
        return read_folds(model, family, read_model)
    if family not in _FAMILIES:
        raise Rejected(f"unknown family of models {str(family)[:40]!r}")
    digest = hashlib.sha256(f"assay-model/1\n{family}\n".encode())
    stored: dict[str, np.ndarray] = {}
    for name in _FAMILIES[family]:
        if not hasattr(model, name):
            raise Rejected(f"the model has no {name}; it is not fitted or not of the family {family}")
        stored[name] = value = _plain(getattr(model, name), name)
        digest.update(f"{name}\n{','.join(map(str, value.shape))}\n".encode())
        if name == "classes_":
            for text in (str(label).encode() for label in value.tolist()):
                digest.update(b"%d:%s" % (len(text), text))
        else:
            stored[name] = array(value, name, (None,) * value.ndim)
            digest.update(np.ascontiguousarray(stored[name], dtype="<f8").tobytes())
    classes = _classes(stored.pop("classes_")) if "classes_" in stored else None
    if family in TREES:
        return read_trees(family, stored, classes), digest.hexdigest()
    read = _READERS[family.partition("-")[0]]
    return read(*stored.values(), classes), digest.hexdigest()


def _classes(labels: np.ndarray) -> tuple[str, ...]:
    classes = tuple(map(str, labels.tolist()))
    if labels.ndim != 1 or len(set(classes)) != len(classes) or len(classes) < 2:
        raise Rejected("classes_ must list at least two distinct labels")
    return classes


def _linear(W: np.ndarray, b: np.ndarray, classes: tuple[str, ...] | None) -> Linear:
    if W.ndim > 2 or b.ndim > 1 or not W.size or b.size not in (1, len(np.atleast_2d(W))):
        raise Rejected(f"coef_ has shape {W.shape} and intercept_ {b.shape}; they must be (K, d) and (K,)")
    W = np.atleast_2d(W)
    if classes is not None and len(W) != len(classes) and (len(W), len(classes)) != (1, 2):
        raise Rejected(f"coef_ has {len(W)} rows for {len(classes)} classes")
    return Linear(W, np.broadcast_to(b, (len(W),)), classes)


def _quadratic(center: np.ndarray, A: np.ndarray, w: np.ndarray, b: np.ndarray, classes: Any) -> Quadratic:
    K, d = 1 if len(classes) == 2 else len(classes), len(center)
    if center.ndim != 1 or not d or A.shape != (K, d, d) or w.shape != (K, d) or b.shape != (K,):
        raise Rejected(f"center_ {center.shape}, quadratic_ {A.shape}, linear_ {w.shape}, constant_ {b.shape} differ")
    return Quadratic(center, A, w, b, classes)


_READERS: dict[str, Any] = {
    "linear": _linear,
    "quadratic": _quadratic,
    "network": read_network,
    "kernel": read_kernel_machine,
    "expansion": read_expansion,
    "oblique": read_oblique,
    "centroids": read_centroids,
    "projection": read_projection,
    "neighbors": read_stored,
    "prototype": read_stored,
    "voted": read_voted,
    **{link: partial(read_linked, link) for link in LINKS},
    **{kind: partial(read_mixture, kind) for kind in MIXTURES},
    "histogram": read_histogram,
    "mixture": read_classifier,
}


class DataDigest:
    """Fingerprint of one data set, fed block by block, with the check that every number is in range."""

    def __init__(self, labels: tuple[str, ...] | None, classes: tuple[str, ...] | None, has_target: bool = True):
        self.rows, self.has_target, self._hash = 0, has_target, hashlib.sha256()
        if has_target and classes is not None and not (labels is not None and set(labels) <= set(classes)):
            raise Rejected("the certificate must list the labels of the rows, all of them classes of the model")
        self._chunks: list[bytes] = []
        self._held: tuple[list[bytes], list[bytes]] = ([], [])  # targets and weights of the open chunk
        self._labels = None if labels is None else LabelReader(labels, classes)
        self._header: dict[str, Any] = {"labels": None if labels is None else list(labels)}

    def read_targets(self, y: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return class codes, or numeric targets as (rows, targets); neither for a model without a target."""
        if not self.has_target:
            return None, None
        if y is None:
            raise Rejected("y is missing")
        return (None, numeric_targets(y)) if self._labels is None else (self._labels.codes(np.asarray(y)), None)

    def feed(self, X: np.ndarray, targets: np.ndarray | None, weight: np.ndarray | None) -> np.ndarray:
        """Take in a block whose targets were just read; return the largest magnitude of each column."""
        X = X + 0.0  # -0.0 becomes 0.0
        largest = column_range(X)
        if self._labels is not None:
            held = self._labels.positions().astype("<i4")
        elif self.has_target:
            held = (np.asarray(targets) + 0.0).astype("<f8")
        else:
            held = np.empty((len(X), 0))
        self._header |= {"columns": X.shape[1], "targets": held.shape[1] if held.ndim == 2 else 1}
        self._header["weights"] = weight is not None
        borders = [0, *range(CHUNK - self.rows % CHUNK, len(X), CHUNK), len(X)]
        for start, stop in pairwise(borders):
            self._hash.update(np.ascontiguousarray(X[start:stop], dtype="<f8"))
            self._held[0].append(held[start:stop].tobytes())
            if weight is not None:
                self._held[1].append((weight[start:stop] + 0.0).astype("<f8").tobytes())
            self.rows += stop - start
            if self.rows % CHUNK == 0:
                self._close_chunk()
        return largest

    def _close_chunk(self) -> None:
        for part in self._held:
            self._hash.update(b"".join(part))
            part.clear()
        self._chunks.append(self._hash.digest())
        self._hash = hashlib.sha256()

    def hexdigest(self) -> str:
        """Return the fingerprint of all rows fed."""
        if self.rows % CHUNK:
            self._close_chunk()
        header = self._header | {"rows": self.rows}
        text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        return hashlib.sha256(b"assay-data/1\n" + text + b"\n" + b"".join(self._chunks)).hexdigest()


class LabelReader:
    """Turns labels into their positions in the certificate's list and in the model's list of classes."""

    def __init__(self, labels: tuple[str, ...], classes: tuple[str, ...] | None):
        self._position = {label: i for i, label in enumerate(labels)}
        self._class = {label: i for i, label in enumerate(classes or ())}
        self._values: np.ndarray | None = None
        if len(self._position) != len(labels):
            raise Rejected("the certificate lists a label twice")

    def codes(self, y: np.ndarray) -> np.ndarray:
        """Return positions in the model's classes, -1 for labels it does not know."""
        self._last = self._where(y)
        return self._codes[self._last]

    def positions(self) -> np.ndarray:
        """Return positions of the labels last read in the certificate's list of labels."""
        return self._positions[self._last]

    def _where(self, y: np.ndarray) -> np.ndarray:
        """Return the place of each label among the values met so far, which grow as new ones appear."""
        if y.ndim != 1:
            raise Rejected(f"labels must be one column; y has shape {y.shape}")
        for _ in range(2):
            if self._values is not None and self._values.dtype.kind == y.dtype.kind:
                where = np.minimum(np.searchsorted(self._values, y), len(self._values) - 1)
                if np.all(self._values[where] == y):
                    return where
            met = np.unique(y) if self._values is None else np.unique(np.concatenate([self._values, np.unique(y)]))
            names = [str(value) for value in met.tolist()]
            unknown = [name for name in names if name not in self._position]
            if unknown:
                raise Rejected(f"the rows have the label {unknown[0][:40]!r}, which the certificate does not list")
            self._values = met
            self._positions = np.array([self._position[name] for name in names])
            self._codes = np.array([self._class.get(name, -1) for name in names])
        raise Rejected("y mixes types, or has labels that are not equal to themselves")


def numeric_targets(y: Any) -> np.ndarray:
    """Return a numeric target as (rows, targets) binary64."""
    values = np.asarray(y)
    if values.dtype.kind not in "iufb" or values.ndim not in (1, 2):
        raise Rejected(f"y must be one or more columns of numbers; it is {values.dtype} of shape {values.shape}")
    columns = np.ascontiguousarray(values.reshape(len(values), -1), dtype=np.float64)
    column_range(columns, "y")
    return columns


def row_keys(X: np.ndarray) -> np.ndarray:
    """Return a 64-bit number per row; equal rows have equal numbers, others almost surely not."""
    bits = np.ascontiguousarray(X + 0.0).view(np.uint64)
    multipliers = np.random.default_rng(1).integers(2**63, size=X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(
        1
    )
    return np.einsum("ij,j->i", bits ^ (bits >> np.uint64(31)), multipliers)


def column_range(X: np.ndarray, name: str = "X") -> np.ndarray:
    """Return the largest magnitude of each column; stop at numbers that arithmetic cannot handle soundly.

    Doubled bit patterns order magnitudes and drop the sign; subtracting one sends zero to the top.
    """
    bits = np.left_shift(X.view(np.uint64), np.uint64(1))
    largest = (bits.max(axis=0) >> np.uint64(1)).view(np.float64)
    if not np.isfinite(largest).all():
        raise Rejected(f"{name} has NaN or infinite entries")
    bits -= np.uint64(1)
    lowest = bits.min(keepdims=True)  # an array, so that adding one wraps around
    smallest = ((lowest + np.uint64(1)) >> np.uint64(1)).view(np.float64)[0, 0]
    if largest.max() > LARGEST or 0 < smallest < SMALLEST:
        raise Refused(f"{name} has nonzero entries outside [1e-150, 1e150]; rescale the column")
    return largest

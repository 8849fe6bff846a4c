"""Fingerprints of data and model, as SPEC.md section 1 defines them (producer's side)."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from assay.certificate.claim import DataReference, ModelReference
from assay.data.blocks import Block
from assay.scan import Rows, rows_per_block

CHUNK = 4096  # rows hashed together; part of the format

_NODES = (
    "n_features_in_",
    "tree_root_",
    "node_column_",
    "node_threshold_",
    "node_table_",
    "node_child_",
    "node_value_",
    "branch_tables_",
)

FAMILIES = {
    "linear-classifier": ("coef_", "intercept_", "classes_"),
    "linear-regressor": ("coef_", "intercept_"),
    **{f"{link}-link-regressor": ("coef_", "intercept_") for link in ("log", "logit", "probit", "inverse")},
    "network-classifier": ("network_sizes_", "network_weights_", "network_codes_", "classes_"),
    "network-regressor": ("network_sizes_", "network_weights_", "network_codes_"),
    "quadratic-classifier": ("center_", "quadratic_", "linear_", "constant_", "classes_"),
    "kernel-classifier": ("support_vectors_", "pair_coef_", "intercept_", "support_", "kernel_numbers_", "classes_"),
    "kernel-regressor": ("support_vectors_", "pair_coef_", "intercept_", "support_", "kernel_numbers_"),
    "expansion-classifier": ("support_vectors_", "pair_coef_", "intercept_", "support_", "kernel_numbers_", "classes_"),
    "expansion-map": ("support_vectors_", "pair_coef_", "intercept_", "support_", "kernel_numbers_"),
    "voted-classifier": ("vectors_", "gained_", "lost_", "votes_", "constant_", "classes_"),
    "neighbors-classifier": ("fit_X_", "fit_y_", "neighbor_numbers_", "classes_"),
    "neighbors-regressor": ("fit_X_", "fit_y_", "neighbor_numbers_"),
    "prototype-classifier": ("prototypes_", "prototype_codes_", "neighbor_numbers_", "classes_"),
    "oblique-tree-classifier": ("node_weights_", "node_threshold_", "node_child_", "node_value_", "classes_"),
    **{
        f"{kind}-gaussian-mixture": ("weights_", "means_", "precisions_cholesky_")
        for kind in ("full", "tied", "diag", "spherical")
    },
    "histogram-density": ("edges_", "cells_", "counts_", "alpha_"),
    "mixture-classifier": ("priors_", "component_class_", "weights_", "means_", "precisions_cholesky_", "classes_"),
    "centroids": ("cluster_centers_",),
    "projection": ("components_", "center_"),
    "tree-classifier": (*_NODES, "classes_"),
    "tree-regressor": _NODES,
    "tree-vote-classifier": (*_NODES, "classes_"),
    "tree-committee-classifier": (*_NODES, "committee_", "classes_"),
    "tree-mean-regressor": _NODES,
    "tree-sum-classifier": (*_NODES, "base_score_", "classes_"),
    "tree-sum-regressor": (*_NODES, "base_score_"),
    "stump-vote-classifier": (*_NODES, "estimator_weights_", "classes_"),
    "tree-median-regressor": (*_NODES, "estimator_weights_"),
}


def data_reference(rows: Rows, classes: np.ndarray | None, has_target: bool = True) -> DataReference:
    """Return the fingerprint of `rows`, whose labels are positions in `classes` (None for a numeric target);
    without `has_target` it is one of X and the weights alone."""
    labels = None if classes is None else tuple(str(label) for label in classes.tolist())
    first = next(iter(rows.blocks()))
    header = {
        "columns": rows.n_features,
        "labels": None if labels is None else list(labels),
        "rows": rows.n_rows,
        "targets": 0 if not has_target else 1 if first.y.ndim == 1 else first.y.shape[1],
        "weights": first.weight is not None,
    }
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(f"assay-data/1\n{text}\n".encode())
    target = "" if not has_target else "<i4" if labels is not None else "<f8"
    for part in _chunk_digests(rows, target):
        digest.update(part)
    return DataReference(digest.hexdigest(), rows.n_rows, rows.n_features, labels)


def model_reference(model: Any) -> ModelReference:
    """Return the fingerprint of the stored parameters of a fitted model."""
    if model.family.startswith("folds:"):
        members = "".join(model_reference(one).digest for one in model.fold_models_)
        whole = hashlib.sha256(f"assay-model/1\n{model.family}\n{members}".encode())
        return ModelReference(type(model).__name__, model.family, whole.hexdigest())
    digest = hashlib.sha256(f"assay-model/1\n{model.family}\n".encode())
    for name in FAMILIES[model.family]:
        stored = getattr(model, name)
        values = stored.toarray() if hasattr(stored, "toarray") else np.atleast_1d(stored)
        digest.update(f"{name}\n{','.join(map(str, values.shape))}\n".encode())
        if name == "classes_":
            encoded = (str(label).encode() for label in values.tolist())
            digest.update(b"".join(b"%d:%s" % (len(text), text) for text in encoded))
        else:
            digest.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
    return ModelReference(type(model).__name__, model.family, digest.hexdigest())


def _chunk_digests(rows: Rows, target: str) -> list[bytes]:
    """Return the digest of every chunk, on threads when the blocks of the scan are whole chunks."""
    if rows_per_block(rows.n_features) % CHUNK == 0:
        hashed = rows.map(_hash_block, target)
        if all(start % CHUNK == 0 for start, _ in hashed):  # partitions of a cluster may begin anywhere
            return [part for _, parts in hashed for part in parts]
    return [part for block in _regrouped(rows) for part in _hash_block(block, target)[1]]


def _hash_block(block: Block, target: str) -> tuple[int, list[bytes]]:
    """Return the first row of the block and the digests of its rows, CHUNK at a time."""
    return block.start, [
        _hash_chunk(block.X[i : i + CHUNK], _slice(block.y, i), _slice(block.weight, i), target)
        for i in range(0, len(block.X), CHUNK)
    ]


def _hash_chunk(X: np.ndarray, y: Any, weight: np.ndarray | None, target: str) -> bytes:
    """Return the digest of rows; `target` is the type that y is hashed in, "" leaves it out."""
    digest = hashlib.sha256(np.add(X, 0.0, dtype="<f8", order="C").data)  # adding 0.0 turns -0.0 into 0.0
    if target:
        values = np.ascontiguousarray(y).astype(target)
        digest.update((values + 0.0).data if target == "<f8" else values.data)
    if weight is not None:
        digest.update(np.add(weight, 0.0, dtype="<f8", order="C").data)
    return digest.digest()


def _regrouped(rows: Rows) -> Iterator[Block]:
    """Yield blocks of exactly CHUNK rows (the last may be shorter) from blocks of any size."""
    held: list[Block] = []
    start = size = 0
    for block in rows.blocks():
        held.append(block)
        size += len(block.X)
        while size >= CHUNK:
            whole = _joined(held, start)
            yield Block(whole.X[:CHUNK], _slice(whole.y, 0), _slice(whole.weight, 0), start)
            start, size = start + CHUNK, size - CHUNK
            y, weight = (None if part is None else part[CHUNK:] for part in (whole.y, whole.weight))
            held = [Block(whole.X[CHUNK:], y, weight, start)]
    if size:
        yield _joined(held, start)


def _joined(parts: list[Block], start: int) -> Block:
    X, y, weight = (None if column[0] is None else np.concatenate(column) for column in list(zip(*parts))[:3])
    return Block(np.asarray(X), y, weight, start)


def _slice(values: np.ndarray | None, i: int) -> np.ndarray | None:
    return None if values is None else values[i : i + CHUNK]

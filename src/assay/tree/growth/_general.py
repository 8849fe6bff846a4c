"""Trees with several outputs, missing values or absolute errors on numeric columns; the compiled part is
`_general_loops`."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from assay.tree._nodes import Nodes
from assay.tree.growth._exact import Columns, bounded, encode
from assay.tree.growth._records import CRITERIA, Limits, binary_nodes

if TYPE_CHECKING:
    from assay.tree.growth._general_loops import Task


class Coded(NamedTuple):
    """Columns as codes, and the code of rows without a value in each, which is its last; -1 if there are none."""

    columns: Columns
    gaps: np.ndarray


def encode_gaps(X: np.ndarray, n_jobs: int | None, order: np.ndarray | None = None) -> Coded:
    """Return the codes of numeric columns with NaN for missing values, in this order if one is given."""
    gaps = np.isnan(X)
    columns = encode(np.where(gaps, np.inf, X) if gaps.any() else X, n_jobs, order=order)
    lacking = gaps.any(axis=0) if order is None else gaps.any(axis=0)[order]
    return Coded(columns, np.where(lacking, columns.n_codes - 1, -1))


def grow_general(
    coded: Coded,
    y: np.ndarray,
    weight: np.ndarray | None,
    rows: np.ndarray,
    n_classes: np.ndarray,
    criterion: str,
    limits: Limits,
    seed: int,
    monotone: np.ndarray | None = None,
) -> Nodes:
    """Return one tree on the given rows (row numbers may repeat).

    y : (rows,) or (rows, outputs) numbers of classes, or numbers
    n_classes : (outputs,) classes of each output; empty for numbers
    monotone : (columns,) as in `grow_exact`, for one output
    """
    from assay.tree.growth._general_loops import grow

    task = task_of(y, weight, n_classes, criterion)
    signs = np.empty(0, dtype=np.int64) if monotone is None else monotone
    own = np.array(rows, dtype=np.int64)
    made = grow(*coded, task, own, limits.record(len(coded.gaps)), np.uint64(seed), signs)
    grown, sums, medians, sides, bounds = made
    nodes = nodes_of(grown, sums, criterion, medians, sides)
    return nodes if monotone is None else bounded(nodes, bounds)


def task_of(y: np.ndarray, weight: np.ndarray | None, n_classes: np.ndarray, criterion: str) -> "Task":
    """Return what a tree learns, as the compiled code reads it."""
    from assay.tree.growth._general_loops import Task

    target = np.ascontiguousarray(y.reshape(len(y), -1), dtype=np.float64)
    sizes = n_classes if len(n_classes) else np.ones(target.shape[1])
    first = 1 + np.append(0, np.cumsum(sizes)).astype(np.int64)
    every = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    return Task(target, every, first, int(len(n_classes) > 0), CRITERIA[criterion])


def nodes_of(
    grown: np.ndarray, sums: np.ndarray, criterion: str, medians: Any = None, sides: np.ndarray | None = None
) -> Nodes:
    """Return a tree from the records and sums of its nodes; `medians` are their values under absolute errors."""
    weight = sums[:, 0]
    value = medians if criterion == "absolute_error" else sums[:, 1:] / sums[:, :1]
    base = {"gini": weight, **dict.fromkeys(("entropy", "log_loss", "gain"), 0.0)}.get(criterion, grown["squares"])
    impurity = np.maximum(0.0, (base - grown["purity"]) / weight)
    column, threshold, child = (grown[name].copy() for name in ("column", "threshold", "child"))
    return binary_nodes(column, threshold, child, value, weight, impurity, sides)

"""Compiled loops of naive Bayes: moments and counts of the classes in a block of rows, and scores of its rows."""

import numpy as np

from assay.jit import compiled


@compiled
def class_moments(X: np.ndarray, codes: np.ndarray, weight: np.ndarray, columns: np.ndarray, n_classes: int) -> tuple:
    """Return weight, mean and sum of squares about the mean, (K, p) each, of the values that are there (not NaN)."""
    n, p = len(X), len(columns)
    count, mean, square = np.zeros((n_classes, p)), np.zeros((n_classes, p)), np.zeros((n_classes, p))
    for i in range(n):
        k, w = codes[i], weight[i] if weight.size else 1.0
        for j in range(p):
            x = X[i, columns[j]]
            there = not np.isnan(x)
            count[k, j] += w if there else 0.0
            mean[k, j] += w * x if there else 0.0
    for k in range(n_classes):
        for j in range(p):
            mean[k, j] = mean[k, j] / count[k, j] if count[k, j] > 0 else 0.0
    for i in range(n):
        k, w = codes[i], weight[i] if weight.size else 1.0
        for j in range(p):
            apart = X[i, columns[j]] - mean[k, j]
            square[k, j] += 0.0 if np.isnan(apart) else w * apart * apart
    return count, mean, square


@compiled
def whole_moments(X: np.ndarray, codes: np.ndarray, n_classes: int) -> tuple:
    """Return `class_moments` of all columns of rows without gaps or weights."""
    n, d = X.shape
    size, mean, square = np.zeros(n_classes), np.zeros((n_classes, d)), np.zeros((n_classes, d))
    for i in range(n):
        k = codes[i]
        size[k] += 1.0
        for j in range(d):
            mean[k, j] += X[i, j]
    for k in range(n_classes):
        if size[k] > 0:
            for j in range(d):
                mean[k, j] /= size[k]
    for i in range(n):
        k = codes[i]
        for j in range(d):
            apart = X[i, j] - mean[k, j]
            square[k, j] += apart * apart
    return size, mean, square


@compiled
def level_of(x: float, values: np.ndarray, first: int, end: int) -> int:
    """Return the place of x among the increasing values[first:end]; -1 if it is not there, or NaN."""
    if not (x >= values[first] and x <= values[end - 1]):
        return -1
    guess = first + int(x)
    if first <= guess < end and values[guess] == x:  # levels are mostly 0, 1, 2, ...
        return guess
    low, high = first, end - 1
    while low < high:
        middle = (low + high) // 2
        if values[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low if values[low] == x else -1


@compiled
def level_counts(
    X: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    columns: np.ndarray,
    starts: np.ndarray,
    values: np.ndarray,
    n_classes: int,
) -> np.ndarray:
    """Return the weight of the rows of each class with each level, (K, levels of all columns)."""
    found = np.zeros((n_classes, starts[-1]))
    for i in range(len(X)):
        k, w = codes[i], weight[i] if weight.size else 1.0
        for j in range(len(columns)):
            if starts[j] < starts[j + 1]:
                at = level_of(X[i, columns[j]], values, starts[j], starts[j + 1])
                if at >= 0:
                    found[k, at] += w
    return found


@compiled
def whole_counts(X: np.ndarray, codes: np.ndarray, starts: np.ndarray, n_classes: int) -> np.ndarray:
    """Return `level_counts` of all columns of rows without weights whose values are 0, 1, ... in range; transposed."""
    found = np.zeros((starts[-1], n_classes))
    n, d = X.shape
    for i in range(n):
        k = codes[i]
        for j in range(d):
            found[starts[j] + int(X[i, j]), k] += 1.0
    return found


@compiled
def column_scores(
    X: np.ndarray,
    numeric: np.ndarray,
    theta: np.ndarray,
    half: np.ndarray,
    log_scale: np.ndarray,
    nominal: np.ndarray,
    starts: np.ndarray,
    values: np.ndarray,
    tables: np.ndarray,
    prior: np.ndarray,
) -> np.ndarray:
    """Return ln P(c) + sum over the values that are there of ln P(x_j | c), (n, K).

    A number adds log_scale - (x - theta)^2 half, a level its entry in tables (levels, K).
    """
    n, K = len(X), len(prior)
    found = np.empty((n, K))
    for i in range(n):
        found[i] = prior
        for j in range(len(numeric)):
            x = X[i, numeric[j]]
            if not np.isnan(x):
                for k in range(K):
                    apart = x - theta[k, j]
                    found[i, k] += log_scale[k, j] - apart * apart * half[k, j]
        for j in range(len(nominal)):
            if starts[j] < starts[j + 1]:
                at = level_of(X[i, nominal[j]], values, starts[j], starts[j + 1])
                if at >= 0:
                    for k in range(K):
                        found[i, k] += tables[at, k]
    return found


@compiled(reduction=True)
def gaussian_scores(X: np.ndarray, theta: np.ndarray, half: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Return constant - sum_j (x_j - theta_kj)^2 half_kj, (n, K), for rows without gaps."""
    n, d = X.shape
    K = len(constant)
    found = np.empty((n, K))
    for i in range(n):
        for k in range(K):
            total = 0.0
            for j in range(d):
                apart = X[i, j] - theta[k, j]
                total += apart * apart * half[k, j]
            found[i, k] = constant[k] - total
    return found


@compiled
def level_scores(X: np.ndarray, starts: np.ndarray, tables: np.ndarray, prior: np.ndarray) -> tuple:
    """Return ln P(c) + sum_j of the entries of levels 0, 1, ... in tables (levels, K), (n, K), and a column with a
    value that is none of its levels, -1 if there is none."""
    n, d = X.shape
    K = len(prior)
    found, odd = np.empty((n, K)), -1
    for i in range(n):
        for k in range(K):
            found[i, k] = prior[k]
        for j in range(d):
            x = X[i, j]
            if not (x >= 0 and x < starts[j + 1] - starts[j] and x == np.floor(x)):
                odd = j
                continue
            at = starts[j] + int(x)
            for k in range(K):
                found[i, k] += tables[at, k]
    return found, odd

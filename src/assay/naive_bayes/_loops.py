"""Compiled loops: moments and counts by class, contingency tables, and scores of rows.

A slot is a value of a column. Slots are numbered through all columns; -1 stands for a value without one.
"""

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
    result = np.zeros((n_classes, starts[-1]))
    for i in range(len(X)):
        k, w = codes[i], weight[i] if weight.size else 1.0
        for j in range(len(columns)):
            if starts[j] < starts[j + 1]:
                at = level_of(X[i, columns[j]], values, starts[j], starts[j + 1])
                if at >= 0:
                    result[k, at] += w
    return result


@compiled
def whole_counts(X: np.ndarray, codes: np.ndarray, starts: np.ndarray, n_classes: int) -> np.ndarray:
    """Return `level_counts` of all columns of rows without weights whose values are 0, 1, ... in range; transposed."""
    result = np.zeros((starts[-1], n_classes))
    n, d = X.shape
    for i in range(n):
        k = codes[i]
        for j in range(d):
            result[starts[j] + int(X[i, j]), k] += 1.0
    return result


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
    result = np.empty((n, K))
    for i in range(n):
        for k in range(K):  # a loop, which compiles in a tenth of the time of a slice
            result[i, k] = prior[k]
        for j in range(len(numeric)):
            x = X[i, numeric[j]]
            if not np.isnan(x):
                for k in range(K):
                    apart = x - theta[k, j]
                    result[i, k] += log_scale[k, j] - apart * apart * half[k, j]
        for j in range(len(nominal)):
            if starts[j] < starts[j + 1]:
                at = level_of(X[i, nominal[j]], values, starts[j], starts[j + 1])
                if at >= 0:
                    for k in range(K):
                        result[i, k] += tables[at, k]
    return result


@compiled(reduction=True)
def gaussian_scores(X: np.ndarray, theta: np.ndarray, half: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Return constant - sum_j (x_j - theta_kj)^2 half_kj, (n, K), for rows without gaps."""
    n, d = X.shape
    K = len(constant)
    result = np.empty((n, K))
    for i in range(n):
        for k in range(K):
            total = 0.0
            for j in range(d):
                apart = X[i, j] - theta[k, j]
                total += apart * apart * half[k, j]
            result[i, k] = constant[k] - total
    return result


@compiled
def level_scores(X: np.ndarray, starts: np.ndarray, tables: np.ndarray, prior: np.ndarray) -> tuple:
    """Return ln P(c) + sum_j of the entries of levels 0, 1, ... in tables (levels, K), (n, K), and a column with a
    value that is none of its levels, -1 if there is none."""
    n, d = X.shape
    K = len(prior)
    result, odd = np.empty((n, K)), -1
    for i in range(n):
        for k in range(K):
            result[i, k] = prior[k]
        for j in range(d):
            x = X[i, j]
            if not (x >= 0 and x < starts[j + 1] - starts[j] and x == np.floor(x)):
                odd = j
                continue
            at = starts[j] + int(x)
            for k in range(K):
                result[i, k] += tables[at, k]
    return result, odd


@compiled
def slots_of(
    X: np.ndarray, first: np.ndarray, values: np.ndarray, cut: np.ndarray, gap: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    """Return the slot of each entry (n, d): of a column that is cut, by the number of cuts up to it; else by level."""
    n, d = X.shape
    result = np.empty((n, d), dtype=np.int32)
    for i in range(n):
        for j in range(d):
            x, slot = X[i, j], -1
            if cut[j]:
                if not np.isnan(x):
                    low, high = first[j], first[j + 1]
                    while low < high:
                        middle = (low + high) // 2
                        if values[middle] <= x:
                            low = middle + 1
                        else:
                            high = middle
                    slot = starts[j] + low - first[j]
            elif first[j] < first[j + 1]:
                at = level_of(x, values, first[j], first[j + 1])
                slot = starts[j] + at - first[j] if at >= 0 else -1
            result[i, j] = starts[j + 1] - 1 if slot < 0 and gap[j] else slot
    return result


@compiled
def parent_counts(
    slots: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    parents: np.ndarray,
    starts: np.ndarray,
    tables: np.ndarray,
    n_classes: int,
) -> np.ndarray:
    """Return the weight of the rows in each cell (class; column i: slot of its parent, slot of i), (K, cells)."""
    result = np.zeros((n_classes, tables[-1]))
    for r in range(len(slots)):
        k, w = codes[r], weight[r] if weight.size else 1.0
        for i in range(len(parents)):
            own, p = slots[r, i], parents[i]
            if own < 0 or (p >= 0 and slots[r, p] < 0):
                continue
            row = slots[r, p] - starts[p] if p >= 0 else 0
            result[k, tables[i] + row * (starts[i + 1] - starts[i]) + own - starts[i]] += w
    return result


@compiled
def parent_scores(
    slots: np.ndarray,
    parents: np.ndarray,
    starts: np.ndarray,
    tables: np.ndarray,
    logs: np.ndarray,
    plain: np.ndarray,
    prior: np.ndarray,
) -> np.ndarray:
    """Return ln P(c) + sum_i ln P(x_i | c, parent), (n, K); `plain` (slots, K) where the parent has no slot."""
    n, K = len(slots), len(prior)
    result = np.empty((n, K))
    for r in range(n):
        result[r] = prior
        for i in range(len(parents)):
            own, p = slots[r, i], parents[i]
            if own < 0:
                continue
            if p >= 0 and slots[r, p] < 0:
                for k in range(K):
                    result[r, k] += plain[own, k]
                continue
            row = slots[r, p] - starts[p] if p >= 0 else 0
            at = tables[i] + row * (starts[i + 1] - starts[i]) + own - starts[i]
            for k in range(K):
                result[r, k] += logs[at, k]
    return result


@compiled
def pair_counts(slots: np.ndarray, codes: np.ndarray, weight: np.ndarray, size: int, n_classes: int) -> np.ndarray:
    """Return the weight of the rows of each class with each pair of slots, (K, S, S); the diagonal of single ones."""
    result = np.zeros((n_classes, size, size))
    n, d = slots.shape
    for r in range(n):
        k, w = codes[r], weight[r] if weight.size else 1.0
        for i in range(d):
            u = slots[r, i]
            if u < 0:
                continue
            for j in range(i, d):
                v = slots[r, j]
                if v >= 0:
                    result[k, u, v] += w
    for k in range(n_classes):
        for u in range(size):
            for v in range(u):
                result[k, u, v] = result[k, v, u]
    return result


@compiled
def _log_mean(total: np.ndarray, used: int) -> float:
    """Return ln of the mean of exp(total[:used])."""
    top = -np.inf
    for a in range(used):
        top = max(top, total[a])
    if top == -np.inf:
        return -np.inf
    mass = 0.0
    for a in range(used):
        mass += np.exp(total[a] - top)
    return top + np.log(mass / used)


@compiled
def averaged_scores(
    slots: np.ndarray, logs: np.ndarray, single: np.ndarray, prior: np.ndarray, support: np.ndarray, least: float
) -> np.ndarray:
    """Return ln of the mean over super-parents of P(c) P(x_i | c) prod_j P(x_j | c, x_i), (n, K).

    logs (K, S, S) parent, child; single (K, S). A column serves as parent if `support` of its slot is at least `least`;
    where none does, columns are independent.
    """
    n, d = slots.shape
    K = len(prior)
    result = np.empty((n, K))
    total = np.empty(d)
    for r in range(n):
        for k in range(K):
            used = 0
            for i in range(d):
                u = slots[r, i]
                if u < 0 or support[u] < least:
                    continue
                value = prior[k] + single[k, u]
                for j in range(d):
                    v = slots[r, j]
                    if j != i and v >= 0:
                        value += logs[k, u, v]
                total[used] = value
                used += 1
            if used:
                result[r, k] = _log_mean(total, used)
            else:
                value = prior[k]
                for j in range(d):
                    if slots[r, j] >= 0:
                        value += single[k, slots[r, j]]
                result[r, k] = value
    return result


@compiled
def left_out_errors(
    slots: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    pairs: np.ndarray,
    sizes: np.ndarray,
    starts: np.ndarray,
    alpha: float,
) -> np.ndarray:
    """Return the weight of rows that each super-parent classifies wrongly when the row itself is taken out, (d,)."""
    n, d = slots.shape
    K = len(sizes)
    result, score = np.zeros(d), np.empty(K)
    total = sizes.sum()
    for r in range(n):
        w = weight[r] if weight.size else 1.0
        out = min(w, 1.0)  # a weight of two is two rows, of which one is left out
        for i in range(d):
            u = slots[r, i]
            for k in range(K):
                own = out if codes[r] == k else 0.0
                score[k] = np.log(max(sizes[k] - own, 0.0) / max(total - out, 1e-300))
                if u >= 0:
                    width = starts[i + 1] - starts[i]
                    score[k] += np.log((pairs[k, u, u] - own + alpha) / max(sizes[k] - own + alpha * width, 1e-300))
                for j in range(d):
                    v = slots[r, j]
                    if j == i or v < 0:
                        continue
                    width = starts[j + 1] - starts[j]
                    if u >= 0:
                        above, below = pairs[k, u, v] - own + alpha, pairs[k, u, u] - own + alpha * width
                    else:
                        above, below = pairs[k, v, v] - own + alpha, sizes[k] - own + alpha * width
                    score[k] += np.log(max(above, 0.0) / below) if below > 0 else -np.log(width)
            best = 0
            for k in range(1, K):
                if score[k] > score[best]:
                    best = k
            result[i] += w if best != codes[r] else 0.0
    return result


@compiled
def triple_counts(
    slots: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    starts: np.ndarray,
    blocks: np.ndarray,
    n_cells: int,
    n_classes: int,
) -> np.ndarray:
    """Return the weight of the rows of each class with each triple of slots of columns i < j < l, (K, cells).

    The cells of i and j begin at blocks[i, j]; they have a cell for each slot of i, of j and of all later columns.
    """
    result = np.zeros((n_classes, n_cells))
    n, d = slots.shape
    for r in range(n):
        k, w = codes[r], weight[r] if weight.size else 1.0
        for i in range(d):
            if slots[r, i] < 0:
                continue
            a = slots[r, i] - starts[i]
            for j in range(i + 1, d):
                if slots[r, j] < 0:
                    continue
                b = a * (starts[j + 1] - starts[j]) + slots[r, j] - starts[j]
                first = blocks[i, j] + b * (starts[d] - starts[j + 1]) - starts[j + 1]
                for m in range(j + 1, d):
                    if slots[r, m] >= 0:
                        result[k, first + slots[r, m]] += w
    return result


@compiled
def _cell(row: np.ndarray, starts: np.ndarray, blocks: np.ndarray, i: int, j: int, m: int) -> int:
    """Return the cell of three columns of a row, in any order."""
    if i > j:
        i, j = j, i
    if j > m:
        j, m = m, j
    if i > j:
        i, j = j, i
    b = (row[i] - starts[i]) * (starts[j + 1] - starts[j]) + row[j] - starts[j]
    return blocks[i, j] + b * (starts[-1] - starts[j + 1]) + row[m] - starts[j + 1]


@compiled
def pair_parent_scores(
    slots: np.ndarray,
    starts: np.ndarray,
    blocks: np.ndarray,
    triples: np.ndarray,
    pairs: np.ndarray,
    sizes: np.ndarray,
    prior: np.ndarray,
    alpha: float,
    least: float,
) -> tuple:
    """Return ln of the mean over pairs of parents of P(c) P(x_i, x_j | c) prod_m P(x_m | c, x_i, x_j), (n, K), and for
    each row how many pairs take part; a pair does if at least `least` rows have both values."""
    n, d = slots.shape
    K = len(prior)
    result, used = np.full((n, K), -np.inf), np.zeros(n, dtype=np.int64)
    total = np.empty(d * (d - 1) // 2)
    for r in range(n):
        row = slots[r]
        for k in range(K):
            count = 0
            for i in range(d):
                for j in range(i + 1, d):
                    u, v = row[i], row[j]
                    if u < 0 or v < 0 or pairs[:, u, v].sum() < least:
                        continue
                    together = pairs[k, u, v]
                    cells = (starts[i + 1] - starts[i]) * (starts[j + 1] - starts[j])
                    value = prior[k] + np.log((together + alpha) / (sizes[k] + alpha * cells))
                    for m in range(d):
                        if m in (i, j) or row[m] < 0:
                            continue
                        width = starts[m + 1] - starts[m]
                        below = together + alpha * width
                        n_all = triples[k, _cell(row, starts, blocks, i, j, m)]
                        value += np.log((n_all + alpha) / below) if below > 0 else -np.log(width)
                    total[count] = value
                    count += 1
            used[r] = count
            if count:
                result[r, k] = _log_mean(total, count)
    return result, used

"""Compiled loops of coordinate descent for linear support vector machines, over dual variables and over columns; see
`_linear_problem` for the dual form of the losses.

`joint_sweep` and `joint_gap` have the dual variables of all classes together (Crammer and Singer).
"""

import numpy as np

from assay.jit import compiled, prefetch
from assay.linear_model._row_loops import add as add_row
from assay.linear_model._row_loops import dot

_AHEAD = 3  # rows between the one that is swept and the one whose numbers are fetched
_HALVINGS = 30
_REST = 1e-14  # a dual variable that would gain at this slope or less stays where it is
Columns = np.ndarray | None  # of the stored entries; None if every entry is stored


@compiled(reduction=True)
def sparse_dot(columns: np.ndarray, values: np.ndarray, first: int, last: int, w: np.ndarray) -> float:
    """Return the sum of values[k] w[columns[k]], k from `first` to `last`."""
    where, own = columns[first:last], values[first:last]  # an index that counts from zero needs no test of its sign
    total = 0.0
    for k in range(where.shape[0]):
        total += own[k] * w[where[k]]
    return total


@compiled(reduction=True)
def dense_dot(values: np.ndarray, first: int, w: np.ndarray) -> float:
    total = 0.0
    for j in range(w.shape[0]):
        total += values[first + j] * w[j]
    return total


@compiled
def score(starts: np.ndarray, columns: Columns, values: np.ndarray, i: int, w: np.ndarray) -> float:
    """Return <x_i, w>."""
    if columns is None:
        return dense_dot(values, starts[i], w)
    return sparse_dot(columns, values, starts[i], starts[i + 1], w)


@compiled
def sparse_add(columns: np.ndarray, values: np.ndarray, first: int, last: int, factor: float, w: np.ndarray) -> None:
    """Add factor values[k] to w[columns[k]], k from `first` to `last`."""
    where, own = columns[first:last], values[first:last]
    for k in range(where.shape[0]):
        w[where[k]] += factor * own[k]


@compiled
def dense_add(values: np.ndarray, first: int, factor: float, w: np.ndarray) -> None:
    for j in range(w.shape[0]):
        w[j] += factor * values[first + j]


@compiled
def add(starts: np.ndarray, columns: Columns, values: np.ndarray, i: int, factor: float, w: np.ndarray) -> None:
    """Add factor x_i to w."""
    if columns is None:
        dense_add(values, starts[i], factor, w)
    else:
        sparse_add(columns, values, starts[i], starts[i + 1], factor, w)


@compiled
def fetch(starts: np.ndarray, columns: Columns, values: np.ndarray, i: int) -> None:
    """Ask for the entries of a row that is read soon."""
    first, last = starts[i], starts[i + 1]
    for k in range(first, last, 8):
        prefetch(values, 8 * k)
    if columns is not None:
        for k in range(first, last, 16):
            prefetch(columns, columns.itemsize * k)


@compiled
def gathered(
    starts: np.ndarray, columns: np.ndarray, values: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return starts, columns and values of the given rows, one after the other."""
    places = np.zeros(rows.shape[0] + 1, starts.dtype)
    for k in range(rows.shape[0]):
        places[k + 1] = places[k] + starts[rows[k] + 1] - starts[rows[k]]
    where, what = np.empty(places[-1], columns.dtype), np.empty(places[-1], values.dtype)
    for k in range(rows.shape[0]):
        first, last = starts[rows[k]], starts[rows[k] + 1]
        where[places[k] : places[k + 1]] = columns[first:last]
        what[places[k] : places[k + 1]] = values[first:last]
    return places, where, what


@compiled
def scores_of(
    starts: np.ndarray, columns: Columns, values: np.ndarray, column: float, rows: np.ndarray, u: np.ndarray
) -> np.ndarray:
    """Return <(x_i, column), u> of the given rows."""
    result = np.empty(rows.shape[0])
    for k in range(rows.shape[0]):
        result[k] = score(starts, columns, values, rows[k], u[:-1]) + column * u[-1]
    return result


@compiled
def transposed_product(
    starts: np.ndarray,
    columns: Columns,
    values: np.ndarray,
    column: float,
    rows: np.ndarray,
    factors: np.ndarray,
    width: int,
) -> np.ndarray:
    """Return the sum of factors[k] (x_i, column), i = rows[k], a vector of length `width`."""
    v = np.zeros(width)
    for k in range(rows.shape[0]):
        add(starts, columns, values, rows[k], factors[k], v[:-1])
        v[-1] += column * factors[k]
    return v


@compiled
def box(t: float, c: float, labels: bool, linear: bool) -> tuple[float, float]:
    """Return the range of theta."""
    limit = c if linear else np.inf
    return (0.0 if labels and t > 0.0 else -limit), (0.0 if labels and t < 0.0 else limit)


@compiled
def best(gradient: float, curvature: float, epsilon: float, low: float, high: float) -> float:
    """Return the theta in [low, high] that maximises theta gradient - epsilon |theta| - curvature theta^2 / 2."""
    if gradient > epsilon:
        return min((gradient - epsilon) / curvature, high)
    if gradient < -epsilon:
        return max((gradient + epsilon) / curvature, low)
    return 0.0


@compiled
def bracket(r: float, t: float, c: float, theta: float, epsilon: float, labels: bool, linear: bool) -> float:
    """Return the loss minus its dual form at theta, in terms that are not negative."""
    a = abs(theta)
    toward = t * r if labels else (-r if theta < 0.0 or (theta == 0.0 and r < 0.0) else r)
    beyond = toward - epsilon
    wrong = 0.0 if labels else max(-toward - epsilon, 0.0)
    if linear:
        return (c - a) * beyond if beyond > 0.0 else c * wrong - a * beyond
    half = 0.5 * a / c
    return c * (beyond - half) ** 2 if beyond > 0.0 else c * (half * half + wrong * wrong) - a * beyond


@compiled
def sweep(
    starts: np.ndarray,
    columns: Columns,
    values: np.ndarray,
    t: np.ndarray,
    c: np.ndarray,
    squares: np.ndarray,
    epsilon: float,
    labels: bool,
    linear: bool,
    column: float,
    order: np.ndarray,
    active: int,
    far: float,
    theta: np.ndarray,
    u: np.ndarray,
) -> tuple[int, float, float, int, int]:
    """Maximise the dual over each of the first `active` rows of `order` in turn; keep u = sum theta_i (x_i, column).

    Rows whose theta is held at an end of its range, or at zero, by a slope above `far` are moved behind the others.
    Returns how many are left, the largest slope along which a theta was free to gain, the sum of the brackets met, how
    many theta are inside their range, and how many went in or out.
    """
    d = u.shape[0] - 1
    w = u[:d]
    worst, gap = 0.0, 0.0
    inside, turned = 0, 0
    k = 0
    while k < active:
        i = order[k]
        if k + 2 * _AHEAD < active:
            prefetch(starts, starts.itemsize * order[k + 2 * _AHEAD])
        if k + _AHEAD < active:
            soon = order[k + _AHEAD]
            fetch(starts, columns, values, soon)
            prefetch(t, 8 * soon)
            prefetch(c, 8 * soon)
            prefetch(squares, 8 * soon)
            prefetch(theta, 8 * soon)
        r = t[i] - score(starts, columns, values, i, w) - column * u[d]
        old = theta[i]
        gap += bracket(r, t[i], c[i], old, epsilon, labels, linear)
        low, high = box(t[i], c[i], labels, linear)
        ridge = 0.0 if linear else 0.5 / c[i]
        slope = r - ridge * old
        up = slope - epsilon if old >= 0.0 else slope + epsilon
        down = -slope - epsilon if old <= 0.0 else -slope + epsilon
        gain = max(up if old < high else -np.inf, down if old > low else -np.inf)
        if gain < -far:
            active -= 1
            order[k], order[active] = order[active], i
            continue
        k += 1
        was = (old != 0.0) & (low < old) & (old < high)
        inside += was
        if gain <= _REST:
            continue
        worst = max(worst, gain)
        curvature = squares[i] + ridge
        new = best(slope + curvature * old, curvature, epsilon, low, high)
        theta[i] = new
        now = (new != 0.0) & (low < new) & (new < high)
        inside += now - was
        turned += now != was
        add(starts, columns, values, i, new - old, w)
        u[d] += column * (new - old)
    return active, worst, gap, inside, turned


@compiled
def measure(
    starts: np.ndarray,
    columns: Columns,
    values: np.ndarray,
    t: np.ndarray,
    c: np.ndarray,
    epsilon: float,
    labels: bool,
    linear: bool,
    column: float,
    theta: np.ndarray,
    u: np.ndarray,
    first: int,
    last: int,
) -> tuple[float, float]:
    """Return the sums of losses and of brackets over the rows from `first` to `last`."""
    losses, brackets = 0.0, 0.0
    for i in range(first, last):
        if c[i] == 0.0:
            continue
        r = t[i] - score(starts, columns, values, i, u[:-1]) - column * u[-1]
        beyond = max((t[i] * r if labels else abs(r)) - epsilon, 0.0)
        losses += c[i] * beyond if linear else c[i] * beyond * beyond
        brackets += bracket(r, t[i], c[i], theta[i], epsilon, labels, linear)
    return losses, brackets


@compiled
def row_squares(starts: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return |x_i|^2 of each row."""
    result = np.zeros(starts.shape[0] - 1)
    for i in range(result.shape[0]):
        for k in range(starts[i], starts[i + 1]):
            result[i] += values[k] * values[k]
    return result


@compiled
def entry(rows: np.ndarray, first: int, k: int) -> int:
    """Return the row of stored entry k of a column that begins at `first`; no rows are listed when all are stored."""
    return int(rows[k]) if rows.size else k - first


@compiled
def slope_and_curvature(
    first: int, last: int, rows: np.ndarray, values: np.ndarray, t: np.ndarray, c: np.ndarray, slack: np.ndarray
) -> tuple[float, float]:
    """Return the first two derivatives, along one column, of the sum of c max(0, slack)^2."""
    slope, curvature = 0.0, 0.0
    for k in range(first, last):
        i = entry(rows, first, k)
        if slack[i] > 0.0:
            product = c[i] * values[k]
            slope -= 2.0 * product * t[i] * slack[i]
            curvature += 2.0 * product * values[k]
    return slope, curvature


@compiled
def move(
    first: int,
    last: int,
    rows: np.ndarray,
    values: np.ndarray,
    t: np.ndarray,
    c: np.ndarray,
    slack: np.ndarray,
    step: float,
) -> float:
    """Move along one column: update the slacks and return by how much the sum of c max(0, slack)^2 rose."""
    rise = 0.0
    for k in range(first, last):
        i = entry(rows, first, k)
        before, after = slack[i], slack[i] - step * t[i] * values[k]
        slack[i] = after
        high, low = max(after, 0.0), max(before, 0.0)
        rise += c[i] * (high - low) * (high + low)
    return rise


@compiled
def sweep_columns(
    starts: np.ndarray,
    rows: np.ndarray,
    values: np.ndarray,
    t: np.ndarray,
    c: np.ndarray,
    column: float,
    order: np.ndarray,
    active: int,
    far: float,
    slack: np.ndarray,
    u: np.ndarray,
) -> tuple[int, float]:
    """Minimise |u|_1 + sum of c max(0, slack)^2 over each of the first `active` columns of `order` in turn.

    Keeps slack = 1 - t f. Columns at zero whose slope is inside [-1, 1] by more than `far` are moved behind the others.
    Returns how many are left, and the largest slope met along which the objective falls.
    """
    n = slack.shape[0]
    none, constant = np.empty(0, rows.dtype), np.full(n if column > 0.0 else 0, column)
    worst = 0.0
    k = 0
    while k < active:
        j = order[k]
        if j + 1 < u.shape[0]:
            first, last, where, what = starts[j], starts[j + 1], rows, values
        else:
            first, last, where, what = 0, n, none, constant
        slope, curvature = slope_and_curvature(first, last, where, what, t, c, slack)
        if u[j] == 0.0 and abs(slope) < 1.0 - far:
            active -= 1
            order[k], order[active] = order[active], j
            continue
        k += 1
        lean = 0.0 if u[j] == 0.0 else (1.0 if u[j] > 0.0 else -1.0)
        worst = max(worst, max(abs(slope) - 1.0, 0.0) if lean == 0.0 else abs(slope + lean))
        curvature = max(curvature, 1e-12)
        if slope + 1.0 <= curvature * u[j]:
            step = -(slope + 1.0) / curvature
        elif slope - 1.0 >= curvature * u[j]:
            step = -(slope - 1.0) / curvature
        else:
            step = -u[j]
        if step == 0.0:
            continue
        old, new = u[j], u[j] + step
        rise = move(first, last, where, what, t, c, slack, step)
        for _ in range(_HALVINGS):
            if rise + abs(new) - abs(old) <= 0.0:
                break
            middle = 0.5 * (old + new)
            rise += move(first, last, where, what, t, c, slack, middle - new)
            new = middle
        u[j] = new
    return active, worst


@compiled(reduction=True)
def joint_row_squares(starts: np.ndarray, columns: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """Return |x_i|^2 of every row."""
    result = np.empty(n)
    for i in range(n):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * values[k]
        result[i] = total
    return result


@compiled
def best_duals(linear: np.ndarray, own: int, square: float, cost: float, out: np.ndarray) -> None:
    """Write the t that minimise square/2 |t|^2 + <linear, t> with sum t = 0, t_own <= cost and t_k <= 0 otherwise.

    t_k = min(its bound, (level - linear_k) / square), where `level` makes the sum zero: of the r largest linear_k +
    square * bound_k those are below their bounds that exceed the level.
    """
    K = linear.shape[0]
    ends = linear.copy()
    ends[own] += square * cost
    ends.sort()
    total, r = ends[K - 1] - square * cost, 1
    while r < K and total < r * ends[K - 1 - r]:
        total += ends[K - 1 - r]
        r += 1
    level = total / r
    for k in range(K):
        out[k] = min(cost if k == own else 0.0, (level - linear[k]) / square)


@compiled
def joint_sweep(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    codes: np.ndarray,
    cost: np.ndarray,
    column: float,
    squares: np.ndarray,
    order: np.ndarray,
    theta: np.ndarray,
    W: np.ndarray,
) -> None:
    """Set the dual variables of each row of `order` to their best values, and W to what follows."""
    K, d = W.shape[0], W.shape[1] - 1
    linear, new = np.empty(K), np.empty(K)
    for place in range(order.shape[0]):
        i = order[place]
        if squares[i] <= 0.0:  # a row of zeros: its loss is one whatever W is
            theta[i] = -cost[i] / max(K - 1, 1)
            theta[i, codes[i]] = cost[i]
            continue
        for k in range(K):
            score = dot(starts, columns, values, i, W[k, :d]) + column * W[k, d]
            linear[k] = score + (0.0 if k == codes[i] else 1.0) - squares[i] * theta[i, k]
        best_duals(linear, codes[i], squares[i], cost[i], new)
        for k in range(K):
            change = new[k] - theta[i, k]
            if change != 0.0:
                add_row(starts, columns, values, i, change, W[k, :d])
                W[k, d] += column * change
                theta[i, k] = new[k]


@compiled
def joint_gap(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    codes: np.ndarray,
    cost: np.ndarray,
    column: float,
    theta: np.ndarray,
    W: np.ndarray,
) -> tuple[float, float]:
    """Return the objective at W and the gap to the dual objective at theta."""
    K, d = W.shape[0], W.shape[1] - 1
    half, losses, linear = 0.5 * np.sum(W * W), 0.0, 0.0
    for i in range(codes.shape[0]):
        own, worst = 0.0, -np.inf
        for k in range(K):
            score = dot(starts, columns, values, i, W[k, :d]) + column * W[k, d]
            if k == codes[i]:
                own = score
                worst = max(worst, score)
            else:
                worst = max(worst, score + 1.0)
                linear += theta[i, k]
        losses += cost[i] * (worst - own)
    return half + losses, half + losses + half + linear
